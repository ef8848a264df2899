// Concurrent callers of one account, on both engines, and on PostgreSQL through two instances: the rate is enforced
// exactly, and one signing secret is created.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { cpSync } from 'node:fs';
import { after } from 'node:test';
import pg from 'pg';
import { randomBytes } from '../../../src/adapters/seal/random.ts';
import type { DatabaseLocation } from '../../../src/adapters/store/store.ts';
import type { Environment } from '../../../src/config/config.ts';
import { configureCallback } from '../../../src/usecases/callbacks/configure-callback.ts';
import { type Answer, type Key, newFolder, startApp, TestApp } from '../../support/app.ts';
import { callbackIn, environmentFor, resultOf, SETTINGS, TEST } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { bothEngines } from '../../support/engines.ts';
import { HOST, Outside } from '../../support/outside.ts';
import { OK } from '../../support/receiver.ts';

const outside = await Outside.open();
after(() => outside[Symbol.asyncDispose]());
const receiver = await outside.receiver({
  script: (socket, request) => socket.end(request.startsWith('POST /500') ? 'HTTP/1.1 500 X\r\n\r\n' : OK),
});
const url = (path = '/') => `https://${HOST}:${receiver.port}${path}`;
const GOOD = { url: url(), access_key: 'k' };
outside.dns.set('private.example.test', 'A', ['10.0.0.1']);
const WIDE = {
  ...environmentFor(outside),
  ...{ RESEAL_CALLBACK_TESTS_PER_ACCOUNT: '100', RESEAL_CALLBACK_TESTS_PER_HOST: '100' },
};

const environmentAt = (location: DatabaseLocation): Environment =>
  location.kind === 'postgresql' ? { ...WIDE, RESEAL_DATABASE_URL: location.url } : WIDE;
async function started(environment: Environment): Promise<TestApp> {
  const app = await startApp(environment);
  after(() => app[Symbol.asyncDispose]());
  return app;
}
/** A second instance on the same database, with the keys of the first. */
async function startedBeside(one: TestApp, environment: Environment): Promise<TestApp> {
  const two = new TestApp(newFolder());
  cpSync(one.folder, two.folder, { recursive: true, filter: (file) => !file.includes('lock') });
  await two.start(environment);
  after(() => two[Symbol.asyncDispose]());
  return two;
}

const tested = (app: TestApp, key: Key, json: unknown = GOOD): Promise<Answer> => app.call('PUT', TEST, { key, json });
const saved = (app: TestApp, key: Key, json: unknown): Promise<Answer> => app.call('PUT', SETTINGS, { key, json });

/** How many tests pass before the first refusal, and the Retry-After of that refusal. */
async function tokens(
  app: TestApp,
  key: Key,
  json: unknown = GOOD,
): Promise<[passed: number, retryAfter: string | null]> {
  for (let passed = 0; passed < 50; passed += 1) {
    const before = receiver.connections.length;
    const answer = await tested(app, key, json);
    if (answer.status === 200) continue;
    assert.equal(resultOf(answer), '429 request_too_fast', answer.text);
    assert.equal(receiver.connections.length, before, 'no call was made');
    return [passed, answer.headers.get('retry-after')];
  }
  throw new Error('there is no limit');
}

const ENGINES = await Promise.all(
  (await bothEngines()).map(async ({ name, newLocation }) => {
    const environment = environmentAt(await newLocation());
    const one = await started(environment);
    // A SQLite file has one instance.
    const two = name === 'postgresql' ? await startedBeside(one, environment) : one;
    return { name, environment, one, two };
  }),
);

