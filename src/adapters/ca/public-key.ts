// Reads public keys, and refuses weak ones: RSA keys that anyone can factor, exponents and points that invite attacks, keys
// that are published. Which keys are on the blocklist is decided elsewhere. All work is bounded: keys are untrusted input.
import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import type { KeyType, PublicKey } from '../../domain/certificate/public-key.ts';
import { Refusal } from '../../domain/errors.ts';
import type { Localized } from '../../kernel/locale.ts';
import { bitLength, DerError, DerReader } from '../der/reader.ts';
import { mapKey, NULL, oid, sequence } from '../der/writer.ts';
import { KEY_ALGORITHM as SM2_KEY } from '../sm2/curve.ts';
import { edwardsFault } from './edwards-point.ts';
import { isPrimeModulus } from './prime-modulus.ts';
import { keyBitsOf } from './profiles.ts';
import { PUBLISHED_KEYS } from './published-keys.ts';
import { numberFrom, rsaNumbers, rsaNumbersOf } from './rsa-numbers.ts';
import { hasClosePrimes, hasRocaForm, smallFactorOf } from './weak-modulus.ts';

const MAX_RSA_BITS = 8192;
const MIN_EXPONENT = 65537n;
// OpenSSL's own bound for long keys; generators in use stay within 32 bits.
const MAX_EXPONENT_BYTES = 8;
const UNCOMPRESSED = 4;

const ecKey = (curve: string): string => `EC -pkeyopt ec_paramgen_curve:${curve}`;
/** What openssl genpkey -algorithm makes one with. */
const NEW_KEY: Readonly<Record<KeyType, string>> = {
  rsa: 'RSA -pkeyopt rsa_keygen_bits:3072',
  p256: ecKey('P-256'),
  p384: ecKey('P-384'),
  p521: ecKey('P-521'),
  ed25519: 'ED25519',
  sm2: ecKey('SM2'),
};

const WRONG = {
  unsupported: {
    en: `The public key cannot be used: it must be RSA (rsaEncryption, at most ${MAX_RSA_BITS} bits), Ed25519, or an uncompressed point of the named curve P-256, P-384, P-521 or SM2.`,
    zh: `无法使用该公钥：须为 RSA（rsaEncryption，不超过 ${MAX_RSA_BITS} 位）、Ed25519，或命名曲线 P-256、P-384、P-521、SM2 上的未压缩点。`,
  },
  pointForm: {
    en: 'The point of the public key is compressed, at infinity or of the wrong length: it must be the byte 04 and two coordinates.',
    zh: '公钥的点为压缩形式、无穷远点或长度错误：须为字节 04 及两个坐标。',
  },
  edwardsForm: {
    en: 'The point of the Ed25519 key is not 32 bytes with y below 2^255 - 19: it is not the one encoding that the point has.',
    zh: 'Ed25519 公钥的点须为 32 字节，且 y 小于 2^255 - 19：该编码不是该点的规范编码。',
  },
  smallOrder: {
    en: 'The point of the Ed25519 key is of small order: signatures verify with it that no private key has made.',
    zh: 'Ed25519 公钥的点为低阶点：无需私钥即可构造能通过验证的签名。',
  },
  offCurve: {
    en: 'The point of the public key is not on its curve: the key was damaged, or made to attack those who use it.',
    zh: '公钥的点不在其曲线上：密钥已损坏，或被构造用于攻击。',
  },
  exponent: {
    en: 'The public exponent of the RSA key must be odd, at least 65537 and below 2^64; it should be 65537.',
    zh: 'RSA 公钥指数须为奇数，不小于 65537 且小于 2^64，建议使用 65537。',
  },
  evenModulus: {
    en: 'The modulus of the RSA key is even: the key was damaged, or its generator is broken.',
    zh: 'RSA 模数为偶数：密钥已损坏，或生成程序有缺陷。',
  },
  primeModulus: {
    en: 'The modulus of the RSA key is a prime, so that anyone can compute the private key: its generator is broken.',
    zh: 'RSA 模数为素数，任何人都能算出私钥：生成程序有缺陷。',
  },
  roca: {
    en: 'The RSA key has the ROCA weakness (CVE-2017-15361) and can be computed from its public half. Update the card or module that made it, or make the key elsewhere.',
    zh: 'RSA 密钥存在 ROCA 漏洞（CVE-2017-15361），可由公钥推算出私钥。请更新生成该密钥的卡或模块，或改用其他方式生成。',
  },
  closePrimes: {
    en: 'The two primes of the RSA key are so close together that anyone can find them (CVE-2022-26320). Update the program that made it.',
    zh: 'RSA 密钥的两个素数过于接近，任何人都能分解（CVE-2022-26320）。请更新生成该密钥的程序。',
  },
} as const satisfies Record<string, Localized>;

