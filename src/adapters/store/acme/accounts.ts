// Repositories of external account bindings and of the ACME accounts made with them. An account is read with its binding and
// its tenant each time, so that what ends either ends its requests.
import { sql } from 'kysely';
import type { AcmeAccount, BoundAccount } from '../../../domain/acme/account.ts';
import type { Binding } from '../../../domain/acme/binding.ts';
import type { AcmeAccounts, AcmeBindings } from '../../../domain/acme/ports.ts';
import { Secret } from '../../../domain/secret.ts';
import type { Sealer } from '../../seal/seal.ts';
import { accountFrom } from '../access/accounts.ts';
import { bytesFrom, listFrom, listText, textOf } from '../engine/columns.ts';
import { pageById } from '../engine/paging.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { SEALED } from '../engine/sealed.ts';

type BindingRow = Schema['acme_binding'];
type AccountRow = Schema['acme_account'];

const sealBinding = SEALED.acme_binding.columns.sealed_key;
const list = (text: string | null) => (text === null ? null : listFrom<string>(text));
const text = (values: readonly string[] | null) => (values === null ? null : listText(values));

const bindingFrom = (row: Omit<BindingRow, 'sealed_key'>): Binding => ({
  id: row.id,
  accountId: row.account_id,
  name: row.name,
  products: list(row.products),
  nameSuffixes: list(row.name_suffixes),
  revokesReplaced: row.revokes_replaced === 1,
  isReusable: row.is_reusable === 1,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  disabledAt: row.disabled_at,
  usedAt: row.used_at,
});

const acmeAccountFrom = (row: AccountRow): AcmeAccount => ({
  id: row.id,
  accountId: row.account_id,
  bindingId: row.binding_id,
  status: row.status,
  thumbprint: row.thumbprint,
  spki: bytesFrom(row.spki),
  contacts: listFrom<string>(row.contacts),
  termsAgreedAt: row.terms_agreed_at,
  createdAt: row.created_at,
});

// Without sealed_key.
const BINDING = [
  ...(['id', 'account_id', 'name', 'products', 'name_suffixes', 'revokes_replaced'] as const),
  ...(['is_reusable', 'created_at', 'expires_at', 'disabled_at', 'used_at'] as const),
] as const;

/** Columns of the binding and the tenant under names of their own, beside those of the ACME account. */
const BOUND = [
  'b.name as binding_name',
  'b.products',
  'b.name_suffixes',
  'b.revokes_replaced',
  'b.is_reusable',
  'b.created_at as binding_created_at',
  'b.expires_at',
  'b.disabled_at',
  'b.used_at',
  'account.name as tenant_name',
  'account.kind',
  'account.locale',
  'account.created_at as tenant_created_at',
  'account.suspended_at',
  'account.open_orders_limit',
  'account.stored_bytes_limit',
  'account.stored_bytes',
] as const;

const selectBound = (db: Db) =>
  db
    .selectFrom('acme_account as a')
    .innerJoin('acme_binding as b', 'b.id', 'a.binding_id')
    .innerJoin('account', 'account.id', 'a.account_id')
    .selectAll('a')
    .select(BOUND);

const byId = prepared((db, { id }: { id: string }) => selectBound(db).where('a.id', '=', id));
const byThumbprint = prepared((db, { thumbprint }: { thumbprint: string }) =>
  selectBound(db).where('a.thumbprint', '=', thumbprint),
);

type BoundRow = Awaited<ReturnType<typeof byId>>[number];
const boundFrom = (row: BoundRow): BoundAccount => ({
  account: acmeAccountFrom(row),
  binding: bindingFrom({
    ...row,
    ...{ id: row.binding_id, name: row.binding_name, created_at: row.binding_created_at },
  }),
  tenant: accountFrom({ ...row, id: row.account_id, name: row.tenant_name, created_at: row.tenant_created_at }),
});

