// The signature of a callback (Standard Webhooks): HMAC-SHA256 of id, time and body under the signing secret, computed in the
// browser. The secret is sent nowhere.

const PREFIX = 'whsec_';

export interface SignedMessage {
  readonly id: string;
  /** Unix seconds, as webhook-timestamp has them. */
  readonly timestamp: string;
  readonly body: string;
}

/** Throws if the secret is not whsec_ and base64. */
export async function signatureOf(secret: string, { id, timestamp, body }: SignedMessage): Promise<string> {
  if (!secret.startsWith(PREFIX)) throw new TypeError('no signing secret');
  const bytes = Uint8Array.from(atob(secret.slice(PREFIX.length)), (character) => character.charCodeAt(0));
  const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const signed = await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(`${id}.${timestamp}.${body}`));
  return `v1,${btoa(String.fromCharCode(...new Uint8Array(signed)))}`;
}
