// Makes certificate signing requests, right ones and wrong ones, with our own DER writer and node:crypto: the tests
// need no openssl. Every part can be replaced before it is signed, or after.
import { constants, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  explicit,
  implicit,
  integer,
  NULL,
  octetString,
  oid,
  raw,
  sequence,
  setOf,
  TAG,
  utf8String,
} from '../../src/adapters/der/writer.ts';

export const KEY_KINDS = ['rsa2048', 'rsa3072', 'rsa4096', 'p256', 'p384', 'p521'] as const;
export type KeyKind = (typeof KEY_KINDS)[number];
export const HASHES = ['sha256', 'sha384', 'sha512'] as const;
export type Hash = (typeof HASHES)[number];

export interface KeyPair {
  readonly privateKey: KeyObject;
  /** DER. */
  readonly spki: Uint8Array;
}

const pairOf = (privateKey: KeyObject, publicKey: KeyObject): KeyPair => ({
  privateKey,
  spki: new Uint8Array(publicKey.export({ format: 'der', type: 'spki' })),
});

const made = new Map<KeyKind, KeyPair>();

/** Where before-all.ts has left a folder for keys. */
export const KEYS_FOLDER = 'TEST_KEYS_FOLDER';

/** One of each kind per process, and of RSA keys one for all test files: long ones take a while. */
export function keyPair(kind: KeyKind): KeyPair {
  const folder = kind.startsWith('rsa') ? process.env[KEYS_FOLDER] : undefined;
  const known = made.get(kind) ?? (folder ? keyPairIn(folder, kind) : newKeyPair(kind));
  made.set(kind, known);
  return known;
}

/** The first test file that needs one makes it. */
function keyPairIn(folder: string, kind: KeyKind): KeyPair {
  const file = join(folder, `${kind}.pem`);
  if (existsSync(file)) {
    const privateKey = createPrivateKey(readFileSync(file));
    return pairOf(privateKey, createPublicKey(privateKey));
  }
  const pair = newKeyPair(kind);
  // No other process may read half of it.
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, pair.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  renameSync(draft, file);
  return pair;
}

export function newKeyPair(kind: KeyKind): KeyPair {
  const { privateKey, publicKey } = kind.startsWith('rsa')
    ? generateKeyPairSync('rsa', { modulusLength: Number(kind.slice(3)) })
    : generateKeyPairSync('ec', { namedCurve: kind.replace('p', 'P-') });
  return pairOf(privateKey, publicKey);
}

const bytesOf = (number: bigint): Buffer => {
  const hex = number.toString(16);
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
};

/** A key that can sign, from primes that nobody should choose. */
export function rsaFromPrimes(p: bigint, q: bigint, e = 65537n): KeyPair {
  const d = inverse(e, (p - 1n) * (q - 1n));
  const parts = { n: p * q, e, d, p, q, dp: d % (p - 1n), dq: d % (q - 1n), qi: inverse(q, p) };
  const texts = Object.entries(parts).map(([name, number]) => [name, bytesOf(number).toString('base64url')]);
  const privateKey = createPrivateKey({ key: { kty: 'RSA', ...Object.fromEntries(texts) }, format: 'jwk' });
  return { privateKey, spki: rsaSpki(p * q, e) };
}

export const rsaSpki = (modulus: bigint, exponent = 65537n): Uint8Array =>
  spkiOf(sequence([oid('1.2.840.113549.1.1.1'), NULL]), sequence([modulus, exponent].map((n) => integer(bytesOf(n)))));

export const spkiOf = (algorithm: Uint8Array, key: Uint8Array, unusedBits = 0): Uint8Array =>
  sequence([algorithm, raw(TAG.bitString, Buffer.concat([Uint8Array.of(unusedBits), key]))]);

function inverse(of: bigint, modulus: bigint): bigint {
  let [a, b, x, y] = [of % modulus, modulus, 1n, 0n];
  while (a > 1n) [a, b, x, y] = [b % a, a, y - (b / a) * x, x];
  return ((x % modulus) + modulus) % modulus;
}

