// SM2 keys and signatures (GM/T 0003.2, GM/T 0009), computed by node:crypto, which has more traps here than elsewhere:
//
// - A key fresh from its generator says it is `ec` and silently signs ECDSA. Only one that was read from bytes is SM2.
// - It signs with an empty distinguishing id, where everybody else uses 1234567812345678: what the id adds, Z, is
//   hashed in front of the message here.
// - It opens private keys it should not: zero, which belongs to the point at infinity; n − 1, with which signing never
//   ends; and public halves that belong to another key. It even verifies signatures under the point at infinity.
//
// Keys and signatures of strangers come here, so each has one encoding, and whatever is not that is a DerError or false.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  createSign,
  createVerify,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto';
import { DerError, DerReader } from '../der/reader.ts';
import { bitString, integer, octetString, sequence } from '../der/writer.ts';
import { CURVE, CURVE_NAME, FIELD_BYTES, isUncompressed, KEY_ALGORITHM } from './curve.ts';

export interface Sm2PublicKey {
  readonly handle: KeyObject;
  /** 04 ‖ x ‖ y. */
  readonly point: Uint8Array;
}

export interface Sm2PrivateKey {
  readonly handle: KeyObject;
  readonly publicKey: Sm2PublicKey;
}

const DISTINGUISHING_ID = Buffer.from('1234567812345678');
const ORDER = Buffer.from(CURVE.n, 'hex');
/** Signing divides by 1 + d, so d = n − 1 is not a key either. */
const LARGEST_SCALAR = Buffer.from((BigInt(`0x${CURVE.n}`) - 2n).toString(16), 'hex');
const ZERO = Buffer.alloc(FIELD_BYTES);

/** What Z begins with for every key: the id after its length in bits, then the curve. */
const Z_PREFIX = Buffer.concat([
  Uint8Array.of(0, DISTINGUISHING_ID.length * 8),
  DISTINGUISHING_ID,
  Buffer.from(CURVE.a + CURVE.b + CURVE.gx + CURVE.gy, 'hex'),
]);

/** PKCS#8 of a scalar alone, up to the scalar: its length never changes. */
const SCALAR_PREFIX = sequence([
  integer(0),
  KEY_ALGORITHM,
  octetString(sequence([integer(1), octetString(ZERO)])),
]).subarray(0, -FIELD_BYTES);

/** Both halves in DER; the private one is the caller's to wipe. */
export function newSm2Key(): { pkcs8: Uint8Array; spki: Uint8Array } {
  const { privateKey: pkcs8, publicKey: spki } = generateKeyPairSync('ec', {
    namedCurve: 'SM2',
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
    publicKeyEncoding: { type: 'spki', format: 'der' },
  });
  // Whoever uses the key reads it like this. What cannot be read must not be handed out.
  openSm2PrivateKey(pkcs8);
  openSm2PublicKey(spki);
  return { pkcs8, spki };
}

/** SubjectPublicKeyInfo, DER. */
export function openSm2PublicKey(spki: Uint8Array): Sm2PublicKey {
  const outer = new DerReader(spki);
  const info = outer.sequence();
  outer.end();
  requireOurs(info.any());
  const point = Uint8Array.from(info.bitString());
  info.end();
  if (!isUncompressed(point)) throw new DerError('not an uncompressed point');
  try {
    // The judge of whether the point is on the curve.
    const handle = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
    return { handle: requireTrue(handle), point };
  } catch (cause) {
    throw cause instanceof DerError ? cause : new DerError('not a point of the curve', { cause });
  }
}

