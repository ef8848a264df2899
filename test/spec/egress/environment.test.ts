// Which certificates the service trusts, and that the environment cannot weaken it: the real program, started with every
// Node variable set to disable verification, allow old TLS versions and use a proxy.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { newFolder } from '../../support/app.ts';
import { environmentFor, startCallbackApp, TEST } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { reseal } from '../../support/in-process.ts';
import { HOST } from '../../support/outside.ts';
import { startReseal } from '../../support/process.ts';
import { Receiver, type ReceiverOptions } from '../../support/receiver.ts';
import { TestCa } from '../../support/receiver-certificates.ts';

const world = await startCallbackApp({ RESEAL_CALLBACK_TEST_RATE: '1000/s' });
after(() => world[Symbol.asyncDispose]());
const { app, outside } = world;

const DAY = 86_400_000;
const stranger = new TestCa('Another Root');
/** What Node needs as a server to speak deprecated TLS. */
const WEAK = 'ALL:eNULL:aNULL@SECLEVEL=0';
const old = (maxVersion: 'TLSv1' | 'TLSv1.1') => ({ minVersion: 'TLSv1', maxVersion, ciphers: WEAK }) as const;

/** The certificate of each receiver and the result: the TLS version, or why nothing was sent. */
const RECEIVERS: Readonly<Record<string, readonly [ReceiverOptions, expected: string]>> = {
  'a valid certificate, TLS 1.3': [{ tls: { minVersion: 'TLSv1.3' } }, 'TLSv1.3'],
  'a valid certificate, TLS 1.2': [{ tls: { maxVersion: 'TLSv1.2' } }, 'TLSv1.2'],
  'a wildcard certificate': [{ identity: outside.ca.identity(['*.example.test']) }, 'TLSv1.3'],
  'a certificate of an unknown CA': [{ identity: stranger.identity([HOST]) }, 'certificate_untrusted'],
  'a self-signed certificate': [{ identity: stranger.asServer() }, 'certificate_untrusted'],
  'a certificate for another host': [
    { identity: outside.ca.identity(['other.example.test', 'example.test', '127.0.0.1']) },
    'certificate_wrong_host',
  ],
  'a certificate for a part of the name': [{ identity: outside.ca.identity(['*.test']) }, 'certificate_wrong_host'],
  'an expired certificate': [
    { identity: outside.ca.identity([HOST], { from: Date.now() - 9 * DAY, until: Date.now() - DAY }) },
    'certificate_expired',
  ],
  'a certificate that is not valid yet': [
    { identity: outside.ca.identity([HOST], { from: Date.now() + DAY }) },
    'certificate_not_yet_valid',
  ],
  'TLS 1.1 only': [{ tls: old('TLSv1.1') }, 'tls_failed'],
  'TLS 1.0 only': [{ tls: old('TLSv1') }, 'tls_failed'],
  'a cipher without a certificate': [{ tls: { maxVersion: 'TLSv1.2', ciphers: 'aNULL@SECLEVEL=0' } }, 'tls_failed'],
  'no TLS at all': [
    { onAccept: (socket) => socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\n\r\n')) },
    'tls_failed',
  ],
};

const receivers = await Promise.all(
  Object.entries(RECEIVERS).map(async ([title, [options, expected]]) => ({
    title,
    expected,
    receiver: await outside.receiver(options),
  })),
);

/** One test of each. Nothing may be sent to an untrusted receiver. */
async function requireVerdicts(test: (url: string) => Promise<{ status: number; body: Verdict }>): Promise<void> {
  for (const { title, expected, receiver } of receivers) {
    const before = [receiver.connections.length, receiver.requests.length];
    const { status, body } = await test(`https://${HOST}:${receiver.port}/`);
    const what = `${title}: ${JSON.stringify(body)}`;
    const isGood = expected.startsWith('TLSv1.');
    assert.equal(`${status} ${body.code}`, isGood ? '200 success' : '422 callback_send_error', what);
    const report = body.data?.callback ?? body.details;
    assert.match((isGood ? report?.tls_version : report?.reason) ?? '', new RegExp(`^(${expected})$`), what);
    const counts = [receiver.connections.length, receiver.requests.length];
    assert.deepEqual(counts, [before[0]! + 1, before[1]! + (isGood ? 1 : 0)], what);
  }
}
interface Report {
  readonly reason: string | null;
  readonly tls_version: string | null;
}
interface Verdict {
  readonly code: string;
  readonly data?: { readonly callback: Report };
  readonly details?: Report;
}

rule('egress 1', 'the certificate of the receiver is verified for the host, over TLS 1.2 or newer', async () => {
  const key = await app.newKey();
  await requireVerdicts((url) => world.test(key, { url, access_key: 'k' }));
});

/** A proxy that must not be used: a connection means that the service followed the environment. */
const proxy = await Receiver.start({ onAccept: (socket) => socket.destroy() });
after(() => proxy[Symbol.asyncDispose]());

function hostileEnvironment(): Record<string, string> {
  const folder = newFolder();
  const file = join(folder, 'another.pem');
  writeFileSync(file, stranger.root);
  const through = `http://127.0.0.1:${proxy.port}`;
  const variables = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'];
  return {
    ...Object.fromEntries(
      [...variables, ...variables.map((name) => name.toLowerCase())].map((name) => [name, through]),
    ),
    NODE_USE_ENV_PROXY: '1',
    NODE_TLS_REJECT_UNAUTHORIZED: '0',
    NODE_EXTRA_CA_CERTS: file,
    SSL_CERT_FILE: file,
    SSL_CERT_DIR: folder,
    NODE_OPTIONS: `--use-env-proxy --use-openssl-ca --tls-min-v1.0 --tls-cipher-list=${WEAK} --insecure-http-parser`,
  };
}

/** Control experiment: what Node itself does in such an environment. Otherwise the test below would prove nothing. */
async function requireHostile(env: Record<string, string>): Promise<void> {
  const untrusted = receivers.find(({ expected }) => expected === 'certificate_untrusted')!.receiver;
  const outdated = receivers.find(({ title }) => title === 'TLS 1.1 only')!.receiver;
  const program = `
    const { request } = require('node:https');
    const ask = (options) => new Promise((resolve) =>
      request({ host: '127.0.0.1', ...options }, (answer) => resolve(answer.statusCode)).on('error', resolve).end());
    (async () => {
      const direct = { agent: new (require('node:https').Agent)({ proxyEnv: undefined }) };
      console.log(await ask({ ...direct, port: ${untrusted.port} }), await ask({ ...direct, port: ${outdated.port} }));
      await ask({ port: ${untrusted.port} });
    })();`;
  const child = spawn(process.execPath, ['--eval', program], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  let out = '';
  child.stdout.on('data', (chunk) => (out += chunk));
  await once(child, 'close');
  assert.equal(out, '200 200\n', 'it trusts every certificate and speaks old versions');
  assert.equal(proxy.connections.length, 1, 'and uses the proxy');
}

rule('egress 1', 'Whatever the environment of the process says', async () => {
  const hostile = hostileEnvironment();
  await requireHostile(hostile);
  const proxied = proxy.connections.length;
  const settings = {
    ...(environmentFor(outside) as Record<string, string>),
    ...{ RESEAL_DATA_DIR: newFolder(), RESEAL_PORT: '0', RESEAL_CALLBACK_TEST_RATE: '1000/s' },
  };
  await using service = startReseal(['serve'], { ...settings, ...hostile });
  const url = await service.listening();
  const json = async (...args: string[]) => {
    const { code, out, err } = await reseal([...args, '--json'], settings);
    assert.equal(code, 0, out + err);
    return JSON.parse(out);
  };
  const { account } = await json('account', 'create', 'Acme');
  const { key, auth_key } = await json('key', 'create', account.id);
  const headers = {
    ...{ 'X-CC-Key-ID': key.key_id, 'X-CC-Auth-Key': auth_key, 'Content-Type': 'application/json' },
  };
  const call = async (method: string, path: string, body?: unknown) => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(url + path, { method, headers, ...sent });
    return { status: response.status, body: (await response.json()) as Verdict };
  };
  await requireVerdicts((target) => call('PUT', TEST, { url: target, access_key: 'k' }));
  // The same for saved settings.
  const good = receivers[0]!.receiver;
  const saved = { url: `https://${HOST}:${good.port}/saved`, access_key: 'k' };
  assert.equal((await call('PUT', TEST.replace('/test', ''), saved)).status, 200);
  assert.equal((await call('PUT', TEST, {})).status, 200);
  assert.match(good.requests.at(-1) ?? '', /^POST \/saved /);
  assert.equal(proxy.connections.length, proxied, 'the proxy was not used');
});
