// Seeded randomness for campaigns. Not for cryptography.
import { hash } from 'node:crypto';

/** mulberry32: numbers from 0 up to, but not including, 1. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A number from 0 up to, but not including, 1 that depends on the text alone. */
export const fraction = (text: string): number => Number.parseInt(hash('sha256', text).slice(0, 8), 16) / 2 ** 32;