const smallFactor = (factor: number): Localized => ({
  en: `The modulus of the RSA key is divisible by ${factor}: the key was damaged, or its generator is broken.`,
  zh: `RSA 模数可被 ${factor} 整除：密钥已损坏，或生成程序有缺陷。`,
});

const published = (source: string): Localized => ({
  en: `This key is a published example (${source}): anyone has its private half.`,
  zh: `该密钥是公开的示例密钥（${source}），任何人都持有其私钥。`,
});

/** By AlgorithmIdentifier with its parameters: any other encoding is refused. */
const ALGORITHMS: ReadonlyMap<string, { readonly type: KeyType; readonly bits: number }> = new Map([
  [mapKey(sequence([oid('1.2.840.113549.1.1.1'), NULL])), { type: 'rsa', bits: 0 }],
  [mapKey(sequence([oid('1.2.840.10045.2.1'), oid('1.2.840.10045.3.1.7')])), { type: 'p256', bits: 256 }],
  [mapKey(sequence([oid('1.2.840.10045.2.1'), oid('1.3.132.0.34')])), { type: 'p384', bits: 384 }],
  [mapKey(sequence([oid('1.2.840.10045.2.1'), oid('1.3.132.0.35')])), { type: 'p521', bits: 521 }],
  [mapKey(sequence([oid('1.3.101.112')])), { type: 'ed25519', bits: 255 }],
  [mapKey(SM2_KEY), { type: 'sm2', bits: 256 }],
]);

/** The longest SubjectPublicKeyInfo of an RSA key of 4096 bits with the exponent 65537. */
const MAX_CHEAP_BYTES = 550;

/**
 * Whether a signature of the key takes long to verify. Measured, with inspecting the key: P-256 0.13 ms, RSA-2048 0.12,
 * RSA-4096 0.23, SM2 0.42, Ed25519 0.45, P-384 0.67; but RSA-4096 with a long exponent 0.57, RSA-8192 0.7 and up, P-521 1.5.
 */
export const isCostly = ({ type, spki }: PublicKey): boolean =>
  type === 'p521' || (type === 'rsa' && spki.length > MAX_CHEAP_BYTES);

export function readPublicKey(spki: Uint8Array): PublicKey {
  const publicKey = describePublicKey(spki);
  importPublicKey(publicKey);
  return publicKey;
}

/** The key for the domain. Its form is checked, and not yet that a point is on its curve. */
export function describePublicKey(spki: Uint8Array): PublicKey {
  const { type, bits } = readShape(spki);
  if (type === 'ed25519') requireEdwardsPoint(spki);
  return { type, bits, spki: new Uint8Array(spki), fingerprint: hash('sha256', spki, 'hex') };
}

/**
 * Checks that a point is on its curve. On its own it would accept what shapeOf refuses: compressed points, the point at
 * infinity, trailing bytes. As PEM text: whether any object is a KeyObject, node:crypto finds out by an exception.
 */
