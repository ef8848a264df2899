// The tables as Kysely sees them: one schema for both engines. Only text and bigint (as number): see ADR 0017.
import type { Kysely, Transaction as KyselyTransaction } from 'kysely';
import type { AccountKind } from '../../domain/account.ts';
import type { CredentialKind } from '../../domain/credential.ts';
import type { AuditAction } from '../../domain/ports.ts';
import type { Locale } from '../../locale.ts';

export interface Schema {
  account: { id: string; name: string; kind: AccountKind; locale: Locale; created_at: number };
  credential: {
    key_id: string;
    account_id: string;
    kind: CredentialKind;
    secret_hash: string;
    created_at: number;
    expires_at: number | null;
    disabled_at: number | null;
    last_used_at: number | null;
  };
  audit: {
    id: string;
    at: number;
    account_id: string;
    actor: string;
    action: AuditAction;
    subject: string;
    request_id: string | null;
    details: string;
  };
  sealed_secret: { name: string; sealed: string };
  setting: { name: string; value: string };
  migration: { number: number; name: string; sha256: string; applied_at: number };
}

export type Db = Kysely<Schema>;
export type Transaction = KyselyTransaction<Schema>;
