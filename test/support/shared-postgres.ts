// One PostgreSQL server for all test files: before-all.ts starts it and migrates a template, and each file creates its
// own databases. A file that is run alone, or that kills the server, starts its own (postgres.ts).
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { openStore } from '../../src/adapters/store/store.ts';
import { createDatabase, inDatabase, type Postgres, startPostgres } from './postgres.ts';

/** Environment variables: the URL of the shared server, and the name of its migrated template. */
const SERVER = 'TEST_POSTGRES';
const TEMPLATE = 'TEST_POSTGRES_TEMPLATE';

export interface SharedPostgres extends AsyncDisposable {
  /** Without tables. */
  createEmptyDatabase(): Promise<string>;
  /** Migrated to this version (a start would do it otherwise), without rows. */
  createDatabase(): Promise<string>;
}

/** For globalSetup: test files that start later find the server in their environment. */
export async function sharePostgres(): Promise<Postgres> {
  const server = await startPostgres();
  const template = await server.createDatabase();
  const sealer = sealerWith([newSealKey()]);
  const store = await openStore({ kind: 'postgresql', url: template, maxConnections: 1 }, sealer, Date.now);
  await store.close();
  process.env[SERVER] = server.url;
  process.env[TEMPLATE] = new URL(template).pathname.slice(1);
  return server;
}

/** Drops the databases created here when disposed of: hundreds of them would fill a small disk. */
export async function sharedPostgres(): Promise<SharedPostgres> {
  const [url, template] = [process.env[SERVER], process.env[TEMPLATE]];
  if (!url || !template) {
    const own = await startPostgres();
    return { ...own, createEmptyDatabase: own.createDatabase };
  }
  const made: string[] = [];
  const create = async (after?: string) => {
    const database = await createDatabase(url, after);
    made.push(new URL(database).pathname.slice(1));
    return database;
  };
  return {
    createEmptyDatabase: () => create(),
    createDatabase: () => create(template),
    async [Symbol.asyncDispose]() {
      for (const name of made) await inDatabase(url, `drop database ${name} with (force)`);
    },
  };
}
