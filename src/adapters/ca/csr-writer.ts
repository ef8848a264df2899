// A certificate signing request on a new P-256 key, for the sandbox: callers bring their own.
import { generateKeyPairSync, sign } from 'node:crypto';
import { bitString, explicit, integer, sequence } from './der.ts';
import { distinguishedName, SIGNATURE_ALGORITHMS } from './to-be-signed.ts';

/** Base64 without line breaks, which is how it fits into a command to paste. The private key is forgotten. */
export function throwAwayCsr(commonName: string): string {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const noAttributes = explicit(0, new Uint8Array());
  const info = sequence([integer(0), distinguishedName({ commonName }), spki, noAttributes]);
  const signature = bitString(sign('sha256', info, privateKey));
  return Buffer.from(sequence([info, SIGNATURE_ALGORITHMS.p256.sha256!, signature])).toString('base64');
}
