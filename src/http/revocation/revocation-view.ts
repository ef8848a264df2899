// The JSON of a revocation: its cause, its dates, and the CRL and OCSP responses that show it.
import Type from 'typebox';
import {
  type CertificateRecord,
  REVOCATION_CAUSES,
  type Revocation,
  revocationOf,
} from '../../domain/certificate/certificate.ts';
import type { PublishedSerial } from '../../domain/revocation/ports.ts';
import { OPERATOR_REASONS } from '../../domain/revocation/revocation.ts';
import { DateTime, Int64, moment, nullable, word } from '../front/values.ts';

export const RevocationReason = word('RevocationReason', OPERATOR_REASONS);
const SCHEDULE = {
  reason: RevocationReason,
  cause: word(
    'RevocationCause',
    REVOCATION_CAUSES,
    '`key_compromise`: not the certificate but its key was reported, be it with another certificate.',
  ),
  caused_by: nullable(Type.String({ description: 'The certificate whose issuance caused it.' })),
  due_at: DateTime,
};
export const ScheduledRevocation = Type.Object(
  { certificate_id: Type.String(), ...SCHEDULE },
  { title: 'ScheduledRevocation' },
);
export const RevocationView = Type.Object(
  {
    ...SCHEDULE,
    revoked_at: nullable(
      Type.String({ format: 'date-time', description: 'When it was recorded; null: still to come.' }),
    ),
    crl_number: nullable({ ...Int64, description: 'The first list that shows it.' }),
    crl_published_at: nullable(DateTime),
    ocsp_since: nullable(Type.String({ format: 'date-time', description: 'Since when OCSP answers revoked.' })),
  },
  { title: 'Revocation' },
);

/** The halves of a dual certificate are on different CRLs; the later one counts, and null while either is missing. */
export function revocationView(
  certificate: CertificateRecord,
  seen: readonly PublishedSerial[],
): Type.Static<typeof RevocationView> | null {
  const revocation = revocationOf(certificate);
  if (!revocation) return null;
  const order = ({ crlNumber }: PublishedSerial) => crlNumber ?? Number.MAX_SAFE_INTEGER;
  const last = seen.toSorted((one, other) => order(one) - order(other)).at(-1);
  return {
    ...scheduleView(revocation),
    revoked_at: moment(revocation.revokedAt),
    crl_number: last?.crlNumber ?? null,
    crl_published_at: moment(last?.crlPublishedAt ?? null),
    // OCSP reads the record itself, so it answers revoked as soon as it is committed.
    ocsp_since: moment(revocation.revokedAt),
  };
}

export const scheduleView = ({ reason, cause, causedById, dueAt }: Revocation) => ({
  reason,
  cause,
  caused_by: causedById,
  due_at: new Date(dueAt).toISOString(),
});
