// Reads public keys, and rejects RSA keys that are weak by the Baseline Requirements (6.1.1.3 and 6.1.6). Whether a
// product requires that, and which keys are on the blocklist, is decided elsewhere. All work is bounded: keys are
// untrusted input.
import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import type { KeyType, PublicKey } from '../../domain/certificate/public-key.ts';
import { Refusal } from '../../domain/errors.ts';
import type { Localized } from '../../kernel/locale.ts';
import { bitLength, DerError, DerReader } from '../der/reader.ts';
import { mapKey, NULL, oid, sequence } from '../der/writer.ts';
import { KEY_ALGORITHM as SM2_KEY } from '../sm2/curve.ts';
import { hasClosePrimes, hasRocaForm, smallFactorOf } from './weak-modulus.ts';

const MIN_STRONG_BITS = 2048;
const MAX_RSA_BITS = 8192;
// OpenSSL's own bound for long keys; generators in use stay within 32 bits.
const MAX_EXPONENT_BYTES = 8;
const UNCOMPRESSED = 4;

const NEW_RSA_KEY = 'openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072 -out key.pem';

const UNSUPPORTED: Localized = {
  en: `The public key cannot be used: it must be RSA (rsaEncryption, at most ${MAX_RSA_BITS} bits), or an uncompressed point of the named curve P-256, P-384, P-521 or SM2.`,
  zh: `无法使用该公钥：须为 RSA（rsaEncryption，不超过 ${MAX_RSA_BITS} 位），或命名曲线 P-256、P-384、P-521、SM2 上的未压缩点。`,
};

/** By AlgorithmIdentifier with its parameters: any other encoding is refused. */
const ALGORITHMS: ReadonlyMap<string, { readonly type: KeyType; readonly bits: number }> = new Map([
  [mapKey(sequence([oid('1.2.840.113549.1.1.1'), NULL])), { type: 'rsa', bits: 0 }],
  [mapKey(sequence([oid('1.2.840.10045.2.1'), oid('1.2.840.10045.3.1.7')])), { type: 'p256', bits: 256 }],
  [mapKey(sequence([oid('1.2.840.10045.2.1'), oid('1.3.132.0.34')])), { type: 'p384', bits: 384 }],
  [mapKey(sequence([oid('1.2.840.10045.2.1'), oid('1.3.132.0.35')])), { type: 'p521', bits: 521 }],
  [mapKey(SM2_KEY), { type: 'sm2', bits: 256 }],
]);

/** The longest SubjectPublicKeyInfo of an RSA key of 4096 bits with the exponent 65537. */
const MAX_CHEAP_BYTES = 550;

/**
 * Whether a signature of the key takes long to verify. Measured, with inspecting the key: P-256 0.13 ms, RSA-2048 0.12,
 * RSA-4096 0.23, SM2 0.42, P-384 0.67; but RSA-4096 with a long exponent 0.57, RSA-8192 0.7 and up, P-521 1.5.
 */
export function isCostlyKey(spki: Uint8Array): boolean {
  const { type } = shapeOf(spki);
  return type === 'p521' || (type === 'rsa' && spki.length > MAX_CHEAP_BYTES);
}

export const readPublicKey = (spki: Uint8Array): PublicKey => openPublicKey(spki).publicKey;

/** Returns the key for the domain, and the node:crypto handle, which is expensive to create. */
export function openPublicKey(spki: Uint8Array): { readonly publicKey: PublicKey; readonly handle: KeyObject } {
  try {
    const shape = shapeOf(spki);
    const own = new Uint8Array(spki);
    // Checks that a point is on its curve. On its own it would accept what shapeOf refuses: compressed points, the point
    // at infinity, trailing bytes. As PEM text, because node:crypto takes twice as long with an options object.
    const handle = createPublicKey(
      `-----BEGIN PUBLIC KEY-----\n${Buffer.from(own.buffer).toString('base64')}\n-----END PUBLIC KEY-----`,
    );
    return { publicKey: { ...shape, spki: own, fingerprint: hash('sha256', own, 'hex') }, handle };
  } catch (cause) {
    throw cause instanceof Refusal ? cause : refusal(UNSUPPORTED, cause);
  }
}

