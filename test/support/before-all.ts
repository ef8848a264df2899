// Global setup: resources that all test files share. A file that is run alone creates its own.
// - A compile cache: most of a test file's start-up is type stripping and compilation.
// - Issuers for every test app, and a folder of RSA caller keys: generating RSA keys takes seconds, so each is generated
// once and copied.
// - A name server, and a PostgreSQL server with a migrated template.
import { fileURLToPath } from 'node:url';
import { ISSUERS_FOLDER, makeIssuers, newFolder, TestApp } from './app.ts';
import { KEYS_FOLDER } from './csr.ts';
import { NAME_SERVER, nameServer } from './name-server.ts';
import { sharePostgres } from './shared-postgres.ts';

const COMPILE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/reseal-tests', import.meta.url));
const shared = new AsyncDisposableStack();

export async function globalSetup(): Promise<void> {
  // Node reads this variable at process start, so it applies to the test files only.
  process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;
  process.env[KEYS_FOLDER] = newFolder();
  process.env[NAME_SERVER] = await nameServer();
  const app = new TestApp(newFolder());
  await app.start({});
  await makeIssuers(app);
  await app.stop();
  process.env[ISSUERS_FOLDER] = app.folder;
  shared.use(await sharePostgres());
}

export const globalTeardown = (): Promise<void> => shared.disposeAsync();
