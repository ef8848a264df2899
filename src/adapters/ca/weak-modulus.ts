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

/** Fermat factorization, n = a² − b², for 100 rounds as the Baseline Requirements ask. */
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

/** Quadratic residues modulo 64, and modulo the factors of 45045. */
const SQUARES_MODULO_64 = squaresModulo(64);
const SIEVE = 45045n;
const SIEVE_FACTORS = [63, 65, 11].map((modulus) => ({ modulus, squares: squaresModulo(modulus) }));

/** The residues filter out 99 of 100 non-squares before the square root is computed. */
function isSquare(number: bigint): boolean {
  if (!SQUARES_MODULO_64.has(Number(number & 63n))) return false;
  const rest = Number(number % SIEVE);
  if (!SIEVE_FACTORS.every(({ modulus, squares }) => squares.has(rest % modulus))) return false;
  return squareRoot(number) ** 2n === number;
}

/** Rounded down; Newton's method from above. */
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

function squaresModulo(modulus: number): ReadonlySet<number> {
  return new Set(Array.from({ length: modulus }, (_, root) => root ** 2 % modulus));
}

function gcd(one: number, other: number): number {
  return other === 0 ? one : gcd(other, one % other);
}
