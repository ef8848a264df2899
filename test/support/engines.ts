// Both engines, real, each with a way to get a new database. Suites loop over this list, so that no behaviour is
// proven on one engine only.
import { join } from 'node:path';
import { after } from 'node:test';
import type { DatabaseLocation } from '../../src/adapters/store/store.ts';
import { newFolder } from './app.ts';
import { sharedPostgres } from './shared-postgres.ts';

export interface TestEngine {
  readonly name: 'sqlite' | 'postgresql';
  /** Of a database without a row: with tables already, where that is sooner than to have them made at the start. */
  newLocation(): Promise<DatabaseLocation>;
  /** Of a database without a table. */
  newEmptyLocation(): Promise<DatabaseLocation>;
}

/** PostgreSQL is the server of all test files; what is made there goes with this file. */
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
