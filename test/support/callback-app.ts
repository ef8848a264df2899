// The service with receivers to call: a name server, and a receiver whose certificate the service trusts. All of
// loopback is on the allow list, so the production path runs; nothing leaves the machine.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { callOut } from '../../src/adapters/egress/call-out.ts';
import { randomBytes } from '../../src/adapters/seal/random.ts';
import { type Environment, readConfig } from '../../src/config/config.ts';
import { parseAddressRule } from '../../src/domain/egress/addresses.ts';
import type { CallOut } from '../../src/domain/egress/outbound.ts';
import { configureCallback, type SavedCallback } from '../../src/usecases/callbacks/configure-callback.ts';
import { sendTestCallback } from '../../src/usecases/callbacks/send-test-callback.ts';
import { openCallbacks } from '../../src/wiring/callbacks.ts';
import { serveApp } from '../../src/wiring/serve.ts';
import { type Answer, type Call, type Key, newFolder, startApp, type TestApp } from './app.ts';
import { HOST, Outside } from './outside.ts';
import type { Receiver } from './receiver.ts';

export const SETTINGS = '/openapi/v3/account/callback';
export const TEST = `${SETTINGS}/test`;

export interface CallbackApp extends AsyncDisposable {
  readonly app: TestApp;
  readonly outside: Outside;
  readonly receiver: Receiver;
  /** A URL of the receiver. */
  url(path?: string): string;
  test(key: Key, json?: unknown, call?: Call): Promise<Answer>;
  save(key: Key, json: unknown): Promise<Answer>;
  show(key: Key): Promise<Answer>;
  /** As the CLI does, which may also configure managed-PKI accounts. */
  saveAsOperator(accountId: string, json: unknown): Promise<SavedCallback>;
}

/** Settings that make the service use this name server and trust this CA. */
export function environmentFor(outside: Outside): Environment {
  const file = join(newFolder(), 'roots.pem');
  writeFileSync(file, outside.ca.root);
  return {
    RESEAL_DNS_SERVERS: `127.0.0.1:${outside.dns.port}`,
    RESEAL_CALLBACK_ALLOW: '127.0.0.0/8',
    RESEAL_CALLBACK_ROOTS_FILE: file,
  };
}

const NO_LISTS = { allow: [], deny: [], totalMs: 10_000 };

export async function startCallbackApp(environment: Environment = {}): Promise<CallbackApp> {
  await using unlessStarted = new AsyncDisposableStack();
  const outside = unlessStarted.use(await Outside.open());
  const app = unlessStarted.use(await startApp({ ...environmentFor(outside), ...environment }));
  const receiver = await outside.receiver();
  const url = (path = '/') => `https://${HOST}:${receiver.port}${path}`;
  const opened = unlessStarted.move();
  const { store, newId } = app.app;
  const operator = configureCallback({
    store,
    now: app.now,
    newId,
    randomBytes,
    policyFor: () => NO_LISTS,
    overlapMs: 0,
  });
  return {
    ...{ app, outside, receiver, url },
    test: (key, json, call = {}) => app.call('PUT', TEST, { key, json, ...call }),
    save: (key, json) => app.call('PUT', SETTINGS, { key, json }),
    show: (key) => app.call('GET', SETTINGS, { key }),
    saveAsOperator: (accountId, json) => operator.save({ accountId, actor: 'cli', requestId: null }, json),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/**
 * Like startCallbackApp, but receivers on loopback count as public: no excerpt is shown of a private receiver's
 * response, and no public receiver is available to tests.
 */
export async function startPublicCallbackApp(): Promise<CallbackApp> {
  const world = await startCallbackApp();
  const { app, outside } = world;
  const dnsServers = [`127.0.0.1:${outside.dns.port}`];
  const { config } = readConfig({ RESEAL_DATA_DIR: app.folder, RESEAL_PORT: '0', RESEAL_DNS_SERVERS: dnsServers[0] });
  const real = callOut({ dnsServers, extraRoots: [outside.ca.root], userAgent: 'Reseal/test' });
  const asPublic: CallOut = async (call) => {
    const outcome = await real(call);
    return outcome.kind === 'answered' ? { ...outcome, isPrivate: false } : outcome;
  };
  const opened = openCallbacks(app.app, config, app.now);
  const { store, newId } = app.app;
  const tested = sendTestCallback({
    ...{ store, now: app.now, newId, randomBytes, callOut: asPublic, testRate: { burst: 1_000, everyMs: 1 } },
    policyFor: () => ({ allow: [parseAddressRule('127.0.0.0/8')!], deny: [], totalMs: 10_000 }),
    acquireSlot: async () => ({ [Symbol.dispose]() {} }),
  });
  const front = await serveApp(app.app, { ...app.issuance, ...opened, sendTestCallback: tested }, config);
  Object.defineProperty(app, 'url', { value: front.url });
  return {
    ...world,
    async [Symbol.asyncDispose]() {
      await front.stop();
      await world[Symbol.asyncDispose]();
    },
  };
}

export interface ReceivedCallback {
  readonly line: string;
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly body: Readonly<Record<string, string>>;
}

/** Parses a request as the receiver recorded it; the last one by default. */
export function callbackIn({ requests }: Receiver, index = -1): ReceivedCallback {
  const request = requests.at(index);
  assert.ok(request !== undefined, `the receiver has ${requests.length} requests`);
  const [head = '', text = ''] = Buffer.from(request, 'latin1').toString('utf8').split('\r\n\r\n', 2);
  const [line = '', ...fields] = head.split('\r\n');
  const headers = Object.fromEntries(
    fields.map((field) => {
      const [, name = '', value = ''] = /^([^:]*): ?(.*)$/.exec(field) ?? [];
      return [name.toLowerCase(), value];
    }),
  );
  return { line, headers, text, body: JSON.parse(text) };
}

/** `200 success` or `400 invalid_parameters url`: a response in one line, for tables of cases. */
export const resultOf = ({ status, body: { code, field } }: Answer): string =>
  [status, code, ...(field === undefined ? [] : [field])].join(' ');
