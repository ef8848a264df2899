// The status of an order: values, transitions, and what each status forbids.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { ORDER_STATUSES, type OrderStatus, requireTransition } from '../../../src/domain/certificate/order.ts';
import { CONTRACT, rule } from '../../support/contract.ts';
import { body, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';
import { HAN, startWatchedApp } from '../../support/watched-app.ts';

const { app, requireAnswered } = await startWatchedApp();

const NEW = 'new.example.com';

/** Puts an order into a state that no operation leads to yet. */
async function put({ key, id }: PlacedOrder, status: OrderStatus): Promise<void> {
  const order = await app.app.store.orders.find(key.accountId, id);
  await app.app.store.orders.save({ ...order!, status });
}

rule('order 5', 'whose certificate has been issued, with nothing pending, is `issued`', async () => {
  const order = await newOrder(app);
  const facts = async () => {
    const { status, pending_certificate_id, certificate_id } = await show(app, order);
    return [status, pending_certificate_id, certificate_id];
  };
  assert.deepEqual(await facts(), ['issued', null, order.certificateId]);
  const second = await requireAnswered(order, body());
  assert.deepEqual(await facts(), ['issued', null, second]);
  const pending = await requireAnswered(order, body({ dns_names: [NEW] }));
  assert.deepEqual(await facts(), ['reissuing', pending, second], 'something is pending');
  const waiting = await newOrder(app, { vouches: false });
  assert.notEqual((await show(app, waiting)).status, 'issued');
});

rule(
  'order 6',
  '`domain_verifing` (the spelling existing clients know), `issuing`, `issued`, `reissuing`, `revoked`, `canceled`, `expired` and `rejected`',
  async () => {
    const named = [...(CONTRACT.get('order 6') ?? '').matchAll(/`([a-z_]+)`/g)].map(([, status]) => status);
    assert.deepEqual([...ORDER_STATUSES], named);
    assert.equal((await show(app, await newOrder(app, { vouches: false }))).status, 'domain_verifing');
    const order = await newOrder(app);
    for (const status of ORDER_STATUSES) {
      await put(order, status);
      assert.equal((await show(app, order)).status, status);
      const [row] = (await app.call('GET', '/openapi/v3/orders', { key: order.key })).body.data.orders;
      assert.equal(row.status, status);
    }
    // No other value can be stored either.
    await assert.rejects(put(order, 'active' as OrderStatus));
    assert.equal((await show(app, order)).status, 'rejected');
  },
);

/** The table of the decision record, row by row. */
function recordedTransitions(): Map<string, string[]> {
  const record = readFileSync(
    new URL('../../../docs/adr/0007-orders-certificates-and-ids.md', import.meta.url),
    'utf8',
  );
  const words = (cell = '') => [...cell.matchAll(/`([a-z_]+)`|\((placed)\)/g)].map(([, a, b]) => a ?? b ?? '');
  const cells = record.split('\n').flatMap((line) => (/^\| [`(]/.test(line) ? [line.split('|')] : []));
  return new Map(cells.flatMap(([, from, to]) => words(from).map((word) => [word, words(to)] as const)));
}

rule('order 7', 'changes only along the transitions that the table of its decision record lists', async () => {
  const recorded = recordedTransitions();
  assert.deepEqual([...recorded.keys()].sort(), ['placed', ...ORDER_STATUSES].sort());
  for (const from of ORDER_STATUSES) {
    for (const to of ORDER_STATUSES) {
      const isListed = recorded.get(from)?.includes(to);
      if (isListed) assert.doesNotThrow(() => requireTransition(from, to));
      else assert.throws(() => requireTransition(from, to), { code: 'order_state_conflict' }, `${from} → ${to}`);
    }
  }
  // The operations follow the table: in every status, each kind of reissue.
  const consents = { i_know_remove_domain_will_revoke_before_cert: true };
  for (const from of ORDER_STATUSES) {
    for (const change of [{}, { dns_names: [NEW] }, { dns_names: [] }, { sign_hash: 'md5' }]) {
      const order = await newOrder(app, { dnsNames: ['example.com'] });
      await put(order, from);
      const before = await show(app, order);
      const answer = await reissue(app, order, body(change, consents));
      const now = await show(app, order);
      assert.ok(now.status === from || recorded.get(from)?.includes(now.status), `${from} → ${now.status}`);
      if (from === 'issued') continue;
      assert.ok([400, 409].includes(answer.status), answer.text);
      assert.deepEqual(now, before);
    }
  }
  for (const [vouches, status] of [
    [true, 'issued'],
    [false, 'domain_verifing'],
  ] as const) {
    assert.equal((await show(app, await newOrder(app, { vouches }))).status, status);
  }
});

rule(
  'errors order_state_conflict',
  'the status of the order does not allow the operation; a reissue takes an order that is `issued`',
  async () => {
    for (const status of ORDER_STATUSES) {
      if (status === 'issued' || status === 'reissuing') continue;
      const order = await newOrder(app);
      await put(order, status);
      const before = await show(app, order);
      for (const query of ['', '?dry_run=true']) {
        for (const language of ['en', 'zh-CN']) {
          const answer = await reissue(app, order, body(), query, { 'accept-language': language });
          assert.deepEqual([answer.status, answer.body.code], [409, 'order_state_conflict'], status);
          assert.deepEqual(answer.body.details, { status });
          assert.ok(answer.body.message.includes(status));
          assert.equal(HAN.test(answer.body.message), language === 'zh-CN');
        }
      }
      assert.deepEqual(await show(app, order), before);
      assert.equal((await app.app.store.certificates.listLast(order.key.accountId, order.id, 9)).length, 1);
    }
    // As a lost signer, a cancellation or a rejection leaves it: without a certificate.
    for (const status of ['issuing', 'canceled', 'rejected'] as const) {
      const order = await newOrder(app);
      const stored = await app.app.store.orders.find(order.key.accountId, order.id);
      await app.app.store.orders.save({ ...stored!, status, currentCertificateId: null, pendingCertificateId: null });
      for (const query of ['', '?dry_run=true']) {
        const answer = await reissue(app, order, body(), query);
        assert.deepEqual(
          [answer.status, answer.body.code, answer.body.details],
          [409, 'order_state_conflict', { status }],
        );
      }
    }
    const waiting = await newOrder(app, { vouches: false });
    const { status, body: answer } = await reissue(app, waiting, body());
    assert.deepEqual(
      [status, answer.code, answer.details],
      [409, 'order_state_conflict', { status: 'domain_verifing' }],
    );
  },
);
