// Buffered random bytes: a system call for sixteen costs as much as one for thousands, and every request needs a few
// ids. Bytes are wiped from the buffer once returned.
import { randomFillSync } from 'node:crypto';

const BLOCK_BYTES = 4_096;
const block = new Uint8Array(BLOCK_BYTES);
let used = BLOCK_BYTES;

export function randomBytes(count: number): Uint8Array<ArrayBuffer> {
  if (count > BLOCK_BYTES) return randomFillSync(new Uint8Array(count));
  if (used + count > BLOCK_BYTES) {
    randomFillSync(block);
    used = 0;
  }
  const bytes = block.slice(used, used + count);
  block.fill(0, used, used + count);
  used += count;
  return bytes;
}
