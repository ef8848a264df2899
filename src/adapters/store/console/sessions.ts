// Repository of console sessions. What a session stands for is read with it each time, so that it ends with its key, its
// account or its operator.
import { sql } from 'kysely';
import { latestAhead } from '../../../domain/clock.ts';
import type { Sessions } from '../../../domain/console/ports.ts';
import { IDLE_MS, SESSION_MS, type SessionOwner, type SessionRecord } from '../../../domain/console/session.ts';
import { CALLER_COLUMNS, callerFrom } from '../access/credentials.ts';
import type { Engine } from '../engine/engine.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { OPERATOR_COLUMNS, operatorFrom } from './operators.ts';

type Row = Schema['console_session'];

/** Of a session joined with what it stands for, whose columns have the same names. */
const SESSION_COLUMNS = [
  'console_session.id as session_id',
  'console_session.created_at as session_created_at',
  'console_session.last_seen_at',
  'console_session.expires_at as session_expires_at',
  'console_session.network',
] as const;

interface JoinedRow {
  readonly session_id: string;
  readonly session_created_at: number;
  readonly last_seen_at: number;
  readonly session_expires_at: number;
  readonly network: string;
}

const recordFrom = (row: JoinedRow): SessionRecord => ({
  id: row.session_id,
  createdAt: row.session_created_at,
  lastSeenAt: row.last_seen_at,
  expiresAt: row.session_expires_at,
  network: row.network,
});

const columnOf = (owner: SessionOwner): readonly ['key_id' | 'operator_name', string] =>
  'keyId' in owner ? ['key_id', owner.keyId] : ['operator_name', owner.operatorName];

const ownerFrom = ({ key_id, operator_name }: Pick<Row, 'key_id' | 'operator_name'>): SessionOwner =>
  key_id === null ? { operatorName: operator_name ?? '' } : { keyId: key_id };

/** Times further ahead than they can have been set are of a clock that was wrong. */
const isLive = (now: number) => sql<boolean>`console_session.expires_at > ${now}
  and console_session.expires_at <= ${latestAhead(now, SESSION_MS)}
  and console_session.last_seen_at > ${now - IDLE_MS} and console_session.last_seen_at <= ${latestAhead(now, 0)}`;

export const sessionsIn = (db: Db, engine: Pick<Engine, 'locksRows'>): Sessions => ({
  async insert({ id, tokenHash, createdAt, lastSeenAt, expiresAt, network }, owner, most) {
    const [column, value] = columnOf(owner);
    // Concurrent sign-ins of one owner would not see each other's row, and exceed the bound.
    if (engine.locksRows) await lockOwner(db, owner);
    const newest = db
      .selectFrom('console_session')
      .select('id')
      .where(column, '=', value)
      .orderBy('id', 'desc')
      .limit(most - 1);
    await db.deleteFrom('console_session').where(column, '=', value).where('id', 'not in', newest).execute();
    await db
      .insertInto('console_session')
      .values({
        ...{ id, token_hash: tokenHash, key_id: null, operator_name: null, network, [column]: value },
        ...{ created_at: createdAt, last_seen_at: lastSeenAt, expires_at: expiresAt },
      })
      .execute();
  },

  async find(tokenHash, now) {
    const ofKey = await db
      .selectFrom('console_session')
      .innerJoin('credential', 'credential.key_id', 'console_session.key_id')
      .innerJoin('account', 'account.id', 'credential.account_id')
      .select(SESSION_COLUMNS)
      .select(CALLER_COLUMNS)
      .where('token_hash', '=', tokenHash)
      .where(isLive(now))
      .executeTakeFirst();
    if (ofKey) {
      const { id } = recordFrom(ofKey);
      return { ...recordFrom(ofKey), kind: 'account', caller: { ...callerFrom(ofKey), sessionId: id } };
    }
    const ofOperator = await db
      .selectFrom('console_session')
      .innerJoin('console_operator', 'console_operator.name', 'console_session.operator_name')
      .select(SESSION_COLUMNS)
      .select(OPERATOR_COLUMNS)
      .where('token_hash', '=', tokenHash)
      .where(isLive(now))
      .executeTakeFirst();
    return ofOperator && { ...recordFrom(ofOperator), kind: 'operator', operator: operatorFrom(ofOperator) };
  },

  async listOf(owner, now) {
    const rows = db.selectFrom('console_session').select(SESSION_COLUMNS).where(isLive(now));
    const [column, value] = columnOf(owner);
    return (await rows.where(column, '=', value).orderBy('id', 'desc').execute()).map(recordFrom);
  },

  async list(now, limit) {
    const rows = await db
      .selectFrom('console_session')
      .select(SESSION_COLUMNS)
      .select(['key_id', 'operator_name'])
      .where(isLive(now))
      .orderBy('id', 'desc')
      .limit(limit)
      .execute();
    return rows.map((row) => ({ ...recordFrom(row), owner: ownerFrom(row) }));
  },

  async touch(id, at) {
    await db
      .updateTable('console_session')
      .set({ last_seen_at: at })
      .where('id', '=', id)
      .where('last_seen_at', '<', at)
      .execute();
  },

  async delete(id, owner) {
    let rows = db.deleteFrom('console_session').where('id', '=', id);
    if (owner) {
      const [column, value] = columnOf(owner);
      rows = rows.where(column, '=', value);
    }
    const row = await rows.returning(['key_id', 'operator_name']).executeTakeFirst();
    return row && ownerFrom(row);
  },

  async deleteOf(accountId) {
    const keys = db.selectFrom('credential').select('key_id').where('account_id', '=', accountId);
    await db.deleteFrom('console_session').where('key_id', 'in', keys).execute();
  },

  async deleteAll() {
    await db.deleteFrom('console_session').execute();
    await db.deleteFrom('console_link').execute();
  },

  async deleteExpired(now, limit) {
    const ended = db
      .selectFrom('console_session')
      .select('id')
      .where(sql<boolean>`not (${isLive(now)})`)
      .limit(limit);
    return (await db.deleteFrom('console_session').where('id', 'in', ended).returning('id').execute()).length;
  },
});

async function lockOwner(db: Db, owner: SessionOwner): Promise<void> {
  if ('keyId' in owner) {
    await db.selectFrom('credential').select('key_id').where('key_id', '=', owner.keyId).forNoKeyUpdate().execute();
    return;
  }
  const { operatorName } = owner;
  await db.selectFrom('console_operator').select('name').where('name', '=', operatorName).forNoKeyUpdate().execute();
}
