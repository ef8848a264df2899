// A private key wrapped under two secrets: one of the service and the owner's PIN. Neither a thief of the database nor
// the operator can use the key without the PIN. The use case limits guesses.
//
// Format: k1.<parameters>.<salt>.<nonce>.<ciphertext and tag>.<mac>, all but the first two in base64url. Argon2id derives
// the key from PIN, salt, service secret and binding; AES-256-GCM encrypts with it. The parameters are part of the text,
// so that they can be raised while older keys stay readable.
//
// The GCM tag cannot distinguish a wrong PIN from an altered text. The MAC can: it authenticates text and binding under
// the service secret alone. So a damaged row or a wrong secret never counts as a wrong PIN, and no altered text makes the
// service spend the memory it asks for.
import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Argon2Input } from '../workers/jobs.ts';
import type { JobRunner } from '../workers/pool.ts';

type Cost = Pick<Argon2Input, 'memory' | 'passes' | 'parallelism'>;

/** The minimum OWASP recommends: 19 MiB, two passes. */
const COST: Cost = { memory: 19_456, passes: 2, parallelism: 1 };
/** Upper bound for parameters read back, so that a worker finishes within its time limit. The lower bound is COST. */
const MAX_COST: Cost = { memory: 262_144, passes: 8, parallelism: 4 };

const SALT_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const MIN_SECRET_BYTES = 32;
const CIPHER = 'aes-256-gcm';
const MAC_LABEL = 'reseal locked key';

const FORMAT =
  /^(k1\.m([1-9]\d{0,9})t([1-9]\d{0,9})p([1-9]\d{0,9})\.([\w-]{22})\.([\w-]{16})\.([\w-]{22,}))\.([\w-]{43})$/;

/** The text was altered, moved, or wrapped under another service secret. Never thrown for a wrong PIN. */
export class WrappingBroken extends Error {}

export interface WrapContext {
  readonly serviceSecret: Uint8Array;
  /** Where the text is stored. It opens nowhere else. */
  readonly binding: string;
  readonly pool: JobRunner;
}

export async function wrapKey(pkcs8: Uint8Array, pin: string, context: WrapContext): Promise<string> {
  const { serviceSecret, binding } = context;
  requireLong(serviceSecret);
  if (!pin.isWellFormed()) throw new TypeError('a lone surrogate has no UTF-8');
  const salt = randomBytes(SALT_BYTES);
  const nonce = randomBytes(NONCE_BYTES);
  const key = await deriveKey(pin, salt, COST, context);
  try {
    const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(binding));
    const body = Buffer.concat([cipher.update(pkcs8), cipher.final(), cipher.getAuthTag()]);
    const cost = `m${COST.memory}t${COST.passes}p${COST.parallelism}`;
    const text = `k1.${cost}.${[salt, nonce, body].map((part) => part.toString('base64url')).join('.')}`;
    return `${text}.${macOf(text, binding, serviceSecret)}`;
  } finally {
    key.fill(0);
  }
}

/**
 * Returns the PKCS#8, which the caller wipes, or null for a wrong PIN. Throws WrappingBroken for any other failure. A
 * wrong PIN takes as long as the right one: they differ in one comparison at the end.
 */
export async function unwrapKey(wrapped: string, pin: string, context: WrapContext): Promise<Uint8Array | null> {
  const { serviceSecret, binding } = context;
  requireLong(serviceSecret);
  const { cost, salt, nonce, body } = parse(wrapped, context);
  // No key is wrapped under a lone surrogate, and UTF-8 would encode all of them alike.
  if (!pin.isWellFormed()) return null;
  const key = await deriveKey(pin, salt, cost, context);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  key.fill(0);
  decipher.setAAD(Buffer.from(binding)).setAuthTag(body.subarray(-TAG_BYTES));
  const pkcs8 = decipher.update(body.subarray(0, -TAG_BYTES));
  try {
    decipher.final();
    return pkcs8;
  } catch {
    pkcs8.fill(0);
    return null;
  }
}

/**
 * The PIN is normalized to NFC (RFC 8265, passwords): some keyboards write é as one character and others as two. Case
 * and spaces count. The string itself cannot be wiped.
 */
async function deriveKey(
  pin: string,
  salt: Uint8Array,
  cost: Cost,
  { serviceSecret, binding, pool }: WrapContext,
): Promise<Uint8Array> {
  const message = Buffer.from(pin.normalize('NFC'));
  try {
    const { key } = await pool.run('argon2', {
      message,
      nonce: salt,
      secret: serviceSecret,
      associatedData: Buffer.from(binding),
      tagLength: KEY_BYTES,
      ...cost,
    });
    return key;
  } finally {
    message.fill(0);
  }
}

function parse(
  wrapped: string,
  { binding, serviceSecret }: WrapContext,
): { cost: Cost; salt: Uint8Array; nonce: Uint8Array; body: Uint8Array } {
  const [, text = '', memory, passes, parallelism, salt = '', nonce = '', body = '', mac = ''] =
    FORMAT.exec(wrapped) ?? [];
  const cost: Cost = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) };
  for (const name of ['memory', 'passes', 'parallelism'] as const) {
    // Written so that NaN fails, too.
    if (!(cost[name] >= COST[name] && cost[name] <= MAX_COST[name])) {
      throw new WrappingBroken(text === '' ? 'not a wrapped key' : `${name} out of bounds`);
    }
  }
  // Compared as text: several base64 texts decode to the same bytes, and only one may be valid.
  if (!timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(text, binding, serviceSecret)))) {
    throw new WrappingBroken('the wrapped key was altered, belongs elsewhere, or needs another secret');
  }
  const bytes = (part: string) => Buffer.from(part, 'base64url');
  return { cost, salt: bytes(salt), nonce: bytes(nonce), body: bytes(body) };
}

/** NUL separates the parts unambiguously: the text contains none. */
const macOf = (text: string, binding: string, serviceSecret: Uint8Array): string =>
  createHmac('sha256', serviceSecret).update(`${MAC_LABEL}\0${text}\0${binding}`).digest('base64url');

function requireLong(serviceSecret: Uint8Array): void {
  if (serviceSecret.length < MIN_SECRET_BYTES) throw new TypeError(`a secret needs ${MIN_SECRET_BYTES} bytes`);
}
