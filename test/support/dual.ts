// Dual certificates for tests: an order on a caller's SM2 key, and a customer who decrypts the envelope with an
// independent library.
import { createDecipheriv } from 'node:crypto';
import { sm2 as oracle } from 'sm-crypto-v2';
import { newKeyAndCsr } from '../../src/adapters/ca/csr-writer.ts';
import { DerReader } from '../../src/adapters/der/reader.ts';
import { openSm2PrivateKey, sm2Scalar } from '../../src/adapters/sm2/sm2.ts';
import type { TestApp } from './app.ts';
import type { PlacedOrder } from './orders.ts';

export interface Sm2Key {
  readonly pkcs8: Uint8Array;
  readonly csr: string;
  /** Hexadecimal, as the library expects. */
  readonly scalar: string;
  readonly point: string;
}

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

export async function newSm2Csr(commonName = 'www.example.com'): Promise<Sm2Key> {
  const { pkcs8, csr } = await newKeyAndCsr(commonName, 'sm2');
  return { pkcs8, csr, scalar: hex(sm2Scalar(pkcs8)), point: hex(openSm2PrivateKey(pkcs8).publicKey.point) };
}

export async function newDualOrder(app: TestApp, signingKey: Sm2Key): Promise<PlacedOrder> {
  const key = await app.newKey();
  const { orderId, certificateId } = await app.issuance.placeOrder({
    ...{
      accountId: key.accountId,
      productId: 'ssl-sm2-dual',
      alternativeId: null,
      actor: 'cli',
      vouchesForNames: true,
    },
    request: {
      ...{ commonName: 'www.example.com', csr: signingKey.csr, keySource: 'caller', signHash: 'sm3' },
      keepsEncryptionKey: false,
    },
  });
  return { key, id: orderId, certificateId };
}

/** Decrypts an SM2EnvelopedKey; returns private and public key in hexadecimal. */
export function openEnvelope(base64: string, signingKey: Sm2Key): { scalar: string; point: string } {
  const envelope = new DerReader(Buffer.from(base64, 'base64')).sequence();
  envelope.any();
  const wrapped = hex(envelope.any());
  const [point, hidden] = [envelope.bitString(), envelope.bitString()];
  envelope.end();
  const key = oracle.doDecrypt(wrapped, signingKey.scalar, 1, { asn1: true, output: 'array' });
  const decipher = createDecipheriv('sm4-ecb', Buffer.from(key), null).setAutoPadding(false);
  return { scalar: hex(Buffer.concat([decipher.update(hidden), decipher.final()])), point: hex(point) };
}

/** Public key (point in hexadecimal), signed bytes and signature of a certificate. */
export function readSm2Certificate(pem: string) {
  const der = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  const outer = new DerReader(der).sequence();
  const signed = outer.any();
  const algorithm = hex(outer.any());
  const signature = outer.bitString();
  const body = new DerReader(signed).sequence();
  body.context(0);
  body.integer();
  for (let skipped = 0; skipped < 4; skipped += 1) body.any();
  const spki = body.sequence();
  spki.any();
  return { signed, algorithm, signature: hex(signature), point: hex(spki.bitString()) };
}
