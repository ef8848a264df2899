// Tables of issuers and of the custody of their keys: a part of the schema.
import type { Issuer, IssuerKeyType, KeyPlace, Purpose } from '../../../domain/certificate/authority.ts';
import type { Sealed } from '../../seal/seal.ts';

export interface IssuerTables {
  issuer: {
    id: string;
    role: Issuer['role'];
    key_type: IssuerKeyType;
    state: 'active' | 'retired';
    parent_id: string | null;
    certificate: string;
    sealed_key: Sealed | null;
    created_at: number;
    sealed_key_uri: Sealed | null;
    key_place: Exclude<KeyPlace, 'store' | 'elsewhere'> | null;
  };
  pending_issuer: {
    id: string;
    key_type: IssuerKeyType;
    purposes: string;
    request: string;
    sealed_key: Sealed;
    created_at: number;
  };
  alternate_chain: {
    fingerprint: string;
    issuer_id: string;
    certificates: string;
    created_at: number;
  };
  taken_backup: {
    digest: string;
    taken_at: number;
    file: string;
  };
  issuer_purpose: {
    purpose: Purpose;
    key_type: IssuerKeyType;
    issuer_id: string;
    policy: string | null;
  };
}
