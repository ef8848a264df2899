// Upgrades of stores that earlier versions wrote, on both engines: the service opens each fixture, migrates it, and works
// on what it finds.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readMigrations } from '../../src/adapters/store/engine/migrations.ts';
import { type OrderFilter, termsOf } from '../../src/domain/issuance/inventory.ts';
import { spellingsOf } from '../../src/domain/support/ports.ts';
import { type Key, newFolder, TestApp } from '../support/app.ts';
import { csc, digest, sign } from '../support/cloud-keys.ts';
import { newSm2Csr } from '../support/dual.ts';
import { bothEngines } from '../support/engines.ts';
import { body, certificate, csrFor, newOrder, reissue, show } from '../support/orders.ts';
import {
  type FixtureOrder,
  type Row,
  restoreFixture,
  type SandboxFixture,
  type StoreFixture,
  sandboxFixtures,
  storeFixtures,
} from '../support/store-fixture.ts';

const FIXTURES = storeFixtures();
/** The first schema with a table of what is being signed; earlier ones kept that among the certificates. */
const SIGNING_TABLE = 9;
const LEASE_MS = 5_000;

test('the current schema, or the one before it, has a fixture', () => {
  const newest = Math.max(...FIXTURES.map(({ schema }) => schema));
  assert.ok(newest >= readMigrations('sqlite').length - 1, `the newest fixture is of schema ${newest}`);
});

type TestEngine = Awaited<ReturnType<typeof bothEngines>>[number];

/** The service of today, on the store of the fixture. */
async function startOn(engine: TestEngine, fixture: StoreFixture | SandboxFixture): Promise<TestApp> {
  const folder = newFolder();
  writeFileSync(join(folder, 'seal.key'), `${fixture.sealKey}\n`, { mode: 0o600 });
  const location =
    engine.name === 'sqlite'
      ? ({ kind: 'sqlite', file: join(folder, 'reseal.db') } as const)
      : await engine.newEmptyLocation();
  await restoreFixture(location, fixture);
  const app = new TestApp(folder);
  app.advance(fixture.now - app.now());
  await app.start(location.kind === 'postgresql' ? { RESEAL_DATABASE_URL: location.url } : {});
  return app;
}

