// A private target yields one code, and a response that does not depend on what is there: no address, no timing, no open
// or closed port. Otherwise a callback test would be a port scanner for our network.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import type { Answer } from '../../support/app.ts';
import { resultOf, startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { HOST } from '../../support/outside.ts';

const world = await startCallbackApp({
  RESEAL_CALLBACK_ALLOW: '',
  RESEAL_CALLBACK_DENY: '93.184.215.14',
  RESEAL_CALLBACK_TEST_RATE: '1000/s',
});
after(() => world[Symbol.asyncDispose]());
const { app, outside, receiver } = world;
const { dns } = outside;
const key = await app.newKey();
const db = new DatabaseSync(join(app.folder, 'reseal.db'), { readOnly: true });
after(() => db.close());
const closedPort = await (async () => {
  await using closed = await outside.receiver();
  return closed.port;
})();

/** Text that would identify one of the targets below. */
const TRACES = /10\.20\.30\.40|fd12:3456|93\.184|172\.16\.77\.7|secret-path|phase/;
dns.set('inside.example.test', 'A', ['10.20.30.40']);
dns.set('inside6.example.test', 'AAAA', ['fd12:3456::1']);
dns.set('denied.example.test', 'A', ['93.184.215.14']);
dns.set('mixed.example.test', 'A', ['8.8.8.8', '172.16.77.7']);
dns.set('slow.example.test', 'A', 'silence', ['10.20.30.40']);
dns.set('half.example.test', 'A', ['10.20.30.40']);
dns.set('half.example.test', 'AAAA', 'servfail');
const TARGETS = [
  // An open port, a closed port, and an address without a host.
  ...[`https://127.0.0.1:${receiver.port}/secret-path`, `https://127.0.0.1:${closedPort}/`, 'https://10.20.30.40/'],
  ...[`https://${HOST}:${receiver.port}/secret-path`, `https://${HOST}:${closedPort}/secret-path`],
  ...[
    'https://[fd12:3456::1]/',
    'https://[::ffff:10.20.30.40]/',
    'https://localhost/secret-path',
    'https://db.internal/',
  ],
  ...['inside', 'inside6', 'denied', 'mixed', 'half', 'slow'].map((name) => `https://${name}.example.test:8443/`),
  'https://93.184.215.14/',
];

const test = (url: string, headers: Record<string, string> = {}): Promise<Answer> =>
  world.test(key, { url, access_key: 'k' }, { headers });

/** A response without the parts that differ between requests. */
const shape = ({ status, headers, body: { request_id, ...rest } }: Answer) => ({
  status,
  rest,
  headers: [...headers].filter(([name]) => !['x-request-id', 'date'].includes(name)),
});

rule(
  'callback-test.answer 5',
  'For a private target the answer gives the code and tells neither address nor timing.',
  async () => {
    for (const language of ['en', 'zh-CN']) {
      const reference = shape(await test('https://10.0.0.1/', { 'accept-language': language }));
      for (const url of TARGETS) {
        const answer = await test(url, { 'accept-language': language });
        assert.equal(resultOf(answer), '422 callback_private_domain', `${url} ${answer.text}`);
        assert.deepEqual(Object.keys(answer.body).sort(), ['code', 'message', 'request_id'], url);
        assert.deepEqual(shape(answer), reference, `${url} is refused like any other`);
        assert.doesNotMatch(answer.text + JSON.stringify([...answer.headers]), TRACES, url);
      }
    }
    assert.deepEqual(receiver.connections, [], 'no connection was made, although the port is open');
  },
);

rule('callback-test.answer 5', 'For a private target the answer gives the code and tells neither', async () => {
  // Nothing else that callers can read about the service reveals more.
  await app.call('GET', '/openapi/v3/account', { key });
  const from = app.output.length;
  for (const url of TARGETS) await test(url);
  const metrics = (await app.call('GET', '/metrics')).text;
  const printed = app.output.slice(from);
  const lines = printed.split('\n').filter((line) => line.includes('/account/callback/test'));
  assert.ok(lines.length >= TARGETS.length, 'one line for each request');
  const usual = app.output.split('\n').find((line) => line.includes('"/openapi/v3/account"')) ?? '';
  for (const line of lines) {
    assert.equal(JSON.parse(line).code, 'callback_private_domain');
    assert.deepEqual(Object.keys(JSON.parse(line)), Object.keys(JSON.parse(usual)), 'with the fields of every request');
  }
  assert.doesNotMatch(printed, TRACES);
  assert.doesNotMatch(printed, /example\.test|localhost|internal/);
  assert.match(metrics, /route="\/openapi\/v3\/account\/callback\/test",status="422"/);
  // Refusals are counted by their code.
  const others = metrics.replaceAll('code="callback_private_domain"', '');
  assert.doesNotMatch(others, /10\.20\.30\.40|fd12:3456|93\.184|172\.16\.77\.7|example\.test|secret-path|private/);
  // The audit record has the requested target, and nothing about what is there.
  const audit = JSON.stringify(db.prepare('select * from audit').all());
  assert.match(audit, /inside\.example\.test/);
  for (const found of ['fd12:3456', '172.16.77.7']) assert.ok(!audit.includes(found), found);
  assert.deepEqual(receiver.connections, []);
});
