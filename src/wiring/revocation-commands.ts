// Revocation by the operator's own hand: what the running service does, in a process of its own on the same store.
import { createPublicKey } from 'node:crypto';
import { readCsr } from '../adapters/ca/csr.ts';
import { readPublicKey } from '../adapters/ca/public-key.ts';
import { DerReader } from '../adapters/der/reader.ts';
import type { RevocationCommands } from '../cli/command.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { App } from './app.ts';
import type { Issuance } from './issuance.ts';

export const revocationCommands = (
  { store }: App,
  { revoke, changeRevocation, compromiseKey, voidedSerials, show }: Issuance,
): RevocationCommands => ({
  ...{ revoke, changeRevocation, compromiseKey, voidedSerials, show, fingerprintOf },
  heads: () => store.revocationLists.heads(),
});

/** Of the key in a PEM text: the public or the private key itself, a request, or a certificate on it. */
function fingerprintOf(text: string): string {
  try {
    const [, label, base64 = ''] = /-----BEGIN ([A-Z ]+)-----([^-]+)-----END/.exec(text) ?? [];
    const der = Buffer.from(base64, 'base64');
    if (label?.endsWith('CERTIFICATE REQUEST')) return readCsr(text).publicKey.fingerprint;
    if (label === 'PUBLIC KEY') return readPublicKey(der).fingerprint;
    if (label === 'CERTIFICATE') return readPublicKey(spkiIn(der)).fingerprint;
    // In any other form than the one we certify, such as a compressed point, it would be blocked under a wrong name.
    return readPublicKey(createPublicKey(text).export({ type: 'spki', format: 'der' })).fingerprint;
  } catch (cause) {
    throw new Problem(
      EXIT.usage,
      'there is no key in this file that can be read',
      'Give PEM: the public key, the private key, a certificate signing request, or a certificate on the key.',
      { cause },
    );
  }
}

function spkiIn(certificate: Uint8Array): Uint8Array {
  const reader = new DerReader(certificate).sequence().sequence();
  reader.context(0);
  reader.integer();
  // The signature algorithm, the issuer, the validity, the subject.
  for (let skipped = 0; skipped < 4; skipped += 1) reader.any();
  return reader.any();
}