for (const { name, environment, one, two } of ENGINES) {
  rule('limit rate', 'By default an account has ten callback tests at once and ten more for each minute', async () => {
    const key = await one.newKey();
    assert.deepEqual(await tokens(one, key), [10, '6'], name);
    assert.deepEqual(await tokens(two, key), [0, '6'], 'counted across instances');
    const bothAdvance = (ms: number) => {
      one.advance(ms);
      if (two !== one) two.advance(ms);
    };
    bothAdvance(2_500);
    assert.deepEqual(await tokens(two, key), [0, '4'], 'a refusal does not extend the wait');
    bothAdvance(3_499);
    assert.deepEqual(await tokens(one, key), [0, '1']);
    bothAdvance(1);
    assert.deepEqual(await tokens(two, key), [1, '6'], 'one more after six seconds');
    bothAdvance(30_000);
    assert.deepEqual(await tokens(one, key), [5, '6']);
    bothAdvance(60_000);
    assert.deepEqual(await tokens(one, key), [10, '6'], 'ten more per minute');
    bothAdvance(24 * 3_600_000);
    assert.deepEqual(await tokens(two, key), [10, '6'], 'and never more than ten at once');
  });

  rule('limit rate', '(`RESEAL_CALLBACK_TEST_RATE`), counted over all instances on one store', async () => {
    for (let round = 0; round < 2; round += 1) {
      const key = await one.newKey();
      const before = receiver.requests.length;
      const calls = Array.from({ length: 50 }, (_, index) => tested(index % 2 === 0 ? one : two, key));
      const answers = (await Promise.all(calls)).map(resultOf);
      const passed = answers.filter((answer) => answer === '200 success').length;
      const refused = answers.filter((answer) => answer === '429 request_too_fast').length;
      assert.deepEqual([passed, refused], [10, 40], `${name}: ${[...new Set(answers)]}`);
      assert.equal(receiver.requests.length, before + 10);
    }
  });

  rule(
    'limit rate',
    'ten callback tests at once and ten more for each minute (`RESEAL_CALLBACK_TEST_RATE`)',
    async () => {
      // A rate that does not divide its minute, on each engine.
      for (const [rate, count, retryAfter] of [
        ['7/min', 7, '9'],
        ['1/h', 1, '3600'],
        ['3/s', 3, '1'],
      ] as const) {
        const changed = { ...environment, RESEAL_CALLBACK_TEST_RATE: rate };
        await using app = name === 'sqlite' ? await startApp(changed) : await startedBeside(one, changed);
        const key = await app.newKey();
        assert.deepEqual(await tokens(app, key), [count, retryAfter], `${name} ${rate}`);
      }
    },
  );

  rule('callback-test 7', 'Tests are limited in rate for each account by itself.', async () => {
    const [key, other] = [await one.newKey(), await one.newKey()];
    assert.deepEqual(await tokens(one, key), [10, '6']);
    const second = await one.anotherKey(key.accountId, 'standard');
    assert.deepEqual(await tokens(one, second), [0, '6'], 'per account, with any of its keys');
    assert.deepEqual(await tokens(two, other), [10, '6'], `another account is not affected (${name})`);
  });

  rule('errors request_too_fast', '`request_too_fast` is 429 with a `Retry-After` header', async () => {
    const key = await one.newKey();
    await tokens(one, key);
    const answer = await one.call('PUT', TEST, { key, json: GOOD, headers: { 'accept-language': 'zh-CN' } });
    assert.deepEqual(
      [answer.status, answer.body.code, answer.headers.get('retry-after')],
      [429, 'request_too_fast', '6'],
    );
    assert.deepEqual(Object.keys(answer.body).sort(), ['code', 'message', 'request_id']);
    assert.match(answer.body.message, /\p{Script=Han}/u);
    one.advance(Number(answer.headers.get('retry-after')) * 1_000);
    assert.equal(resultOf(await tested(one, key)), '200 success', 'a caller that waits as told is admitted');
  });

  rule('callback-test 14', 'one refused before that costs none', async () => {
    const key = await one.newKey();
    const integration = await one.anotherKey(key.accountId, 'integration_key');
    const asJson = (raw: string) =>
      one.call('PUT', TEST, { key, raw, headers: { 'content-type': 'application/json' } });
    const refusals: readonly (readonly [expected: string, ask: () => Promise<Answer>])[] = [
      ['401 unauthenticated_request', () => tested(one, { ...key, authKey: 'wrong' })],
      ['403 permission_denied', () => tested(one, integration)],
      ['400 invalid_parameters', () => asJson('{')],
      ['400 invalid_parameters', () => asJson('null')],
      ['400 invalid_parameters url', () => tested(one, key, { ...GOOD, url: 5 })],
      ['400 invalid_parameters access_key', () => tested(one, key, { ...GOOD, access_key: ' ' })],
      ['400 invalid_callback_url url', () => tested(one, key, { ...GOOD, url: 'https://a b/' })],
      ['400 invalid_callback_url access_key', () => tested(one, key, { ...GOOD, access_key: 'k'.repeat(257) })],
      ['400 callback_url_not_https url', () => tested(one, key, { ...GOOD, url: 'http://example.com/' })],
      ['400 callback_not_configured', () => tested(one, key, {})],
      ['422 callback_private_domain', () => tested(one, key, { ...GOOD, url: 'https://10.0.0.1/' })],
      ['422 callback_private_domain', () => tested(one, key, { ...GOOD, url: 'https://[fe80::1]/' })],
    ];
    for (const [expected, ask] of refusals) {
      const answers = await Promise.all(Array.from({ length: 11 }, ask));
      for (const answer of answers) assert.equal(resultOf(answer), expected);
    }
    assert.deepEqual(await tokens(one, key), [10, '6'], name);

    const managed = await one.newKey({ kind: 'managed_pki' });
    const { store, newId } = one.app;
    const policyFor = () => ({ allow: [], deny: [], totalMs: 10_000 });
    const operator = configureCallback({ store, now: one.now, newId, randomBytes, policyFor, overlapMs: 0 });
    await operator.save({ accountId: managed.accountId, actor: 'cli', requestId: null }, GOOD);
    for (let times = 0; times < 11; times += 1) assert.equal((await tested(one, managed)).status, 403);
    assert.deepEqual(await tokens(one, managed, {}), [10, '6'], 'nor does the managed-PKI rule');
  });

  rule(
    'callback-test 14',
    'A test costs a token of the rate when it is about to resolve a name or connect',
    async () => {
      const costly = [
        [GOOD, '200 success'],
        [{ ...GOOD, url: url('/500') }, '422 callback_response_not_200'],
        [{ ...GOOD, url: 'https://missing.example.test/' }, '422 callback_send_error'],
        [{ ...GOOD, url: 'https://private.example.test/' }, '422 callback_private_domain'],
        [{ ...GOOD, url: 'https://127.0.0.1:1/' }, '422 callback_send_error'],
      ] as const;
      for (const [json, expected] of costly) {
        const key = await one.newKey();
        for (let times = 0; times < 3; times += 1) assert.equal(resultOf(await tested(one, key, json)), expected);
        assert.deepEqual(await tokens(one, key), [7, '6'], `${name}: ${expected}`);
      }
    },
  );

  rule('callback-settings 5', 'is shown once, when it is made', async () => {
    for (let round = 0; round < 3; round += 1) {
      const key = await one.newKey();
      const calls = Array.from({ length: 12 }, (_, index) =>
        saved(index % 2 === 0 ? one : two, key, { url: url(`/${index}`), access_key: `key-${index}` }),
      );
      const answers = await Promise.all(calls);
      for (const answer of answers) assert.equal(resultOf(answer), '200 success', answer.text);
      const secrets = answers.flatMap(({ body }) => body.data.callback.signing_secret ?? []);
      assert.equal(secrets.length, 1, `${name}: returned to exactly one of the concurrent first saves`);

      assert.equal(resultOf(await tested(two, key, {})), '200 success');
      const { line, headers, text } = callbackIn(receiver);
      const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
      const hmac = createHmac('sha256', Buffer.from(secrets[0].slice('whsec_'.length), 'base64'));
      assert.equal(
        headers['webhook-signature'],
        `v1,${hmac.update(signed).digest('base64')}`,
        'and it is the one that signs',
      );
      const [, index] = /^POST \/(\d+) /.exec(line) ?? [];
      assert.equal(headers['x-cc-callback-auth'], `key-${index}`, 'url and access_key are of the same request');
    }
  });
}

