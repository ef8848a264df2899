// Ids of all records, similar to ULIDs: opaque to clients, sortable by creation time, unguessable. 48 bits of
// milliseconds and 79 random bits in 26 characters of lower-case Crockford base 32. No punctuation, so that every
// database collation sorts them alike and no id can begin with the `test-` prefix of simulated orders.

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const TIME_DIGITS = 10;
const RANDOM_BYTES = 10;
const STEP_FROM = 5;

declare const owner: unique symbol;
/**
 * Branded string: an id of one kind does not compile in place of another, because swapped arguments would leak data
 * across accounts. Plain strings are assignable: ids arrive as text, and a wrong one matches nothing in its account.
 */
type IdOf<Kind extends string> = string & { readonly [owner]?: Kind };
export type AccountId = IdOf<'account'>;
export type OrderId = IdOf<'order'>;
export type CertificateId = IdOf<'certificate'>;

export type NewId = () => string;

/**
 * Returns a generator of strictly increasing ids. Within a millisecond, or if the clock goes back, the next id is the
 * last one plus a random step. Clock and randomness are passed in: the domain has neither.
 */
export function idMaker(now: () => number, randomBytes: (count: number) => Uint8Array): NewId {
  let lastTime = -1;
  let lastRandom: Uint8Array = new Uint8Array(RANDOM_BYTES);
  return () => {
    const time = Math.max(0, now());
    const random = randomBytes(RANDOM_BYTES);
    // The top bit stays 0, so that the steps within one millisecond cannot overflow.
    lastRandom = time > lastTime ? random.with(0, random[0]! & 0x7f) : stepped(lastRandom, random);
    lastTime = Math.max(time, lastTime);
    return timeDigits(lastTime) + randomDigits(lastRandom);
  };
}

/** Lower bound of all ids created at `time` or later. Lets a query select a time range by id, without another column. */
export const firstIdAt = (time: number): string => timeDigits(Math.max(0, time)).padEnd(TIME_DIGITS + 16, '0');

/** When the id was made; undefined for a text that is no id. */
export function timeOf(id: string): number | undefined {
  if (!/^[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(id)) return undefined;
  return [...id.slice(0, TIME_DIGITS)].reduce((time, digit) => time * 32 + ALPHABET.indexOf(digit), 0);
}

/** `number` plus 1 plus a random number of half its length. */
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
