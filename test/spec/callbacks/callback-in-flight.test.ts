// How many tests may be in flight: per account, per host, and in total. A caller beyond the cap is refused at once
// without cost, and admitted again when a test has ended, however it ended.
import assert from 'node:assert/strict';
import type net from 'node:net';
import type { Environment } from '../../../src/config/config.ts';
import type { Answer, Key } from '../../support/app.ts';
import { type CallbackApp, resultOf, startCallbackApp, TEST } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { RawConnection } from '../../support/raw-http.ts';
import { OK, respond } from '../../support/receiver.ts';

const ELSEWHERE = 'elsewhere.example.test';

/** A receiver that answers on demand, and a second one under another name that answers at once. */
async function startSlow(environment: Environment) {
  const world = await startCallbackApp(environment);
  const { outside, receiver } = world;
  outside.dns.set(ELSEWHERE, 'A', ['127.0.0.1']);
  const elsewhere = await outside.receiver({ identity: outside.ca.identity([ELSEWHERE]) });
  const waiting: net.Socket[] = [];
  receiver.script = (socket) => waiting.push(socket);
  return {
    ...world,
    here: { url: world.url(), access_key: 'k' },
    there: { url: `https://${ELSEWHERE}:${elsewhere.port}/`, access_key: 'k' },
    /** Resolves when the receiver has the request. */
    async begin(key: Key): Promise<{ readonly ended: Promise<Answer> }> {
      const count = receiver.requests.length + 1;
      const ended = world.test(key, { url: world.url(), access_key: 'k' });
      const early = await Promise.race([receiver.received(count), ended]);
      assert.equal(early, undefined, early?.text);
      return { ended };
    },
    /** Answers all pending and later requests. */
    release(answer = OK): void {
      receiver.script = respond(answer);
      for (const socket of waiting.splice(0)) socket.end(answer);
    },
    hold(): void {
      receiver.script = (socket) => waiting.push(socket);
    },
  };
}

const OWN = '429 request_too_fast';
const BUSY = '503 service_busy';

/** Names the limit, not only the code: `request_too_fast` is also that of the rate. */
const REASONS: Readonly<Record<string, RegExp>> = {
  [OWN]: /for this account as may be at once/,
  [BUSY]: /in the service/,
};

interface Refused {
  readonly key: Key;
  readonly json: unknown;
  readonly expected: string;
}

async function requireRefused({ test }: CallbackApp, { key, json, expected }: Refused, what: string): Promise<void> {
  const answer = await test(key, json);
  assert.equal(resultOf(answer), expected, `${what} ${answer.text}`);
  assert.match(answer.body.message, REASONS[expected] ?? /^$/);
  assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
  assert.equal(answer.body.details, undefined);
}

interface Cap {
  readonly name: string;
  readonly expected: string;
  /** Whether another account, or another host, is subject to the cap too. */
  readonly isSharedBy: { readonly account: boolean; readonly host: boolean };
}
const CAPS: readonly Cap[] = [
  { name: 'RESEAL_CALLBACK_TESTS_PER_ACCOUNT', expected: OWN, isSharedBy: { account: false, host: true } },
  { name: 'RESEAL_CALLBACK_TESTS_PER_HOST', expected: BUSY, isSharedBy: { account: true, host: false } },
  { name: 'RESEAL_CALLBACK_TESTS_AT_ONCE', expected: BUSY, isSharedBy: { account: true, host: true } },
];

for (const { name, expected, isSharedBy } of CAPS) {
  rule(
    'callback-test 19',
    'for the account are `request_too_fast`, too many for the host or the whole service are',
    async () => {
      await using world = await startSlow({ [name]: '1' });
      const { app, receiver, here, there } = world;
      const [key, other] = [await app.newKey(), await app.newKey()];
      const { ended } = await world.begin(key);
      const before = [receiver.connections.length, world.outside.dns.queries.length];
      await requireRefused(world, { key, json: here, expected }, 'the same account, the same host');
      assert.deepEqual([receiver.connections.length, world.outside.dns.queries.length], before, 'no call was made');

      if (isSharedBy.host) await requireRefused(world, { key, json: there, expected }, 'another host');
      else assert.equal(resultOf(await world.test(key, there)), '200 success', 'another host');
      if (isSharedBy.account && isSharedBy.host)
        await requireRefused(world, { key: other, json: there, expected }, 'another account and host');
      else assert.equal(resultOf(await world.test(other, there)), '200 success', 'another account and host');
      if (isSharedBy.account) {
        for (const url of [here.url, here.url.toUpperCase()])
          await requireRefused(world, { key: other, json: { ...here, url }, expected }, url);
      }
      // Requests that need no slot keep their own response: nothing is called for them.
      assert.equal(resultOf(await world.test(key, { ...here, url: 'http://x/' })), '400 callback_url_not_https url');

      world.release();
      assert.equal(resultOf(await ended), '200 success');
      for (const free of [key, other, key])
        assert.equal(resultOf(await world.test(free, here)), '200 success', 'a slot is free again');
    },
  );
}