const [, { one, two, environment }] = ENGINES as [unknown, (typeof ENGINES)[number]];

/** Resolves when `count` sessions of the database wait for a lock. */
async function waiting(client: pg.Client, count: number): Promise<void> {
  const sql = `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  for (let polls = 0; polls < 10_000; polls += 1) if ((await client.query(sql)).rows[0].n >= count) return;
  throw new Error(`fewer than ${count} wait`);
}

rule(
  'callback-settings 1',
  '`GET`, `PUT` and `DELETE` on `/openapi/v3/account/callback` show, save and delete',
  async () => {
    // The result of two concurrent requests equals that of a serial order. The row is locked until both wait for it.
    const client = new pg.Client({ connectionString: environment.RESEAL_DATABASE_URL });
    await client.connect();
    try {
      for (const [first, expected] of [
        [(key: Key) => saved(one, key, { url: url('/new'), access_key: 'new' }), '/new new'],
        [(key: Key) => one.call('DELETE', SETTINGS, { key }), 'nothing'],
      ] as const) {
        const key = await one.newKey();
        await saved(one, key, { url: url('/old'), access_key: 'old' });
        await client.query('begin');
        await client.query('select 1 from callback_settings where account_id = $1 for update', [key.accountId]);
        const changed = first(key);
        await waiting(client, 1);
        const paused = saved(two, key, { disabled: true });
        await waiting(client, 2);
        await client.query('commit');
        const [{ status }, second] = await Promise.all([changed, paused]);
        assert.equal(status, 200);
        const settings = await one.app.store.callbacks.find(key.accountId);
        const left = settings ? `${new URL(settings.url).pathname} ${settings.accessKey.reveal()}` : 'nothing';
        assert.equal(left, expected, `after ${resultOf(second)}`);
      }
    } finally {
      await client.query('rollback');
      await client.end();
    }
  },
);