export const acmeBindingsIn = (db: Db, sealer: Sealer): AcmeBindings => ({
  async insert(binding, key) {
    await db
      .insertInto('acme_binding')
      .values({
        id: binding.id,
        account_id: binding.accountId,
        name: binding.name,
        sealed_key: sealer.seal(key.reveal(), sealBinding(binding.id)),
        products: text(binding.products),
        name_suffixes: text(binding.nameSuffixes),
        revokes_replaced: Number(binding.revokesReplaced),
        is_reusable: Number(binding.isReusable),
        created_at: binding.createdAt,
        expires_at: binding.expiresAt,
        disabled_at: binding.disabledAt,
        used_at: binding.usedAt,
      })
      .execute();
  },

  async findWithKey(id) {
    const row = await db.selectFrom('acme_binding').selectAll().where('id', '=', id).executeTakeFirst();
    if (!row) return undefined;
    const tenant = await db
      .selectFrom('account')
      .selectAll()
      .where('id', '=', row.account_id)
      .executeTakeFirstOrThrow();
    const key = new Secret(sealer.open(row.sealed_key, sealBinding(id)));
    return { binding: bindingFrom(row), tenant: accountFrom(tenant), key };
  },

  async listOf(accountId, page) {
    const rows = db.selectFrom('acme_binding').select(BINDING).where('account_id', '=', accountId);
    return (await pageById(rows, page).execute()).map(bindingFrom);
  },

  async disable(id, at) {
    const row = await db
      .updateTable('acme_binding')
      .set({ disabled_at: sql`coalesce(disabled_at, ${at})` })
      .where('id', '=', id)
      .returning(BINDING)
      .executeTakeFirst();
    return row && bindingFrom(row);
  },

  async claim(id, at) {
    const row = await db
      .updateTable('acme_binding')
      .set({ used_at: sql`coalesce(used_at, ${at})` })
      .where('id', '=', id)
      .where('disabled_at', 'is', null)
      .where((is) => is.or([is('is_reusable', '=', 1), is('used_at', 'is', null)]))
      .returning('id')
      .executeTakeFirst();
    return row !== undefined;
  },
});

/** PostgreSQL's code for a key that another transaction has written meanwhile; SQLite has one writer. */
const DUPLICATE = '23505';

export const acmeAccountsIn = (db: Db): AcmeAccounts => ({
  async insert(account) {
    const row = await db
      .insertInto('acme_account')
      .values({
        id: account.id,
        account_id: account.accountId,
        binding_id: account.bindingId,
        status: account.status,
        thumbprint: account.thumbprint,
        spki: textOf(account.spki),
        contacts: listText(account.contacts),
        terms_agreed_at: account.termsAgreedAt,
        created_at: account.createdAt,
      })
      .onConflict((conflict) => conflict.column('thumbprint').doNothing())
      .returning('id')
      .executeTakeFirst();
    return row !== undefined;
  },

  async find(id) {
    const [row] = await byId(db, { id });
    return row && boundFrom(row);
  },

  async findByKey(thumbprint) {
    const [row] = await byThumbprint(db, { thumbprint });
    return row && boundFrom(row);
  },

  async setContacts(id, contacts) {
    await db
      .updateTable('acme_account')
      .set({ contacts: listText(contacts) })
      .where('id', '=', id)
      .where('status', '=', 'valid')
      .execute();
  },

  async changeKey({ id, thumbprint }, to) {
    try {
      const row = await db
        .updateTable('acme_account')
        .set({ thumbprint: to.thumbprint, spki: textOf(to.publicKey.spki) })
        .where('id', '=', id)
        .where('thumbprint', '=', thumbprint)
        .where('status', '=', 'valid')
        .returning('id')
        .executeTakeFirst();
      return row !== undefined;
    } catch (error) {
      if ((error as { code?: unknown }).code === DUPLICATE) return false;
      throw error;
    }
  },

  async end(id, status) {
    const row = await db
      .updateTable('acme_account')
      .set({ status: sql`case when status = 'valid' then ${status} else status end` })
      .where('id', '=', id)
      .returningAll()
      .executeTakeFirst();
    return row && acmeAccountFrom(row);
  },

  async count(bindingId, limit) {
    const some = db.selectFrom('acme_account').select('id').where('binding_id', '=', bindingId).limit(limit);
    return (await some.execute()).length;
  },

  async listOf(accountId, page) {
    const rows = db.selectFrom('acme_account').selectAll().where('account_id', '=', accountId);
    return (await pageById(rows, page).execute()).map(acmeAccountFrom);
  },
});
