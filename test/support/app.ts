// The real service for a test: its own data folder and account, a free port, a manual clock, and the log captured
// instead of printed. Everything else is the production code path.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Environment, readConfig } from '../../src/config/config.ts';
import type { CredentialKind } from '../../src/domain/access/credential.ts';
import type { AddressRule } from '../../src/domain/egress/addresses.ts';
import type { LogLine } from '../../src/kernel/log.ts';
import { logTo } from '../../src/kernel/log.ts';
import type { NewAccount } from '../../src/usecases/access/manage-access.ts';
import { claimAddresses } from '../../src/wiring/addresses.ts';
import { type App, openApp } from '../../src/wiring/app.ts';
import { type CallbackServices, openCallbacks } from '../../src/wiring/callbacks.ts';
import { type Issuance, openIssuance } from '../../src/wiring/issuance.ts';
import { type Running, serveApp } from '../../src/wiring/serve.ts';
import { nameServer } from './name-server.ts';

export const NOON = Date.UTC(2026, 10, 15, 12);

export interface Key {
  readonly accountId: string;
  readonly keyId: string;
  readonly authKey: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape, and assert what they find.
  readonly body: any;
}

export interface Call {
  /** Instead of the public URL. */
  readonly base?: string;
  readonly key?: Key | undefined;
  readonly headers?: Record<string, string>;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent verbatim. */
  readonly raw?: string | Uint8Array<ArrayBuffer>;
}

export class TestApp implements AsyncDisposable {
  readonly lines: LogLine[] = [];
  /** The log as it would be printed. */
  output = '';
  readonly folder: string;
  #now = NOON;
  #app: App | undefined;
  #issuance: Issuance | undefined;
  #callbacks: CallbackServices | undefined;
  #running: Running | undefined;

  /** Addresses here that stand for public ones in domain validation, as in a sandbox. */
  readonly #outside: readonly AddressRule[];

  constructor(folder: string, outside: readonly AddressRule[] = []) {
    this.folder = folder;
    this.#outside = outside;
  }

  readonly now = (): number => this.#now;

  get app(): App {
    return this.#app!;
  }

  get issuance(): Issuance {
    return this.#issuance!;
  }

  get callbacks(): CallbackServices {
    return this.#callbacks!;
  }

  get url(): string {
    return this.#running!.url;
  }

  get server(): Running['server'] {
    return this.#running!.server;
  }

  advance(ms: number): void {
    this.#now += ms;
  }

  async start(environment: Environment, signerProgram?: string): Promise<void> {
    const here = { RESEAL_DATA_DIR: this.folder, RESEAL_PORT: '0', RESEAL_DNS_SERVERS: await nameServer() };
    const { config: configured } = readConfig({ ...here, ...environment });
    const print = logTo({ write: (text: string) => (this.output += text) }, { format: 'json' }, this.now);
    const log = (line: LogLine) => {
      this.lines.push(line);
      print(line);
    };
    this.#app = await openApp(configured, {
      now: this.now,
      log,
      ...(signerProgram !== undefined && { signerProgram }),
    });
    try {
      const config = await claimAddresses(this.#app.store, configured);
      const { dnsServers, validation } = config;
      const network = { dnsServers, allow: this.#outside, httpPort: validation.httpPort, tlsPort: validation.tlsPort };
      this.#issuance = await openIssuance(this.#app, config, this.now, network);
      this.#callbacks = openCallbacks(this.#app, config, this.now);
      this.#running = await serveApp(this.#app, { ...this.#issuance, ...this.#callbacks }, config);
    } catch (error) {
      await this.#app.close();
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
    this.#running = undefined;
    const undeclared = this.lines.flatMap((line) =>
      line.event === 'error' && line.message.includes('does not declare') ? [line.message] : [],
    );
    assert.deepEqual(undeclared, [], 'codes that the OpenAPI document does not list for the operation');
  }

  /** Creates a key in a new account, so that tests do not see each other's data. */
  async newKey(account: Partial<NewAccount> = {}, kind: CredentialKind = 'standard'): Promise<Key> {
    const { id } = await this.app.access.createAccount({ name: 'Test', kind: 'standard', locale: 'en', ...account });
    return await this.anotherKey(id, kind);
  }

  async anotherKey(accountId: string, kind: CredentialKind, expiresAt: number | null = null): Promise<Key> {
    const { credential, authKey } = await this.app.access.createKey({ accountId, kind, expiresAt });
    return { accountId, keyId: credential.keyId, authKey: authKey.reveal() };
  }

  async call(method: string, path: string, { base = this.url, key, headers, json, raw }: Call = {}): Promise<Answer> {
    const response = await fetch(base + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(key && { 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': key.authKey }),
        ...(json !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(json !== undefined ? { body: JSON.stringify(json) } : raw !== undefined && { body: raw }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json');
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Creates a temporary folder; all of them are removed when the test process exits. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'reseal-test-'));
  folders.push(folder);
  return folder;
}
const folders: string[] = [];
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Environment variable: the data folder with issuers that before-all.ts prepared. */
export const ISSUERS_FOLDER = 'TEST_ISSUERS_FOLDER';

/** Creating issuers takes seconds: most are created once (for all files, or for this one) and copied. */
let withIssuers: Promise<string> | undefined;
async function folderWithIssuers(): Promise<string> {
  const given = process.env[ISSUERS_FOLDER];
  if (given) return given;
  const app = new TestApp(newFolder());
  await app.start({});
  await makeIssuers(app);
  await app.stop();
  return app.folder;
}

/** Those that most tests need. RSA keys take long: the others are made where they are needed. */
export async function makeIssuers({ issuance: { makeIssuer } }: TestApp): Promise<void> {
  for (const purpose of ['public-tls', 'private-tls', 'document-signing'] as const) {
    for (const keyType of ['p256', 'p384', 'rsa'] as const) await makeIssuer({ purpose, keyType });
  }
}

/** A data folder of its own, of a service that has run. */
export async function newUsedFolder(): Promise<string> {
  const folder = newFolder();
  withIssuers ??= folderWithIssuers();
  cpSync(await withIssuers, folder, { recursive: true });
  return folder;
}

export async function startApp(environment: Environment = {}, outside?: readonly AddressRule[]): Promise<TestApp> {
  // Beside an empty PostgreSQL a populated reseal.db would be a problem.
  const app = new TestApp(environment.RESEAL_DATABASE_URL ? newFolder() : await newUsedFolder(), outside);
  await app.start(environment);
  return app;
}
