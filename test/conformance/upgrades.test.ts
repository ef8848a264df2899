// Upgrades of stores that earlier versions wrote, on both engines: the service opens each fixture, migrates it, and works
// on what it finds.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readMigrations } from '../../src/adapters/store/engine/migrations.ts';
import { spellingsOf } from '../../src/domain/support/ports.ts';
import { newFolder, TestApp } from '../support/app.ts';
import { csc, digest, sign } from '../support/cloud-keys.ts';
import { bothEngines } from '../support/engines.ts';
import { body, certificate, reissue, show } from '../support/orders.ts';
import { restoreFixture, storeFixtures } from '../support/store-fixture.ts';

const FIXTURES = storeFixtures();

test('the current schema, or the one before it, has a fixture', () => {
  const newest = Math.max(...FIXTURES.map(({ schema }) => schema));
  assert.ok(newest >= readMigrations('sqlite').length - 1, `the newest fixture is of schema ${newest}`);
});

for (const engine of await bothEngines()) {
  for (const fixture of FIXTURES) {
    describe(`${engine.name}, schema ${fixture.schema}`, () => {
      test('a service opens it, and everything in it works', async () => {
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
        await using _app = app;
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

        // Names are found, and audit rows of before are kept, through the rebuilt table.
        const { finder, audit, orders } = app.app.store;
        const order = await orders.find(issued.key.accountId, issued.id);
        const found = await finder.find(spellingsOf(order!.names[0]!), 50);
        assert.ok(found.some(({ kind, orderId }) => kind === 'name' && orderId === issued.id));
        const about = { accountId: issued.key.accountId, about: { orderId: issued.id } };
        const actions = (await audit.search(about, { limit: 50 })).entries.map(({ action }) => action);
        assert.ok(actions.includes('order:placed'), actions.join());

        const revoke = `/openapi/v3/certs/${issued.certificateId}/revoke`;
        assert.equal((await app.call('POST', revoke, { key: issued.key })).status, 200);
      });
    });
  }
}
