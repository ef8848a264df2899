// Certificate signing requests on new P-256 keys, for the sandbox: callers bring their own.
import { generateKeyPairSync, sign } from 'node:crypto';
import { bitString, explicit, integer, sequence } from './der.ts';
import { distinguishedName, SIGNATURE_ALGORITHMS } from './to-be-signed.ts';

/** The key as PEM; the CSR in base64 without line breaks, which is how it fits into a command to paste. */
export function newKeyAndCsr(commonName: string): { key: string; csr: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const noAttributes = explicit(0, new Uint8Array());
  const info = sequence([integer(0), distinguishedName({ commonName }), spki, noAttributes]);
  const signature = bitString(sign('sha256', info, privateKey));
  const csr = Buffer.from(sequence([info, SIGNATURE_ALGORITHMS.p256.sha256!, signature])).toString('base64');
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), csr };
}

/** On a key that nobody has. */
export const throwAwayCsr = (commonName: string): string => newKeyAndCsr(commonName).csr;
