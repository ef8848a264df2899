// Creates certificates that answer tls-alpn-01 (RFC 8737), for the sandbox: real applicants' clients bring their own.
import { generateKeyPairSync, sign } from 'node:crypto';
import { pem } from '../../domain/certificate/pem.ts';
import { parseAddress } from '../../domain/egress/addresses.ts';
import { DAY_MS } from '../../kernel/durations.ts';
import { ia5String, implicit, octetString, oid, sequence } from '../der/writer.ts';
import { defaultAlgorithm, distinguishedName, extension, signedCertificate, toBeSigned } from './to-be-signed.ts';

const SUBJECT_ALT_NAME = oid('2.5.29.17');
const ACME_IDENTIFIER = oid('1.3.6.1.5.5.7.1.31');

/** PEM. */
export interface AlpnIdentity {
  readonly cert: string;
  readonly key: string;
}

/** Always the same: clients of TLS do not compare serial numbers. */
const SERIAL = Uint8Array.of(1, 1);

/** `host` is a DNS name or an IP address. */
export function newAlpnCertificate(host: string, digest: Uint8Array, now: number): AlpnIdentity {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const address = parseAddress(host);
  const altName = address ? implicit(7, octetString(address)) : implicit(2, ia5String(host));
  const name = distinguishedName({ commonName: 'ACME challenge' });
  const algorithm = defaultAlgorithm('p256');
  const bytes = toBeSigned({
    ...{ serial: SERIAL, algorithm, issuer: name, subject: name },
    ...{ notBefore: now - DAY_MS, notAfter: now + DAY_MS, spki: publicKey.export({ type: 'spki', format: 'der' }) },
    extensions: [
      extension({ id: SUBJECT_ALT_NAME, isCritical: false, value: sequence([altName]) }),
      extension({ id: ACME_IDENTIFIER, isCritical: true, value: octetString(digest) }),
    ],
  });
  const der = signedCertificate(bytes, algorithm, sign('sha256', bytes, privateKey));
  return { cert: pem('CERTIFICATE', der), key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}
