// The inputs of a reissue decision are changed between the decision and its first write, one at a time: each change must
// cause a new decision. Both engines. What is stored changes when the service is about to write the certificate down, alone
// or in a transaction; what the service knows without reading changes while it asks DNS. So the race is deterministic.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { readImportedIssuer } from '../../../src/adapters/ca/imported-issuer.ts';
import { type Answer, startApp } from '../../support/app.ts';
import { caPair } from '../../support/authority.ts';
import { newCloudKey } from '../../support/cloud-keys.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';
import { startPostgres } from '../../support/postgres.ts';
import { issuedIn, preparation, prepared } from '../../support/records.ts';
import { type Datagram, response, ScriptedNameServer } from '../../support/scripted-name-server.ts';
import { HOLDS } from '../../support/signings.ts';

const DAY = 86_400_000;
const CONSENT = { i_know_remove_domain_will_revoke_before_cert: true };

const postgres = await startPostgres();
after(() => postgres[Symbol.asyncDispose]());

const ENGINES: Readonly<Record<string, () => Promise<Record<string, string>>>> = {
  sqlite: async () => ({}),
  postgresql: async () => ({ RESEAL_DATABASE_URL: await postgres.createDatabase() }),
};

for (const [engine, settings] of Object.entries(ENGINES)) {
  describe(engine, async () => {
    let whenAsked = async () => {};
    const answer = async ({ query, send }: Datagram) => {
      await whenAsked();
      send(response(query));
    };
    const names = await ScriptedNameServer.start({ udp: (datagram) => void answer(datagram) });
    const app = await startApp({ ...(await settings()), RESEAL_DNS_SERVERS: names.address });
    after(async () => {
      await app[Symbol.asyncDispose]();
      await names[Symbol.asyncDispose]();
    });
    const { store } = app.app;
    const { transaction } = store;
    const { begin } = store.signings;

    /** Reissues, with `change` applied once: `install` says where, and returns what takes it away again. */
    async function reissueChanging(
      install: (change: () => Promise<void>) => () => void,
      change: () => Promise<unknown>,
      send: () => Promise<Answer>,
    ): Promise<Answer> {
      let isChanged = false;
      const remove = install(async () => {
        remove();
        await change();
        isChanged = true;
      });
      const answered = await send().finally(remove);
      assert.ok(isChanged, 'the change was made');
      return answered;
    }

    /** After the decision, and just before what it has decided is written. */
    const reissueWhile = (change: () => Promise<unknown>, order: PlacedOrder, json: unknown, headers = {}) =>
      reissueChanging(
        (once) => {
          store.transaction = async (work) => {
            // The delivery of earlier events, in the background, has transactions too.
            if (new Error().stack?.includes('/issuance-flow.ts')) await once();
            return await transaction(work);
          };
          store.signings.begin = async (...args) => {
            await once();
            return await begin(...args);
          };
          return () => {
            store.transaction = transaction;
            store.signings.begin = begin;
          };
        },
        change,
        () => reissue(app, order, json, '', headers),
      );

    /** After the decision, while DNS is asked for its names. */
    const reissueWhileAsking = (change: () => Promise<unknown>, order: PlacedOrder, json: unknown) =>
      reissueChanging(
        (once) => {
          whenAsked = once;
          return () => {
            whenAsked = async () => {};
          };
        },
        change,
        () => reissue(app, order, json),
      );

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
      const id = idOf(await reissueWhileAsking(async () => app.advance(201 * DAY), order, json));
      assert.equal((await certificate(app, order, id)).status, 'pending');
      assert.equal((await show(app, order)).status, 'reissuing');
    });

    test('issuer retired: its successor signs', async () => {
      const order = await newOrder(app);
      const before = await issuedIn(store, order.key.accountId, order.certificateId);
      const { root, issuing } = caPair('p256', { now: app.now(), rootDays: 3_000, issuingDays: 3_000 });
      const id = idOf(
        await reissueWhileAsking(
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
      const answer = await reissueWhileAsking(async () => app.advance(5_000), order, body());
      assert.deepEqual([answer.status, answer.body.code], [409, 'order_state_conflict'], answer.text);
    });

    test('time: the requested end has passed, or the certificate would begin in the past', async () => {
      const order = await newOrder(app);
      const custom_expiration_date = new Date(app.now() + 5_000).toISOString();
      const late = await reissueWhileAsking(async () => app.advance(6_000), order, body({ custom_expiration_date }));
      assert.deepEqual([late.status, late.body.code], [400, 'invalid_parameters'], late.text);
      const id = idOf(await reissueWhileAsking(async () => app.advance(10_000), order, body({ validity_days: 1 })));
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
      const { accountId } = order.key;
      const { issuerId } = (await issuedIn(store, accountId, first)).preparation;
      const lease = preparation('being signed', { issuerId, leaseEndsAt: app.now() + 10_000 });
      const { revision } = (await store.orders.find(accountId, order.id))!;
      const other = prepared('other', { accountId, orderId: order.id, preparation: lease });
      assert.ok(await store.signings.begin(other, { ...HOLDS, revision }));
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
