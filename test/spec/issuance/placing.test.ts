// Placements that were written down and never finished. The trigger stands for a crash between the two writes.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import { SIGNING_LEASE_MS } from '../../../src/domain/issuance/ports.ts';
import { DAY_MS } from '../../../src/kernel/durations.ts';
import { type Key, startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { body, newOrder } from '../../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const database = new DatabaseSync(join(app.folder, 'reseal.db'), { timeout: 5_000 });
after(() => database.close());

const place = (key: Key, alternativeId: string) =>
  app.call('POST', '/openapi/v3/orders/ssl-dv', { key, json: body({}, { alternative_order_id: alternativeId }) });
const find = async (key: Key, alternativeId: string) =>
  (await app.call('GET', `/openapi/v3/orders/alternate/${alternativeId}`, { key })).body;

/** Returns the order as it was written down. */
async function crashWhilePlacing(key: Key, alternativeId: string) {
  database.exec("create trigger no_events before insert on outbox begin select raise(abort, 'crash'); end");
  assert.equal((await place(key, alternativeId)).status, 500);
  database.exec('drop trigger no_events');
  const { data } = await find(key, alternativeId);
  assert.equal(data.status, 'issuing');
  return data as { id: string };
}

rule('placing 1', 'it ends as `canceled` without an event, and its `alternative_order_id` is free again', async () => {
  const { key } = await newOrder(app);
  const { accountId } = key;
  const lost = await crashWhilePlacing(key, 'shop-1');
  app.advance(SIGNING_LEASE_MS);
  assert.equal(await app.issuance.sweep(), 1);
  assert.equal((await find(key, 'shop-1')).code, 'order_not_found');
  const { data: left } = (await app.call('GET', `/openapi/v3/orders/${lost.id}`, { key })).body;
  assert.deepEqual([left.status, left.alternative_order_id, left.certificate_id], ['canceled', null, null]);
  assert.deepEqual(database.prepare('select * from outbox where order_id = ?').all(lost.id), []);
  const entry = (await app.app.store.audit.listOf(accountId, { limit: 50 })).at(-1);
  assert.deepEqual([entry?.actor, entry?.action, entry?.subject], ['service', 'order:lapsed', lost.id]);
  assert.equal(entry?.details.alternative_order_id, 'shop-1', 'what it was called is still known');
  const { status, body: answer } = await place(key, 'shop-1');
  assert.equal(status, 200);
  assert.notEqual(answer.data.id, lost.id);
  assert.deepEqual(((data) => [data.id, data.status])((await find(key, 'shop-1')).data), [answer.data.id, 'issued']);
});

rule('placing 1', 'its serial number is never used again, and stays revocable', async () => {
  const { key } = await newOrder(app);
  const lost = await crashWhilePlacing(key, 'shop-2');
  const written = database.prepare('select * from signing where order_id = ?').get(lost.id);
  app.advance(SIGNING_LEASE_MS);
  assert.equal((await place(key, 'shop-2')).status, 200, 'the sweep is not needed');
  const serials = database.prepare('select id, state from certificate where serial = ?').all(written!.serial as string);
  assert.deepEqual(
    serials.map(({ id, state }) => [id, state]),
    [[written!.certificate_id, 'voided']],
  );
  const isListed = async () =>
    (await app.issuance.interrupted.list()).some(({ certificateId }) => certificateId === written!.certificate_id);
  assert.ok(await isListed());
  await app.issuance.interrupted.revoke();
  assert.equal(await isListed(), false);
});

rule('placing 2', 'waits for the outcome of a placement in progress under that id', async () => {
  const { key } = await newOrder(app);
  const lost = await crashWhilePlacing(key, 'shop-3');
  let isAnswered = false;
  const again = place(key, 'shop-3').finally(() => (isAnswered = true));
  for (const _ of [1, 2, 3]) assert.equal((await find(key, 'shop-3')).data.id, lost.id);
  assert.equal(isAnswered, false, 'the lease lasts');
  app.advance(SIGNING_LEASE_MS);
  assert.equal((await again).status, 200);
});

rule('placing 2', 'only that of an order that was issued or waits is `duplicate_alternative_order_id`', async () => {
  const { key } = await newOrder(app);
  const answers = await Promise.all(Array.from({ length: 8 }, () => place(key, 'shop-4')));
  const placed = answers.filter(({ status }) => status === 200);
  assert.equal(placed.length, 1);
  const { id } = placed[0]!.body.data;
  for (const { status, body: answer } of answers.filter((one) => one.status !== 200))
    assert.deepEqual([status, answer.code, answer.details], [409, 'duplicate_alternative_order_id', { order_id: id }]);
  assert.deepEqual(((data) => [data.id, data.status])((await find(key, 'shop-4')).data), [id, 'issued']);
});

const order = body({}, { validity_months: 6 });
const placeWith = (key: Key, once: string, json: unknown = order, product = 'ssl-dv') =>
  app.call('POST', `/openapi/v3/orders/${product}`, { key, json, headers: { 'Idempotency-Key': once } });
const countOrders = async (key: Key) =>
  (await app.call('GET', '/openapi/v3/orders', { key })).body.data.orders.length as number;

rule('placing 6', 'the same key with the same body and product within 24 hours gives the same answer', async () => {
  const proven = (await newOrder(app)).key;
  // One is issued at once, the other waits.
  for (const [key, orders] of [
    [proven, 2],
    [await app.newKey(), 1],
  ] as const) {
    const first = await placeWith(key, 'once', { ...order, alternative_order_id: 'shop' });
    assert.equal(first.status, 200, first.text);
    const { certificate, ...others } = order;
    const reordered = { alternative_order_id: 'shop', ...others, unknown: 1, certificate };
    assert.deepEqual((await placeWith(key, 'once', reordered)).body, first.body, 'and is no duplicate');
    assert.equal(await countOrders(key), orders);
    assert.notEqual((await placeWith(await app.newKey(), 'once')).body.data.id, first.body.data.id);
    app.advance(DAY_MS);
    const later = await placeWith(key, 'once');
    assert.equal(later.status, 200);
    assert.notEqual(later.body.data.id, first.body.data.id);
    assert.deepEqual((await placeWith(key, 'once')).body, later.body, 'the key is the later one now');
  }
});

rule('placing 6', 'also of requests sent at once', async () => {
  for (const key of [(await newOrder(app)).key, await app.newKey()]) {
    const before = await countOrders(key);
    const placed = await Promise.all(Array.from({ length: 8 }, () => placeWith(key, 'at-once')));
    assert.deepEqual([...new Set(placed.map(({ text }) => text))], [placed[0]!.text]);
    assert.equal(placed[0]!.status, 200);
    assert.equal((await countOrders(key)) - before, 1);
  }
});

rule('placing 6', 'with another it is `idempotency_key_reused`', async () => {
  const { key } = await newOrder(app);
  const first = await placeWith(key, 'one');
  const others: readonly (readonly [unknown, string])[] = [
    [{ ...order, validity_months: 5 }, 'ssl-dv'],
    [body({ dns_names: ['b.example.com'] }, { validity_months: 6 }), 'ssl-dv'],
    [order, 'ssl-dv-add'],
    // Refused before the product is looked for.
    [order, 'none'],
  ];
  for (const [json, product] of others) {
    const { status, body: answer } = await placeWith(key, 'one', json, product);
    assert.deepEqual([status, answer.code], [422, 'idempotency_key_reused'], product);
  }
  // A reissue has keys of its own: what the key was used for is no answer to it.
  const { id, certificate } = first.body.data;
  const headers = { 'Idempotency-Key': 'one' };
  const again = await app.call('POST', `/openapi/v3/orders/${id}/reissue`, { key, json: order, headers });
  assert.equal(again.status, 200);
  assert.notEqual(again.body.data.certificate.id, certificate.id);
});

rule('placing 7', 'The `Idempotency-Key` of a placement that was refused or interrupted is unused', async () => {
  const { key } = await newOrder(app);
  assert.equal((await placeWith(key, 'again', {})).status, 400);
  assert.equal((await placeWith(key, 'again', order, 'none')).status, 404);
  database.exec("create trigger no_events before insert on outbox begin select raise(abort, 'crash'); end");
  assert.equal((await placeWith(key, 'again')).status, 500);
  database.exec('drop trigger no_events');
  const written = database.prepare('select order_id from placement_key where key = ?').get('again');
  let isAnswered = false;
  const again = placeWith(key, 'again').finally(() => (isAnswered = true));
  for (const _ of [1, 2, 3]) await countOrders(key);
  assert.equal(isAnswered, false, 'the lease lasts');
  app.advance(SIGNING_LEASE_MS);
  const { status, body: answer } = await again;
  assert.equal(status, 200);
  assert.notEqual(answer.data.id, written?.order_id);
  assert.deepEqual((await placeWith(key, 'again')).body, answer);
});
