// Before the first test file: what all of them share. A test file that is run by itself makes its own.
// - A compile cache: a test file spends most of its start on stripping types and compiling.
// - Issuers, which every app of every test starts with: two of their keys are RSA, which takes seconds; made once, they
//   are copied. A folder for RSA keys of callers, each made once for the same reason.
// - A name server, and a PostgreSQL with a migrated template.
import { fileURLToPath } from 'node:url';
import { ISSUERS_FOLDER, newFolder, TestApp } from './app.ts';
import { KEYS_FOLDER } from './csr.ts';
import { NAME_SERVER, nameServer } from './name-server.ts';
import { sharePostgres } from './shared-postgres.ts';

const COMPILE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/reseal-tests', import.meta.url));
const shared = new AsyncDisposableStack();

export async function globalSetup(): Promise<void> {
  // Node reads the variable when a process starts: it counts for the test files, not for this process.
  process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;
  process.env[KEYS_FOLDER] = newFolder();
  process.env[NAME_SERVER] = await nameServer();
  const app = new TestApp(newFolder());
  await app.start({});
  await app.stop();
  process.env[ISSUERS_FOLDER] = app.folder;
  shared.use(await sharePostgres());
}

export const globalTeardown = (): Promise<void> => shared.disposeAsync();
