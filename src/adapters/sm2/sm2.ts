// SM2 keys and signatures (GM/T 0003.2, GM/T 0009) on top of node:crypto, which has pitfalls:
//
// - A freshly generated key has type `ec` and silently signs ECDSA. Only a key imported from DER is SM2.
// - It signs with an empty distinguishing id, while other implementations use 1234567812345678. So Z, the hash of id and
//   key, is prepended to the message here.
// - It accepts invalid private keys: zero, which maps to the point at infinity; n − 1, with which signing never ends; and
//   a public key that does not match. It even verifies signatures under the point at infinity.
//
// Input is untrusted. Each key and signature has exactly one valid encoding; anything else is a DerError or false.
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

interface Sm2PublicKey {
  readonly handle: KeyObject;
  /** 04 ‖ x ‖ y. */
  readonly point: Uint8Array;
}

interface Sm2PrivateKey {
  readonly handle: KeyObject;
  readonly publicKey: Sm2PublicKey;
}

const DISTINGUISHING_ID = Buffer.from('1234567812345678');
const ORDER = Buffer.from(CURVE.n, 'hex');
/** Signing divides by 1 + d, so d = n − 1 is not a key either. */
const LARGEST_SCALAR = Buffer.from((BigInt(`0x${CURVE.n}`) - 2n).toString(16), 'hex');
const ZERO = Buffer.alloc(FIELD_BYTES);

/** The constant part of the input of Z: length of the id in bits, id, curve parameters. */
const Z_PREFIX = Buffer.concat([
  Uint8Array.of(0, DISTINGUISHING_ID.length * 8),
  DISTINGUISHING_ID,
  Buffer.from(CURVE.a + CURVE.b + CURVE.gx + CURVE.gy, 'hex'),
]);

/** PKCS#8 of a key without its public key, up to the scalar, whose length is fixed. */
const SCALAR_PREFIX = sequence([
  integer(0),
  KEY_ALGORITHM,
  octetString(sequence([integer(1), octetString(ZERO)])),
]).subarray(0, -FIELD_BYTES);

/** Generates a key pair, DER. The caller wipes the private key. */
export function newSm2Key(): { pkcs8: Uint8Array; spki: Uint8Array } {
  const { privateKey: pkcs8, publicKey: spki } = generateKeyPairSync('ec', {
    namedCurve: 'SM2',
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
    publicKeyEncoding: { type: 'spki', format: 'der' },
  });
  // Never return a key that cannot be imported again.
  openSm2PrivateKey(pkcs8);
  openSm2PublicKey(spki);
  return { pkcs8, spki };
}

/** SubjectPublicKeyInfo, DER. */
export function openSm2PublicKey(spki: Uint8Array): Sm2PublicKey {
  const outer = new DerReader(spki);
  const info = outer.sequence();
  outer.end();
  requireSm2(info.any());
  const point = Uint8Array.from(info.bitString());
  info.end();
  if (!isUncompressed(point)) throw new DerError('not an uncompressed point');
  try {
    // node:crypto rejects points that are not on the curve.
    const handle = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
    return { handle: requireSm2Handle(handle), point };
  } catch (cause) {
    throw cause instanceof DerError ? cause : new DerError('not a point of the curve', { cause });
  }
}

/** PKCS#8, DER. Computes the public key; if the input states one, it must be equal. */
export function openSm2PrivateKey(pkcs8: Uint8Array): Sm2PrivateKey {
  const { scalar, statedPoint } = parse(pkcs8);
  const bare = Buffer.concat([SCALAR_PREFIX, scalar]);
  try {
    const handle = requireSm2Handle(createPrivateKey({ key: bare, format: 'der', type: 'pkcs8' }));
    const publicKey = openSm2PublicKey(createPublicKey(handle).export({ type: 'spki', format: 'der' }));
    if (statedPoint && Buffer.compare(statedPoint, publicKey.point) !== 0) throw new DerError('halves of two keys');
    return { handle, publicKey };
  } finally {
    bare.fill(0);
  }
}

/** A copy of the 32-byte private scalar, which the caller wipes. */
export const sm2Scalar = (pkcs8: Uint8Array): Uint8Array => Uint8Array.from(parse(pkcs8).scalar);

/** SubjectPublicKeyInfo of a point. */
export const sm2Spki = (point: Uint8Array): Uint8Array => sequence([KEY_ALGORITHM, bitString(point)]);

/** Z binds a signature to the signer's id and key (GM/T 0003.2, 5.5). */
export const sm2Z = (point: Uint8Array): Uint8Array =>
  createHash('sm3').update(Z_PREFIX).update(point.subarray(1)).digest();

/** DER, SEQUENCE { r, s }. */
export const sm2Sign = ({ handle, publicKey }: Sm2PrivateKey, message: Uint8Array): Uint8Array =>
  createSign('sm3').update(sm2Z(publicKey.point)).update(message).sign(handle);

export const sm2Verify = ({ handle, point }: Sm2PublicKey, message: Uint8Array, signature: Uint8Array): boolean =>
  isSignature(signature) && createVerify('sm3').update(sm2Z(point)).update(message).verify(handle, signature);

/** Whether r and s are in [1, n − 1] and encoded in DER. */
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

/** For big-endian bytes without leading zeros. */
const isBelowOrder = (number: Uint8Array): boolean =>
  number.length < ORDER.length || (number.length === ORDER.length && Buffer.compare(number, ORDER) < 0);

/** RFC 5958 around RFC 5915. The scalar is a view of the input. */
function parse(pkcs8: Uint8Array): { scalar: Uint8Array; statedPoint: Uint8Array | undefined } {
  const outer = new DerReader(pkcs8);
  const info = outer.sequence();
  outer.end();
  requireVersion(info, 0);
  requireSm2(info.any());
  const inner = new DerReader(info.octetString());
  info.end();
  const key = inner.sequence();
  inner.end();
  requireVersion(key, 1);
  const scalar = key.octetString();
  // GmSSL and others repeat the curve here.
  const repeated = key.context(0);
  if (repeated && Buffer.compare(repeated.any(), CURVE_NAME) !== 0) throw new DerError('another curve');
  repeated?.end();
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

function requireSm2(algorithm: Uint8Array): void {
  if (Buffer.compare(algorithm, KEY_ALGORITHM) !== 0) throw new DerError('not an SM2 key');
}

function requireSm2Handle(handle: KeyObject): KeyObject {
  if (handle.asymmetricKeyType === 'ec') throw new DerError('a key that would sign ECDSA');
  return handle;
}