export function importPublicKey({ type, spki }: PublicKey): KeyObject {
  const base64 = Buffer.from(spki.buffer, spki.byteOffset, spki.length).toString('base64');
  try {
    return createPublicKey(`-----BEGIN PUBLIC KEY-----\n${base64}\n-----END PUBLIC KEY-----`);
  } catch (cause) {
    throw type === 'rsa' ? refusal(WRONG.unsupported, { cause }) : refusal(WRONG.offCurve, { cause, type });
  }
}

/** Of these keys node:crypto checks nothing. */
function requireEdwardsPoint(spki: Uint8Array): void {
  const fault = edwardsFault(keyBitsOf(spki));
  if (fault) throw refusal(fault === 'pointForm' ? WRONG.edwardsForm : WRONG[fault], { type: 'ed25519' });
}

function readShape(spki: Uint8Array): { type: KeyType; bits: number } {
  try {
    return shapeOf(spki);
  } catch (cause) {
    throw cause instanceof Refusal ? cause : refusal(WRONG.unsupported, { cause });
  }
}

/** Refuses keys that no CA should certify, whatever the product. The size is the product's to judge. */
export function requireStrongKey({ type, spki, fingerprint }: PublicKey): void {
  const source = PUBLISHED_KEYS.get(fingerprint);
  if (source !== undefined) throw refusal(published(source), { type });
  if (type !== 'rsa') return;
  const numbers = rsaNumbersOf(spki);
  if (numberFrom(numbers.exponent) < MIN_EXPONENT) throw refusal(WRONG.exponent);
  const modulus = numberFrom(numbers.modulus);
  const factor = smallFactorOf(modulus);
  if (factor !== undefined) throw refusal(smallFactor(factor));
  if (hasRocaForm(modulus)) throw refusal(WRONG.roca);
  if (hasClosePrimes(modulus)) throw refusal(WRONG.closePrimes);
}

/** No product certifies shorter keys, and Diffie-Hellman refuses the shortest. */
const MIN_EXAMINED_BITS = 1024;

/** Refuses an RSA key whose modulus is a prime. Takes long: run this in a worker (adapters/workers). */
export function requireCompositeModulus({ type, bits, spki }: PublicKey): void {
  if (type !== 'rsa' || bits < MIN_EXAMINED_BITS) return;
  if (isPrimeModulus(rsaNumbersOf(spki).modulus)) throw refusal(WRONG.primeModulus);
}

function refusal(what: Localized, { cause, type = 'rsa' }: { cause?: unknown; type?: KeyType } = {}): Refusal {
  const command = `openssl genpkey -algorithm ${NEW_KEY[type]} -out key.pem`;
  const reason = { en: `${what.en} Make a new key: ${command}`, zh: `${what.zh}请生成新密钥：${command}` };
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
  if (algorithm.type === 'ed25519') return algorithm;
  if (algorithm.type !== 'rsa') {
    const isWhole = key[0] === UNCOMPRESSED && key.length === 1 + 2 * Math.ceil(algorithm.bits / 8);
    if (!isWhole) throw refusal(WRONG.pointForm, { type: algorithm.type });
    return algorithm;
  }
  const { modulus, exponent } = rsaNumbers(key);
  const bits = bitLength(modulus);
  if (bits > MAX_RSA_BITS) throw new DerError('modulus too long');
  // OpenSSL verifies nothing with it, so that the CSR would be refused for its signature.
  if (isEven(modulus)) throw refusal(WRONG.evenModulus);
  // With exponent 1 signatures can be forged; an even exponent has no private key.
  const isOne = exponent.length === 1 && exponent[0] === 1;
  if (isOne || isEven(exponent) || exponent.length > MAX_EXPONENT_BYTES) throw refusal(WRONG.exponent);
  return { type: 'rsa', bits };
}

const isEven = (number: Uint8Array): boolean => (number.at(-1) ?? 0) % 2 === 0;
