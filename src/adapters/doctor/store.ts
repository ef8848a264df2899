// Does the store open, is it ours, does it keep what it acknowledges, does its clock agree with ours, is there somebody
// in it to sign, and do its callbacks arrive? A doctor looks and does not operate: nothing is created and nothing
// migrated. The one thing written is the probe of a store that is in use anyway.
import { existsSync } from 'node:fs';
import { Refusal } from '../../domain/errors.ts';
import { type Finding, Problem } from '../../kernel/problem.ts';
import { SealBroken, type SealKey, sealerWith } from '../seal/seal.ts';
import { checkSeal } from '../seal/seal-check.ts';
import { secretsIn } from '../store/access/secrets.ts';
import { settingsIn } from '../store/access/settings.ts';
import { deliveriesIn } from '../store/callbacks/deliveries.ts';
import { type Engine, openEngine } from '../store/engine/engine.ts';
import { previewMigrations, readMigrations } from '../store/engine/migrations.ts';
import type { Db } from '../store/engine/schema.ts';
import { publicIssuersIn } from '../store/issuance/issuers.ts';
import { type DatabaseLocation, engineAt } from '../store/store.ts';
import { checkCallbacks } from './callbacks.ts';
import { checkIssuers } from './issuers.ts';
import { checkRevocation } from './revocation.ts';

// Signatures, validity periods and leases are measured in seconds; a few of them do no harm.
const MAX_CLOCK_OFFSET_MS = 2_000;

export async function checkStore(
  location: DatabaseLocation,
  keys: readonly SealKey[] | undefined,
  now: () => number,
  longestDays: number,
): Promise<Finding[]> {
  if (location.kind === 'sqlite' && !existsSync(location.file)) {
    return [{ check: 'store', state: 'ok', text: `${location.file} does not exist yet; the first start creates it` }];
  }
  const engine = engineAt(location);
  const db = openEngine(engine, () => {});
  try {
    const store = await examine(db, engine.name, keys, () => engine.durabilityGaps(db));
    if (store.state !== 'ok') return [store];
    const settings = settingsIn(db);
    // The previous probe is read before the new one hides it.
    const lastSeen = store.isInUse ? Number((await settings.get('last_write_probe')) ?? 0) : 0;
    if (store.isInUse) await settings.put('last_write_probe', String(now()));
    const { isInUse: _, ...finding } = store;
    const clock = clockFinding(await engine.clockOffsetMs(db, now), lastSeen, now());
    if (!store.isInUse) return [finding, clock];
    const issuers = checkIssuers(await publicIssuersIn(db), longestDays, now());
    return [
      finding,
      clock,
      issuers,
      await checkCallbacks(
        deliveriesIn(db, engine, () => {}),
        now(),
      ),
      await checkRevocation(db, now()),
    ];
  } catch (error) {
    return [troubleFinding(error)];
  } finally {
    await db.destroy();
  }
}

interface StoreFinding extends Finding {
  /** Tables are there and current, so that a probe can be written. */
  readonly isInUse?: boolean;
}

async function examine(
  db: Db,
  engine: Engine['name'],
  keys: readonly SealKey[] | undefined,
  durabilityGaps: () => Promise<string[]>,
): Promise<StoreFinding> {
  const check = 'store';
  const waiting = await previewMigrations(db, readMigrations(engine));
  if (waiting === undefined) return { check, state: 'ok', text: 'empty; the first start creates the tables' };
  if (waiting.length > 0) {
    const text = `${waiting.length} migrations are waiting; the next start applies them`;
    return { check, state: 'warning', text, remedy: 'Back up the database, then start this version.' };
  }
  if (!keys) {
    const text = 'the store has sealed values, and the seal key is missing';
    return { check, state: 'problem', text, remedy: 'Restore the key file from your backup.' };
  }
  const gaps = await durabilityGaps();
  if (gaps.length > 0) {
    const text = `it may lose what it acknowledged: ${gaps.join(', ')}`;
    return { check, state: 'problem', text, remedy: 'Turn these settings on again in the database.' };
  }
  await checkSeal(secretsIn(db, sealerWith(keys)));
  return { check, state: 'ok', text: 'up to date, opened with our seal key, a write was made durable', isInUse: true };
}

/** Whatever is wrong with the patient, the doctor does not faint. */
function troubleFinding(error: unknown): Finding {
  const check = 'store';
  if (error instanceof Problem) return { check, state: 'problem', text: error.message, remedy: error.remedy };
  if (error instanceof SealBroken) {
    const remedy = 'Restore the key this store was created with.';
    return { check, state: 'problem', text: `it was sealed with another key: ${error.message}`, remedy };
  }
  const cause = error instanceof Refusal && error.cause instanceof Error ? error.cause : error;
  const text = `it cannot be used: ${cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code : cause}`;
  return {
    check,
    state: 'problem',
    text,
    remedy: 'Check the disk, or RESEAL_DATABASE_URL, and that this user may use it.',
  };
}

function clockFinding(offsetMs: number, lastSeen: number, now: number): Finding {
  const check = 'clock';
  const remedy = 'Let this machine set its clock by NTP.';
  if (Math.abs(offsetMs) > MAX_CLOCK_OFFSET_MS) {
    return { check, state: 'problem', text: `${Math.round(offsetMs / 1000)} s away from the database’s clock`, remedy };
  }
  if (lastSeen > now + MAX_CLOCK_OFFSET_MS) {
    const text = `it went back: the store was last used at ${new Date(lastSeen).toISOString()}`;
    return { check, state: 'problem', text, remedy };
  }
  return { check, state: 'ok', text: new Date(now).toISOString() };
}