/** Refuses RSA keys that public CAs must not certify. All supported curves are strong. */
export function requireStrongKey(key: PublicKey): void {
  if (key.type !== 'rsa') return;
  if (key.bits < MIN_STRONG_BITS || key.bits % 8 !== 0) {
    throw refusal({
      en: `An RSA key must have ${MIN_STRONG_BITS} to ${MAX_RSA_BITS} bits, in steps of 8; this one has ${key.bits}.`,
      zh: `RSA 密钥长度须为 ${MIN_STRONG_BITS} 至 ${MAX_RSA_BITS} 位且为 8 的倍数，此密钥为 ${key.bits} 位。`,
    });
  }
  const modulus = modulusOf(key.spki);
  const factor = smallFactorOf(modulus);
  if (factor !== undefined) {
    throw refusal({
      en: `The modulus of the RSA key is divisible by ${factor}: the key was damaged, or its generator is broken.`,
      zh: `RSA 模数可被 ${factor} 整除：密钥已损坏，或生成程序有缺陷。`,
    });
  }
  if (hasRocaForm(modulus)) {
    throw refusal({
      en: 'The RSA key has the ROCA weakness (CVE-2017-15361) and can be computed from its public half. Update the card or module that made it, or make the key elsewhere.',
      zh: 'RSA 密钥存在 ROCA 漏洞（CVE-2017-15361），可由公钥推算出私钥。请更新生成该密钥的卡或模块，或改用其他方式生成。',
    });
  }
  if (hasClosePrimes(modulus)) {
    throw refusal({
      en: 'The two primes of the RSA key are so close together that anyone can find them (CVE-2022-26320). Update the program that made it.',
      zh: 'RSA 密钥的两个素数过于接近，任何人都能分解（CVE-2022-26320）。请更新生成该密钥的程序。',
    });
  }
}

function refusal(what: Localized, cause?: unknown): Refusal {
  const reason = { en: `${what.en} Make a new key: ${NEW_RSA_KEY}`, zh: `${what.zh}请生成新密钥：${NEW_RSA_KEY}` };
  return new Refusal('invalid_csr', { field: 'certificate.csr', reason, cause });
}

function shapeOf(spki: Uint8Array): { type: KeyType; bits: number } {
  const outer = new DerReader(spki);
  const info = outer.sequence();
  outer.end();
  const algorithm = ALGORITHMS.get(mapKey(info.any()));
  if (!algorithm) throw new DerError('unsupported algorithm');
  const key = info.bitString();
  info.end();
  if (algorithm.type !== 'rsa') {
    const isWhole = key[0] === UNCOMPRESSED && key.length === 1 + 2 * Math.ceil(algorithm.bits / 8);
    if (!isWhole) throw new DerError('not an uncompressed point');
    return algorithm;
  }
  const { modulus, exponent } = rsaParts(key);
  const bits = bitLength(modulus);
  if (bits > MAX_RSA_BITS) throw new DerError('modulus too long');
  // With exponent 1 signatures can be forged; an even exponent has no private key.
  const isOne = exponent.length === 1 && exponent[0] === 1;
  if (isOne || (exponent.at(-1) ?? 0) % 2 === 0 || exponent.length > MAX_EXPONENT_BYTES) {
    throw refusal({
      en: 'The public exponent of the RSA key must be odd, at least 3 and below 2^64; it should be 65537.',
      zh: 'RSA 公钥指数须为奇数，不小于 3 且小于 2^64，建议使用 65537。',
    });
  }
  return { type: 'rsa', bits };
}

function rsaParts(key: Uint8Array): { modulus: Uint8Array; exponent: Uint8Array } {
  const outer = new DerReader(key);
  const numbers = outer.sequence();
  outer.end();
  const parts = { modulus: numbers.positive(), exponent: numbers.positive() };
  numbers.end();
  return parts;
}

function modulusOf(spki: Uint8Array): bigint {
  const info = new DerReader(spki).sequence();
  info.any();
  return BigInt(`0x${Buffer.from(rsaParts(info.bitString()).modulus).toString('hex')}`);
}
