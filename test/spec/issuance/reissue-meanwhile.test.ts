// The inputs of a reissue decision are changed between the decision and the order's lock, one at a time: each change
// must cause a new decision. Both engines. The change is made when the service is about to open the transaction that
// stores the certificate, so the race is deterministic.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { readImportedIssuer } from '../../../src/adapters/ca/imported-issuer.ts';
import { type Answer, startApp, type TestApp } from '../../support/app.ts';
import { caPair } from '../../support/authority.ts';
import { newCloudKey } from '../../support/cloud-keys.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';
import { startPostgres } from '../../support/postgres.ts';
import { issuedIn } from '../../support/records.ts';

const DAY = 86_400_000;
const CONSENT = { i_know_remove_domain_will_revoke_before_cert: true };

const postgres = await startPostgres();
after(() => postgres[Symbol.asyncDispose]());

const ENGINES: Readonly<Record<string, () => Promise<TestApp>>> = {
  sqlite: () => startApp(),
  postgresql: async () => startApp({ RESEAL_DATABASE_URL: await postgres.createDatabase() }),
};

for (const [engine, start] of Object.entries(ENGINES)) {
  describe(engine, async () => {
    const app = await start();
    after(() => app[Symbol.asyncDispose]());
    const { store } = app.app;

    /** Reissues, with `change` applied after the decision and before its transaction begins. */
    async function reissueWhile(
      change: () => Promise<unknown>,
      order: PlacedOrder,
      json: unknown,
      headers = {},
    ): Promise<Answer> {
      const { transaction } = store;
      let isChanged = false;
      store.transaction = async (work) => {
        store.transaction = transaction;
        await change();
        isChanged = true;
        return await transaction(work);
      };
      const answer = await reissue(app, order, json, '', headers).finally(() => {
        store.transaction = transaction;
      });
      assert.ok(isChanged, 'the change was made');
      return answer;
    }

    const idOf = ({ status, body: answer, text }: Answer): string => {
      assert.equal(status, 200, text);
      return answer.data.certificate.id;
    };

    test('nothing changes: one decision, one certificate', async () => {
      const order = await newOrder(app);
      const id = idOf(await reissueWhile(async () => {}, order, body()));
      assert.equal((await certificate(app, order, id)).status, 'issued');
    });

    test('revision: another certificate of the order was issued', async () => {
      const order = await newOrder(app);
      let between = '';
      const id = idOf(
        await reissueWhile(
          async () => {
            // Another instance finishes a reissue; it does not share this one's mutex.
            const current = (await store.orders.find(order.key.accountId, order.id))!;
            await store.transaction((tx) => tx.orders.save({ ...current, persistUntil: 4_000_000_000 }));
            between = String(current.revision);
          },
          order,
          body(),
        ),
      );
      assert.equal((await certificate(app, order, id)).status, 'issued');
      const { persist_until } = await show(app, order);
      assert.equal(persist_until, 4_000_000_000, `writes after revision ${between} are kept`);
    });

    test('revision: the order was canceled, so nothing is issued', async () => {
      const order = await newOrder(app);
      const answer = await reissueWhile(
        async () => {
          const current = (await store.orders.find(order.key.accountId, order.id))!;
          await store.transaction((tx) => tx.orders.save({ ...current, status: 'revoked' }));
        },
        order,
        body(),
      );
      assert.deepEqual([answer.status, answer.body.code], [409, 'order_state_conflict'], answer.text);
    });

    test('proof expired: the certificate waits for validation instead of being issued', async () => {
      const order = await newOrder(app);
      const json = body({}, { dcv_method: 'dns' });
      const id = idOf(await reissueWhile(async () => app.advance(201 * DAY), order, json));
      assert.equal((await certificate(app, order, id)).status, 'pending');
      assert.equal((await show(app, order)).status, 'reissuing');
    });

    test('issuer retired: its successor signs', async () => {
      const order = await newOrder(app);
      const before = await issuedIn(store, order.key.accountId, order.certificateId);
      const { root, issuing } = caPair('p256', { now: app.now(), rootDays: 3_000, issuingDays: 3_000 });
      const id = idOf(
        await reissueWhile(
          async () => {
            const own = { certificate: issuing.pem, key: issuing.key, root: root.pem };
            const pair = readImportedIssuer(own, app.now(), app.app.newId);
            await store.transaction((tx) => tx.issuers.adopt(pair));
            await app.issuance.sweep();
          },
          order,
          body(),
        ),
      );
      const issued = await issuedIn(store, order.key.accountId, id);
      assert.notEqual(issued.preparation.issuerId, before.preparation.issuerId);
      const [, active] = (await store.issuers.listPublic()).filter(
        ({ keyType, state }) => keyType === 'p256' && state === 'active',
      );
      assert.equal(issued.preparation.issuerId, active?.id);
    });

    test('blocked key: the key is refused', async () => {
      const order = await newOrder(app);
      // A key that no other test uses.
      const json = body({ csr: csrFor('p521'), sign_hash: 'sha384' });
      // The key of the CSR, read from a certificate that another order gets on it.
      const other = await newOrder(app);
      const known = idOf(await reissue(app, other, json));
      const { publicKey } = (await store.certificates.find(other.key.accountId, known))!;
      const answer = await reissueWhile(
        () => store.blockedKeys.add(publicKey.fingerprint, 'leaked', app.now()),
        order,
        json,
      );
      assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_csr'], answer.text);
      assert.equal((await show(app, order)).certificate_id, order.certificateId);
    });

    test('idempotency key: used meanwhile with another body', async () => {
      const order = await newOrder(app);
      const { accountId } = order.key;
      const entry = { requestHash: 'another body', certificateId: order.certificateId, at: app.now() };
      const headers = { 'Idempotency-Key': 'once' };
      const use = () => store.transaction((tx) => tx.idempotencyKeys.put(accountId, order.id, 'once', entry));
      const answer = await reissueWhile(use, order, body(), headers);
      assert.deepEqual([answer.status, answer.body.code], [422, 'idempotency_key_reused'], answer.text);
      assert.equal((await show(app, order)).certificate_id, order.certificateId);
    });

    test('revocation meanwhile: an already revoked certificate is not revoked again', async () => {
      const names = ['www.example.com', 'a.example.com'];
      const order = await newOrder(app, { dnsNames: names });
      const second = idOf(await reissue(app, order, body({ dns_names: names })));
      const by = { accountId: order.key.accountId, actor: order.key.keyId, requestId: null };
      const id = idOf(
        await reissueWhile(
          () => app.issuance.revoke(by, order.certificateId, {}),
          order,
          body({ dns_names: [] }, CONSENT),
        ),
      );
      const issued = (await store.certificates.find(by.accountId, id))!;
      assert.deepEqual(
        issued.willRevoke.map(({ certificateId }) => certificateId),
        [second],
      );
    });

    test('cloud-held key destroyed: it is not certified again', async () => {
      const held = await newCloudKey(app, { signHash: 'sm3' });
      const order = { key: held.key, id: held.orderId, certificateId: held.certificateId };
      const destroy = () => store.transaction((tx) => tx.cloudKeys.destroy(held.key.accountId, held.id, app.now()));
      const answer = await reissueWhile(destroy, order, { certificate: { sign_hash: 'sm3' } });
      assert.deepEqual([answer.status, answer.body.field], [400, 'certificate.csr'], answer.text);
      assert.equal((await show(app, order)).certificate_id, order.certificateId);
    });

    test('time: the term of the order ended', async () => {
      const order = await newOrder(app);
      const { termEndsAt } = (await store.orders.find(order.key.accountId, order.id))!;
      const proofs = () => store.proofs.record(order.key.accountId, 'www.example.com', 'operator', app.now());
      app.advance(termEndsAt - app.now() - 5_000);
      await proofs();
      const answer = await reissueWhile(async () => app.advance(5_000), order, body());
      assert.deepEqual([answer.status, answer.body.code], [409, 'order_state_conflict'], answer.text);
    });

    test('time: the requested end has passed, or the certificate would begin in the past', async () => {
      const order = await newOrder(app);
      const custom_expiration_date = new Date(app.now() + 5_000).toISOString();
      const late = await reissueWhile(async () => app.advance(6_000), order, body({ custom_expiration_date }));
      assert.deepEqual([late.status, late.body.code], [400, 'invalid_parameters'], late.text);
      const id = idOf(await reissueWhile(async () => app.advance(10_000), order, body({ validity_days: 1 })));
      const { preparation, issuedAt } = await issuedIn(store, order.key.accountId, id);
      assert.equal(preparation.notBefore, Math.floor(issuedAt / 1_000) * 1_000);
    });

    test('proof arrived: the certificate is issued instead of waiting', async () => {
      const order = await newOrder(app);
      const json = body({ dns_names: ['proven-meanwhile.example.com'] }, { dcv_method: 'dns' });
      const prove = () => store.proofs.record(order.key.accountId, 'proven-meanwhile.example.com', 'dns', app.now());
      const id = idOf(await reissueWhile(prove, order, json));
      assert.equal((await certificate(app, order, id)).status, 'issued');
    });

    test('while another process signs, an earlier answer and a refusal do not wait for it', async () => {
      const order = await newOrder(app, { product: 'code-signing', commonName: 'Example Ltd', key: 'p384' });
      const json = { certificate: { sign_hash: 'sha256', csr: body().certificate.csr } };
      const headers = { 'Idempotency-Key': 'busy' };
      const first = idOf(await reissue(app, order, json, '', headers));
      const signing = { certificateId: order.certificateId, until: app.now() + 10_000 };
      await store.orders.beginSigning(order.id, signing);
      assert.equal(idOf(await reissue(app, order, json, '', headers)), first);
      const junk = { certificate: { sign_hash: 'sha256', csr: 'junk' } };
      const { status, body: answer } = await reissue(app, order, junk);
      assert.deepEqual([status, answer.code], [400, 'invalid_csr']);
    });

    test('a request that needs no external lookup is decided in its transaction', async () => {
      const order = await newOrder(app, { product: 'code-signing', commonName: 'Example Ltd', key: 'p384' });
      const json = { certificate: { sign_hash: 'sha256', csr: body().certificate.csr } };
      const revoke = async () => {
        const current = (await store.orders.find(order.key.accountId, order.id))!;
        await store.transaction((tx) => tx.orders.save({ ...current, status: 'revoked' }));
      };
      const answer = await reissueWhile(revoke, order, json);
      assert.deepEqual([answer.status, answer.body.code], [409, 'order_state_conflict'], answer.text);
    });
  });
}
