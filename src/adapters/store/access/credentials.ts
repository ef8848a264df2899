// Repository of API credentials. Only `findForAuthentication` returns the hash of a secret, for comparison.
import { sql } from 'kysely';
import type { Caller, Credential } from '../../../domain/access/credential.ts';
import type { Credentials } from '../../../domain/access/ports.ts';
import { latestAhead } from '../../../domain/clock.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { accountFrom, type UsageColumn } from './accounts.ts';

const credentialFrom = (row: Omit<Schema['credential'], 'secret_hash'>): Credential => ({
  keyId: row.key_id,
  accountId: row.account_id,
  kind: row.kind,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  disabledAt: row.disabled_at,
  lastUsedAt: row.last_used_at,
});

// Without secret_hash.
const COLUMNS = [
  'credential.key_id',
  'credential.account_id',
  'credential.kind',
  'credential.created_at',
  'credential.expires_at',
  'disabled_at',
  'last_used_at',
] as const;

/** Of a credential joined with its account. */
export const CALLER_COLUMNS = [
  ...COLUMNS,
  'account.name',
  'account.locale',
  'account.kind as account_kind',
  'account.created_at as account_created_at',
  'account.suspended_at',
  'account.open_orders_limit',
  'account.stored_bytes_limit',
  'account.stored_bytes',
] as const;

type CallerRow = Omit<Schema['credential'], 'secret_hash'> &
  Pick<Schema['account'], 'name' | 'locale' | 'suspended_at' | UsageColumn> & {
    readonly account_kind: Schema['account']['kind'];
    readonly account_created_at: number;
  };

export const callerFrom = (row: CallerRow): Caller => ({
  account: accountFrom({
    id: row.account_id,
    name: row.name,
    kind: row.account_kind,
    locale: row.locale,
    created_at: row.account_created_at,
    suspended_at: row.suspended_at,
    open_orders_limit: row.open_orders_limit,
    stored_bytes_limit: row.stored_bytes_limit,
    stored_bytes: row.stored_bytes,
  }),
  credential: credentialFrom(row),
});

const selectCaller = prepared((db, { keyId }: { keyId: string }) =>
  db
    .selectFrom('credential')
    .innerJoin('account', 'account.id', 'credential.account_id')
    .select(CALLER_COLUMNS)
    .select('secret_hash')
    .where('key_id', '=', keyId),
);

export const credentialsIn = (db: Db): Credentials => ({
  async insert(credential, secretHash) {
    await db
      .insertInto('credential')
      .values({
        key_id: credential.keyId,
        account_id: credential.accountId,
        kind: credential.kind,
        secret_hash: secretHash,
        created_at: credential.createdAt,
        expires_at: credential.expiresAt,
        disabled_at: credential.disabledAt,
        last_used_at: credential.lastUsedAt,
      })
      .execute();
  },

  async findForAuthentication(keyId) {
    const [row] = await selectCaller(db, { keyId });
    return row && { caller: callerFrom(row), secretHash: row.secret_hash };
  },

  async find(keyId) {
    const row = await db.selectFrom('credential').select(COLUMNS).where('key_id', '=', keyId).executeTakeFirst();
    return row && credentialFrom(row);
  },

  async listOf(accountId) {
    const rows = await db
      .selectFrom('credential')
      .select(COLUMNS)
      .where('account_id', '=', accountId)
      .orderBy('key_id')
      .execute();
    return rows.map(credentialFrom);
  },

  async disable(keyId, at) {
    const row = await db
      .updateTable('credential')
      .set({ disabled_at: sql`coalesce(disabled_at, ${at})` })
      .where('key_id', '=', keyId)
      .returning(COLUMNS)
      .executeTakeFirst();
    return row && credentialFrom(row);
  },

  async expire(keyId, at) {
    const row = await db
      .updateTable('credential')
      .set({ expires_at: sql`case when expires_at < ${at} then expires_at else ${at} end` })
      .where('key_id', '=', keyId)
      .returning(COLUMNS)
      .executeTakeFirst();
    return row && credentialFrom(row);
  },

  async touch(keyId, at) {
    await db
      .updateTable('credential')
      .set({ last_used_at: at })
      .where('key_id', '=', keyId)
      .where((is) =>
        is.or([
          is('last_used_at', 'is', null),
          is('last_used_at', '<', at),
          is('last_used_at', '>', latestAhead(at, 0)),
        ]),
      )
      .execute();
  },
});
