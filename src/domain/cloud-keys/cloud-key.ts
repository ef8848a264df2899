// Keys that the service makes and holds for a customer: what an access code may be, which key is made, and how long
// wrong codes lock it. Pure; where the key lies and how it is locked is not decided here.

import { DAY_MS, MINUTE_MS } from '../../kernel/durations.ts';
import { CURVE_BITS, type Product } from '../catalog/products.ts';
import type { KeyType, PublicKey } from '../certificate/public-key.ts';
import type { SignHash } from '../certificate/sign-hash.ts';
import { Refusal } from '../errors.ts';
import type { AccountId } from '../ids.ts';
import type { Secret } from '../secret.ts';

export interface CloudKey {
  readonly id: string;
  readonly accountId: AccountId;
  readonly publicKey: PublicKey;
  /** The private key, locked under the access code and a secret of the service; null once it is destroyed. */
  readonly locked: string | null;
  /** What the customer wrote to remember the access code by. */
  readonly hint: string | null;
  readonly wrongCodes: number;
  readonly lockedUntil: number;
  readonly createdAt: number;
  readonly destroyedAt: number | null;
}

const PIN = 'sign_key_pin';
const HINT = 'sign_key_pin_tip';
const MIN_PIN = 6;
const MAX_PIN = 128;
const MAX_HINT = 256;

/** An access code that may lock a key, and a hint that does not give it away. */
export function requirePin(
  pin: Secret | undefined,
  hint: string | undefined,
  fields = { pin: PIN, hint: HINT },
): Secret {
  const text = pin?.reveal() ?? '';
  if (!pin || text.trim() === '') {
    throw invalid(fields.pin, {
      en: `A cloud-held key needs an access code: send ${fields.pin}.`,
      zh: `云端密钥需要访问控制码，请发送 ${fields.pin}。`,
    });
  }
  const length = [...text].length;
  if (length < MIN_PIN || length > MAX_PIN || /\p{C}/u.test(text)) {
    throw invalid(fields.pin, {
      en: `${fields.pin} has ${MIN_PIN} to ${MAX_PIN} printable characters.`,
      zh: `${fields.pin} 须为 ${MIN_PIN} 至 ${MAX_PIN} 个可打印字符。`,
    });
  }
  if (hint === undefined) return pin;
  if ([...hint].length > MAX_HINT || /\p{C}/u.test(hint)) {
    throw invalid(fields.hint, {
      en: `${fields.hint} has at most ${MAX_HINT} printable characters.`,
      zh: `${fields.hint} 最多 ${MAX_HINT} 个可打印字符。`,
    });
  }
  const isTold = hint.includes(text) || (folded(text) !== '' && folded(hint).includes(folded(text)));
  if (isTold) {
    throw invalid(fields.hint, {
      en: `${fields.hint} contains the access code: whoever reads it would have both.`,
      zh: `${fields.hint} 中包含访问控制码，任何看到提示的人都会得到它。`,
    });
  }
  return pin;
}

/** However it is written: a hint with blanks between the digits still gives the code away. */
const folded = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[\s\p{P}\p{S}]/gu, '');

const invalid = (field: string, reason: { en: string; zh: string }): Refusal =>
  new Refusal('invalid_parameters', { field, reason });

export interface KeyKind {
  readonly type: KeyType;
  readonly bits: number;
}

const MADE_RSA_BITS = 3072;
const KINDS: readonly KeyKind[] = [
  { type: 'p256', bits: CURVE_BITS.p256 },
  { type: 'p384', bits: CURVE_BITS.p384 },
  { type: 'p521', bits: CURVE_BITS.p521 },
];

/**
 * Which key is made: SM3 asks for SM2, and nothing else does. RSA stays RSA, as far as the product still certifies it;
 * otherwise the first curve that it does, which is P-256 wherever it can be: every client knows it.
 */
export function newKeyKind(signHash: SignHash, current: PublicKey, { keys }: Product): KeyKind {
  if (signHash === 'sm3') return { type: 'sm2', bits: CURVE_BITS.sm2 };
  const rule = keys.find(({ type }) => type === 'rsa');
  const rsa = rule && ({ type: 'rsa', bits: Math.min(Math.max(MADE_RSA_BITS, rule.minBits), rule.maxBits) } as const);
  const curve = KINDS.find(({ type }) => keys.some((one) => one.type === type));
  const isRsa = current.type === 'rsa' && current.bits > 0;
  return (isRsa ? (rsa ?? curve) : (curve ?? rsa)) ?? KINDS[0]!;
}

/** Stands for a key that is not made yet, where a plan only asks for its kind. */
export const keyToBe = ({ type, bits }: KeyKind): PublicKey => ({
  type,
  bits,
  spki: new Uint8Array(),
  fingerprint: '',
});

const FREE_TRIES = 4;
const FIRST_LOCK_MS = MINUTE_MS;
const LONGEST_LOCK_MS = DAY_MS;

/** How long the key is locked after that many wrong codes in a row: not at first, then twice as long each time. */
export const lockAfter = (wrongCodes: number): number =>
  wrongCodes <= FREE_TRIES ? 0 : Math.min(FIRST_LOCK_MS * 2 ** (wrongCodes - FREE_TRIES - 1), LONGEST_LOCK_MS);
