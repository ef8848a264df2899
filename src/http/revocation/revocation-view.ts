// The view of truth: what is known of a revocation, from its cause to the list and the OCSP answers that show it.
import Type from 'typebox';
import type { CertificateRecord, Revocation } from '../../domain/certificate/order.ts';
import type { SeenSerial } from '../../domain/revocation/ports.ts';
import { DateTime, moment, nullable } from '../front/values.ts';

export const RevocationView = Type.Object({
  reason: Type.String(),
  cause: Type.String({ description: 'name_removed, previous_replaced, requested or key_compromise.' }),
  caused_by: nullable(Type.String({ description: 'The certificate whose issuance caused it.' })),
  due_at: DateTime,
  revoked_at: nullable(Type.String({ format: 'date-time', description: 'When it was recorded; null: still to come.' })),
  crl_number: nullable(Type.Integer({ description: 'The first list that shows it.' })),
  crl_published_at: nullable(DateTime),
  ocsp_since: nullable(Type.String({ format: 'date-time', description: 'Since when OCSP answers revoked.' })),
});

/** Both halves of a dual certificate stand on lists of their own: it is seen when the later one is. */
export function revocationView(
  { revocation }: Pick<CertificateRecord, 'revocation'>,
  seen: readonly SeenSerial[],
): Type.Static<typeof RevocationView> | null {
  if (!revocation) return null;
  const isListed = seen.length > 0 && seen.every(({ crlNumber }) => crlNumber !== null);
  const last = isListed ? seen.toSorted((one, other) => one.crlNumber! - other.crlNumber!).at(-1) : undefined;
  return {
    ...scheduleView(revocation),
    revoked_at: moment(revocation.revokedAt),
    crl_number: last?.crlNumber ?? null,
    crl_published_at: moment(last?.crlPublishedAt ?? null),
    // OCSP answers from the record itself, so it says so from the moment on at which it is there.
    ocsp_since: moment(revocation.revokedAt),
  };
}

export const scheduleView = ({ reason, cause, causedById, dueAt }: Revocation) => ({
  reason,
  cause,
  caused_by: causedById,
  due_at: new Date(dueAt).toISOString(),
});
