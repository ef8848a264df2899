// Public keys as JSON Web Keys (RFC 7517, 7518, 8037), in the one spelling that each has. A parsed key holds the members of
// its thumbprint only, in their order (RFC 7638): its JSON is what the thumbprint is computed over.
import type { KeyType } from '../certificate/public-key.ts';
import { AcmeProblem } from './problem.ts';

export type Jwk =
  | { readonly crv: 'P-256' | 'P-384'; readonly kty: 'EC'; readonly x: string; readonly y: string }
  | { readonly crv: 'Ed25519'; readonly kty: 'OKP'; readonly x: string }
  | { readonly e: string; readonly kty: 'RSA'; readonly n: string };

export const SIGNATURE_ALGORITHMS = ['ES256', 'ES384', 'RS256', 'EdDSA'] as const;
export type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number];

/** The algorithm of a key; undefined for one that signs no requests. */
export const ALGORITHM_OF: Readonly<Record<KeyType, SignatureAlgorithm | undefined>> = {
  p256: 'ES256',
  p384: 'ES384',
  p521: undefined,
  ed25519: 'EdDSA',
  rsa: 'RS256',
  sm2: undefined,
};

const COORDINATE_BYTES = { 'P-256': 32, 'P-384': 48, Ed25519: 32 } as const;
/** Of a modulus of 4096 bits. */
const MAX_MODULUS_BYTES = 512;
const MAX_EXPONENT_BYTES = 8;
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

export const thumbprintInput = (jwk: Jwk): string => JSON.stringify(jwk);

/** Throws `badPublicKey`. Whether a point is on its curve, and a key strong, is checked with the key (ports.ts). */
export function parseJwk(value: unknown): Jwk {
  const jwk = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
  if (PRIVATE_MEMBERS.some((member) => Object.hasOwn(jwk, member))) {
    throw badKey(
      'The jwk has private members: the key was given away with this request. Make a new one.',
      'jwk 含有私钥成员：该密钥已随请求泄露，请生成新密钥。',
    );
  }
  const { kty, crv } = jwk;
  if (kty === 'EC' && (crv === 'P-256' || crv === 'P-384')) {
    const bytes = COORDINATE_BYTES[crv];
    return { crv, kty, x: fixedBytes(jwk.x, bytes), y: fixedBytes(jwk.y, bytes) };
  }
  if (kty === 'OKP' && crv === 'Ed25519') return { crv, kty, x: fixedBytes(jwk.x, COORDINATE_BYTES[crv]) };
  if (kty === 'RSA') return { e: number(jwk.e, MAX_EXPONENT_BYTES), kty, n: number(jwk.n, MAX_MODULUS_BYTES) };
  throw badKey(
    'The jwk must be an EC key on P-256 or P-384, an Ed25519 key, or an RSA key of 2048 to 4096 bits.',
    'jwk 须为 P-256 或 P-384 曲线的 EC 密钥、Ed25519 密钥，或 2048 至 4096 位的 RSA 密钥。',
  );
}

/** With leading zeros (RFC 7518, 6.2.1.2). */
function fixedBytes(value: unknown, bytes: number): string {
  const text = canonical(value);
  if (text !== undefined && Buffer.from(text, 'base64url').length === bytes) return text;
  throw misspelled();
}

/** Without leading zeros (RFC 7518, 2): with them, one key would have several thumbprints. */
function number(value: unknown, maxBytes: number): string {
  const text = canonical(value);
  const bytes = Buffer.from(text ?? '', 'base64url');
  if (text !== undefined && bytes.length <= maxBytes && (bytes[0] ?? 0) !== 0) return text;
  throw misspelled();
}

const canonical = (value: unknown): string | undefined =>
  typeof value === 'string' && Buffer.from(value, 'base64url').toString('base64url') === value ? value : undefined;

const misspelled = (): AcmeProblem =>
  badKey(
    'A member of the jwk is missing, is not base64url without padding, or has the wrong length.',
    'jwk 的成员缺失、不是无填充的 base64url 编码，或长度错误。',
  );

export const badKey = (en: string, zh: string, cause?: unknown): AcmeProblem =>
  new AcmeProblem('badPublicKey', { en, zh }, { cause });
