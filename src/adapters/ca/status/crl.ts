// The bytes of a list of revocations (RFC 5280, 5). Entries are encoded once and kept; a list is its head, the entries
// one after the other, and its extensions, so that building one costs a copy and a signature.

import type { ListedSerial } from '../../../domain/revocation/ports.ts';
import { REASON_CODES } from '../../../domain/revocation/revocation.ts';
import { enumerated, explicit, integer, oid, raw, sequence, TAG, time } from '../../der/writer.ts';
import { authorityKeyIdentifier, distributionPoint } from '../profiles.ts';
import { extension } from '../to-be-signed.ts';

const VERSION_2 = integer(1);
const REASON = oid('2.5.29.21');
const CRL_NUMBER = oid('2.5.29.20');
const ISSUING_DISTRIBUTION_POINT = oid('2.5.29.28');

const REASONS = new Map(
  Object.entries(REASON_CODES).map(([reason, code]) => [
    reason,
    sequence([extension({ id: REASON, isCritical: false, value: enumerated(code) })]),
  ]),
);

export const listEntry = ({ serial, reason, revokedAt }: ListedSerial): Uint8Array =>
  sequence([integer(Buffer.from(serial, 'hex')), time(new Date(revokedAt)), REASONS.get(reason)!]);

export interface ListContent {
  readonly algorithm: Uint8Array;
  /** The subject of the issuer, DER. */
  readonly issuer: Uint8Array;
  readonly issuerKeyId: Uint8Array;
  readonly number: number;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
  /**
   * Exactly the addresses in the certificates that this list is for: a verifier compares them. None for a list that has
   * everything its issuer revoked, and is for every certificate of it.
   */
  readonly addresses: readonly string[];
  /** Encoded entries, one after the other. */
  readonly entries: Uint8Array;
}

/** Critical: whoever does not understand that this is one list of several must not take it for all there is. */
const issuingDistributionPoint = (addresses: readonly string[]): Uint8Array =>
  extension({ id: ISSUING_DISTRIBUTION_POINT, isCritical: true, value: sequence([distributionPoint(addresses)]) });

export const listToBeSigned = (content: ListContent): Uint8Array =>
  sequence([
    VERSION_2,
    content.algorithm,
    content.issuer,
    time(new Date(content.thisUpdate)),
    time(new Date(content.nextUpdate)),
    // A list of none is not written at all (5.1.2.6).
    ...(content.entries.length > 0 ? [raw(TAG.sequence, content.entries)] : []),
    explicit(
      0,
      sequence([
        authorityKeyIdentifier(content.issuerKeyId),
        extension({ id: CRL_NUMBER, isCritical: false, value: integer(content.number) }),
        ...(content.addresses.length > 0 ? [issuingDistributionPoint(content.addresses)] : []),
      ]),
    ),
  ]);
