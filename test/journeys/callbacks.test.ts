// Callbacks as an integrator meets them, offline: the real sandbox with its receiver, every error, a receiver of the
// integrator's own, and what survives a restart.
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { once } from 'node:events';
import { readFileSync, watch, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import tls from 'node:tls';
import type { SandboxFile } from '../../src/sandbox/folder.ts';
import type { ReceivedCallback } from '../../src/sandbox/receiver.ts';
import { newFolder } from '../support/app.ts';
import { reseal, withoutStore } from '../support/in-process.ts';
import { startReseal } from '../support/process.ts';
import { Receiver } from '../support/receiver.ts';
import { TestCa } from '../support/receiver-certificates.ts';

type Settings = Readonly<Record<string, string>>;
type Credential = Pick<SandboxFile['accounts'][number]['credentials'][number], 'key_id' | 'auth_key'>;
interface Sandbox extends SandboxFile {
  readonly receiver: SandboxFile['receiver'] & { readonly callbacks: readonly ReceivedCallback[] };
}
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape, and assert what they find.
type Answer = { readonly status: number; readonly body: any };

const settingsFor = (folder: string) => ({ RESEAL_DATA_DIR: folder, RESEAL_PORT: '0' });
const sandboxIn = (folder: string): Sandbox => JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8'));

async function start(folder: string, more: Settings = {}) {
  const running = startReseal(['sandbox'], { ...settingsFor(folder), ...more });
  await running.said(/Stop with Ctrl-C/);
  return running;
}

async function call(
  base: string,
  { key_id, auth_key }: Credential,
  method: string,
  path: string,
  json?: unknown,
): Promise<Answer> {
  const response = await fetch(`${base}/openapi/v3/account/callback${path}`, {
    method,
    headers: {
      'X-CC-Key-ID': key_id,
      'X-CC-Auth-Key': auth_key,
      ...(json !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(json !== undefined && { body: JSON.stringify(json) }),
  });
  return { status: response.status, body: await response.json() };
}

/** `200`, `503`, or the failure reason. */
const outcomeOf = ({ body: { code, data, details } }: Answer): string => {
  const report = data?.callback ?? details;
  return `${code} ${report?.reason ?? report?.http_status ?? '-'}`;
};

/** Waits until sandbox.json matches; it is written shortly after a callback. */
async function sandboxWith(folder: string, isThere: (sandbox: Sandbox) => boolean): Promise<Sandbox> {
  const { promise, resolve, reject } = Promise.withResolvers<Sandbox>();
  const look = () => {
    const sandbox = sandboxIn(folder);
    if (isThere(sandbox)) resolve(sandbox);
  };
  const watcher = watch(folder, look);
  const deadline = setTimeout(() => reject(new Error(JSON.stringify(sandboxIn(folder).receiver))), 30_000);
  look();
  return await promise.finally(() => {
    clearTimeout(deadline);
    watcher.close();
  });
}

// Shared by tests that change nothing. Only the rate differs from the default: high enough for all tests of this file,
// and low enough to exhaust.
const folder = newFolder();
const settings = {
  ...settingsFor(folder),
  RESEAL_CALLBACK_TEST_RATE: '40/h',
  RESEAL_CALLBACK_TESTS_PER_ACCOUNT: '20',
  RESEAL_CALLBACK_TESTS_PER_HOST: '20',
};
const shared = await start(folder, settings);
after(() => shared[Symbol.asyncDispose]());
const sandbox = sandboxIn(folder);
const [STANDARD, MANAGED, BARE, PAUSED] = sandbox.accounts.map(({ credentials }) => credentials[0]!);
const receiverPort = new URL(sandbox.receiver.url).port;
const tested = (who: Credential | undefined, json?: unknown) => call(sandbox.base_url, who!, 'PUT', '/test', json);
const at = (path: string, host = 'receiver') => ({
  url: `https://${host}.sandbox.test:${receiverPort}${path}`,
  access_key: 'an-access-key',
});

test('the callback test of the greeting works when pasted, and the receiver shows the callback', async () => {
  const pasted = /curl -s -X PUT (\S+) \\\n((?:\s+-H '[^']*' \\\n)*)\s+-H '([^']*)' -d '([^']*)'/.exec(shared.output);
  const [, url = '', lines = '', last = '', body = ''] = pasted ?? [];
  const headers = [...[...lines.matchAll(/-H '([^']*)'/g)].map(([, header = '']) => header), last];
  const answer = await fetch(url, {
    method: 'PUT',
    headers: headers.map((header): [string, string] => [header.split(': ')[0]!, header.split(': ')[1]!]),
    body,
  });
  const { code, data } = (await answer.json()) as Answer['body'];
  assert.deepEqual([answer.status, code, data.callback.http_status], [200, 'success', 200]);
  assert.deepEqual(JSON.parse(body).url, sandbox.receiver.url);

  const isIt = ({ headers }: ReceivedCallback) => headers['webhook-id'] === data.callback.webhook_id;
  const { receiver } = await sandboxWith(folder, ({ receiver }) => receiver.callbacks.some(isIt));
  const kept = receiver.callbacks.find(isIt)!;
  assert.deepEqual(
    [kept.headers['x-cc-callback-auth'], kept.answer, kept.method],
    [JSON.parse(body).access_key, '200', 'POST'],
  );
  assert.equal((kept.body as { action_id: string }).action_id, 'order:issued');
  const shown = await reseal(['sandbox', 'callbacks', '--json'], settings);
  assert.deepEqual([shown.code, JSON.parse(shown.out).callbacks.find(isIt)], [0, kept]);
  assert.match(
    (await reseal(['sandbox', 'callbacks'], settingsFor(folder))).out,
    /"x-cc-callback-auth": "my-callback-key"/,
  );
  const nowhere = await reseal(['sandbox', 'callbacks'], settingsFor(newFolder()));
  assert.deepEqual([nowhere.code, /no sandbox here.*reseal sandbox/s.test(nowhere.err)], [1, true]);
});

test('each of the nine errors of the specification can be reproduced offline', async () => {
  const [, ...otherKinds] = sandbox.accounts[0]!.credentials;
  const table: [Credential | undefined, unknown, number, string][] = [
    [STANDARD, { url: '' }, 400, 'invalid_parameters'],
    [STANDARD, at(`/${'x'.repeat(256)}`), 400, 'invalid_callback_url'],
    [STANDARD, { ...at('/'), url: 'http://receiver.sandbox.test/' }, 400, 'callback_url_not_https'],
    [BARE, undefined, 400, 'callback_not_configured'],
    [BARE, { url: at('/').url }, 400, 'callback_not_configured'],
    [STANDARD, at('/reset'), 422, 'callback_send_error'],
    [STANDARD, at('/status/500'), 422, 'callback_response_not_200'],
    [STANDARD, at('/', 'private'), 422, 'callback_private_domain'],
    [
      STANDARD,
      { ...at('/'), url: `https://127.0.0.1:${new URL(sandbox.base_url).port}/` },
      422,
      'callback_private_domain',
    ],
    [STANDARD, { ...at('/'), url: 'https://localhost/' }, 422, 'callback_private_domain'],
    [MANAGED, at('/'), 403, 'permission_denied'],
    ...otherKinds.map((one): [Credential, unknown, number, string] => [one, at('/'), 403, 'permission_denied']),
  ];
  const seen = new Set<string>();
  for (const [who, json, status, code] of table) {
    const answer = await tested(who, json);
    assert.deepEqual([answer.status, answer.body.code], [status, code], JSON.stringify(json));
    seen.add(code);
  }
  let answer = await tested(BARE, at('/'));
  for (let count = 1; answer.status === 200 && count <= 50; count += 1) answer = await tested(BARE, at('/'));
  assert.deepEqual([answer.status, answer.body.code], [429, 'request_too_fast']);
  assert.equal((await tested(PAUSED)).status, 200, 'another account is not affected');
  assert.equal(seen.add('request_too_fast').size, 9);
});

test('each misbehaviour listed in the greeting is reported as what it is', async () => {
  const TABLE: Readonly<Record<string, string>> = {
    '/status/503': 'callback_response_not_200 503',
    '/delay/12': 'callback_send_error response_timeout',
    '/reset': 'callback_send_error connection_closed',
    '/endless': 'success 200',
    '/redirect': 'callback_response_not_200 302',
    '/silent': 'callback_send_error response_timeout',
    '/garbage': 'callback_send_error response_invalid',
    '/echo': 'success 200',
    untrusted: 'callback_send_error certificate_untrusted',
    'wrong-host': 'callback_send_error certificate_wrong_host',
    private: 'callback_private_domain -',
    broken: 'callback_send_error dns_failure',
    missing: 'callback_send_error name_not_found',
  };
  const paths = (await shared.said(/Other urls misbehave: (.*)/)).split(/\s+/);
  const hosts = (await shared.said(/faults of their own: (.*)/)).match(/(?<=:\/\/)[a-z-]+/g) ?? [];
  assert.ok(paths.length >= 7 && hosts.length >= 5, shared.output);
  const named = [...new Set([...paths, ...hosts, '/echo'])];
  const answers = await Promise.all(named.map((one) => tested(STANDARD, one.startsWith('/') ? at(one) : at('/', one))));
  assert.deepEqual(
    answers.map((answer, index) => `${named[index]} ${outcomeOf(answer)}`),
    named.map((one) => `${one} ${TABLE[one]}`),
  );
  assert.doesNotMatch(JSON.stringify(answers), /an-access-key/);
  const elsewhere = { ...at('/'), url: 'https://receiver.sandbox.test:1/' };
  assert.equal(outcomeOf(await tested(STANDARD, elsewhere)), 'callback_private_domain -', 'only its own port is open');
});

test('managed-PKI accounts, and paused and filtered ones, can test their saved settings', async () => {
  const accounts = sandbox.accounts.filter(({ callback }) => callback !== null);
  assert.deepEqual(
    accounts.map(({ kind }) => kind),
    ['standard', 'managed_pki', 'standard'],
  );
  for (const { credentials, callback } of accounts) {
    const { body } = await tested(credentials[0]);
    assert.equal(body.code, 'success', JSON.stringify(body));
    const { webhook_id: id } = body.data.callback;
    const isIt = ({ headers }: ReceivedCallback) => headers['webhook-id'] === id;
    const { receiver } = await sandboxWith(folder, ({ receiver }) => receiver.callbacks.some(isIt));
    assert.equal(receiver.callbacks.find(isIt)?.headers['x-cc-callback-auth'], callback?.access_key);
  }
  for (const json of [at('/'), { url: at('/').url }, { access_key: 'k' }, { url: null }]) {
    assert.equal((await tested(MANAGED, json)).body.code, 'permission_denied');
  }
  assert.equal((await call(sandbox.base_url, MANAGED!, 'PUT', '', at('/'))).body.code, 'permission_denied');
  const { body } = await call(sandbox.base_url, PAUSED!, 'GET', '');
  assert.deepEqual([body.data.callback.disabled, body.data.callback.enabled_actions], [true, ['order:revoked']]);
});

test('commands in the sandbox’s folder use its DNS and its roots', async () => {
  const [, managed, , paused] = sandbox.accounts;
  for (const { id } of [managed!, paused!]) {
    const { code, out, err } = await reseal(['callback', 'test', id], settings);
    assert.deepEqual([code, withoutStore(err)], [0, ''], err);
    assert.match(out, /^The receiver answered 200\.\nresolve \d+ ms, .*\nTLSv1\.3, certificate expires in \d+ days\n$/);
  }
});

/** The fingerprint of the receiver's certificate, if it is valid for that name and issued by a root of the sandbox. */
async function certificateOf({ receiver, trust }: Sandbox, servername = 'receiver.sandbox.test'): Promise<string> {
  const [host = '', port] = receiver.address.split(':');
  const ca = trust.roots.map((path) => readFileSync(path, 'utf8'));
  const socket = tls.connect({ host, port: Number(port), servername, ca });
  try {
    await once(socket, 'secureConnect');
    return socket.getPeerCertificate().fingerprint256;
  } finally {
    socket.destroy();
  }
}

test('the receiver’s certificate is issued by one of the roots, for its name', async () => {
  assert.match(await certificateOf(sandbox), /^[0-9A-F:]{95}$/);
  assert.equal(new URL(sandbox.receiver.url).hostname, 'receiver.sandbox.test');
  await assert.rejects(certificateOf(sandbox, 'other.sandbox.test'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  const other = join(newFolder(), 'other.pem');
  writeFileSync(other, new TestCa('Other').root);
  await assert.rejects(certificateOf({ ...sandbox, trust: { roots: [other] } }), /certificate/);
});

test('an integrator’s own receiver is private until it is allowed, and `serve` ignores that permission', async () => {
  const ca = new TestCa('My Root');
  await using mine = await Receiver.start({ identity: ca.identity(['127.0.0.1']) });
  const rootsFile = join(newFolder(), 'roots.pem');
  writeFileSync(rootsFile, ca.root);
  const request = { url: `https://127.0.0.1:${mine.port}/hook`, access_key: 'my-key' };
  const allow = { RESEAL_SANDBOX_ALLOW: `127.0.0.1:${mine.port}` };
  const roots = { RESEAL_CALLBACK_ROOTS_FILE: rootsFile };
  const own = newFolder();
  const outcomes: [Settings, string][] = [
    [roots, 'callback_private_domain -'],
    [allow, 'callback_send_error certificate_untrusted'],
    [{ ...allow, ...roots }, 'success 200'],
  ];
  for (const [more, expected] of outcomes) {
    await using running = await start(own, more);
    const { base_url, accounts } = sandboxIn(own);
    assert.equal(outcomeOf(await call(base_url, accounts[0]!.credentials[0]!, 'PUT', '/test', request)), expected);
    assert.equal(running.output.includes(`127.0.0.1:${mine.port} on this machine`), more !== roots);
    const beside = { ...request, url: 'https://127.0.0.1:1/' };
    const closed = await call(base_url, accounts[0]!.credentials[0]!, 'PUT', '/test', beside);
    assert.equal(outcomeOf(closed), 'callback_private_domain -', 'no other port is open');
    assert.equal(await running.end('SIGTERM'), 0);
  }
  assert.deepEqual(
    mine.requests.map((request) => /^POST \/hook .*x-cc-callback-auth: my-key\r\n/is.test(request)),
    [true],
  );

  const real = { ...settingsFor(newFolder()), ...allow, ...roots };
  await using service = startReseal(['serve'], real);
  const url = await service.listening();
  const made = async (...args: string[]) => JSON.parse((await reseal([...args, '--json'], real)).out);
  const { account } = await made('account', 'create', 'Acme');
  const { key, auth_key } = await made('key', 'create', account.id);
  const refused = await call(url, { ...key, auth_key }, 'PUT', '/test', request);
  assert.deepEqual([refused.status, outcomeOf(refused)], [422, 'callback_private_domain -']);
  writeFileSync(join(real.RESEAL_DATA_DIR!, 'key.txt'), 'my-key\n');
  const options = ['--url', request.url, '--access-key-file', join(real.RESEAL_DATA_DIR!, 'key.txt')];
  const { error } = await made('callback', 'test', account.id, ...options);
  assert.equal(error.code, 'callback_private_domain');
  assert.equal(mine.connections.length, 2);
});

test('settings, keys and certificate survive a restart and a kill; manual changes are kept', async () => {
  const own = newFolder();
  /** With RESEAL_PORT=0 every start uses other free ports. */
  const lasting = ({ accounts }: Sandbox) => JSON.parse(JSON.stringify(accounts).replace(/:\d+\//g, ':PORT/'));
  const change = { url: 'https://receiver.sandbox.test:9/changed', access_key: 'changed', enabled_actions: [] };
  const mine = { url: 'https://hooks.example.com/mine', access_key: 'mine-key', disabled: true };
  let before: { accounts: unknown; certificate: string };
  {
    await using running = await start(own);
    const first = sandboxIn(own);
    before = { accounts: lasting(first), certificate: await certificateOf(first) };
    assert.equal(await running.end('SIGKILL'), null);
  }
  {
    await using running = await start(own);
    const second = sandboxIn(own);
    assert.deepEqual({ accounts: lasting(second), certificate: await certificateOf(second) }, before);
    const [standard, managed, , paused] = second.accounts.map(({ credentials }) => credentials[0]!);
    const base = second.base_url;
    assert.equal((await call(base, managed!, 'PUT', '/test')).status, 200, 'the saved port is the current one');
    assert.equal((await call(base, standard!, 'PUT', '', mine)).status, 200);
    assert.equal((await call(base, paused!, 'PUT', '', change)).status, 200);
    assert.equal(await running.end('SIGTERM'), 0);
  }
  await using _running = await start(own);
  const third = sandboxIn(own);
  assert.equal(await certificateOf(third), before.certificate);
  const [standard, managed, bare, paused] = lasting(third);
  const saved = before.accounts as typeof third.accounts;
  assert.deepEqual([managed, bare], [saved[1], saved[2]]);
  assert.deepEqual(standard.credentials, saved[0]?.credentials);
  const { signing_secret: secret, ...rest } = standard.callback;
  assert.deepEqual(rest, mine);
  assert.match(secret, /^whsec_/);
  const { url } = third.receiver;
  assert.deepEqual(third.accounts[3]?.callback, {
    ...saved[3]?.callback,
    ...change,
    url: `${url}changed`,
    disabled: false,
  });
  assert.equal(paused.callback.access_key, 'changed');
});

test('SIGTERM stops the sandbox with its receiver and name server, records the last callback, and leaves nothing running', async () => {
  const own = newFolder();
  await using running = await start(own);
  const { base_url, accounts, receiver, dns } = sandboxIn(own);
  const addressOf = (text: string) => ({ host: text.split(':')[0]!, port: Number(text.split(':')[1]) });
  const idle = [receiver.address, dns.address].map((one) =>
    net
      .connect(addressOf(one))
      .on('error', () => {})
      .resume(),
  );
  await Promise.all(idle.map((socket) => once(socket, 'connect')));
  const { body } = await call(base_url, accounts[3]!.credentials[0]!, 'PUT', '/test');
  const left = Promise.all(idle.map((socket) => once(socket, 'close')));
  assert.equal(await running.end('SIGTERM'), 0);
  await left;
  const [last] = sandboxIn(own).receiver.callbacks;
  assert.equal(last?.headers['webhook-id'], body.data.callback.webhook_id);
  for (const address of [new URL(base_url).host, receiver.address, dns.address]) {
    const [error] = await once(net.connect(addressOf(address)), 'error').catch((one) => [one]);
    assert.equal(error.code, 'ECONNREFUSED', address);
  }
  const udp = dgram.createSocket('udp4').bind(addressOf(dns.address).port, '127.0.0.1');
  await once(udp, 'listening');
  udp.close();
});
