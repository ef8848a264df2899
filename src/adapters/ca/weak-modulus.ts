// Detects RSA moduli that can be factored: a small prime factor, ROCA (CVE-2017-15361), or close primes (Fermat). Pure
// arithmetic with bounded loops.

const SMALL_PRIMES_BELOW = 752;
const ROCA_GENERATOR = 65537;
const LAST_ROCA_PRIME = 167;
const FERMAT_ROUNDS = 100;

/** Primes whose product is a safe integer: one bigint division serves the whole group. */
interface Group {
  readonly product: bigint;
  readonly primes: readonly number[];
}

const SMALL_PRIMES = primesBelow(SMALL_PRIMES_BELOW);
const SMALL_GROUPS = inGroups(SMALL_PRIMES);
/** Each prime with the powers of 65537 modulo it: 65537^0, 65537^1 …, until they repeat. */
const ROCA_GROUPS = inGroups(SMALL_PRIMES.filter((prime) => prime > 2 && prime <= LAST_ROCA_PRIME)).map(
  ({ product, primes }) => ({ product, primes: primes.map((prime) => ({ prime, powers: powersOfGenerator(prime) })) }),
);

/** Returns the smallest prime below 752 that divides the modulus. */
export function smallFactorOf(modulus: bigint): number | undefined {
  for (const { product, primes } of SMALL_GROUPS) {
    const rest = Number(modulus % product);
    for (const prime of primes) if (rest % prime === 0) return prime;
  }
  return undefined;
}

/**
 * ROCA moduli are powers of 65537 modulo the product of the first primes, hence modulo each prime, with one exponent for
 * all: any two discrete logarithms agree modulo the gcd of their orders. False positives: one modulus in 2^150.
 */
export function hasRocaForm(modulus: bigint): boolean {
  const logarithms: { readonly order: number; readonly logarithm: number }[] = [];
  for (const { product, primes } of ROCA_GROUPS) {
    const rest = Number(modulus % product);
    for (const { prime, powers } of primes) {
      const logarithm = powers.indexOf(rest % prime);
      if (logarithm < 0) return false;
      logarithms.push({ order: powers.length, logarithm });
    }
  }
  return logarithms.every((one) =>
    logarithms.every((other) => (one.logarithm - other.logarithm) % gcd(one.order, other.order) === 0),
  );
}

/**
 * Fermat factorization, n = a² − b², for 100 rounds as the Baseline Requirements ask. The rounds go on modulo the sieve, in
 * plain numbers: it passes 1 candidate in 100, and only that one is computed.
 */
export function hasClosePrimes(modulus: bigint): boolean {
  let first = squareRoot(modulus);
  if (first * first < modulus) first += 1n;
  let [a, rest] = [modulo(first, SIEVE), modulo(first * first - modulus, SIEVE)];
  for (let round = 0; round < FERMAT_ROUNDS; round += 1) {
    if (mayBeSquare(rest) && isSquare((first + BigInt(round)) ** 2n - modulus)) return true;
    rest = (rest + 2 * a + 1) % SIEVE;
    a = (a + 1) % SIEVE;
  }
  return false;
}

const SIEVE_FACTORS = [64, 63, 65, 11].map((modulus) => ({ modulus, squares: squaresModulo(modulus) }));
const SIEVE = SIEVE_FACTORS.reduce((product, { modulus }) => product * modulus, 1);
const mayBeSquare = (rest: number): boolean =>
  SIEVE_FACTORS.every(({ modulus, squares }) => squares.has(rest % modulus));
const isSquare = (number: bigint): boolean => squareRoot(number) ** 2n === number;

/** Rounded down; Newton's method, from above: the root of the leading digits, rounded up. */
function squareRoot(number: bigint): bigint {
  if (number < 2n) return number;
  const digits = number.toString(16);
  const leading = digits.slice(0, LEADING_DIGITS);
  const shift = BigInt((digits.length - leading.length) * 2);
  for (let root = BigInt(Math.ceil(Math.sqrt(Number.parseInt(leading, 16) + 1))) << shift; ; ) {
    const next = (root + number / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}
/** Hexadecimal; as many as a number holds exactly. */
const LEADING_DIGITS = 12;

const modulo = (number: bigint, divisor: number): number => Number(number % BigInt(divisor));

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

function squaresModulo(modulus: number): ReadonlySet<number> {
  return new Set(Array.from({ length: modulus }, (_, root) => root ** 2 % modulus));
}

function gcd(one: number, other: number): number {
  return other === 0 ? one : gcd(other, one % other);
}
