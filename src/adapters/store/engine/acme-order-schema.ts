// The tables of ACME orders, part of the schema.
import type { Authorization } from '../../../domain/acme/authorization.ts';
import type { AccountId, CertificateId, OrderId } from '../../../domain/ids.ts';
import type { AcmeMethod } from '../../../domain/validation/method.ts';

export interface AcmeOrderTables {
  acme_order: {
    order_id: OrderId;
    account_id: AccountId;
    acme_account_id: string;
    acme_account_url: string;
    certificate_id: CertificateId;
    replaces: string | null;
    replaces_id: CertificateId | null;
    revokes_replaced: number;
    not_after: string | null;
    expires_at: number;
    is_open: number;
    /** JSON. */
    problem: string | null;
    keep_until: number;
  };
  acme_authorization: {
    id: string;
    order_id: OrderId;
    account_id: AccountId;
    acme_account_id: string;
    name: string;
    state: Authorization['state'];
    token: string;
    method: AcmeMethod | null;
    due_at: number | null;
    validated_at: number | null;
    /** JSON. */
    problem: string | null;
    expires_at: number;
  };
}