const OIDS = {
  sha256: { hash: '2.16.840.1.101.3.4.2.1', rsa: '1.2.840.113549.1.1.11', ec: '1.2.840.10045.4.3.2' },
  sha384: { hash: '2.16.840.1.101.3.4.2.2', rsa: '1.2.840.113549.1.1.12', ec: '1.2.840.10045.4.3.3' },
  sha512: { hash: '2.16.840.1.101.3.4.2.3', rsa: '1.2.840.113549.1.1.13', ec: '1.2.840.10045.4.3.4' },
} as const;

export const rsaAlgorithm = (hash: Hash): Uint8Array => sequence([oid(OIDS[hash].rsa), NULL]);
export const ecdsaAlgorithm = (hash: Hash): Uint8Array => sequence([oid(OIDS[hash].ec)]);

export interface PssParameters {
  readonly hash?: Hash;
  readonly mgf?: Hash;
  readonly salt?: number;
  readonly more?: readonly Uint8Array[];
}

export function pssAlgorithm({ hash = 'sha256', mgf = hash, salt = 32, more = [] }: PssParameters): Uint8Array {
  const digest = (one: Hash) => sequence([oid(OIDS[one].hash), NULL]);
  const mgf1 = sequence([oid('1.2.840.113549.1.1.8'), digest(mgf)]);
  const parameters = [explicit(0, digest(hash)), explicit(1, mgf1), explicit(2, integer(salt)), ...more];
  return sequence([oid('1.2.840.113549.1.1.10'), sequence(parameters)]);
}

/** One relative name: an attribute of the subject, alone in its set. */
export const name = (type: string, value: Uint8Array): Uint8Array => setOf([sequence([oid(type), value])]);

export const COMMON_NAME = name('2.5.4.3', utf8String('example.com'));

/** As `openssl req -addext` asks for a subject alternative name. */
export const EXTENSION_REQUEST = sequence([
  oid('1.2.840.113549.1.9.14'),
  setOf([
    sequence([
      sequence([oid('2.5.29.17'), octetString(sequence([implicit(2, octetString(Buffer.from('example.com')))]))]),
    ]),
  ]),
]);

export interface Parts {
  readonly key?: KeyPair;
  readonly hash?: string;
  readonly pssSalt?: number;
  readonly version?: Uint8Array;
  readonly subject?: Uint8Array;
  readonly spki?: Uint8Array;
  readonly attributes?: Uint8Array;
  /** After the attributes, and signed. */
  readonly more?: readonly Uint8Array[];
  readonly algorithm?: Uint8Array;
  readonly signature?: (right: Uint8Array) => Uint8Array;
  readonly unusedBits?: number;
  /** After the signature. */
  readonly tail?: readonly Uint8Array[];
}

export const attributesOf = (...attributes: readonly Uint8Array[]): Uint8Array => implicit(0, setOf(attributes));

/** A right request, but for the parts that are given. */
export function csr(parts: Parts = {}): Uint8Array {
  const key = parts.key ?? keyPair('p256');
  const isRsa = key.privateKey.asymmetricKeyType === 'rsa';
  const hash = parts.hash ?? 'sha256';
  const info = sequence([
    parts.version ?? integer(0),
    parts.subject ?? sequence([COMMON_NAME]),
    parts.spki ?? key.spki,
    parts.attributes ?? attributesOf(EXTENSION_REQUEST),
    ...(parts.more ?? []),
  ]);
  const padding =
    parts.pssSalt === undefined ? {} : { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: parts.pssSalt };
  const signature = new Uint8Array(sign(hash, info, { key: key.privateKey, ...padding }));
  const usual = () => (isRsa ? rsaAlgorithm : ecdsaAlgorithm)(hash as Hash);
  const bits = Buffer.concat([Uint8Array.of(parts.unusedBits ?? 0), parts.signature?.(signature) ?? signature]);
  return sequence([info, parts.algorithm ?? usual(), raw(TAG.bitString, bits), ...(parts.tail ?? [])]);
}

export function pem(der: Uint8Array, label = 'CERTIFICATE REQUEST', lineEnd = '\n', width = 64): string {
  const base64 = Buffer.from(der).toString('base64');
  const lines = base64.match(new RegExp(`.{1,${width}}`, 'g')) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join(lineEnd);
}
