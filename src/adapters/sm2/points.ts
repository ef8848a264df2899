// Points of the SM2 curve and the numbers that multiply them, by a library: node:crypto keeps both to itself. It
// computes with BigInt, which nobody can wipe; so whatever is done here belongs into a worker (adapters/workers).
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

/** From 1 to n − 1, each as likely as the others. */
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
