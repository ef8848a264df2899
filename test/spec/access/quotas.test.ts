// Quotas, and what an account may have in flight: when it is refused, how it is told, and what it may still do.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { BYTES_PER_CERTIFICATE, MIB } from '../../../src/domain/access/quota.ts';
import { countStorage } from '../../../src/usecases/access/count-storage.ts';
import type { BoundedOperation } from '../../../src/usecases/access/in-flight.ts';
import type { Answer, Key } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { SECOND, startDomainApp } from '../../support/domain-app.ts';
import { reseal } from '../../support/in-process.ts';
import { body, newOrder, reissue } from '../../support/orders.ts';

const LIMITS: Readonly<Record<BoundedOperation, number>> = { placement: 3, dry_run: 2, domain_check: 1 };
const world = await startDomainApp({
  RESEAL_PLACEMENTS_PER_ACCOUNT: String(LIMITS.placement),
  RESEAL_DRY_RUNS_PER_ACCOUNT: String(LIMITS.dry_run),
  RESEAL_CHECKS_PER_ACCOUNT: String(LIMITS.domain_check),
  RESEAL_OPEN_ORDERS_PER_ACCOUNT: '2',
});
after(() => world[Symbol.asyncDispose]());
const { app, newDomain, place } = world;

const ZH = { 'accept-language': 'zh-CN' };
const placeFor = (key: Key, domain = newDomain(), headers = {}): Promise<Answer> =>
  app.call('POST', '/openapi/v3/orders/ssl-dv', { key, headers, json: body({ common_name: domain }) });
const quotasOf = async (key: Key) => (await app.call('GET', '/openapi/v3/account', { key })).body.data.quotas;
const command = async (...args: string[]) => {
  const { code, out, err } = await reseal([...args, '--json'], { RESEAL_DATA_DIR: app.folder });
  return { code, json: JSON.parse(out || err) };
};
/** Adds to the accounts what is old enough. */
async function count(): Promise<void> {
  app.advance(6 * 60 * SECOND);
  await countStorage(app.app.store, app.now);
}
function requireExceeded({ status, body: { code, details, message } }: Answer, quota: string): string {
  assert.deepEqual([status, code, details?.quota], [403, 'quota_exceeded', quota]);
  assert.ok(details.used >= details.limit);
  return message;
}

rule('quota 1', 'one more is `request_too_fast` with a `Retry-After` header', async () => {
  const [key, other] = [await app.newKey(), await app.newKey()];
  // What is placed here waits.
  for (const { accountId } of [key, other]) await app.app.access.changeQuotas(accountId, { openOrders: 100 });
  const waiting = await place([newDomain()], {}, { key });
  const order = await newOrder(app, {}, key);
  const theirs = await newOrder(app, {}, other);
  const operations: Record<BoundedOperation, (which: 'own' | 'other', headers?: object) => Promise<Answer>> = {
    placement: (which, headers) => placeFor(which === 'own' ? key : other, newDomain(), headers),
    dry_run: (which, headers) => reissue(app, which === 'own' ? order : theirs, body(), '?dry_run=true', headers),
    domain_check: async (which, headers = {}) =>
      which === 'own'
        ? await app.call('GET', `/openapi/v3/orders/${waiting.id}/dcv-check`, { key, headers: { ...headers } })
        : await app.call('PUT', `/openapi/v3/orders/${(await place([newDomain()])).id}/dcv-completed`, { key: other }),
  };
  for (const [operation, call] of Object.entries(operations) as [BoundedOperation, typeof operations.dry_run][]) {
    const held: Disposable[] = [];
    for (let count = 0; count < LIMITS[operation]; count += 1) {
      held.push(await app.app.peers.acquireSlot(operation, key.accountId));
    }
    const refused = await call('own');
    assert.deepEqual([refused.status, refused.body.code], [429, 'request_too_fast'], operation);
    assert.equal(refused.headers.get('retry-after'), '1');
    assert.match((await call('own', ZH)).body.message, /[\u4e00-\u9fff]/);
    // Another account does not feel it; an order that it does not have is no slot.
    assert.notEqual((await call('other')).status, 429, operation);
    held.pop()?.[Symbol.dispose]();
    assert.equal((await call('own')).status, 200, operation);
    // The slot was given back.
    assert.equal((await call('own')).status, 200, operation);
    for (const slot of held) slot[Symbol.dispose]();
  }
});

rule('quota 2', 'an order or a reissue that would wait as well is `quota_exceeded`, also among many', async () => {
  const key = await app.newKey();
  const issued = await newOrder(app, {}, key);
  const answers = await Promise.all([placeFor(key), placeFor(key), placeFor(key)]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 403]);
  assert.match(requireExceeded(await placeFor(key), 'open_orders'), /cancel/);
  assert.match(requireExceeded(await placeFor(key, newDomain(), ZH), 'open_orders'), /[\u4e00-\u9fff]/);
  const wider = body({ dns_names: [newDomain()] });
  requireExceeded(await reissue(app, issued, wider), 'open_orders');
  requireExceeded(await reissue(app, issued, wider, '?dry_run=true'), 'open_orders');
  // Issued at once, and another account.
  assert.equal((await reissue(app, issued, body())).status, 200);
  assert.equal((await placeFor(key, 'www.example.com')).status, 200);
  assert.equal((await placeFor(await app.newKey())).status, 200);
  // One that ends makes room for one.
  const open = answers.find(({ status }) => status === 200)?.body.data.id;
  assert.equal((await app.call('PUT', `/openapi/v3/orders/${open}/cancel`, { key })).status, 200);
  assert.equal((await reissue(app, issued, wider)).status, 200);
  requireExceeded(await placeFor(key), 'open_orders');
});

