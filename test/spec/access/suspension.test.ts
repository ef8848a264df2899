// Suspended accounts: what stops, what waits and what goes on.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { byOperator } from '../../../src/usecases/access/audit.ts';
import type { Key } from '../../support/app.ts';
import { startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import {
  advanceAndPoll,
  deliveriesOf,
  newSubscriber,
  receivedAbout,
  waitForCallbacks,
} from '../../support/deliveries.ts';
import { DAY, pendingRowOf, startDomainApp } from '../../support/domain-app.ts';
import { reseal } from '../../support/in-process.ts';
import { type PlacedOrder, show } from '../../support/orders.ts';

const domains = await startDomainApp();
const world = await startCallbackApp();
after(async () => {
  await domains[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});
const { app } = domains;
const ACCOUNT = '/openapi/v3/account';
const statusOf = async ({ key, id }: PlacedOrder) => (await app.app.store.orders.find(key.accountId, id))?.status;

async function command(...args: string[]) {
  const { code, out } = await reseal([...args, '--json'], { RESEAL_DATA_DIR: app.folder });
  return { code, json: JSON.parse(out) };
}

rule('errors account_suspended', 'is 403: the operator has suspended the account', async () => {
  const key = await app.newKey();
  const { code, json } = await command('account', 'suspend', key.accountId, '--reason', 'invoice 4711');
  assert.equal(code, 0);
  const { status, body } = await app.call('GET', ACCOUNT, { key, headers: { 'accept-language': 'zh-CN' } });
  assert.deepEqual([status, body.code], [403, 'account_suspended']);
  assert.match(body.message, /[\u4e00-\u9fff]/);
  // Suspending again keeps the first time.
  app.advance(1);
  const again = await app.app.access.suspendAccount(key.accountId, null);
  assert.equal(again.suspendedAt, Date.parse(json.account.suspended_at));
  assert.equal((await command('account', 'resume', key.accountId)).json.account.suspended_at, null);
  assert.equal((await app.call('GET', ACCOUNT, { key })).status, 200);
  assert.equal((await command('account', 'suspend', 'nobody')).json.error.code, 'account_not_found');
  assert.equal((await command('account', 'resume', 'nobody')).json.error.code, 'account_not_found');
});

rule(
  'suspension 1',
  'only a caller who sends the right secret learns it; with a wrong one the answer is 401',
  async () => {
    const key = await app.newKey();
    const other = await app.anotherKey(key.accountId, 'integration_key');
    await app.app.access.suspendAccount(key.accountId, null);
    const answer = async (one: Key, path = ACCOUNT, method = 'GET') => {
      const { status, body } = await app.call(method, path, { key: one });
      return [status, body.code];
    };
    for (const one of [key, other]) assert.deepEqual(await answer(one), [403, 'account_suspended']);
    // Before routing and permissions.
    assert.deepEqual(await answer(other, `${ACCOUNT}/callback/test`, 'PUT'), [403, 'account_suspended']);
    assert.deepEqual(await answer(key, '/openapi/v3/nowhere'), [403, 'account_suspended']);
    const headers = { authorization: `Basic ${Buffer.from(`${key.keyId}:${key.authKey}`).toString('base64')}` };
    assert.notEqual((await app.call('POST', '/csc/v2/credentials/list', { headers, json: {} })).status, 200);
    assert.deepEqual(await answer({ ...key, authKey: 'wrong' }), [401, 'unauthenticated_request']);
    await app.app.access.disableKey(other.keyId);
    assert.deepEqual(await answer(other), [403, 'api_key_disabled']);
    const unaffected = await app.newKey();
    assert.equal((await app.call('GET', ACCOUNT, { key: unaffected })).status, 200);
  },
);

rule('suspension 2', 'an order whose records are published meanwhile stays pending', async () => {
  const order = await domains.place([domains.newDomain()], { dcv_method: 'dns' });
  const { accountId } = order.key;
  const entries = await domains.entries(order);
  await app.app.access.suspendAccount(accountId, null);
  for (const { auth_path, auth_val } of entries) domains.dns.set(auth_path, 'TXT', [auth_val]);
  // Due checks find the account suspended, now and an hour later.
  for (let round = 0; round < 2; round += 1) {
    const before = await pendingRowOf(app, order);
    assert.ok(before);
    app.advance(Math.max(0, before.dueAt - app.now()));
    await app.issuance.proveDomains.proveDue();
    const row = await pendingRowOf(app, order);
    assert.ok(row && row.dueAt > app.now() && row.tries === before.tries, JSON.stringify(row));
    assert.equal(await statusOf(order), 'domain_verifing');
  }
  const refused = await command('order', 'validate', accountId, order.id);
  assert.equal(refused.json.error.code, 'account_suspended');
  await app.app.access.resumeAccount(accountId);
  await app.issuance.proveDomains.proveDue();
  assert.equal((await show(app, order)).status, 'issued');
});

rule(
  'suspension 2',
  'also if its names were being checked, and is issued after the account is resumed',
  async (context) => {
    const order = await domains.place([domains.newDomain()], { dcv_method: 'dns' });
    const { accountId } = order.key;
    await domains.publish(order);
    const { store, access } = app.app;
    const { transaction } = store;
    // The first transaction records the proofs; the second, after the decision to issue, writes down what is signed.
    let transactions = 0;
    context.mock.method(store, 'transaction', async (work: Parameters<typeof transaction>[0]) => {
      transactions += 1;
      if (transactions === 2) {
        context.mock.restoreAll();
        await access.suspendAccount(accountId, null);
      }
      return await transaction(work);
    });
    const { status, text } = await domains.complete(order);
    assert.equal(status, 200, text);
    assert.equal((await store.accounts.find(accountId))?.suspendedAt, app.now());
    assert.equal(await statusOf(order), 'domain_verifing');
    await access.resumeAccount(accountId);
    await app.issuance.proveDomains.proveDue();
    assert.equal((await show(app, order)).status, 'issued');
  },
);

rule('suspension 3', 'wait, however long that takes, and are sent after it is resumed', async () => {
  const order = await newSubscriber(world);
  const { accountId } = order.key;
  await waitForCallbacks(world, order.certificateId);
  await world.app.app.access.suspendAccount(accountId, null);
  await world.app.issuance.revoke(byOperator(accountId), order.certificateId, { reason: undefined });
  const { dispatcher } = world.app.callbacks;
  await dispatcher.poll();
  for (let day = 0; day < 7; day += 1) await advanceAndPoll(world.app, DAY);
  assert.equal(receivedAbout(world, order.certificateId).length, 1);
  await world.app.app.access.resumeAccount(accountId);
  const [last] = await deliveriesOf(world.app, order.key);
  assert.deepEqual([last?.action, last?.reason], ['order:revoked', null]);
  await dispatcher.poll();
  const [, revoked] = await waitForCallbacks(world, order.certificateId, 2);
  assert.equal(revoked?.body.action_id, 'order:revoked');
});

rule('suspension 4', 'Revocations of a suspended account are carried out, and CRLs and OCSP show them', async () => {
  const order = await newSubscriber(world);
  const { accountId } = order.key;
  await world.app.app.access.suspendAccount(accountId, null);
  await world.app.issuance.revoke(byOperator(accountId), order.certificateId, { reason: undefined });
  const { store } = world.app.app;
  const [serial] = await store.revokedSerials.ofCertificate(order.certificateId);
  assert.ok(serial?.crlNumber !== null, 'it is on a list');
});

rule('suspension 5', 'Disabling a key does not suspend its account', async () => {
  const order = await domains.place([domains.newDomain()], { dcv_method: 'dns' });
  await domains.publish(order);
  await app.app.access.disableKey(order.key.keyId);
  await domains.workerChecks(order);
  assert.equal(await statusOf(order), 'issued');
});
