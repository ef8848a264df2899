// The tables of ACME, a part of the schema.
import type { AcmeAccountStatus } from '../../../domain/acme/account.ts';
import type { AccountId } from '../../../domain/ids.ts';
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
}
