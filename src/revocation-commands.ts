// Revocation by the operator's own hand: what the running service does, in a process of its own on the same store.
import { createHash, createPublicKey } from 'node:crypto';
import { readCsr } from './adapters/ca/csr.ts';
import { DerReader } from './adapters/ca/der-reader.ts';
import type { App } from './app.ts';
import type { RevocationCommands } from './cli/command.ts';
import type { Issuance } from './issuance.ts';
import { EXIT, Problem } from './problem.ts';

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
    if (label === 'PUBLIC KEY') return sha256(der);
    if (label === 'CERTIFICATE') return sha256(spkiIn(der));
    if (label?.endsWith('CERTIFICATE REQUEST')) return readCsr(text).publicKey.fingerprint;
    return sha256(createPublicKey(text).export({ type: 'spki', format: 'der' }));
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

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
