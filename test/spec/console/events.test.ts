// Server-sent notices of what changes in an account.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { startApp } from '../../support/app.ts';
import { type SignedIn, signIn, withSession } from '../../support/console.ts';
import { rule } from '../../support/contract.ts';
import { newOrder } from '../../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

/** Opens a stream. `until` reads on until a notice matches; `ended` until the service ends it. */
async function open({ cookie }: SignedIn, headers: Record<string, string> = {}) {
  const response = await fetch(`${app.url}/console/api/account/events`, { headers: { cookie, ...headers } });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let [text, at] = ['', 0];
  const next = async (): Promise<Record<string, string> | undefined> => {
    for (;;) {
      const found = /^data: (.*)\n\n/m.exec(text.slice(at));
      if (found) {
        at += found.index + found[0].length;
        return JSON.parse(found[1] ?? '');
      }
      const { value, done } = (await reader?.read()) ?? { done: true };
      if (done) return undefined;
      text += value;
    }
  };
  return {
    response,
    text: () => text,
    async until(type: string) {
      for (let one = await next(); one; one = await next()) if (one.type === type) return one;
      return undefined;
    },
    close: () => reader?.cancel(),
  };
}

rule('console 29', 'sends notices of what changed in the account, as server-sent events', async () => {
  const order = await newOrder(app);
  const own = await signIn(app, order.key);
  const stream = await open(own, { 'last-event-id': '1' });
  assert.equal(stream.response.headers.get('content-type'), 'text/event-stream');
  assert.deepEqual(await stream.until('reconnected'), { type: 'reconnected' });
  // The order of another account first: its notices must not come here.
  const foreign = await newOrder(app);
  await app.call('POST', `/openapi/v3/certs/${order.certificateId}/revoke`, { key: order.key, json: {} });
  assert.deepEqual(await stream.until('certificate:revoked'), {
    ...{ type: 'certificate:revoked', certificate_id: order.certificateId, order_id: order.id },
  });
  assert.equal(stream.text().includes(foreign.id), false);
  assert.equal(stream.text().includes('console:'), false);

  const second = await open(own);
  const third = await open(own);
  assert.deepEqual([second.response.status, third.response.status], [200, 204]);
  // An operation of the account still finds its place while the streams are open.
  assert.equal((await withSession(app, own)('GET', 'account/orders')).status, 200);
  await withSession(app, own)('DELETE', 'session');
  assert.equal(await stream.until('never'), undefined, 'the stream ends with the session');
  assert.equal(await second.until('never'), undefined);
  const refused = await open(own);
  assert.equal(refused.response.status, 401);
});

rule('console 6', 'has the rights of its key and no others', async () => {
  const order = await newOrder(app);
  const own = await signIn(app, await app.anotherKey(order.key.accountId, 'integration_key'));
  assert.equal((await withSession(app, own)('GET', 'account/account/audit')).status, 403);
  const stream = await open(own);
  const told = await stream.until('changed');
  assert.deepEqual(Object.keys(told ?? {}), ['type']);
  await stream.close();
  assert.doesNotMatch(stream.text(), /key:|account:|order:|delivery/);
});

rule('console 102', 'an account holds half of the streams of a process at most', async () => {
  const [key, other] = [await app.newKey(), await app.newKey()];
  const streams: Awaited<ReturnType<typeof open>>[] = [];
  // A key has few sessions, and a session two streams.
  for (let count = 0; count < 8; count += 1) {
    const own = await app.anotherKey(key.accountId, 'standard');
    for (let session = 0; session < 8; session += 1) {
      const signedIn = await signIn(app, own);
      streams.push(await open(signedIn), await open(signedIn));
    }
  }
  assert.ok(streams.every(({ response: { status } }) => status === 200));
  assert.equal((await open(await signIn(app, key))).response.status, 429);
  const theirs = await open(await signIn(app, other));
  assert.equal(theirs.response.status, 200);
  await streams.pop()?.close();
  // A stream that was closed has to be noticed first.
  const again = await signIn(app, key);
  let next = await open(again);
  for (let tries = 0; tries < 100 && next.response.status === 429; tries += 1) next = await open(again);
  assert.equal(next.response.status, 200);
  for (const one of [...streams, theirs, next]) await one.close();
});

rule('console 29', 'until the session ends; a session has two such streams at most', async () => {
  const key = await app.newKey();
  const streams = [await open(await signIn(app, key)), await open(await signIn(app, key))];
  await app.app.access.disableKey(key.keyId);
  for (const stream of streams) assert.equal(await stream.until('never'), undefined, 'it ends with the key');
  // A service that stops does not wait for readers.
  const last = await open(await signIn(app, await app.newKey()));
  const ended = last.until('never');
  await app.stop();
  assert.equal(await ended, undefined);
});
