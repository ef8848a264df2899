// Both engines, real, each with a way to get an empty database. Suites loop over this list, so that no behaviour is
// proven on one engine only.
import { join } from 'node:path';
import { after } from 'node:test';
import type { DatabaseLocation } from '../../src/adapters/store/store.ts';
import { newFolder } from './app.ts';
import { type Postgres, startPostgres } from './postgres.ts';

export interface TestEngine {
  readonly name: 'sqlite' | 'postgresql';
  newLocation(): Promise<DatabaseLocation>;
}

/** Starts a PostgreSQL that ends with the test file. */
export async function bothEngines(): Promise<readonly TestEngine[]> {
  const postgres: Postgres = await startPostgres();
  after(() => postgres[Symbol.asyncDispose]());
  return [
    { name: 'sqlite', newLocation: async () => ({ kind: 'sqlite', file: join(newFolder(), 'reseal.db') }) },
    {
      name: 'postgresql',
      newLocation: async () => ({ kind: 'postgresql', url: await postgres.createDatabase(), maxConnections: 10 }),
    },
  ];
}