rule(
  'quota 3',
  'CSR and names of each certificate that was asked for count, and 4 KiB for the rest of it',
  async () => {
    const key = await app.newKey();
    const order = await newOrder(app, {}, key);
    const sent = body();
    assert.equal((await reissue(app, order, sent)).status, 200);
    assert.equal((await placeFor(key)).status, 200);
    assert.equal((await quotasOf(key)).stored_bytes.used, 0, 'not yet');
    await count();
    const { used, limit } = (await quotasOf(key)).stored_bytes;
    assert.equal(limit, 10_240 * MIB);
    const each = BYTES_PER_CERTIFICATE + sent.certificate.csr.length;
    assert.ok(used > 3 * each && used < 3 * (each + 100), String(used));
    await count();
    assert.equal((await quotasOf(key)).stored_bytes.used, used, 'each counts once');

    await app.app.access.changeQuotas(key.accountId, { storedBytes: used });
    for (const answer of [
      await reissue(app, order, body()),
      await reissue(app, order, body(), '?dry_run=true'),
      await placeFor(key, 'www.example.com'),
    ]) {
      assert.match(requireExceeded(answer, 'stored_bytes'), /operator/);
    }
    await app.app.access.changeQuotas(key.accountId, { storedBytes: used + 1 });
    assert.equal((await reissue(app, order, body())).status, 200);
  },
);

rule(
  'quota 4',
  'shows `data.quotas.open_orders` and `data.quotas.stored_bytes`, each with `used` and `limit`',
  async () => {
    const key = await app.newKey();
    const empty = { open_orders: { used: 0, limit: 2 }, stored_bytes: { used: 0, limit: 10_240 * MIB } };
    assert.deepEqual(await quotasOf(key), empty);
    await placeFor(key);
    assert.deepEqual((await quotasOf(key)).open_orders, { used: 1, limit: 2 });
    const { body: changed } = await app.call('PUT', '/openapi/v3/account', { key, json: { name: 'Acme' } });
    assert.deepEqual(changed.data.quotas.open_orders, { used: 1, limit: 2 });
  },
);

rule('quota 5', 'the next request obeys, whichever instance serves it', async () => {
  const key = await app.newKey();
  const id = key.accountId;
  assert.deepEqual((await command('account', 'quota', id)).json.quotas.open_orders.used, 0);
  // By another process than the one that serves.
  const { code, json } = await command('account', 'quota', id, '--open-orders', '0', '--stored-mib', '7');
  assert.equal(code, 0);
  assert.deepEqual([json.quotas.open_orders.limit, json.quotas.stored_bytes.limit], [0, 7 * MIB]);
  assert.deepEqual(await quotasOf(key), json.quotas);
  requireExceeded(await placeFor(key), 'open_orders');
  assert.equal((await placeFor(await app.newKey())).status, 200, 'for it alone');
  await command('account', 'quota', id, '--open-orders', 'default');
  assert.equal((await placeFor(key)).status, 200);
  assert.equal((await quotasOf(key)).stored_bytes.limit, 7 * MIB, 'what is left out stays');
  for (const wrong of ['-1', 'many', '1e3', '9'.repeat(10), '']) {
    assert.equal((await command('account', 'quota', id, `--open-orders=${wrong}`)).code, 2, wrong);
  }
  assert.equal((await command('account', 'quota', 'nobody')).json.error.code, 'account_not_found');
  assert.equal((await command('account', 'quota', 'nobody', '--stored-mib', '1')).json.error.code, 'account_not_found');
  const { entries } = await app.app.store.audit.search({ accountId: id }, { limit: 10 });
  assert.equal(entries.filter(({ action }) => action === 'account:quota_changed').length, 2);
});

rule(
  'quota 6',
  'reads, revokes, cancels and gets the earlier answer for a repeated `Idempotency-Key` as before',
  async () => {
    const key = await app.newKey();
    const order = await newOrder(app, {}, key);
    const open = (await placeFor(key)).body.data.id;
    const once = { 'idempotency-key': 'once' };
    const sent = body();
    const first = await reissue(app, order, sent, '', once);
    await app.app.access.changeQuotas(key.accountId, { openOrders: 0, storedBytes: 0 });
    requireExceeded(await reissue(app, order, sent), 'stored_bytes');
    assert.deepEqual((await reissue(app, order, sent, '', once)).body, first.body);
    const call = (method: string, path: string, json?: unknown) =>
      app.call(method, `/openapi/v3/${path}`, { key, json }).then(({ status }) => status);
    assert.equal(await call('GET', `orders/${order.id}`), 200);
    assert.equal(await call('PUT', `orders/${open}/cancel`), 200);
    const { id } = first.body.data.certificate;
    assert.equal(await call('POST', `certs/${id}/revoke`, { reason: 'superseded' }), 200);
  },
);

rule('errors quota_exceeded', '`details` say which quota, how much is used and the limit', async () => {
  const key = await app.newKey();
  await app.app.access.changeQuotas(key.accountId, { openOrders: 0 });
  const { status, body: answer, headers } = await placeFor(key);
  assert.deepEqual([status, answer.code], [403, 'quota_exceeded']);
  assert.deepEqual(answer.details, { quota: 'open_orders', used: 0, limit: 0 });
  assert.equal(headers.get('retry-after'), null, 'waiting does not help');
});
