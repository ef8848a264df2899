// Checks the store: migrations, seal key, durability, integrity and clock; then issuers, callbacks and revocations in it. Creates and
// migrates nothing; the only write is the probe of a store that is in use anyway.
import { existsSync } from 'node:fs';
import { Refusal } from '../../domain/errors.ts';
import { type ClockFacts, clockFindings } from '../../domain/support/clock-facts.ts';
import { type Diagnostic, Problem } from '../../kernel/problem.ts';
import { SealBroken, type SealKey, sealerWith } from '../seal/seal.ts';
import { type Sealing, type SealStatus, sealingIn } from '../store/access/sealing.ts';
import { settingsIn } from '../store/access/settings.ts';
import { deliveriesIn } from '../store/callbacks/deliveries.ts';
import { requireFinishedCopy } from '../store/engine/copy.ts';
import { type Engine, openEngine } from '../store/engine/engine.ts';
import { previewMigrations, readMigrations } from '../store/engine/migrations.ts';
import type { Db } from '../store/engine/schema.ts';
import { strayTimes } from '../store/engine/times.ts';
import { publicIssuersIn } from '../store/issuance/issuers.ts';
import { type DatabaseLocation, engineAt } from '../store/store.ts';
import { checkCallbacks } from './callbacks.ts';
import { checkIssuers } from './issuers.ts';
import { checkRevocation } from './revocation.ts';

export async function checkStore(
  location: DatabaseLocation,
  keys: readonly SealKey[] | undefined,
  now: () => number,
  longestDays: number,
): Promise<Diagnostic[]> {
  if (location.kind === 'sqlite' && !existsSync(location.file)) {
    return [{ check: 'store', state: 'ok', text: `${location.file} does not exist yet; the first start creates it` }];
  }
  const engine = engineAt(location);
  const db = openEngine(engine, () => {});
  try {
    await requireFinishedCopy({ engine, db });
    const sealing = keys && sealingIn(db, sealerWith(keys), engine, now);
    const store = await examine(db, engine, sealing);
    if (store.state !== 'ok') return [store];
    const settings = settingsIn(db);
    // Read the previous probe before overwriting it.
    const lastSeen = store.isInUse ? Number((await settings.get('last_write_probe')) ?? 0) : 0;
    if (store.isInUse) await settings.put('last_write_probe', String(now()));
    const { isInUse: _, ...diagnostic } = store;
    const aheadMs = -(await engine.clockOffsetMs(db, now));
    const status = store.isInUse && sealing ? await sealing.status() : undefined;
    const clock = clockDiagnostic(
      {
        ...{ aheadMs, lastUsedAt: lastSeen, instances: status?.instances ?? [] },
        stray: store.isInUse ? await strayTimes(db, now() - aheadMs) : [],
      },
      now(),
    );
    if (!store.isInUse) return [diagnostic, clock];
    return [
      diagnostic,
      await integrityDiagnostic(db, engine),
      ...(status ? [sealDiagnostic(status)] : []),
      clock,
      checkIssuers(await publicIssuersIn(db), longestDays, now()),
      await checkCallbacks(
        deliveriesIn(db, engine, () => {}),
        now(),
      ),
      await checkRevocation(db, now()),
    ];
  } catch (error) {
    return [failureDiagnostic(error, engine)];
  } finally {
    await db.destroy();
  }
}

interface StoreDiagnostic extends Diagnostic {
  /** The tables exist and are current, so a probe can be written. */
  readonly isInUse?: boolean;
}

async function examine(db: Db, engine: Engine, sealing: Sealing | undefined): Promise<StoreDiagnostic> {
  const check = 'store';
  const pending = await previewMigrations(db, readMigrations(engine.name));
  if (pending === undefined) return { check, state: 'ok', text: 'empty; the first start creates the tables' };
  if (pending.length > 0) {
    const text = `${pending.length} migrations are pending; the next start applies them`;
    return { check, state: 'warning', text, remedy: 'Back up the database, then start this version.' };
  }
  if (!sealing) {
    const text = 'the store has sealed values, and the seal key is missing';
    return { check, state: 'problem', text, remedy: 'Restore the key file from your backup.' };
  }
  const gaps = await engine.durabilityGaps(db);
  if (gaps.length > 0) {
    const text = `it may lose what it acknowledged: ${gaps.join(', ')}`;
    return { check, state: 'problem', text, remedy: 'Turn these settings on again in the database.' };
  }
  await sealing.check();
  return { check, state: 'ok', text: 'up to date, opened with our seal key, a write was made durable', isInUse: true };
}

