// SM2 encryption and the SM2EnvelopedKey structure (GM/T 0003.4; GB/T 35276, 7.2 and 7.4). node:crypto has neither SM2
// encryption nor point multiplication on this curve, so a library multiplies; SM3 and SM4 are node:crypto's.
//
// Byte arrays with secrets are wiped after use. BigInts cannot be wiped: the ephemeral scalar and the shared point stay
// in memory until it is reused. Neither is useful beyond this one envelope, and the enveloped key never becomes a BigInt.
//
// Multiplication takes milliseconds: run this in a worker (adapters/workers).
import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { bitString, integer, octetString, oid, sequence } from '../der/writer.ts';
import { FIELD_BYTES, isUncompressed } from './curve.ts';
import { Point, randomScalar } from './points.ts';

/** Without parameters, as other CAs encode it. Readers also accept NULL. */
const SM4_ECB = sequence([oid('1.2.156.10197.1.104.1')]);
const SM4_KEY_BYTES = 16;

interface KeyHalves {
  /** The private key as 32 bytes. */
  readonly scalar: Uint8Array;
  /** 04 ‖ x ‖ y. */
  readonly point: Uint8Array;
}

/**
 * SM2EnvelopedKey: the scalar encrypted under a fresh SM4 key, and that key encrypted to the recipient. Does not check
 * that scalar and point belong together. The standard mandates ECB; it is harmless here, as both blocks are random.
 */
export function envelopedKey({ scalar, point }: KeyHalves, recipient: Uint8Array): Uint8Array {
  if (scalar.length !== FIELD_BYTES) throw new RangeError('not the 32 bytes of a private key');
  if (!isUncompressed(point)) throw new RangeError('not an uncompressed point');
  const key = randomBytes(SM4_KEY_BYTES);
  try {
    const encrypted = createCipheriv('sm4-ecb', key, null).setAutoPadding(false).update(scalar);
    return sequence([SM4_ECB, sm2Encrypt(key, recipient), bitString(point), bitString(encrypted)]);
  } finally {
    key.fill(0);
  }
}

/** SM2Cipher: SEQUENCE { x, y, hash, cipher }. `newScalar` is injected by the test of the standard's example. */
export function sm2Encrypt(message: Uint8Array, recipient: Uint8Array, newScalar = randomScalar): Uint8Array {
  // An empty mask counts as all zeros, so the loop would never end.
  if (message.length === 0) throw new RangeError('nothing to encrypt');
  if (!isUncompressed(recipient)) throw new RangeError('not an uncompressed point');
  const publicPoint = Point.fromBytes(recipient);
  for (;;) {
    const k = newScalar();
    const shared = publicPoint.multiply(k).toBytes(false).subarray(1);
    const mask = keyStream(shared, message.length);
    try {
      // Step A5 of the standard: retry if the mask is all zeros. For one byte that is every 256th time.
      if (mask.every((byte) => byte === 0)) continue;
      const [x, y] = halves(shared);
      const check = createHash('sm3').update(x).update(message).update(y).digest();
      const [c1x, c1y] = halves(Point.BASE.multiply(k).toBytes(false).subarray(1));
      const cipher = message.map((byte, index) => byte ^ mask[index]!);
      return sequence([integer(c1x), integer(c1y), octetString(check), octetString(cipher)]);
    } finally {
      shared.fill(0);
      mask.fill(0);
    }
  }
}

/** KDF of GM/T 0003.4, 5.4.3: concatenated hashes of the shared point and a counter. */
function keyStream(shared: Uint8Array, length: number): Uint8Array {
  const stream = new Uint8Array(length);
  const counter = Buffer.alloc(4);
  for (let position = 0; position < length; position += FIELD_BYTES) {
    counter.writeUInt32BE(counter.readUInt32BE() + 1);
    const block = createHash('sm3').update(shared).update(counter).digest();
    stream.set(block.subarray(0, length - position), position);
    block.fill(0);
  }
  return stream;
}

const halves = (xy: Uint8Array): [Uint8Array, Uint8Array] => [xy.subarray(0, FIELD_BYTES), xy.subarray(FIELD_BYTES)];
