// Ids of everything we keep: opaque to clients, ordered by time of creation, and unguessable. 48 bits of
// milliseconds and 80 bits of randomness in 26 characters of lower-case base 32 without i, l, o and u. No
// punctuation, so that every database collation sorts them alike, and so that the `test-` prefix of simulated
// orders can never be part of a real id.

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const TIME_DIGITS = 10;
const RANDOM_BYTES = 10;

export type NewId = () => string;

/** How ids are made, given a clock and a source of randomness: the domain has neither. */
export function idMaker(now: () => number, randomBytes: (count: number) => Uint8Array): NewId {
  return () => {
    let time = '';
    for (let rest = now(), digits = 0; digits < TIME_DIGITS; digits += 1) {
      time = ALPHABET[rest % 32] + time;
      rest = Math.floor(rest / 32);
    }
    let random = '';
    let bits = 0;
    let pending = 0;
    for (const byte of randomBytes(RANDOM_BYTES)) {
      pending = ((pending << 8) | byte) & 0xfff;
      for (bits += 8; bits >= 5; bits -= 5) random += ALPHABET[(pending >> (bits - 5)) & 31];
    }
    return time + random;
  };
}
