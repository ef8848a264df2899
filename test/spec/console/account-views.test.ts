// What pages of the account read beside the operations of the interface.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { startApp } from '../../support/app.ts';
import { signIn, withSession } from '../../support/console.ts';
import { rule } from '../../support/contract.ts';
import { body, newOrder, reissue } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';

const GRACE = { revokes_previous_on_reissue: true, revocation_grace_hours: 72, revocation_may_be_put_off: true };
const app = await startApp({
  RESEAL_PRODUCTS_FILE: productsFile({ ...OWN_PRODUCT, ...GRACE, id: 'grace', csr: 'optional' }),
});
after(() => app[Symbol.asyncDispose]());

const CONSENT = { i_know_will_revoke_last_cert: true };

rule('console 32', 'the order of another account is `order_not_found`', async () => {
  const order = await newOrder(app);
  const other = await newOrder(app, {}, order.key);
  app.advance(1_000);
  await reissue(app, order, body());
  const call = withSession(app, await signIn(app, order.key));
  const { status, body: answer } = await call('GET', `account/orders/${order.id}/audit?limit=1`);
  assert.equal(status, 200);
  assert.deepEqual(
    answer.data.audit.map(({ action }: { action: string }) => action),
    ['order:reissued'],
  );
  const rest = await call('GET', `account/orders/${order.id}/audit?after=${answer.data.next_after}`);
  const text = JSON.stringify(rest.body.data.audit);
  assert.match(text, /order:placed/);
  assert.equal(text.includes(other.id), false, 'what was done to other orders of the account is not listed');
  const foreign = await newOrder(app);
  for (const id of [foreign.id, 'nothing']) {
    const refused = await call('GET', `account/orders/${id}/audit`);
    assert.deepEqual([refused.status, refused.body.code], [404, 'order_not_found']);
  }
});

rule('console 33', 'lists the scheduled revocations of all orders of the account, the next first', async () => {
  const first = await newOrder(app, { product: 'grace' });
  const second = await newOrder(app, { product: 'grace', commonName: 'other.example.com' }, first.key);
  const foreign = await newOrder(app, { product: 'grace' });
  for (const [order, common_name] of [
    [second, 'other.example.com'],
    [first, 'www.example.com'],
    [foreign, 'www.example.com'],
  ] as const) {
    const { status, text } = await reissue(app, order, body({ common_name }, CONSENT));
    assert.equal(status, 200, text);
    app.advance(60_000);
  }
  const call = withSession(app, await signIn(app, first.key));
  const listed = async () => (await call('GET', 'account/revocations')).body.data;
  const { revocations, has_more } = await listed();
  assert.deepEqual(
    revocations.map((one: Record<string, string>) => [one.certificate_id, one.order_id, one.common_name, one.cause]),
    [
      [second.certificateId, second.id, 'other.example.com', 'previous_replaced'],
      [first.certificateId, first.id, 'www.example.com', 'previous_replaced'],
    ],
  );
  assert.equal(has_more, false);
  await call('DELETE', `account/certs/${second.certificateId}/revocation`);
  assert.equal((await listed()).revocations.length, 1);
});

rule('console 34', 'with its `body`, byte for byte as it is sent', async () => {
  const order = await newOrder(app);
  const call = withSession(app, await signIn(app, order.key));
  const { deliveries } = (await call('GET', 'account/account/callback/deliveries')).body.data;
  const { status, body: answer } = await call('GET', `account/account/callback/deliveries/${deliveries[0].id}`);
  assert.equal(status, 200);
  const { body: sent, ...rest } = answer.data.delivery;
  assert.deepEqual(rest, deliveries[0]);
  const row = await app.app.store.deliveries.find(order.key.accountId, String(deliveries[0].id));
  assert.equal(sent, row?.body);
  assert.deepEqual(JSON.parse(String(sent)), {
    ...{ action_type: 'order', action_id: 'order:issued', order_id: order.id, order_status: 'issued' },
    ...{ cert_id: order.certificateId, message: 'The certificate of the order has been issued.' },
  });
  const foreign = withSession(app, await signIn(app, await app.newKey()));
  const refused = await foreign('GET', `account/account/callback/deliveries/${deliveries[0].id}`);
  assert.deepEqual([refused.status, refused.body.code], [404, 'delivery_not_found']);
});
