// Three instances on one PostgreSQL: each revocation is applied once, by any instance, and all of them show it at once.
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { after, test } from 'node:test';
import { openEngine } from '../../../src/adapters/store/engine/engine.ts';
import { engineAt } from '../../../src/adapters/store/store.ts';
import { runDueRevocations } from '../../../src/usecases/revocation/run-due-revocations.ts';
import { newFolder, TestApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { body, certificate, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import { crlOf, derOf, ocspStatus, pems } from '../../support/status.ts';

const HOUR = 3_600_000;
const GRACE = { ...OWN_PRODUCT, csr: 'optional', revokes_previous_on_reissue: true, revocation_grace_hours: 24 };
const postgres = await sharedPostgres();
after(() => postgres[Symbol.asyncDispose]());
const url = await postgres.createDatabase();
const settings = { RESEAL_DATABASE_URL: url, RESEAL_PRODUCTS_FILE: productsFile(GRACE) };

async function instance(folder: string): Promise<TestApp> {
  const app = new TestApp(folder);
  await app.start(settings);
  after(() => app[Symbol.asyncDispose]());
  return app;
}
const one = await instance(newFolder());
const apps = [one];
while (apps.length < 3) {
  const folder = newFolder();
  cpSync(one.folder, folder, { recursive: true, filter: (file) => !file.includes('lock') });
  apps.push(await instance(folder));
}
const db = openEngine(engineAt({ kind: 'postgresql', url, maxConnections: 1 }), () => {});
after(() => db.destroy());

const advance = (ms: number) => {
  for (const app of apps) app.advance(ms);
};
const eventsOf = async (certificateId: string) =>
  (await db.selectFrom('outbox').select('action').where('certificate_id', '=', certificateId).execute())
    .map(({ action }) => action)
    .filter((action) => action === 'order:revoked').length;

/** The status that an instance shows. */
async function seenBy(app: TestApp, order: PlacedOrder, id: string) {
  const shown = await certificate(app, order, id);
  const issuer = derOf(pems(shown.ica_pem)[0]!);
  const list = await crlOf(app, derOf(shown.pem), issuer);
  const { status } = await ocspStatus(app, shown.serial_number, issuer);
  return { isListed: list.revoked.has(shown.serial_number), status, number: list.number };
}

rule(
  'revocation 10',
  'A scheduled revocation happens once, also after a restart and with several instances',
  async () => {
    const orders: PlacedOrder[] = [];
    for (let made = 0; made < 10; made += 1) {
      const order = await newOrder(one, { product: 'own' });
      const { status, text } = await reissue(
        one,
        order,
        body({ csr: undefined }, { i_know_will_revoke_last_cert: true }),
      );
      assert.equal(status, 200, text);
      orders.push(order);
    }
    const before = await Promise.all(orders.map((order) => seenBy(one, order, order.certificateId)));
    // No instance is running when it becomes due.
    for (const app of apps) await app.stop();
    advance(25 * HOUR);
    for (const app of apps) await app.start(settings);
    // Concurrently, next to their background chores.
    await Promise.all(apps.map((app) => app.issuance.revocationChores[0]!.run()));
    await Promise.all(apps.map((app) => app.issuance.revocationChores[1]!.run()));
    for (const [index, { certificateId }] of orders.entries()) {
      assert.equal(await eventsOf(certificateId), 1);
      for (const app of apps) {
        const { isListed, status, number } = await seenBy(app, orders[index]!, certificateId);
        assert.deepEqual([isListed, status], [true, 'revoked']);
        assert.ok(number > before[index]!.number);
      }
    }
  },
);

test('concurrent revocations in all instances lose none and list none twice', async () => {
  const orders: PlacedOrder[] = [];
  for (let made = 0; made < 24; made += 1) orders.push(await newOrder(one));
  const revoke = (app: TestApp, order: PlacedOrder) =>
    app.call('POST', `/openapi/v3/certs/${order.certificateId}/revoke`, { key: order.key });
  // Each certificate by all three instances at once.
  const answers = await Promise.all(orders.flatMap((order) => apps.map((app) => revoke(app, order))));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  for (const order of orders) {
    assert.equal(await eventsOf(order.certificateId), 1);
    const numbers = new Set<number>();
    for (const app of apps) {
      const { isListed, status, number } = await seenBy(app, order, order.certificateId);
      assert.deepEqual([isListed, status], [true, 'revoked']);
      numbers.add(number);
    }
    assert.equal(numbers.size, 1, 'all serve the same CRL');
  }
});

test('a revocation recorded by an instance that crashed before publishing is published by another', async () => {
  const order = await newOrder(one, { product: 'own' });
  await reissue(one, order, body({ csr: undefined }, { i_know_will_revoke_last_cert: true }));
  advance(25 * HOUR);
  const { app, now } = one;
  const silent = { store: app.store, now, newId: app.newId, publishCrls: async () => {} };
  await runDueRevocations(silent);
  const between = await seenBy(apps[1]!, order, order.certificateId);
  assert.equal(between.status, 'revoked', 'OCSP answers from the record itself');
  await apps[2]!.issuance.revocationChores[1]!.run();
  for (const app of apps) assert.equal((await seenBy(app, order, order.certificateId)).isListed, true);
});