/** PKCS#8, DER. The public half is computed, and one that is stated must be the same. */
export function openSm2PrivateKey(pkcs8: Uint8Array): Sm2PrivateKey {
  const { scalar, statedPoint } = read(pkcs8);
  const alone = Buffer.concat([SCALAR_PREFIX, scalar]);
  try {
    const handle = requireTrue(createPrivateKey({ key: alone, format: 'der', type: 'pkcs8' }));
    const publicKey = openSm2PublicKey(createPublicKey(handle).export({ type: 'spki', format: 'der' }));
    if (statedPoint && Buffer.compare(statedPoint, publicKey.point) !== 0) throw new DerError('halves of two keys');
    return { handle, publicKey };
  } finally {
    alone.fill(0);
  }
}

/** The secret number itself, as 32 bytes of its own, which are the caller's to wipe. */
export const sm2Scalar = (pkcs8: Uint8Array): Uint8Array => Uint8Array.from(read(pkcs8).scalar);

/** SubjectPublicKeyInfo of a point. */
export const sm2Spki = (point: Uint8Array): Uint8Array => sequence([KEY_ALGORITHM, bitString(point)]);

/** What binds a signature to its signer's key and id (GM/T 0003.2, 5.5). */
export const sm2Z = (point: Uint8Array): Uint8Array =>
  createHash('sm3').update(Z_PREFIX).update(point.subarray(1)).digest();

/** DER, SEQUENCE { r, s }. */
export const sm2Sign = ({ handle, publicKey }: Sm2PrivateKey, message: Uint8Array): Uint8Array =>
  createSign('sm3').update(sm2Z(publicKey.point)).update(message).sign(handle);

export const sm2Verify = ({ handle, point }: Sm2PublicKey, message: Uint8Array, signature: Uint8Array): boolean =>
  isSignature(signature) && createVerify('sm3').update(sm2Z(point)).update(message).verify(handle, signature);

/** Two numbers from 1 to n − 1, encoded as DER encodes them. */
function isSignature(bytes: Uint8Array): boolean {
  try {
    const outer = new DerReader(bytes);
    const numbers = outer.sequence();
    outer.end();
    const [r, s] = [numbers.positive(), numbers.positive()];
    numbers.end();
    return isBelowOrder(r) && isBelowOrder(s);
  } catch (error) {
    if (error instanceof DerError) return false;
    throw error;
  }
}

/** Of big-endian bytes without zeros in front. */
const isBelowOrder = (number: Uint8Array): boolean =>
  number.length < ORDER.length || (number.length === ORDER.length && Buffer.compare(number, ORDER) < 0);

/** RFC 5958 around RFC 5915. The scalar is a view of the bytes given. */
function read(pkcs8: Uint8Array): { scalar: Uint8Array; statedPoint: Uint8Array | undefined } {
  const outer = new DerReader(pkcs8);
  const info = outer.sequence();
  outer.end();
  requireVersion(info, 0);
  requireOurs(info.any());
  const inner = new DerReader(info.octetString());
  info.end();
  const key = inner.sequence();
  inner.end();
  requireVersion(key, 1);
  const scalar = key.octetString();
  // GmSSL and others name the curve a second time.
  const again = key.context(0);
  if (again && Buffer.compare(again.any(), CURVE_NAME) !== 0) throw new DerError('another curve');
  again?.end();
  const stated = key.context(1);
  const statedPoint = stated?.bitString();
  stated?.end();
  key.end();
  const isKey =
    scalar.length === FIELD_BYTES && Buffer.compare(scalar, ZERO) > 0 && Buffer.compare(scalar, LARGEST_SCALAR) <= 0;
  if (!isKey) throw new DerError('not a private key of the curve');
  return { scalar, statedPoint };
}

function requireVersion(reader: DerReader, version: number): void {
  const content = reader.integer();
  if (content.length !== 1 || content[0] !== version) throw new DerError('another version');
}

function requireOurs(algorithm: Uint8Array): void {
  if (Buffer.compare(algorithm, KEY_ALGORITHM) !== 0) throw new DerError('not an SM2 key');
}

function requireTrue(handle: KeyObject): KeyObject {
  if (handle.asymmetricKeyType === 'ec') throw new DerError('a key that would sign ECDSA');
  return handle;
}
