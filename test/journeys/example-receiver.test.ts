// The example receiver that integrators copy, in a process of its own: which callbacks it accepts, and which it rejects.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import https from 'node:https';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { callbackBody } from '../../src/domain/callbacks/callback.ts';
import { Secret } from '../../src/domain/secret.ts';
import { callbackHeaders, newSigningSecret, signatureOf } from '../../src/usecases/callbacks/sign-callback.ts';
import { newFolder } from '../support/app.ts';
import { RunningProcess } from '../support/process.ts';
import { TestCa } from '../support/receiver-certificates.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/receiver.mjs', import.meta.url));
const CA = new TestCa('Integrator’s Root');
const ACCESS_KEY = 'an access key';
const SECRET = newSigningSecret((count) => Uint8Array.from({ length: count }, (_, index) => index));
const MINUTE = 60_000;

function startExample(extra: Readonly<Record<string, string>> = {}): RunningProcess {
  const folder = newFolder();
  const { cert, key } = CA.identity(['127.0.0.1']);
  const env = {
    CERT_FILE: join(folder, 'cert.pem'),
    KEY_FILE: join(folder, 'key.pem'),
    ACCESS_KEY,
    SIGNING_SECRET: SECRET.reveal(),
    PORT: '0',
    ...extra,
  };
  writeFileSync(env.CERT_FILE, cert);
  writeFileSync(env.KEY_FILE, key);
  // Its own process group, which RunningProcess terminates.
  return new RunningProcess(
    spawn(process.execPath, [EXAMPLE], { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true }),
  );
}

const bodyFor = (orderId: string): string =>
  JSON.stringify(callbackBody('order:issued', { orderStatus: 'issued', orderId, certificateId: 'c' }, 'zh-CN'));

interface SentCallback {
  readonly id: string;
  readonly at?: number;
  readonly body?: string;
  readonly accessKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body sent, if it differs from the signed one. */
  readonly sent?: string;
}

async function send(
  url: string,
  { id, at = Date.now(), body = bodyFor(id), ...request }: SentCallback,
): Promise<number> {
  const accessKey = new Secret(request.accessKey ?? ACCESS_KEY);
  const signed = callbackHeaders({ id, at, body, accessKey, signingSecret: SECRET });
  const headers = { ...signed, ...request.headers };
  const outgoing = https.request(url, { ca: CA.root, agent: false, method: 'POST', headers });
  outgoing.end(request.sent ?? body);
  const [answer] = await once(outgoing, 'response');
  answer.resume();
  return answer.statusCode;
}

test('the example accepts each authentic callback once, and nothing else', async () => {
  await using example = startExample();
  const url = await example.listening();
  assert.equal(await send(url, { id: 'good' }), 200);
  assert.equal(await send(url, { id: 'good' }), 200);
  const at = Date.now();
  const seconds = Math.floor(at / 1000);
  const other = newSigningSecret(() => new Uint8Array(32));
  const two = [other, SECRET]
    .map((secret) => signatureOf(secret, 'rotated', String(seconds), bodyFor('rotated')))
    .join(' ');
  assert.equal(await send(url, { id: 'rotated', at, headers: { 'webhook-signature': two } }), 200);
  assert.equal(await send(url, { id: 'slow-clock', at: at - 4 * MINUTE }), 200);

  const refused: SentCallback[] = [
    { id: 'wrong-key', accessKey: 'another access key' },
    { id: 'longer-key', accessKey: `${ACCESS_KEY}.` },
    { id: 'tampered', sent: bodyFor('mine') },
    { id: 'empty', sent: '' },
    { id: 'old', at: Date.now() - 6 * MINUTE },
    { id: 'future', at: Date.now() + 6 * MINUTE },
    { id: 'other-id', headers: { 'webhook-id': 'other' } },
    { id: 'other-time', at, headers: { 'webhook-timestamp': String(seconds + 1) } },
    { id: 'no-time', headers: { 'webhook-timestamp': 'now' } },
    {
      id: 'other-secret',
      at,
      headers: { 'webhook-signature': signatureOf(other, 'other-secret', String(seconds), 'x') },
    },
    { id: 'no-signature', headers: { 'webhook-signature': '' } },
    { id: 'long-signature', headers: { 'webhook-signature': 'v1,'.repeat(1_000) } },
  ];
  for (const request of refused) assert.equal(await send(url, request), 401, request.id);
  const bare = https.request(url, { ca: CA.root, agent: false }).end();
  assert.equal((await once(bare, 'response'))[0].statusCode, 401);

  await assert.rejects(send(url, { id: 'large', body: 'x'.repeat(1_000_000) }));
  assert.equal(await send(url, { id: 'last' }), 200);
  await example.said(/last/);
  const lines = example.output.split('\n').filter((line) => line.startsWith('order:'));
  assert.deepEqual(
    lines,
    ['good', 'rotated', 'slow-clock', 'last'].map((id) => `order:issued ${id}`),
  );
  assert.equal(example.output.includes(ACCESS_KEY), false);
  assert.equal(await example.end('SIGTERM'), null);
});

test('the example does not start without its secrets', async () => {
  for (const missing of [{ ACCESS_KEY: '' }, { SIGNING_SECRET: '' }, { SIGNING_SECRET: 'plain' }]) {
    await using example = startExample(missing);
    await assert.rejects(example.listening(), /ACCESS_KEY or SIGNING_SECRET is missing/);
  }
});
