// Signs a digest that the client computed. node:crypto does that for RSA only, so the curves use a library. Callers
// decide what may be signed.
//
// The caller wipes the key bytes. The library computes with BigInt, which cannot be wiped: run this in a worker only,
// away from all network I/O.
import { constants, createPrivateKey, privateEncrypt } from 'node:crypto';
import { p256, p384, p521 } from '@noble/curves/nist.js';
import type { PublicKey } from '../../domain/certificate/public-key.ts';
import { DIGEST_BYTES, type SignHash } from '../../domain/certificate/sign-hash.ts';
import { DerReader } from '../der/reader.ts';
import { integer, NULL, octetString, oid, sequence } from '../der/writer.ts';
import { FIELD_BYTES } from '../sm2/curve.ts';
import { numberFrom, Point, randomScalar } from '../sm2/points.ts';

/** The private key is PKCS#8, DER. For SM2 the digest is e, which already covers Z, the signer's identity and key. */
export function signDigest(
  privateKey: Uint8Array,
  { type }: PublicKey,
  signHash: SignHash,
  digest: Uint8Array,
): Uint8Array {
  if (digest.length !== DIGEST_BYTES[signHash]) throw new RangeError(`${digest.length} bytes are no ${signHash}`);
  if ((type === 'sm2') !== (signHash === 'sm3')) throw new RangeError(`a key of ${type} does not sign ${signHash}`);
  if (type === 'sm2' || signHash === 'sm3') return signSm2(numberFrom(scalarIn(privateKey)), numberFrom(digest));
  if (type === 'rsa') return signRsa(privateKey, signHash, digest);
  if (type === 'ed25519') throw new RangeError('Ed25519 signs no digest');
  // No low-S normalization: OpenSSL neither applies nor requires it.
  return CURVES[type].sign(digest, scalarIn(privateKey), { prehash: false, lowS: false, format: 'der' });
}

const CURVES = { p256, p384, p521 } as const;

const DIGEST_ALGORITHMS: Readonly<Record<Exclude<SignHash, 'sm3'>, Uint8Array>> = {
  sha256: sequence([oid('2.16.840.1.101.3.4.2.1'), NULL]),
  sha384: sequence([oid('2.16.840.1.101.3.4.2.2'), NULL]),
  sha512: sequence([oid('2.16.840.1.101.3.4.2.3'), NULL]),
};

/** PKCS #1 v1.5 (RFC 8017, 9.2): pads a DigestInfo. */
function signRsa(privateKey: Uint8Array, signHash: keyof typeof DIGEST_ALGORITHMS, digest: Uint8Array): Uint8Array {
  const key = createPrivateKey({
    key: Buffer.from(privateKey.buffer, privateKey.byteOffset, privateKey.length),
    format: 'der',
    type: 'pkcs8',
  });
  const digestInfo = sequence([DIGEST_ALGORITHMS[signHash], octetString(digest)]);
  return privateEncrypt({ key, padding: constants.RSA_PKCS1_PADDING }, digestInfo);
}

/** The scalar in a PKCS#8 EC key (RFC 5958, RFC 5915), as a view: wiping the key wipes it. */
function scalarIn(privateKey: Uint8Array): Uint8Array {
  const info = new DerReader(privateKey).sequence();
  info.integer();
  info.any();
  const key = new DerReader(info.octetString()).sequence();
  key.integer();
  return key.octetString();
}

/** GM/T 0003.2, 6.1: r = e + x₁, s = (1 + d)⁻¹ · (k − r · d), both modulo n. */
function signSm2(d: bigint, e: bigint): Uint8Array {
  const { Fn } = Point;
  for (;;) {
    const k = randomScalar();
    const r = Fn.create(e + Point.BASE.multiply(k).x);
    if (r === 0n || r + k === Fn.ORDER) continue;
    const s = Fn.mul(Fn.inv(Fn.create(1n + d)), Fn.create(k - r * d));
    if (s !== 0n) return sequence([integer(bytesOf(r)), integer(bytesOf(s))]);
  }
}

const bytesOf = (value: bigint): Uint8Array => Buffer.from(value.toString(16).padStart(2 * FIELD_BYTES, '0'), 'hex');
