// Ids of everything we keep: opaque to clients, ordered by time of creation, and unguessable. 48 bits of
// milliseconds and 80 bits of randomness in 26 characters of lower-case base 32 without i, l, o and u. No
// punctuation, so that every database collation sorts them alike, and so that the `test-` prefix of simulated
// orders can never be part of a real id.

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const RANDOM_BYTES = 10;

export type NewId = () => string;

/** How ids are made, given a clock and a source of randomness: the domain has neither. */
export function idMaker(now: () => number, randomBytes: (count: number) => Uint8Array): NewId {
  return () => {
    let bits = BigInt(now());
    for (const byte of randomBytes(RANDOM_BYTES)) bits = (bits << 8n) | BigInt(byte);
    let id = '';
    for (let shift = 125n; shift >= 0n; shift -= 5n) id += ALPHABET[Number((bits >> shift) & 31n)];
    return id;
  };
}
