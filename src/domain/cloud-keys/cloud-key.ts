// Cloud-held keys: rules for access codes (PINs), the kind of key to generate, and the lockout after wrong codes.
// How a private key is wrapped and stored is up to the adapters.
import { DAY_MS, MINUTE_MS } from '../../kernel/durations.ts';
import { CURVE_BITS, type Product } from '../catalog/products.ts';
import type { KeyType, PublicKey } from '../certificate/public-key.ts';
import type { SignHash } from '../certificate/sign-hash.ts';
import { clampedAhead } from '../clock.ts';
import { invalid } from '../errors.ts';
import type { AccountId } from '../ids.ts';
import type { Secret } from '../secret.ts';

export interface CloudKey {
  readonly id: string;
  readonly accountId: AccountId;
  readonly publicKey: PublicKey;
  /** The private key, wrapped under the access code and a secret of the service; null once destroyed. */
  readonly wrappedKey: string | null;
  /** The customer's reminder of the access code. */
  readonly hint: string | null;
  readonly wrongCodes: number;
  readonly lockedUntil: number;
  readonly createdAt: number;
  readonly destroyedAt: number | null;
}

const PIN = 'sign_key_pin';
const HINT = 'sign_key_pin_tip';
export const MIN_PIN = 6;
export const MAX_PIN = 128;
export const MAX_HINT = 256;

/** Returns the access code if it is acceptable and the hint does not contain it. */
export function requirePin(
  pin: Secret | undefined,
  hint: string | undefined,
  fields = { pin: PIN, hint: HINT },
): Secret {
  const text = pin?.reveal() ?? '';
  if (!pin || text.trim() === '') {
    throw invalid(
      fields.pin,
      `A cloud-held key needs an access code: send ${fields.pin}.`,
      `云端密钥需要访问控制码，请发送 ${fields.pin}。`,
    );
  }
  const length = [...text].length;
  if (length < MIN_PIN || length > MAX_PIN || /\p{C}/u.test(text)) {
    throw invalid(
      fields.pin,
      `${fields.pin} has ${MIN_PIN} to ${MAX_PIN} printable characters.`,
      `${fields.pin} 须为 ${MIN_PIN} 至 ${MAX_PIN} 个可打印字符。`,
    );
  }
  if (hint === undefined) return pin;
  if ([...hint].length > MAX_HINT || /\p{C}/u.test(hint)) {
    throw invalid(
      fields.hint,
      `${fields.hint} has at most ${MAX_HINT} printable characters.`,
      `${fields.hint} 最多 ${MAX_HINT} 个可打印字符。`,
    );
  }
  const revealsPin = hint.includes(text) || (folded(text) !== '' && folded(hint).includes(folded(text)));
  if (revealsPin) {
    throw invalid(
      fields.hint,
      `${fields.hint} contains the access code: whoever reads it would have both.`,
      `${fields.hint} 中包含访问控制码，任何看到提示的人都会得到它。`,
    );
  }
  return pin;
}

/** Ignores case, width, spaces and punctuation: a hint with spaces between the digits still reveals the code. */
const folded = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[\s\p{P}\p{S}]/gu, '');

export interface KeyKind {
  readonly type: KeyType;
  readonly bits: number;
}

const DEFAULT_RSA_BITS = 3072;
const P256: KeyKind = { type: 'p256', bits: CURVE_BITS.p256 };
const CURVES: readonly KeyKind[] = [
  P256,
  { type: 'p384', bits: CURVE_BITS.p384 },
  { type: 'p521', bits: CURVE_BITS.p521 },
];

/**
 * The kind of key to generate. SM3 means SM2, and no other digest does. RSA stays RSA if the product still allows it;
 * otherwise the first curve the product allows, preferring P-256, which every client supports.
 */
export function newKeyKind(signHash: SignHash, current: PublicKey, { keys }: Product): KeyKind {
  if (signHash === 'sm3') return { type: 'sm2', bits: CURVE_BITS.sm2 };
  const rule = keys.find(({ type }) => type === 'rsa');
  const rsa =
    rule && ({ type: 'rsa', bits: Math.min(Math.max(DEFAULT_RSA_BITS, rule.minBits), rule.maxBits) } as const);
  const curve = CURVES.find(({ type }) => keys.some((one) => one.type === type));
  const isRsa = current.type === 'rsa' && current.bits > 0;
  return (isRsa ? (rsa ?? curve) : (curve ?? rsa)) ?? P256;
}

/** Stands for a key that is not generated yet: a plan only needs its kind. */
export const placeholderKey = ({ type, bits }: KeyKind): PublicKey => ({
  type,
  bits,
  spki: new Uint8Array(),
  fingerprint: '',
});

/** How long a signing grant may be used. */
export const GRANT_MS = 5 * MINUTE_MS;

const FREE_ATTEMPTS = 4;
const FIRST_LOCKOUT_MS = MINUTE_MS;
const MAX_LOCKOUT_MS = DAY_MS;

/** Lockout after that many wrong codes in a row: none at first, then exponential backoff. */
export const lockoutMs = (wrongCodes: number): number =>
  wrongCodes <= FREE_ATTEMPTS ? 0 : Math.min(FIRST_LOCKOUT_MS * 2 ** (wrongCodes - FREE_ATTEMPTS - 1), MAX_LOCKOUT_MS);

/** The end of the lockout: one that a clock which was ahead has set is shortened to its length from now, never dropped. */
export const lockoutEnd = (
  { wrongCodes, lockedUntil }: Pick<CloudKey, 'wrongCodes' | 'lockedUntil'>,
  now: number,
): number => clampedAhead(lockedUntil, now, lockoutMs(wrongCodes));
