// Forward migrations: numbered SQL files, one sequence for both engines, each applied once, under a lock, by the first
// instance that starts. An applied file never changes: its hash is stored and compared. Where the engines' SQL differs
// there is a file for each, 0004-name.sqlite.sql and 0004-name.postgresql.sql.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { Refusal } from '../../../domain/errors.ts';
import { EXIT, Problem } from '../../../kernel/problem.ts';
import type { Engine } from './engine.ts';
import type { Db } from './schema.ts';

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sha256: string;
  readonly statements: readonly string[];
}

/** Each deadlock ends a transaction of the others too, so a few attempts get through. */
const MAX_ATTEMPTS = 20;

const FOLDER = new URL('../../../../migrations/', import.meta.url);

export function readMigrations(engine: Engine['name'], folder = FOLDER): Migration[] {
  return readdirSync(folder)
    .filter((file) => /^[^.]+\.sql$/.test(file) || file.endsWith(`.${engine}.sql`))
    .sort()
    .map((file) => {
      const text = readFileSync(new URL(file, folder), 'utf8');
      return {
        number: Number.parseInt(file, 10),
        name: file.replace(/^\d+-|(\.[a-z]+)?\.sql$/g, ''),
        sha256: createHash('sha256').update(text).digest('hex'),
        // A statement ends with a semicolon at the end of a line; comments are whole lines.
        statements: text
          .replace(/^--.*$/gm, '')
          .split(/;\s*$/m)
          .map((statement) => statement.trim())
          .filter((statement) => statement !== ''),
      };
    });
}

/**
 * Applies the pending migrations and returns their numbers. A migration that locks several tables can deadlock with the
 * transactions of instances of the older version; the database then undoes it whole, and it is tried again.
 */
export async function migrate(
  db: Db,
  engine: Engine,
  now: () => number,
  known = readMigrations(engine.name),
): Promise<number[]> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await migrateOnce(db, engine, now, known);
    } catch (error) {
      const cause = error instanceof Refusal ? error.cause : error;
      if (attempt === MAX_ATTEMPTS || !engine.isDeadlock(cause)) throw error;
    }
  }
}

async function migrateOnce(db: Db, engine: Engine, now: () => number, known: readonly Migration[]): Promise<number[]> {
  return await db.transaction().execute(async (transaction) => {
    await engine.lockForMigration(transaction);
    await engine.requireLive(transaction);
    await sql`create table if not exists migration
      (number bigint primary key, name text not null, sha256 text not null, applied_at bigint not null)`.execute(
      transaction,
    );
    const pending = await pendingMigrations(transaction, known);
    for (const { number, name, sha256, statements } of pending) {
      for (const statement of statements) await sql.raw(statement).execute(transaction);
      await transaction.insertInto('migration').values({ number, name, sha256, applied_at: now() }).execute();
    }
    if (pending.length > 0) await engine.checkReferences(transaction);
    return pending.map(({ number }) => number);
  });
}

/** Migrations that the next start would apply; undefined for an empty database. Read-only. */
export async function previewMigrations(db: Db, known: readonly Migration[]): Promise<Migration[] | undefined> {
  const tables = await db.introspection.getTables();
  return tables.some(({ name }) => name === 'migration') ? await pendingMigrations(db, known) : undefined;
}

/** Throws a Problem if the database is newer than this version or a migration was edited. */
async function pendingMigrations(db: Db, known: readonly Migration[]): Promise<Migration[]> {
  const applied = await db.selectFrom('migration').select(['number', 'name', 'sha256']).orderBy('number').execute();
  for (const row of applied) {
    const migration = known.find(({ number }) => number === row.number);
    if (!migration) {
      throw new Problem(
        EXIT.store,
        `the database is newer than this Reseal: it has migration ${row.number} (${row.name}), this version knows up to ${known.at(-1)?.number}`,
        'Run the version of Reseal that last used this database, or a newer one.',
      );
    }
    if (migration.sha256 !== row.sha256) {
      throw new Problem(
        EXIT.store,
        `migration ${row.number} (${row.name}) is not the one that was applied to this database`,
        'Use an unmodified release of Reseal; migrations that were applied are never edited.',
      );
    }
  }
  return known.filter(({ number }) => !applied.some((row) => row.number === number));
}
