// The service under test: a real `reseal serve` in its own process, and the same store opened in this process before and
// after, to create keys and to inspect the result. Never both during a kill: a store held open here would spare the
// service the recovery that is being tested.
import { setTimeout as sleep } from 'node:timers/promises';
import { openEngine } from '../src/adapters/store/engine/engine.ts';
import type { Db } from '../src/adapters/store/engine/schema.ts';
import { engineAt } from '../src/adapters/store/store.ts';
import { readConfig } from '../src/config/config.ts';
import { type App, openApp } from '../src/wiring/app.ts';
import type { Key } from '../test/support/app.ts';
import { nameServer } from '../test/support/name-server.ts';
import { type RunningProcess, startReseal } from '../test/support/process.ts';

/** The environment of the service, RESEAL_DATA_DIR at least. */
export type Settings = Readonly<Record<string, string>>;

export interface Service {
  readonly url: string;
  readonly process: RunningProcess;
}

const READY_MS = 5_000;
const READY_TRIES = 400;
const READY_PAUSE_MS = 50;

/** Initial name of every account. */
export const FIRST_NAME = 'before the first write';

/** Uses a name server of our own that knows no names, so that no CAA record prevents issuance. */
export const offline = async (settings: Settings): Promise<Settings> => ({
  RESEAL_DNS_SERVERS: await nameServer(),
  ...settings,
});

/** Opens the store in this process for the duration of `work`. */
export async function withStore<T>(settings: Settings, work: (app: App) => Promise<T>): Promise<T> {
  const app = await openApp(readConfig(settings).config, { now: Date.now, log: () => {} });
  try {
    return await work(app);
  } finally {
    await app.close();
  }
}

/** Opens the bare tables for the duration of `work`. */
export async function withTables<T>(settings: Settings, work: (db: Db) => Promise<T>): Promise<T> {
  const { database } = readConfig(settings).config;
  const isServer = database.kind === 'postgresql';
  const db = openEngine(engineAt(isServer ? { ...database, maxConnections: 1 } : database), () => {});
  try {
    return await work(db);
  } finally {
    await db.destroy();
  }
}

/** Creates one account and key per writer, so that writers do not contend for a row. */
export function makeKeys(settings: Settings, count: number): Promise<Key[]> {
  return withStore(settings, ({ access }) => Promise.all(Array.from({ length: count }, () => makeKey(access))));
}

async function makeKey(access: App['access']): Promise<Key> {
  const { id } = await access.createAccount({ name: FIRST_NAME, kind: 'standard', locale: 'en' });
  const { credential, authKey } = await access.createKey({ accountId: id, kind: 'standard', expiresAt: null });
  return { accountId: id, keyId: credential.keyId, authKey: authKey.reveal() };
}

/** Resolves once the service listens and is ready. */
export async function startService(
  settings: Settings,
  program?: string,
  args: readonly string[] = [],
): Promise<Service> {
  const process = startReseal(['serve', ...args], { RESEAL_PORT: '0', ...settings }, program);
  try {
    const url = await process.listening();
    await ready(url);
    return { url, process };
  } catch (error) {
    await process.end('SIGKILL');
    throw error;
  }
}

/** Connections are refused while the only process that answers requests is being replaced. */
export async function ready(url: string): Promise<void> {
  let answer = 'nothing';
  for (let tries = 0; tries < READY_TRIES; tries += 1) {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(READY_MS) }).catch(() => undefined);
    if (response) answer = `${response.status} ${await response.text()}`;
    if (response?.status === 200) return;
    // Readiness of another process can only be polled.
    await sleep(READY_PAUSE_MS);
  }
  throw new Error(`the service never became ready; /readyz last answered ${answer}`);
}
