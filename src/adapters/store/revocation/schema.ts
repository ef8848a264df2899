// The tables of revocation, as Kysely sees them: a part of the one schema.
import type { RevocationCause, RevocationReason } from '../../../domain/certificate/order.ts';

export interface RevocationTables {
  revocation: {
    certificate_id: string;
    account_id: string;
    reason: RevocationReason;
    cause: RevocationCause;
    caused_by_id: string | null;
    due_at: number;
    revoked_at: number | null;
  };
  revoked_serial: {
    issuer_id: string;
    shard: number;
    serial: string;
    certificate_id: string;
    reason: RevocationReason;
    revoked_at: number;
    not_after: number;
    listed_in: number | null;
    crl_number: number | null;
    crl_published_at: number | null;
  };
  crl: {
    issuer_id: string;
    shard: number;
    number: number;
    this_update: number;
    next_update: number;
    entries: number;
    ended_before: number;
    addresses: string;
    der: string;
  };
  pki_address: { url: string; last_used_at: number };
  ocsp_responder: {
    serial: string;
    issuer_id: string;
    not_before: number;
    not_after: number;
    certificate: string | null;
    sealed_key: string | null;
    created_at: number;
  };
}
