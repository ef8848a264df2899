// Signings for tests of the store: conditions that hold, and everything that an issuance records.
import type { IssuedCertificate, PreparedCertificate, UnsignedHalf } from '../../src/domain/certificate/certificate.ts';
import type { BeginConditions, FinishedIssuance } from '../../src/domain/issuance/ports.ts';
import { EVERY_BYTE, NOW, order } from './records.ts';

/** For an order that was not changed since it was inserted. */
export const HOLDS: BeginConditions = {
  ...{ revision: 1, unblockedKey: null, idempotency: null, purpose: 'public-tls' },
};

/** The encryption half of a dual certificate, on the escrowed key `e`. */
export const half = (serial: string): UnsignedHalf => ({
  ...{ escrowedKeyId: 'e', serial, toBeSigned: EVERY_BYTE, envelope: EVERY_BYTE },
});

/** The certificate, signed. */
export function signed(
  { toBeSigned: _, encryption, ...record }: PreparedCertificate,
  change: Partial<IssuedCertificate> = {},
): IssuedCertificate {
  const { escrowedKeyId = '', serial = '', envelope = EVERY_BYTE } = encryption ?? {};
  return {
    ...{ ...record, state: 'issued', der: EVERY_BYTE, issuedAt: NOW + 5, version: 1, replacesId: null },
    ...{ revocation: null, encryption: encryption && { escrowedKeyId, serial, envelope, der: EVERY_BYTE } },
    ...change,
  };
}

/** Of an order in its first revision. */
export function finished(record: PreparedCertificate, change: Partial<FinishedIssuance> = {}): FinishedIssuance {
  const { id, orderId, accountId } = record;
  return {
    order: order(orderId, { accountId, currentCertificateId: id }),
    certificate: signed(record),
    event: {
      ...{ id: `event of ${id}`, accountId, orderId, certificateId: id, createdAt: NOW + 5 },
      ...{ action: 'order:issued', orderStatus: 'issued' },
    },
    audit: {
      ...{ id: `audit of ${id}`, at: NOW + 5, accountId, actor: 'cli', requestId: null },
      ...{ action: 'order:reissued', subject: orderId, details: {} },
    },
    idempotency: null,
    ...change,
  };
}
