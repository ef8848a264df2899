// Ids of everything we keep: opaque to clients, ordered by time of creation, and unguessable. 48 bits of
// milliseconds and 79 bits of randomness in 26 characters of lower-case base 32 without i, l, o and u. No
// punctuation, so that every database collation sorts them alike, and so that the `test-` prefix of simulated
// orders can never be part of a real id.

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const TIME_DIGITS = 10;
const RANDOM_BYTES = 10;
const STEP_FROM = 5;

declare const owner: unique symbol;
/**
 * An id of one kind does not compile in the place of another: swapped arguments would show one account what belongs to
 * another. Plain strings are assignable, because ids arrive as text; a wrong one finds nothing in its account.
 */
type IdOf<Kind extends string> = string & { readonly [owner]?: Kind };
export type AccountId = IdOf<'account'>;
export type OrderId = IdOf<'order'>;
export type CertificateId = IdOf<'certificate'>;

export type NewId = () => string;

/**
 * How ids are made, given a clock and a source of randomness: the domain has neither. Those of one maker always grow:
 * within a millisecond, or when the clock goes back, the next one is the last one plus a random step.
 */
export function idMaker(now: () => number, randomBytes: (count: number) => Uint8Array): NewId {
  let lastTime = -1;
  let lastRandom: Uint8Array = new Uint8Array(RANDOM_BYTES);
  return () => {
    const time = Math.max(0, now());
    const random = randomBytes(RANDOM_BYTES);
    // The first bit stays free, so that the steps of one millisecond cannot overflow.
    lastRandom = time > lastTime ? random.with(0, random[0]! & 0x7f) : stepped(lastRandom, random);
    lastTime = Math.max(time, lastTime);
    return timeDigits(lastTime) + randomDigits(lastRandom);
  };
}

/** No id made at that time, or later, is smaller. Ids therefore tell a range of time without another column. */
export const firstIdAt = (time: number): string => timeDigits(Math.max(0, time)).padEnd(TIME_DIGITS + 16, '0');

/** The number plus a random one of half its length, and at least one. */
function stepped(number: Uint8Array, random: Uint8Array): Uint8Array {
  const sum = Uint8Array.from(number);
  let carry = 1;
  for (let index = RANDOM_BYTES - 1; index >= 0 && (carry > 0 || index >= STEP_FROM); index -= 1) {
    carry += sum[index]! + (index >= STEP_FROM ? random[index]! : 0);
    sum[index] = carry & 0xff;
    carry >>= 8;
  }
  return sum;
}

function timeDigits(time: number): string {
  let digits = '';
  for (let rest = time; digits.length < TIME_DIGITS; rest = Math.floor(rest / 32))
    digits = ALPHABET[rest % 32] + digits;
  return digits;
}

function randomDigits(bytes: Uint8Array): string {
  let digits = '';
  let bits = 0;
  let pending = 0;
  for (const byte of bytes) {
    pending = ((pending << 8) | byte) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) digits += ALPHABET[(pending >> (bits - 5)) & 31];
  }
  return digits;
}