for (const engine of await bothEngines()) {
  for (const fixture of sandboxFixtures()) {
    test(`${engine.name}, schema ${fixture.schema}: keys, orders and issuers of an early sandbox still work`, async () => {
      await using app = await startOn(engine, fixture);
      const { accounts, orders } = fixture.sandbox;
      const keys = accounts.map(({ id, credentials }) => {
        const { key_id: keyId, auth_key: authKey } = credentials.find(({ kind }) => kind === 'standard')!;
        return { accountId: id, keyId, authKey };
      });
      for (const key of keys) assert.equal((await app.call('GET', '/openapi/v3/account', { key })).status, 200);
      const [key] = keys as [Key];
      for (const { id } of orders) {
        const shown = await app.call('GET', `/openapi/v3/orders/${id}`, { key });
        assert.deepEqual([shown.status, shown.body.data.status], [200, 'issued'], shown.text);
        assert.match(shown.body.data.certificate.pem, /BEGIN CERTIFICATE/);
      }
      const order = orders.find(({ product }) => product === 'ssl-dv');
      // Schema 1 had no orders.
      assert.equal(order === undefined, fixture.schema === 1);
      if (order) {
        const change = { certificate: { csr: csrFor(), common_name: order.common_name, sign_hash: 'sha256' } };
        const reissued = await app.call('POST', `/openapi/v3/orders/${order.id}/reissue`, { key, json: change });
        assert.equal(reissued.status, 200, reissued.text);
      }
      const placed = await newOrder(app);
      assert.equal((await show(app, placed)).status, 'issued', 'issuers sign, or were made');
    });
  }

  for (const fixture of FIXTURES) {
    describe(`${engine.name}, schema ${fixture.schema}`, () => {
      const upgraded = (written: StoreFixture) => startOn(engine, written);

      test('a service opens it, and everything in it works', async () => {
        await using app = await upgraded(fixture);
        const { issued, pending, reissuing, canceled, revoked, dual, cloudKey } = fixture.contents;

        const statuses = Object.fromEntries(
          await Promise.all(
            Object.entries(fixture.contents).map(async ([name, order]) => [name, (await show(app, order)).status]),
          ),
        );
        assert.deepEqual(statuses, {
          ...{ issued: 'issued', pending: 'domain_verifing', reissuing: 'reissuing', canceled: 'canceled' },
          ...{ revoked: 'revoked', dual: 'issued', cloudKey: 'issued' },
        });
        // Certificates of every state are read, with their history, revocation and encryption half.
        const shown = await certificate(app, issued, issued.certificateId);
        assert.deepEqual([shown.status, shown.version, shown.history.length], ['issued', 2, 2]);
        assert.equal((await certificate(app, pending, pending.certificateId)).status, 'pending');
        assert.equal((await certificate(app, canceled, canceled.certificateId)).status, 'canceled');
        const { revocation } = await certificate(app, revoked, revoked.certificateId);
        assert.equal(revocation.reason, 'key_compromise');
        assert.ok((await certificate(app, dual, dual.certificateId)).encryption_pem);
        assert.equal((await show(app, reissuing)).certificate_id, reissuing.certificateId);

        // Sealed values open: issuers sign, callback secrets and cloud-held keys are read.
        const { status, text } = await reissue(app, issued, body());
        assert.equal(status, 200, text);
        const settings = await app.app.store.callbacks.find(issued.key.accountId);
        assert.equal(settings?.accessKey.reveal(), 'fixture-access-key-0123456789');
        const held = { key: cloudKey.key, orderId: cloudKey.id, id: cloudKey.keyId, certificateId: '', pem: '' };
        const signed = await sign(app, held, [digest('sha256', 'message')]);
        assert.equal(signed.status, 200, signed.text);
        assert.equal((await csc(app, 'credentials/list', cloudKey.key)).body.credentialIDs.length, 1);
        assert.equal((await csc(app, 'auth/login', cloudKey.key)).status, 200);

        // Names are found, and audit rows of before are kept, through the rebuilt table.
        const { finder, audit, orders, inventory } = app.app.store;
        const order = await orders.find(issued.key.accountId, issued.id);
        const found = await finder.find(spellingsOf(order!.names[0]!), 50);
        assert.ok(found.some(({ kind, orderId }) => kind === 'name' && orderId === issued.id));
        const inAccount = async (filter: OrderFilter) =>
          (await inventory.orders(issued.key.accountId, filter, { limit: 50 })).rows.map(({ id }) => id);
        for (const name of order!.names) {
          assert.ok((await inAccount({ name })).includes(issued.id), name);
          for (const [, ...domain] of termsOf(name)
            .slice(1)
            .map((term) => [...term])) {
            assert.ok((await inAccount({ nameSuffix: domain.join('') })).includes(issued.id), domain.join(''));
          }
        }
        const about = { accountId: issued.key.accountId, about: { orderId: issued.id } };
        const actions = (await audit.search(about, { limit: 50 })).entries.map(({ action }) => action);
        assert.ok(actions.includes('order:placed'), actions.join());

        const revoke = `/openapi/v3/certs/${issued.certificateId}/revoke`;
        assert.equal((await app.call('POST', revoke, { key: issued.key })).status, 200);
      });

      if (fixture.schema >= SIGNING_TABLE) return;
      test('what was being signed is voided when its lease ends, and its orders go on', async () => {
        await using app = await upgraded(whileSigning(fixture));
        const { issued, pending, reissuing, dual, cloudKey } = fixture.contents;
        const { orders, certificates } = app.app.store;
        const signerOf = async ({ key, id }: FixtureOrder) => {
          const found = await orders.findForUpdate(key.accountId, id);
          return found?.signing && [found.signing.certificateId, found.signing.until - fixture.now];
        };
        const waiting = (await orders.find(reissuing.key.accountId, reissuing.id))!.pendingCertificateId!;
        assert.deepEqual(
          [await signerOf(issued), await signerOf(reissuing), await signerOf(dual)],
          [
            ['fresh', LEASE_MS],
            [waiting, LEASE_MS],
            ['both', LEASE_MS],
          ],
        );
        const stateOf = async ({ key }: FixtureOrder, id: string) =>
          (await certificates.find(key.accountId, id))?.state;
        assert.deepEqual(
          [await stateOf(issued, 'fresh'), await stateOf(reissuing, waiting), await stateOf(cloudKey, 'stray')],
          [undefined, 'pending', 'voided'],
        );
        const cancel = ({ key, id }: FixtureOrder) => app.call('PUT', `/openapi/v3/orders/${id}/cancel`, { key });
        assert.equal((await cancel(reissuing)).body.code, 'service_busy', 'it is still being signed');

        app.advance(LEASE_MS);
        await app.issuance.sweep();
        const all = [issued, pending, reissuing, dual, cloudKey];
        for (const order of all) assert.equal(await signerOf(order), null);
        const statuses = await Promise.all(all.map(async (order) => (await show(app, order)).status));
        assert.deepEqual(statuses, ['issued', 'domain_verifing', 'reissuing', 'issued', 'issued']);
        const lost = await Promise.all(
          (await certificates.listVoided({ limit: 9 })).map(async ({ accountId, certificateId }) => {
            const found = await certificates.find(accountId, certificateId);
            return found?.state === 'voided' ? [found.preparation.serial, found.encryption?.serial ?? null] : [];
          }),
        );
        assert.deepEqual(
          lost.sort(),
          [
            ['a1', null],
            ['a2', null],
            ['a3', null],
            ['a4', 'a5'],
            ['a6', null],
          ],
          'every serial number stays taken',
        );
        assert.deepEqual([await stateOf(issued, 'fresh'), await stateOf(dual, 'both')], ['voided', 'voided']);
        assert.deepEqual(
          [await stateOf(reissuing, waiting), await stateOf(pending, pending.certificateId)],
          ['pending', 'pending'],
        );
        const json = {
          certificate: { csr: (await newSm2Csr()).csr, common_name: 'www.example.com', sign_hash: 'sm3' },
        };
        for (const answer of [await reissue(app, issued, body()), await reissue(app, dual, json)]) {
          assert.equal(answer.status, 200, answer.text);
        }
        assert.equal((await reissue(app, reissuing, body())).body.code, 'reissue_in_progress');
        for (const order of [reissuing, pending]) assert.equal((await cancel(order)).status, 200);
      });
    });
  }
}

