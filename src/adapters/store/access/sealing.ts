// Which key seals the store, and how it is replaced. The canary, a known text sealed on first start, answers the first
// question: its key is the active one. Every instance seals under it, whatever its key file lists first, so a rolling
// restart with a new key changes nothing yet. A rotation re-seals the canary once every live instance holds the new key,
// then all other values in batches; what is left to do is what the old keys' index entries show, so it can be killed and
// repeated at any point.
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { type Clock, latestAhead } from '../../../domain/clock.ts';
import { EXIT, Problem } from '../../../kernel/problem.ts';
import { keyIdOf, SealBroken, type Sealed, type Sealer } from '../../seal/seal.ts';
import { listFrom, listText } from '../engine/columns.ts';
import type { Engine } from '../engine/engine.ts';
import type { Db, Transaction } from '../engine/schema.ts';
import {
  countSealed,
  SEALED,
  SEALED_PLACES,
  type SealedCount,
  type SealedPlace,
  sealKeysAt,
  sealKeysInUse,
  valuesSealedBy,
} from '../engine/sealed.ts';

const CANARY = { name: 'seal-check', text: 'this store is sealed with this key' };
const CANARY_BINDING = SEALED.sealed_secret.columns.sealed(CANARY.name);

/** How often an instance announces itself, and how long after the last announcement it counts as live. */
export const ANNOUNCE_MS = 5_000;
const LIVE_MS = 30_000;
const FORGET_MS = 3_600_000;
const BATCH = 50;
const PAUSE_MS = 10;
/** Instances follow the canary with their next announcement. */
const FOLLOW_MS = 60_000;
const FOLLOW_POLL_MS = 500;

export interface Instance {
  readonly id: string;
  /** Host and process, for people. */
  readonly name: string;
}

/** What an instance tells the others about itself. */
export interface Announcement extends Instance {
  /** How far its clock is ahead of the database's. */
  readonly clockAheadMs?: number;
}

interface LiveInstance extends Required<Announcement> {
  readonly seenAt: number;
  readonly keyIds: readonly string[];
  readonly activeKeyId: string;
}

export interface SealStatus {
  readonly activeKeyId: string;
  readonly keyIds: readonly string[];
  readonly counts: readonly SealedCount[];
  readonly instances: readonly LiveInstance[];
}

export interface RotationProgress {
  readonly resealed: number;
  readonly total: number;
  /** Names of instances that still seal under another key. */
  readonly waitingFor: readonly string[];
}

export interface Rotation {
  readonly keyId: string;
  readonly resealed: number;
  /** Values under other keys: `table.column of row: reason`. */
  readonly unopenable: readonly string[];
}

export interface Sealing {
  /** Seals the canary if there is none, then checks. */
  confirm(): Promise<void>;
  /** Read-only. Makes the sealer follow the canary. Throws SealBroken if it does not open, or a value has no key. */
  check(): Promise<void>;
  /** Throws SealBroken if there is a sealed value whose key is not at hand. */
  requireKeys(): Promise<void>;
  /** Makes the sealer follow the canary and tells rotations which keys it holds. Throws SealBroken. */
  announce(instance: Announcement): Promise<void>;
  withdraw(instance: Instance): Promise<void>;
  liveInstances(): Promise<LiveInstance[]>;
  status(): Promise<SealStatus>;
  /** Re-seals every value under the sealer's first key. Throws a Problem before the first one if an instance lacks it. */
  rotate(onProgress: (progress: RotationProgress) => void): Promise<Rotation>;
}

