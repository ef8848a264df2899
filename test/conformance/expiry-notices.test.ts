// Expiry notices on both engines: one event for each certificate and threshold, across pages, instances that run at once
// and transactions that fail; and none where the account or the order gives no cause.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { randomBytes } from '../../src/adapters/seal/random.ts';
import { idMaker } from '../../src/domain/ids.ts';
import { type NotifyExpiryTools, notifyExpiry } from '../../src/usecases/callbacks/notify-expiry.ts';
import { actorFor, type DeliveryWorld, openDeliveryWorld } from '../support/dispatcher.ts';
import { bothEngines } from '../support/engines.ts';
import { issued, NOW, order, preparation, revocation } from '../support/records.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** More than two pages. */
const MANY = 210;

async function subscribe({ account, settings }: DeliveryWorld, id: string, actions: readonly string[] | undefined) {
  await account(id);
  await settings.save(actorFor(id), { enabled_actions: actions });
}

/** An order with a current certificate of that end. */
async function ending({ store }: DeliveryWorld, accountId: string, id: string, daysLeft: number, change = {}) {
  const notAfter = NOW + daysLeft * DAY;
  await store.orders.insert(order(`o${id}`, { accountId, currentCertificateId: `c${id}` }));
  const record = { accountId, orderId: `o${id}`, preparation: preparation(`s${id}`, { notAfter }), ...change };
  await store.certificates.insert(issued(`c${id}`, { version: 1, ...record }));
}

const toolsOf = (world: DeliveryWorld): NotifyExpiryTools => ({
  ...{ store: world.store, now: world.now, noticeDays: [30, 14, 7, 1], onNotice() {} },
  newId: idMaker(world.now, randomBytes),
});

for (const engine of await bothEngines()) {
  describe(engine.name, () => {
    test('of many that end at the same time each gets one, with instances at once and one that dies', async () => {
      await using world = await openDeliveryWorld(await engine.newLocation());
      await subscribe(world, 'a', ['order:expiring']);
      await world.store.transaction(async (tx) => {
        for (let one = 0; one < MANY; one += 1)
          await ending({ ...world, store: { ...world.store, ...tx } }, 'a', `${one}x`, 40);
      });
      const tools = toolsOf(world);
      assert.equal(await notifyExpiry(tools), 0, 'the first run only begins');
      world.advance(10 * DAY + HOUR);
      // Dies in its second page, before the commit.
      let pages = 0;
      const dying: NotifyExpiryTools['store'] = {
        ...world.store,
        transaction: (work) =>
          world.store.transaction(async (tx) => {
            const done = await work(tx);
            if (++pages === 2) throw new Error('died');
            return done;
          }),
      };
      await assert.rejects(notifyExpiry({ ...tools, store: dying }), /died/);
      assert.equal((await world.listed('a')).length, 100, 'one page is committed');
      const written = await Promise.all([notifyExpiry(tools), notifyExpiry(toolsOf(world))]);
      assert.equal(written[0] + written[1], MANY - 100);
      const events = await world.listed('a');
      assert.equal(new Set(events.map(({ certificateId }) => certificateId)).size, MANY);
      assert.deepEqual(
        new Set(events.map(({ action, orderStatus }) => `${action} ${orderStatus}`)),
        new Set(['order:expiring issued']),
      );
      world.advance(HOUR);
      assert.equal(await notifyExpiry(tools), 0);
      // Down over two thresholds: 40 days minus 34 are left.
      world.advance(24 * DAY - 2 * HOUR);
      assert.equal(await notifyExpiry(tools), MANY, 'only the nearest');
    });

    test('accounts that did not list it, and certificates that were replaced or revoked, get none', async () => {
      await using world = await openDeliveryWorld(await engine.newLocation());
      await subscribe(world, 'told', ['order:expiring']);
      await subscribe(world, 'default', undefined);
      await subscribe(world, 'other', ['order:issued']);
      await world.account('unconfigured', null);
      await notifyExpiry(toolsOf(world));
      for (const account of ['told', 'default', 'other', 'unconfigured'])
        await ending(world, account, `1${account}`, 30);
      await ending(world, 'told', 'revoked', 30);
      await world.store.revocations.schedule('told', 'crevoked', revocation({ revokedAt: NOW }));
      await ending(world, 'told', 'replaced', 30);
      await world.store.certificates.insert(
        issued('cnew', {
          version: 2,
          accountId: 'told',
          orderId: 'oreplaced',
          preparation: preparation('new', { notAfter: NOW + 300 * DAY }),
        }),
      );
      const held = await world.store.orders.find('told', 'oreplaced');
      await world.store.orders.save({ ...held!, currentCertificateId: 'cnew' });
      world.advance(HOUR);
      assert.equal(await notifyExpiry(toolsOf(world)), 1);
      assert.deepEqual(
        (await world.listed('told')).map(({ certificateId }) => certificateId),
        ['c1told'],
      );
      for (const account of ['default', 'other', 'unconfigured'])
        assert.deepEqual(await world.listed(account), [], account);
    });
  });
}
