// What commands do to a store as a whole: show and rotate its seal keys, copy it to another engine. None of them creates
// the store it is about.
import { existsSync } from 'node:fs';
import { dirname, extname, join, resolve } from 'node:path';
import { SealBroken, sealerWith } from '../adapters/seal/seal.ts';
import { sealKeysOf } from '../adapters/seal/seal-check.ts';
import { type Sealing, sealingIn } from '../adapters/store/access/sealing.ts';
import { storeDigest } from '../adapters/store/engine/contents.ts';
import { type CopyOptions, copyStore, type EngineAndDb } from '../adapters/store/engine/copy.ts';
import { openEngine } from '../adapters/store/engine/engine.ts';
import { previewMigrations, readMigrations } from '../adapters/store/engine/migrations.ts';
import { type DatabaseLocation, engineAt } from '../adapters/store/store.ts';
import type { StoreCommands } from '../cli/command.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { makeFolder, storeName, storeProblem } from './start-up.ts';

export function storeCommands(config: Config, now: Clock): StoreCommands {
  return {
    sealStatus: () =>
      withSealing(config, now, async (sealing) => {
        const missing = await sealing.check().then(() => undefined, messageOfBroken);
        return { ...(await sealing.status()), missing };
      }),

    rotateSeal: (onProgress) =>
      withSealing(config, now, async (sealing) => {
        await sealing.check();
        return await sealing.rotate(onProgress);
      }),

    async copy(to, onProgress) {
      const target = locationOf(to, config);
      return await withSealing(config, now, async (sealing, source) => {
        const contents = await copyTo(target, source, {
          ...{ now, onProgress },
          requireStopped: () => requireStopped(sealing, config),
        });
        const rows = contents.reduce((total, one) => total + one.rows, 0);
        return {
          from: storeName(config.database),
          to: storeName(target),
          contents,
          rows,
          digest: storeDigest(contents),
        };
      });
    },
  };
}

function messageOfBroken(error: unknown): string {
  if (error instanceof SealBroken) return error.message;
  throw error;
}

/** Opens the configured store as it is. Throws a Problem if there is none, or it is of another version. */
async function withSealing<T>(
  config: Config,
  now: Clock,
  work: (sealing: Sealing, store: EngineAndDb) => Promise<T>,
): Promise<T> {
  const { database } = config;
  const keys = sealKeysOf(config.sealKey);
  const name = storeName(database);
  if (!keys || (database.kind === 'sqlite' && !existsSync(database.file))) {
    const text = keys ? `there is no store at ${name}` : `there is no seal key for the store at ${name}`;
    throw new Problem(EXIT.configuration, text, 'Check RESEAL_DATA_DIR, RESEAL_DATABASE_URL and RESEAL_SEAL_KEY_FILE.');
  }
  const engine = engineAt(database);
  const db = openEngine(engine, () => {});
  try {
    const pending = await previewMigrations(db, readMigrations(engine.name));
    if (pending === undefined || pending.length > 0) {
      const text = pending ? `the store at ${name} is of an earlier version` : `there is no store at ${name}`;
      throw new Problem(EXIT.store, text, 'Start this version of Reseal on it once.');
    }
    return await work(sealingIn(db, sealerWith(keys), engine, now), { engine, db });
  } catch (error) {
    throw error instanceof SealBroken
      ? new Problem(EXIT.refused, error.message, 'Add the keys that are missing to the key file, after the new one.')
      : storeProblem(error, config);
  } finally {
    await db.destroy();
  }
}

async function requireStopped(sealing: Sealing, { database }: Config): Promise<void> {
  const running = await sealing.liveInstances();
  if (running.length === 0) return;
  throw new Problem(
    EXIT.refused,
    `the service runs on ${storeName(database)}: ${running.map(({ name }) => name).join(', ')}`,
    'Stop every instance, then copy. One that was killed counts as running for 30 s.',
  );
}

async function copyTo(target: DatabaseLocation, source: EngineAndDb, options: CopyOptions) {
  if (target.kind === 'sqlite') makeFolder(dirname(target.file));
  const engine = engineAt(target, {}, true);
  const db = openEngine(engine, () => {});
  try {
    return await copyStore(source, { engine, db }, options);
  } finally {
    await db.destroy();
  }
}

/** A postgres:// address, a database file, or a data folder. */
function locationOf(to: string, { database }: Config): DatabaseLocation {
  if (/^postgres(ql)?:\/\//.test(to)) {
    if (URL.canParse(to)) return { kind: 'postgresql', url: to, maxConnections: 1 };
    throw new Problem(EXIT.usage, '--to is not an address', 'Write it like postgres://user@host/database.');
  }
  const file = extname(to) === '.db' ? resolve(to) : join(resolve(to), 'reseal.db');
  if (database.kind === 'sqlite' && database.file === file) {
    throw new Problem(EXIT.usage, `--to ${to} is the store itself`, 'Name another folder, or a postgres:// address.');
  }
  return { kind: 'sqlite', file };
}
