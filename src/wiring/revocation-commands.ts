// Revocation for the command line: the use cases of the service, in a process of its own on the same store.
import { createPublicKey } from 'node:crypto';
import { spkiOf } from '../adapters/ca/certificate-reader.ts';
import { readCsr } from '../adapters/ca/csr.ts';
import { readPublicKey } from '../adapters/ca/public-key.ts';
import type { RevocationCommands } from '../cli/command.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { Issuance } from './issuance.ts';

export const revocationCommands = ({
  revoke,
  changeRevocation,
  revokeKey,
  interrupted,
  show,
}: Issuance): RevocationCommands => ({ revoke, changeRevocation, revokeKey, interrupted, show, fingerprintOf });

/** Reads PEM: a public or private key, a CSR, or a certificate. Returns the SHA-256 of the SPKI, in hexadecimal. */
function fingerprintOf(text: string): string {
  try {
    const [, label, base64 = ''] = /-----BEGIN ([A-Z ]+)-----([^-]+)-----END/.exec(text) ?? [];
    const der = Buffer.from(base64, 'base64');
    if (label?.endsWith('CERTIFICATE REQUEST')) return readCsr(text).publicKey.fingerprint;
    if (label === 'PUBLIC KEY') return readPublicKey(der).fingerprint;
    if (label === 'CERTIFICATE') return readPublicKey(spkiOf(der)).fingerprint;
    // Re-encoded: another form, such as a compressed point, would be blocked under another fingerprint.
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
