// How an RSA modulus gives its factors away: a small prime divides it, the library behind ROCA made it, or its two
// primes lie close together. Pure arithmetic with a bound on every loop; what follows from it is decided elsewhere.

const SMALL_PRIMES_BELOW = 752;
const ROCA_GENERATOR = 65537;
const LAST_ROCA_PRIME = 167;
const FERMAT_ROUNDS = 100;

/** Primes in groups whose product a number holds exactly: one long division then serves the whole group. */
interface Group {
  readonly product: bigint;
  readonly primes: readonly number[];
}

const SMALL_PRIMES = primesBelow(SMALL_PRIMES_BELOW);
const SMALL_GROUPS = inGroups(SMALL_PRIMES);
const ROCA_GROUPS = inGroups(SMALL_PRIMES.filter((prime) => prime > 2 && prime <= LAST_ROCA_PRIME));
/** By prime: 65537 to the power 0, 1, 2 … modulo that prime, until it repeats. */
const ROCA_POWERS = new Map(
  ROCA_GROUPS.flatMap(({ primes }) => primes.map((prime) => [prime, powersOfGenerator(prime)] as const)),
);

/** The first prime below 752 that divides the modulus. */
export function smallFactorOf(modulus: bigint): number | undefined {
  for (const { product, primes } of SMALL_GROUPS) {
    const rest = Number(modulus % product);
    for (const prime of primes) if (rest % prime === 0) return prime;
  }
  return undefined;
}

/**
 * Moduli of the broken library are powers of 65537 modulo the product of the first primes. So is every residue, and
 * one exponent must explain them all: two logarithms agree modulo what their orders share. By chance that happens
 * to one modulus in 2^150.
 */
export function hasRocaForm(modulus: bigint): boolean {
  const seen: { readonly order: number; readonly logarithm: number }[] = [];
  for (const { product, primes } of ROCA_GROUPS) {
    const rest = Number(modulus % product);
    for (const prime of primes) {
      const powers = ROCA_POWERS.get(prime)!;
      const logarithm = powers.indexOf(rest % prime);
      if (logarithm < 0) return false;
      seen.push({ order: powers.length, logarithm });
    }
  }
  return seen.every((one) =>
    seen.every((other) => (one.logarithm - other.logarithm) % commonDivisor(one.order, other.order) === 0),
  );
}

/** Fermat's method: n = a² − b², tried with the 100 first `a` from the root upwards, as the public rules say. */
export function hasClosePrimes(modulus: bigint): boolean {
  let a = squareRoot(modulus);
  if (a * a < modulus) a += 1n;
  let rest = a * a - modulus;
  for (let round = 0; round < FERMAT_ROUNDS; round += 1) {
    if (isSquare(rest)) return true;
    rest += 2n * a + 1n;
    a += 1n;
  }
  return false;
}

/** What squares leave modulo 64, and modulo the factors of 45045. */
const REMAINDERS_OF_64 = remaindersOfSquares(64);
const SIEVE = 45045n;
const SIEVE_FACTORS = [63, 65, 11].map((modulus) => ({ modulus, remainders: remaindersOfSquares(modulus) }));

/** Of a hundred numbers that are no squares, one gets as far as the root. */
function isSquare(number: bigint): boolean {
  if (!REMAINDERS_OF_64.has(Number(number & 63n))) return false;
  const rest = Number(number % SIEVE);
  if (!SIEVE_FACTORS.every(({ modulus, remainders }) => remainders.has(rest % modulus))) return false;
  return squareRoot(number) ** 2n === number;
}

/** Rounded down, by Newton's method from above, which doubles the right digits with every step. */
function squareRoot(number: bigint): bigint {
  if (number < 2n) return number;
  for (let root = 1n << BigInt(number.toString(16).length * 2); ; ) {
    const next = (root + number / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

function primesBelow(limit: number): number[] {
  const primes: number[] = [];
  for (let one = 2; one < limit; one += 1) if (primes.every((prime) => one % prime !== 0)) primes.push(one);
  return primes;
}

function inGroups(primes: readonly number[]): Group[] {
  const groups: { product: number; primes: number[] }[] = [];
  for (const prime of primes) {
    const last = groups.at(-1);
    if (last && last.product * prime <= Number.MAX_SAFE_INTEGER) {
      last.product *= prime;
      last.primes.push(prime);
    } else {
      groups.push({ product: prime, primes: [prime] });
    }
  }
  return groups.map((group) => ({ product: BigInt(group.product), primes: group.primes }));
}

function powersOfGenerator(prime: number): number[] {
  const powers = [1];
  for (let power = ROCA_GENERATOR % prime; power !== 1; power = (power * ROCA_GENERATOR) % prime) powers.push(power);
  return powers;
}

function remaindersOfSquares(modulus: number): ReadonlySet<number> {
  return new Set(Array.from({ length: modulus }, (_, root) => root ** 2 % modulus));
}

function commonDivisor(one: number, other: number): number {
  return other === 0 ? one : commonDivisor(other, one % other);
}
