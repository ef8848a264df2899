// A certificate with its chain as one file: PKCS#7, the degenerate SignedData that has certificates and no signer (RFC 5652,
// 5.1). Windows and Java import it; the service itself serves PEM only.
import { element, oid, sequence, set, small, tagged } from './der.ts';

const SIGNED_DATA = oid('1.2.840.113549.1.7.2');
const DATA = oid('1.2.840.113549.1.7.1');

export const certificateBundle = (certificates: readonly Uint8Array[]): Uint8Array<ArrayBuffer> =>
  sequence(
    SIGNED_DATA,
    tagged(
      0,
      sequence(
        small(1),
        set(),
        sequence(DATA),
        // [0] IMPLICIT SET OF: the tag replaces that of the set. A SET OF is sorted by its encoding.
        element(0xa0, ...certificates.toSorted(byBytes)),
        set(),
      ),
    ),
  );

function byBytes(one: Uint8Array, other: Uint8Array): number {
  const differs = one.findIndex((byte, index) => byte !== other[index]);
  return differs < 0 ? one.length - other.length : (one[differs] ?? 0) - (other[differs] ?? -1);
}
