// The SM2 curve (GM/T 0003.5): domain parameters in hex, each of one field element, and its OID.
import { oid, sequence } from '../der/writer.ts';

export const FIELD_BYTES = 32;

export const CURVE = {
  p: 'fffffffeffffffffffffffffffffffffffffffff00000000ffffffffffffffff',
  a: 'fffffffeffffffffffffffffffffffffffffffff00000000fffffffffffffffc',
  b: '28e9fa9e9d9f5e344d5a9e4bcf6509a7f39789f515ab8f92ddbcbd414d940e93',
  /** Order of the base point. */
  n: 'fffffffeffffffffffffffffffffffff7203df6b21c6052b53bbf40939d54123',
  gx: '32c4ae2c1f1981195f9904466a39c9948fe30bbff2660be1715a4589334c74c7',
  gy: 'bc3736a2f4f6779c59bdcee36b692153d0a9877cc62a474002df32e52139f0a0',
} as const;

export const CURVE_NAME = oid('1.2.156.10197.1.301');

/** AlgorithmIdentifier of SM2 keys: id-ecPublicKey with this curve. */
export const KEY_ALGORITHM = sequence([oid('1.2.840.10045.2.1'), CURVE_NAME]);

/** Whether the point is encoded as 04 ‖ x ‖ y. */
export const isUncompressed = (point: Uint8Array): boolean => point[0] === 4 && point.length === 1 + 2 * FIELD_BYTES;
