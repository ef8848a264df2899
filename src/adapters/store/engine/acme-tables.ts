// The tables of ACME, a part of the schema.
import type { AcmeAccountStatus } from '../../../domain/acme/account.ts';
import type { Authorization } from '../../../domain/acme/authorization.ts';
import type { AccountId, CertificateId, OrderId } from '../../../domain/ids.ts';
import type { AcmeMethod } from '../../../domain/validation/method.ts';
import type { Sealed } from '../../seal/seal.ts';

export interface AcmeTables {
  acme_binding: {
    id: string;
    account_id: AccountId;
    name: string;
    sealed_key: Sealed;
    products: string | null;
    name_suffixes: string | null;
    revokes_replaced: number;
    is_reusable: number;
    created_at: number;
    expires_at: number | null;
    disabled_at: number | null;
    used_at: number | null;
  };
  acme_account: {
    id: string;
    account_id: AccountId;
    binding_id: string;
    status: AcmeAccountStatus;
    thumbprint: string;
    spki: string;
    contacts: string;
    terms_agreed_at: number | null;
    created_at: number;
  };
  acme_used_nonce: { id: string; expires_at: number };
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