rule('callback-test 19', 'both have a `Retry-After` header and cost no token of the rate', async () => {
  await using world = await startSlow({ RESEAL_CALLBACK_TESTS_PER_ACCOUNT: '1', RESEAL_CALLBACK_TEST_RATE: '2/min' });
  const { app, here } = world;
  const key = await app.newKey();
  const first = await world.begin(key);
  for (let tries = 0; tries < 5; tries += 1)
    await requireRefused(world, { key, json: here, expected: OWN }, 'a token is left');
  world.release();
  assert.equal(resultOf(await first.ended), '200 success');
  world.hold();
  // A refusal costs nothing: the second of two tokens is still there.
  const second = await world.begin(key);
  await requireRefused(world, { key, json: here, expected: OWN }, 'and also when no token is left');
  world.release();
  assert.equal(resultOf(await second.ended), '200 success');
  assert.equal(resultOf(await world.test(key, here)), '429 request_too_fast');
});

rule('callback-test 19', 'for the host or the whole service are `service_busy`', async () => {
  // However a test ends, its slot is freed.
  await using world = await startSlow({ RESEAL_CALLBACK_TESTS_AT_ONCE: '1', RESEAL_CALLBACK_TEST_RATE: '2/h' });
  const { app, outside, receiver, here } = world;
  outside.dns.set('private.example.test', 'A', ['10.0.0.1']);
  const unanswered = await outside.receiver({ script: (socket) => socket.destroy() });
  world.release();
  const endings = [
    [here, '200 success'],
    [{ ...here, url: 'https://missing.example.test/' }, '422 callback_send_error'],
    [{ ...here, url: 'https://private.example.test/' }, '422 callback_private_domain'],
    [{ ...here, url: world.url().replace(`${receiver.port}`, `${unanswered.port}`) }, '422 callback_send_error'],
  ] as const;
  for (const [json, expected] of endings) assert.equal(resultOf(await world.test(await app.newKey(), json)), expected);
  const spent = await app.newKey();
  for (let token = 0; token < 2; token += 1) assert.equal(resultOf(await world.test(spent, here)), '200 success');
  for (let tries = 0; tries < 3; tries += 1)
    assert.equal(resultOf(await world.test(spent, here)), '429 request_too_fast');
  world.release('HTTP/1.1 500 X\r\n\r\n');
  assert.equal(resultOf(await world.test(await app.newKey(), here)), '422 callback_response_not_200');

  world.hold();
  const key = await app.newKey();
  const leaving = await RawConnection.to(app.url);
  const body = JSON.stringify(here);
  const count = receiver.requests.length + 1;
  leaving.write(
    `PUT ${TEST} HTTP/1.1\r\nHost: x\r\nX-CC-Key-ID: ${key.keyId}\r\nX-CC-Auth-Key: ${key.authKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await receiver.received(count);
  await requireRefused(world, { key: await app.newKey(), json: here, expected: BUSY }, 'while the first is in flight');
  const lines = app.lines.length;
  leaving.end();
  // The caller has disconnected, so the call is aborted too.
  await receiver.deserted();
  world.release();
  assert.equal(resultOf(await world.test(await app.newKey(), here)), '200 success');
  const aborted = app.lines.slice(lines).find((line) => line.event === 'request' && line.status === 499);
  assert.ok(aborted, 'which is logged');
});

rule('callback-test 19', 'Too many tests in flight for the account are `request_too_fast`', async () => {
  // Of concurrent tests, exactly the cap is admitted.
  await using world = await startSlow({ RESEAL_CALLBACK_TESTS_PER_ACCOUNT: '4' });
  const { app, receiver, here } = world;
  const key = await app.newKey();
  const answers: string[] = [];
  const { promise: areRefused, resolve } = Promise.withResolvers<void>();
  const calls = Array.from({ length: 9 }, async () => {
    answers.push(resultOf(await world.test(key, here)));
    if (answers.length === 5) resolve();
  });
  await Promise.all([receiver.received(4), areRefused]);
  assert.deepEqual(answers, Array(5).fill(OWN));
  assert.equal(receiver.connections.length, 4);
  world.release();
  await Promise.all(calls);
  assert.deepEqual(answers.slice(5), Array(4).fill('200 success'));
});
