// Cases that once broke: numbers beyond a column, orders without a certificate, keys used twice.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after } from 'node:test';
import { NOON, startApp } from '../support/app.ts';
import { rule } from '../support/contract.ts';
import { body, certificate, newOrder, reissue } from '../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const DAY = 86_400_000;

rule('reissue 32', 'a longer wish is shortened, not refused', async () => {
  for (const days of [1e9, 2 ** 31, 2 ** 53 - 1, 2 ** 53, 1e18, 1e20, 1e300]) {
    const order = await newOrder(app);
    const answer = await reissue(app, order, body({ validity_days: days }));
    assert.equal(answer.status, 200, `${days} ${answer.text}`);
    assert.equal(
      (await app.call('GET', `/openapi/v3/orders/${order.id}`, { key: order.key })).status,
      200,
      `${days}: GET`,
    );
    const { validToDate } = new X509Certificate((await certificate(app, order, answer.body.data.certificate.id)).pem);
    assert.equal(validToDate.getTime(), NOON + 199 * DAY - 1000);
    assert.equal((await reissue(app, order, body())).status, 200, `${days}: the next reissue`);
  }
});

rule('errors order_state_conflict', 'a reissue takes an order that is `issued`', async () => {
  for (const status of ['issuing', 'canceled', 'rejected'] as const) {
    const order = await newOrder(app);
    const stored = await app.app.store.orders.find(order.key.accountId, order.id);
    // As a crash while the first certificate is signed, a cancellation and a rejection leave it: no certificate at all.
    await app.app.store.orders.save({ ...stored!, status, currentCertificateId: null, pendingCertificateId: null });
    for (const query of ['', '?dry_run=true']) {
      const answer = await reissue(app, order, body(), query);
      assert.deepEqual([answer.status, answer.body.code], [409, 'order_state_conflict'], `${status} ${answer.text}`);
      assert.deepEqual(answer.body.details, { status });
    }
  }
});

rule('reissue 41', '`?dry_run=true` makes the same checks and writes nothing', async () => {
  const order = await newOrder(app);
  const headers = { 'Idempotency-Key': 'mine' };
  assert.equal((await reissue(app, order, body(), '', headers)).status, 200);
  for (const query of ['', '?dry_run=true']) {
    const answer = await reissue(app, order, body({ validity_days: 7 }), query, headers);
    assert.deepEqual([answer.status, answer.body.code], [422, 'idempotency_key_reused'], `${query} ${answer.text}`);
  }
});
