// A self-signed certificate for a test server: node:crypto cannot create certificates, and tests must not require
// openssl.
import { generateKeyPairSync, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  distinguishedName,
  extension,
  SIGNATURE_ALGORITHMS,
  signedCertificate,
  toBeSigned,
} from '../../src/adapters/ca/to-be-signed.ts';
import { ia5String, implicit, oid, sequence } from '../../src/adapters/der/writer.ts';
import { pem } from '../../src/domain/certificate/pem.ts';
import { newFolder } from './app.ts';

const YEAR_MS = 365 * 86_400_000;

export interface SelfSigned {
  readonly certificate: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export function selfSigned(host: string, now = Date.now(), lifetimeMs = YEAR_MS): SelfSigned {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = distinguishedName({ commonName: host });
  const algorithm = SIGNATURE_ALGORITHMS.p256.sha256!;
  const altNames = sequence([implicit(2, ia5String(host))]);
  const bytes = toBeSigned({
    serial: Uint8Array.of(1),
    algorithm,
    issuer: name,
    notBefore: now - 3_600_000,
    notAfter: now + lifetimeMs,
    subject: name,
    spki: publicKey.export({ type: 'spki', format: 'der' }),
    extensions: [extension({ id: oid('2.5.29.17'), isCritical: false, value: altNames })],
  });
  const certificate = pem('CERTIFICATE', signedCertificate(bytes, algorithm, sign('sha256', bytes, privateKey)));
  const folder = newFolder();
  const [certFile, keyFile] = [join(folder, 'tls.pem'), join(folder, 'tls.key')];
  writeFileSync(certFile, certificate);
  writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  return { certificate, certFile, keyFile };
}