const RESTORE = 'Stop the service, keep a copy of its files, and restore the last backup: reseal restore FILE --crl …';
/** Far beyond the size at which checkpoints begin the WAL anew. */
const LARGE_WAL_BYTES = 128 * 1024 * 1024;

async function integrityDiagnostic(db: Db, engine: Engine): Promise<Diagnostic> {
  const check = 'integrity';
  const faults = await engine.quickFaults(db).catch((error) => {
    if (error instanceof Refusal && engine.isDamage(error.cause)) return [(error.cause as Error).message];
    throw error;
  });
  if (faults.length > 0) {
    const text = `the database is damaged: ${faults.slice(0, 3).join('; ')}`;
    return { check, state: 'problem', text, remedy: RESTORE };
  }
  const walBytes = engine.walBytes() ?? 0;
  if (walBytes > LARGE_WAL_BYTES) {
    const text = `the WAL has ${Math.round(walBytes / 1024 / 1024)} MiB, because a reader keeps an old snapshot`;
    const remedy =
      'End it: a long backup, a shell with an open transaction, or a replicator that is behind. At RESEAL_WAL_LIMIT_MIB writes are refused.';
    return { check, state: 'warning', text, remedy };
  }
  return { check, state: 'ok', text: 'no damage found' };
}

/** Reports any failure as a diagnostic; never throws. */
function failureDiagnostic(error: unknown, engine: Engine): Diagnostic {
  const check = 'store';
  if (error instanceof Problem) return { check, state: 'problem', text: error.message, remedy: error.remedy };
  if (error instanceof SealBroken) {
    const remedy = 'Restore the key this store was created with.';
    return { check, state: 'problem', text: `it was sealed with another key: ${error.message}`, remedy };
  }
  const cause = error instanceof Refusal && error.cause instanceof Error ? error.cause : error;
  const text = `it cannot be used: ${cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code : cause}`;
  if (engine.isDamage(cause)) return { check, state: 'problem', text, remedy: RESTORE };
  return {
    check,
    state: 'problem',
    text,
    remedy: 'Check the disk, or RESEAL_DATABASE_URL, and that this user may use it.',
  };
}

/** Values without a key were reported before: here every value has one. */
function sealDiagnostic({ activeKeyId, keyIds: [first], counts }: SealStatus): Diagnostic {
  const check = 'sealed values';
  const remedy = 'Run: reseal seal rotate';
  const of = (list: typeof counts) => list.reduce((total, { values }) => total + values, 0);
  const others = of(counts.filter(({ keyId }) => keyId !== activeKeyId));
  if (others > 0) {
    const text = `${others} of ${of(counts)} are not sealed under ${activeKeyId} yet; the other keys are still needed`;
    return { check, state: 'warning', text, remedy };
  }
  if (first !== activeKeyId) {
    return { check, state: 'warning', text: `the first key, ${first}, is not in use: ${activeKeyId} is`, remedy };
  }
  return { check, state: 'ok', text: `all ${of(counts)} are sealed under ${activeKeyId}` };
}

function clockDiagnostic(facts: ClockFacts, now: number): Diagnostic {
  const check = 'clock';
  const findings = clockFindings(facts, now);
  const text = findings.join('; ');
  if (findings.length === 0) return { check, state: 'ok', text: new Date(now).toISOString() };
  // What a clock has left is repaired by the service; a clock that is wrong now is not.
  return clockFindings({ ...facts, stray: [] }, now).length === 0
    ? { check, state: 'warning', text, remedy: 'Start the service: it repairs them within seconds.' }
    : { check, state: 'problem', text, remedy: 'Synchronize the clocks with NTP, the database’s too.' };
}