export function sealingIn(
  db: Db,
  sealer: Sealer,
  engine: Pick<Engine, 'locksRows' | 'clockOffsetMs'>,
  now: Clock,
): Sealing {
  /** The database's clock: an instance whose own is behind must not pass for a lost one. */
  const sharedNow = async (executor: Db) => now() + (await engine.clockOffsetMs(executor, now));
  const canaryIn = (executor: Db) =>
    executor.selectFrom('sealed_secret').select('sealed').where('name', '=', CANARY.name);
  const sealCanary = () => sealer.seal(CANARY.text, CANARY_BINDING);

  /** Announcements and the start of a rotation exclude each other: each locks the canary first. */
  async function lockedCanaryKey(tx: Transaction): Promise<string> {
    const canary = engine.locksRows ? canaryIn(tx).forUpdate() : canaryIn(tx);
    return keyIdOf((await canary.executeTakeFirstOrThrow()).sealed);
  }

  async function requireKeys(): Promise<void> {
    const missing = [...(await sealKeysInUse(db))].filter((id) => !sealer.keyIds.includes(id));
    if (missing.length === 0) return;
    const counts = (await countSealed(db)).filter(({ keyId }) => missing.includes(keyId));
    const list = counts.map(({ table, column, keyId, values }) => `${values} in ${table}.${column} need ${keyId}`);
    throw new SealBroken(`sealed values have no key: ${list.join(', ')}`);
  }

  async function liveIn(executor: Db): Promise<LiveInstance[]> {
    const at = await sharedNow(executor);
    const rows = await executor
      .selectFrom('instance')
      .selectAll()
      .where('seen_at', '>', at - LIVE_MS)
      // Seen in the future: by a clock that was ahead.
      .where('seen_at', '<=', latestAhead(at, 0))
      .orderBy('name')
      .execute();
    return rows.map((row) => ({
      id: row.id,
      name: row.name,
      seenAt: row.seen_at,
      keyIds: listFrom<string>(row.seal_keys),
      activeKeyId: row.sealing_with,
      clockAheadMs: row.clock_ahead_ms,
    }));
  }

  async function beginRotation(target: string): Promise<void> {
    await requireKeys();
    await db.transaction().execute(async (tx) => {
      const active = await lockedCanaryKey(tx);
      const lacking = (await liveIn(tx)).filter(({ keyIds }) => !keyIds.includes(target));
      if (lacking.length > 0) {
        throw new Problem(
          EXIT.refused,
          `running instances do not hold the key ${target}: ${lacking.map(({ name }) => name).join(', ')}`,
          `Put the new key first in the key file of each, restart it, and rotate again. An instance that was killed counts as running for ${LIVE_MS / 1_000} s.`,
        );
      }
      sealer.use(target);
      if (active === target) return;
      await tx.updateTable('sealed_secret').set({ sealed: sealCanary() }).where('name', '=', CANARY.name).execute();
    });
  }

  /** Re-seals one batch. A value that changed in between is skipped; the next pass finds it if it still needs to. */
  async function resealBatch(
    { table, column, key, bindingOf }: SealedPlace,
    values: readonly { readonly key: string; readonly sealed: Sealed }[],
  ): Promise<string[]> {
    const unopenable: string[] = [];
    const fresh = values.flatMap((value) => {
      const binding = bindingOf(value.key);
      try {
        return [{ ...value, resealed: sealer.seal(sealer.open(value.sealed, binding), binding) }];
      } catch (error) {
        if (!(error instanceof SealBroken)) throw error;
        unopenable.push(`${table}.${column} of ${value.key}: ${error.message}`);
        return [];
      }
    });
    await db.transaction().execute(async (tx) => {
      for (const { key: row, sealed, resealed } of fresh) {
        await sql`update ${sql.table(table)} set ${sql.ref(column)} = ${resealed}
          where ${sql.ref(key)} = ${row} and ${sql.ref(column)} = ${sealed}`.execute(tx);
      }
    });
    return unopenable;
  }

  /** One pass over all values under other keys. Returns those that do not open. */
  async function resealOthers(target: string, onBatch: (values: number) => void): Promise<string[]> {
    const unopenable: string[] = [];
    for (const place of SEALED_PLACES) {
      for (const keyId of (await sealKeysAt(db, place)).filter((id) => id !== target)) {
        for await (const values of valuesSealedBy(db, place, keyId, BATCH)) {
          const begun = performance.now();
          const broken = await resealBatch(place, values);
          unopenable.push(...broken);
          onBatch(values.length - broken.length);
          // SQLite's write lock is not fair: leave it to the service for as long as it was held.
          await sleep(Math.max(PAUSE_MS, performance.now() - begun));
        }
      }
    }
    return unopenable;
  }

  async function check(): Promise<void> {
    const canary = await canaryIn(db).executeTakeFirst();
    if (canary) {
      sealer.open(canary.sealed, CANARY_BINDING);
      sealer.use(keyIdOf(canary.sealed));
    }
    await requireKeys();
  }

  return {
    requireKeys,
    check,

    async confirm() {
      await db
        .insertInto('sealed_secret')
        .values({ name: CANARY.name, sealed: sealCanary() })
        .onConflict((conflict) => conflict.column('name').doNothing())
        .execute();
      await check();
    },

    async announce({ id, name, clockAheadMs = 0 }) {
      await db.transaction().execute(async (tx) => {
        sealer.use(await lockedCanaryKey(tx));
        const at = await sharedNow(tx);
        const row = {
          name,
          seen_at: at,
          seal_keys: listText(sealer.keyIds),
          sealing_with: sealer.activeKeyId,
          clock_ahead_ms: clockAheadMs,
        };
        await tx
          .insertInto('instance')
          .values({ id, ...row })
          .onConflict((conflict) => conflict.column('id').doUpdateSet(row))
          .execute();
        await tx
          .deleteFrom('instance')
          .where((is) => is.or([is('seen_at', '<', at - FORGET_MS), is('seen_at', '>', latestAhead(at, 0))]))
          .execute();
      });
    },

    async withdraw({ id }) {
      await db.deleteFrom('instance').where('id', '=', id).execute();
    },

    liveInstances: () => liveIn(db),

    async status() {
      const canary = await canaryIn(db).executeTakeFirst();
      const activeKeyId = canary ? keyIdOf(canary.sealed) : sealer.activeKeyId;
      return { activeKeyId, keyIds: sealer.keyIds, counts: await countSealed(db), instances: await liveIn(db) };
    },

    async rotate(onProgress) {
      const [target] = sealer.keyIds;
      await beginRotation(target);
      const others = async () => (await countSealed(db)).filter(({ keyId }) => keyId !== target);
      const total = (await others()).reduce((sum, { values }) => sum + values, 0);
      const deadline = performance.now() + FOLLOW_MS;
      for (let resealed = 0; ; ) {
        // In this order: once all have followed, what they sealed before is found by the pass that comes after.
        const behind = (await liveIn(db)).filter(({ activeKeyId }) => activeKeyId !== target);
        const waitingFor = behind.map(({ name }) => name);
        const unopenable = await resealOthers(target, (values) => {
          resealed += values;
          onProgress({ resealed, total: Math.max(total, resealed), waitingFor });
        });
        const left = (await others()).reduce((sum, { values }) => sum + values, 0);
        if (behind.length === 0 && left <= unopenable.length) return { keyId: target, resealed, unopenable };
        if (performance.now() > deadline) {
          throw new Problem(
            EXIT.refused,
            waitingFor.length > 0
              ? `instances still seal under another key: ${waitingFor.join(', ')}`
              : `${left} values are still sealed under other keys`,
            'See that they run and reach the store, then rotate again: it continues where it is.',
          );
        }
        onProgress({ resealed, total: Math.max(total, resealed), waitingFor });
        await sleep(FOLLOW_POLL_MS);
      }
    },
  };
}
