// The small tables around an issuance: proofs of control, idempotency keys and keys nobody may use any more.
import type { AccountId } from '../../../domain/ids.ts';
import type { IdempotencyKeys } from '../../../domain/issuance/ports.ts';
import type { BlockedKeys } from '../../../domain/revocation/ports.ts';
import type { Proofs } from '../../../domain/validation/ports.ts';
import { prepared } from '../engine/prepared.ts';
import type { Db } from '../engine/schema.ts';

const provenAmong = (count: number) =>
  prepared((db, slots: { [index: number]: string; accountId: AccountId; since: number }) => {
    const names = Array.from({ length: count }, (_, index) => slots[index]!);
    return db
      .selectFrom('domain_authorization')
      .select(['name', 'method', 'validated_at'])
      .where('account_id', '=', slots.accountId)
      .where('name', 'in', names)
      .where('validated_at', '>=', slots.since);
  });
/** By the number of names: as many texts as a request may have names. */
const PROVEN_AMONG: ReturnType<typeof provenAmong>[] = [];

export const proofsIn = (db: Db): Proofs => ({
  async proven(accountId, names, since) {
    if (names.length === 0) return new Map();
    PROVEN_AMONG[names.length] ??= provenAmong(names.length);
    const rows = await PROVEN_AMONG[names.length]!(db, { ...names, accountId, since });
    const byName = Map.groupBy(rows, ({ name }) => name);
    const proofOf = ({ method, validated_at }: (typeof rows)[number]) => ({ method, validatedAt: validated_at });
    return new Map(Array.from(byName, ([name, group]) => [name, group.map(proofOf)]));
  },

  async record(accountId, name, method, at) {
    await db
      .insertInto('domain_authorization')
      .values({ account_id: accountId, name, method, validated_at: at })
      .onConflict((conflict) => conflict.columns(['account_id', 'name', 'method']).doUpdateSet({ validated_at: at }))
      .execute();
  },
});

export const idempotencyKeysIn = (db: Db): IdempotencyKeys => ({
  async find(accountId, orderId, key, since) {
    const row = await db
      .selectFrom('idempotency_key')
      .select(['request_hash', 'certificate_id'])
      .where('account_id', '=', accountId)
      .where('order_id', '=', orderId)
      .where('key', '=', key)
      .where('created_at', '>', since)
      .executeTakeFirst();
    return row && { requestHash: row.request_hash, certificateId: row.certificate_id };
  },

  async put(accountId, orderId, key, { requestHash, certificateId, at }) {
    const entry = { request_hash: requestHash, certificate_id: certificateId, created_at: at };
    await db
      .insertInto('idempotency_key')
      .values({ account_id: accountId, order_id: orderId, key, ...entry })
      .onConflict((conflict) => conflict.columns(['account_id', 'order_id', 'key']).doUpdateSet(entry))
      .execute();
  },
});

const blocked = prepared((db, { fingerprint, accountId }: { fingerprint: string; accountId: AccountId }) =>
  db
    .selectFrom('blocked_key')
    .select('fingerprint')
    .where('fingerprint', '=', fingerprint)
    .unionAll(
      db
        .selectFrom('reported_key')
        .select('fingerprint')
        .where('account_id', '=', accountId)
        .where('fingerprint', '=', fingerprint),
    ),
);

export const blockedKeysIn = (db: Db): BlockedKeys => ({
  async has(fingerprint, accountId) {
    const [row] = await blocked(db, { fingerprint, accountId });
    return row !== undefined;
  },

  async add(fingerprint, reason, at) {
    await db
      .insertInto('blocked_key')
      .values({ fingerprint, reason, created_at: at })
      .onConflict((conflict) => conflict.column('fingerprint').doNothing())
      .execute();
  },

  async report(accountId, fingerprint, at) {
    await db
      .insertInto('reported_key')
      .values({ account_id: accountId, fingerprint, created_at: at })
      .onConflict((conflict) => conflict.columns(['account_id', 'fingerprint']).doNothing())
      .execute();
  },
});
