// For receivers: whether a callback is from the service, and what it says. Uses Web Crypto only, whose comparison of
// signatures takes the same time wherever they differ.
import { type RejectionReason, ResealError } from './errors.ts';
import type { webhooks } from './openapi.ts';

type Webhook = webhooks[keyof webhooks]['post'];
/** Told apart by `action_id`. Handle others as well: later versions of the service may send them. */
export type CallbackEvent = Webhook['requestBody']['content']['application/json'];

export interface VerifiedCallback {
  /** The same in every attempt to deliver the event: handle each id once. */
  readonly id: string;
  /** When this attempt was sent. */
  readonly sentAt: Date;
  readonly event: CallbackEvent;
}

export interface CallbackSecrets {
  /** That of the callback settings; the old and the new one while you change it. */
  readonly accessKey: string | readonly string[];
  /** The signing secret: `whsec_…`. */
  readonly secret: string;
  /** How far the clocks may be apart, and for how long a recorded callback could be replayed; 300 if left out. */
  readonly toleranceSeconds?: number;
  /** Unix milliseconds; now if left out. */
  readonly now?: number;
}

/** `Headers`, or Node's `request.headers`. */
export type CallbackHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

const HMAC = { name: 'HMAC', hash: 'SHA-256' };
const PREFIX = 'whsec_';
const MIN_SECRET_BYTES = 16;
/** A rotation sends two or three; each costs a verification. */
const MAX_SIGNATURES = 16;
const encoder = new TextEncoder();

/**
 * Resolves if access key, time and signature are right, and rejects with a ResealError `callback_rejected` whose details have
 * the reason. `body` must be the bytes as they arrived: JSON that was parsed and written again may differ.
 */
export async function verifyCallback(
  headers: CallbackHeaders,
  body: Uint8Array | string,
  { accessKey, secret, toleranceSeconds = 300, now = Date.now() }: CallbackSecrets,
): Promise<VerifiedCallback> {
  const signingKey = await importedKey(keyBytes(secret));
  const accessKeys = typeof accessKey === 'string' ? [accessKey] : accessKey;
  // An empty one would accept callbacks of anyone who leaves it empty too.
  if (accessKeys.length === 0 || accessKeys.includes('')) throw new TypeError('accessKey is missing.');

  const given = {
    accessKey: headerOf(headers, 'x-cc-callback-auth'),
    id: headerOf(headers, 'webhook-id'),
    timestamp: headerOf(headers, 'webhook-timestamp'),
    signatures: headerOf(headers, 'webhook-signature').split(' ', MAX_SIGNATURES),
  };
  if (!(await isOneOf(given.accessKey, accessKeys)))
    throw rejected('access_key_wrong', 'The access key is another one.');
  const seconds = /^\d{1,12}$/.test(given.timestamp) ? Number(given.timestamp) : Number.NaN;
  // NaN compares false: what is no timestamp is outside too.
  if (!(Math.abs(now / 1000 - seconds) <= toleranceSeconds)) {
    throw rejected(
      'timestamp_outside_tolerance',
      `It was not sent within ${toleranceSeconds} seconds of the time here.`,
    );
  }
  const bytes = typeof body === 'string' ? encoder.encode(body) : body;
  // Not by class: bytes may come from another realm, as in test runners.
  if (!ArrayBuffer.isView(bytes)) throw new TypeError('body must be bytes or text as they arrived, not parsed JSON.');
  const signed = joined(encoder.encode(`${given.id}.${given.timestamp}.`), bytes);
  if (!(await isSigned(signingKey, signed, given.signatures))) {
    throw rejected('signature_wrong', 'No signature is of this body, id and time under the signing secret.');
  }
  return { id: given.id, sentAt: new Date(seconds * 1000), event: eventIn(bytes) };
}

function rejected(reason: RejectionReason, message: string, header: string | null = null): ResealError {
  const none = { field: undefined, status: null, requestId: null, retryAfter: null };
  return new ResealError({ code: 'callback_rejected', message, details: { reason, header }, ...none });
}

function headerOf(headers: CallbackHeaders, name: string): string {
  // Not by class: frameworks bring their own.
  const value =
    typeof headers.get === 'function'
      ? headers.get(name)
      : Object.entries(headers).find(([one]) => one.toLowerCase() === name)?.[1];
  if (typeof value !== 'string' || value === '')
    throw rejected('header_missing', `The header ${name} is missing.`, name);
  return value;
}

/** Undefined if it is not base64. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** A secret that is not one is a mistake of the receiver, not of the sender: no callback could be right. */
function keyBytes(secret: string): Uint8Array<ArrayBuffer> {
  const bytes = secret.startsWith(PREFIX) ? bytesOf(secret.slice(PREFIX.length)) : undefined;
  if (!bytes || bytes.length < MIN_SECRET_BYTES) throw new TypeError(`secret must be ${PREFIX} and base64.`);
  return bytes;
}

/** CryptoKey, which is not a global type in every runtime. */
type HmacKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

const importedKey = (bytes: Uint8Array<ArrayBuffer>): Promise<HmacKey> =>
  crypto.subtle.importKey('raw', bytes, HMAC, false, ['sign', 'verify']);

function joined(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

async function isSigned(
  key: HmacKey,
  signed: Uint8Array<ArrayBuffer>,
  signatures: readonly string[],
): Promise<boolean> {
  for (const one of signatures) {
    const signature = one.startsWith('v1,') ? bytesOf(one.slice('v1,'.length)) : undefined;
    if (signature && (await crypto.subtle.verify(HMAC, key, signature, signed))) return true;
  }
  return false;
}

/** Compares MACs under a key made for this call, so that timing tells nothing about the access keys. */
async function isOneOf(text: string, accessKeys: readonly string[]): Promise<boolean> {
  const key = await importedKey(crypto.getRandomValues(new Uint8Array(32)));
  const mac = await crypto.subtle.sign(HMAC, key, encoder.encode(text));
  const matches = await Promise.all(accessKeys.map((one) => crypto.subtle.verify(HMAC, key, mac, encoder.encode(one))));
  return matches.includes(true);
}

/** Its sender is known by now: only what every event has is checked. */
function eventIn(bytes: Uint8Array): CallbackEvent {
  try {
    const event: CallbackEvent = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (typeof event.action_id === 'string') return event;
  } catch {}
  throw rejected('body_invalid', 'The body is not an event.');
}
