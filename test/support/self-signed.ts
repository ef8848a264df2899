// A self-signed certificate for a test server, written byte by byte: Node can make keys, not certificates, and tests
// may not need openssl.
import { generateKeyPairSync, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from './app.ts';

const YEAR_MS = 365 * 86_400_000;

const der = (tag: number, ...parts: Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts);
  const size = content.length;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
};
const sequence = (...parts: Uint8Array[]) => der(0x30, ...parts);
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const utcTime = (ms: number) =>
  der(0x17, Buffer.from(`${new Date(ms).toISOString().slice(2, 19).replace(/[-:T]/g, '')}Z`));

export interface SelfSigned {
  readonly certificate: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export function selfSigned(host: string, now = Date.now(), lifetimeMs = YEAR_MS): SelfSigned {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'));
  const name = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(host)))));
  const altName = sequence(oid('551d11'), der(0x04, sequence(der(0x82, Buffer.from(host)))));
  const toBeSigned = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    name,
    sequence(utcTime(now - 3_600_000), utcTime(now + lifetimeMs)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(altName)),
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', toBeSigned, privateKey));
  const bytes = sequence(toBeSigned, ecdsaWithSha256, signature);
  const certificate = `-----BEGIN CERTIFICATE-----\n${bytes.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
  const folder = newFolder();
  const [certFile, keyFile] = [join(folder, 'tls.pem'), join(folder, 'tls.key')];
  writeFileSync(certFile, certificate);
  writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  return { certificate, certFile, keyFile };
}
