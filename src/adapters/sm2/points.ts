// Points and scalars of the SM2 curve, by a library: node:crypto exposes neither. The library computes with BigInt, which
// cannot be wiped, so use this in a worker only (adapters/workers).
import { randomFillSync } from 'node:crypto';
import { weierstrass } from '@noble/curves/abstract/weierstrass.js';
import { CURVE, FIELD_BYTES } from './curve.ts';

const number = (hex: string): bigint => BigInt(`0x${hex}`);

export const Point = weierstrass({
  p: number(CURVE.p),
  a: number(CURVE.a),
  b: number(CURVE.b),
  n: number(CURVE.n),
  h: 1n,
  Gx: number(CURVE.gx),
  Gy: number(CURVE.gy),
});

export const numberFrom = (bytes: Uint8Array): bigint => number(Buffer.from(bytes).toString('hex'));

/** Uniform in [1, n − 1], by rejection sampling. */
export function randomScalar(): bigint {
  const bytes = Buffer.alloc(FIELD_BYTES);
  try {
    for (;;) {
      const scalar = numberFrom(randomFillSync(bytes));
      if (scalar > 0n && scalar < Point.Fn.ORDER) return scalar;
    }
  } finally {
    bytes.fill(0);
  }
}
