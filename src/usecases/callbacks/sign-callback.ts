// Authenticates callbacks to the receiver: the access key in the specified header, and a Standard Webhooks signature over
// id, time and body with a secret that is never sent.
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { CallbackSettings } from '../../domain/callbacks/callback.ts';
import { Secret } from '../../domain/secret.ts';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

export const newSigningSecret = (randomBytes: (count: number) => Uint8Array): Secret =>
  new Secret(PREFIX + Buffer.from(randomBytes(SECRET_BYTES)).toString('base64'));

/** Every delivery of an account signs with the same key, and the store remembers its secret. */
const keys = new WeakMap<Secret, KeyObject>();

function keyOf(signingSecret: Secret): KeyObject {
  // Given bytes instead of a key object, createHmac takes four times as long.
  const key = keys.get(signingSecret) ?? createSecretKey(signingSecret.reveal().slice(PREFIX.length), 'base64');
  keys.set(signingSecret, key);
  return key;
}

/** `v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`, each exactly as sent. */
export function signatureOf(signingSecret: Secret, id: string, timestamp: string, body: string | Uint8Array): string {
  const hmac = createHmac('sha256', keyOf(signingSecret)).update(`${id}.${timestamp}.`);
  return `v1,${hmac.update(body).digest('base64')}`;
}

interface SignedCallback {
  readonly id: string;
  readonly at: number;
  readonly body: string;
  readonly accessKey: Secret;
  readonly signingSecret: Secret;
  /** Also sign until they expire. */
  readonly former?: CallbackSettings['former'];
}

export function callbackHeaders(callback: SignedCallback): Record<string, string> {
  const { id, at, body, accessKey, signingSecret, former } = callback;
  const timestamp = String(Math.floor(at / 1000));
  const secrets = [signingSecret, ...(former && former.until > at ? former.secrets : [])];
  return {
    'Content-Type': 'application/json',
    'X-CC-Callback-Auth': accessKey.reveal(),
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': secrets.map((secret) => signatureOf(secret, id, timestamp, body)).join(' '),
  };
}
