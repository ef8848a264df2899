// Both real engines, each with a way to get a new database. Suites loop over this list, so that every behaviour is
// proven on both.
import { join } from 'node:path';
import { after } from 'node:test';
import type { DatabaseLocation } from '../../src/adapters/store/store.ts';
import { newFolder } from './app.ts';
import { sharedPostgres } from './shared-postgres.ts';

export interface TestEngine {
  readonly name: 'sqlite' | 'postgresql';
  /** A database without rows; already migrated where that is faster. */
  newLocation(): Promise<DatabaseLocation>;
  /** A database without tables. */
  newEmptyLocation(): Promise<DatabaseLocation>;
}

/** PostgreSQL is shared by all test files; databases created here are dropped when this file ends. */
export async function bothEngines(): Promise<readonly TestEngine[]> {
  const postgres = await sharedPostgres();
  after(() => postgres[Symbol.asyncDispose]());
  const onSqlite = async (): Promise<DatabaseLocation> => ({ kind: 'sqlite', file: join(newFolder(), 'reseal.db') });
  const onPostgres = (url: string): DatabaseLocation => ({ kind: 'postgresql', url, maxConnections: 10 });
  return [
    { name: 'sqlite', newLocation: onSqlite, newEmptyLocation: onSqlite },
    {
      name: 'postgresql',
      newLocation: async () => onPostgres(await postgres.createDatabase()),
      newEmptyLocation: async () => onPostgres(await postgres.createEmptyDatabase()),
    },
  ];
}