/** The fixture as it would be if the service had stopped while it signed. */
function whileSigning({ now, tables, contents, ...fixture }: StoreFixture): StoreFixture {
  const { issued, pending, reissuing, dual, cloudKey } = contents;
  const orders = new Map(tables.certificate_order!.map((row) => [row.id, row]));
  const certificates = new Map(tables.certificate!.map((row) => [row.id, row]));
  const halves = [...tables.encryption_certificate!];
  const unsigned = { der: null, issued_at: null, version: null, replaces_id: null, to_be_signed: 'dG8gYmUgc2lnbmVk' };
  const issuer = certificates.get(issued.certificateId)!.issuer_id!;
  const written = { issuer_id: issuer, not_before: now, not_after: now + 1, prepared_at: now, lease_ends_at: now };
  const sign = (order: FixtureOrder, id: string, until: number, change: Row = {}) =>
    orders.set(order.id, { ...orders.get(order.id)!, signing_certificate_id: id, signing_until: until, ...change });
  const prepare = (from: string, id: string, serial: string, change: Row = {}) => {
    const row = {
      ...certificates.get(from)!,
      ...written,
      ...unsigned,
      ...{ id, serial, state: 'prepared' },
      ...change,
    };
    certificates.set(id, row);
  };
  // A reissue; one that waited; a first certificate that waited, and whose lease has ended; both halves; one without lease.
  prepare(issued.certificateId, 'fresh', 'a1');
  sign(issued, 'fresh', now + LEASE_MS);
  const waiting = String(orders.get(reissuing.id)!.pending_certificate_id);
  prepare(waiting, waiting, 'a2');
  sign(reissuing, waiting, now + LEASE_MS);
  prepare(pending.certificateId, pending.certificateId, 'a3');
  sign(pending, pending.certificateId, now - 1, { status: 'issuing' });
  prepare(dual.certificateId, 'both', 'a4');
  sign(dual, 'both', now + LEASE_MS);
  halves.push({ ...halves[0]!, certificate_id: 'both', serial: 'a5', der: null, to_be_signed: unsigned.to_be_signed });
  prepare(cloudKey.certificateId, 'stray', 'a6');
  const changed = { certificate_order: [...orders.values()], certificate: [...certificates.values()] };
  return { ...fixture, now, contents, tables: { ...tables, ...changed, encryption_certificate: halves } };
}
