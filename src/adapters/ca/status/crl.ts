// Encodes CRLs (RFC 5280, 5). Entries are encoded once and cached, so building a CRL costs one copy and one signature.

import type { RevocationReason } from '../../../domain/certificate/certificate.ts';
import type { CrlEntry } from '../../../domain/revocation/ports.ts';
import { REASON_CODES } from '../../../domain/revocation/revocation.ts';
import { enumerated, explicit, integer, oid, raw, sequence, TAG, time } from '../../der/writer.ts';
import { authorityKeyIdentifier, distributionPoint } from '../profiles.ts';
import { extension } from '../to-be-signed.ts';

const VERSION_2 = integer(1);
const REASON = oid('2.5.29.21');
const CRL_NUMBER = oid('2.5.29.20');
const ISSUING_DISTRIBUTION_POINT = oid('2.5.29.28');

const entryExtensions = (reason: RevocationReason): Uint8Array =>
  sequence([extension({ id: REASON, isCritical: false, value: enumerated(REASON_CODES[reason]) })]);
const ENTRY_EXTENSIONS: Readonly<Record<RevocationReason, Uint8Array>> = {
  key_compromise: entryExtensions('key_compromise'),
  affiliation_changed: entryExtensions('affiliation_changed'),
  superseded: entryExtensions('superseded'),
  cessation_of_operation: entryExtensions('cessation_of_operation'),
  privilege_withdrawn: entryExtensions('privilege_withdrawn'),
};

export const encodeEntry = ({ serial, reason, revokedAt }: CrlEntry): Uint8Array =>
  sequence([integer(Buffer.from(serial, 'hex')), time(new Date(revokedAt)), ENTRY_EXTENSIONS[reason]]);

interface CrlContent {
  readonly algorithm: Uint8Array;
  /** The issuer's subject, DER. */
  readonly issuer: Uint8Array;
  readonly issuerKeyId: Uint8Array;
  readonly number: number;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
  /**
   * Exactly the URLs in the certificates that this CRL covers: verifiers compare them. Empty for a CRL that covers every
   * certificate of its issuer.
   */
  readonly addresses: readonly string[];
  /** Encoded entries, concatenated. */
  readonly entries: Uint8Array;
}

/** Critical, so that a verifier that does not know sharding cannot take one shard for the complete CRL. */
const issuingDistributionPoint = (addresses: readonly string[]): Uint8Array =>
  extension({ id: ISSUING_DISTRIBUTION_POINT, isCritical: true, value: sequence([distributionPoint(addresses)]) });

export const crlToBeSigned = (content: CrlContent): Uint8Array =>
  sequence([
    VERSION_2,
    content.algorithm,
    content.issuer,
    time(new Date(content.thisUpdate)),
    time(new Date(content.nextUpdate)),
    // Absent when there are no entries (5.1.2.6).
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
