// Repositories of orders and what surrounds them, on every engine: records round-trip, are visible only to their account,
// and single-use transitions happen once.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { Store } from '../../src/domain/store.ts';
import { voidLostIssuances } from '../../src/usecases/lease/void-lost-issuances.ts';
import { rsaSpki } from '../support/csr.ts';
import { bothEngines } from '../support/engines.ts';
import { storeTests } from '../support/order-store.ts';
import {
  certificate,
  FULL_ORDER,
  issued,
  issuedIn,
  NOW,
  ODD,
  order,
  prepared,
  revocation,
} from '../support/records.ts';
import { HOLDS } from '../support/signings.ts';

const KEY = certificate('any').publicKey;
const RSA_NUMBER = (1n << 2047n) + 1n;
/** Of `Modulus=80…01`, by sha1sum. */
const RSA_MODULUS = '8ea792e1bab21748033f';

for (const engine of await bothEngines()) {
  const testStore = storeTests(engine);
  describe(engine.name, () => {
    testStore('an order round-trips, and is found only through its account', async ({ orders }) => {
      await orders.insert(FULL_ORDER);
      for (const one of [FULL_ORDER, order('o')]) {
        assert.deepEqual(await orders.find('a', one.id), one);
        assert.deepEqual(await orders.findForUpdate('a', one.id), { order: one, signing: null });
        assert.equal(await orders.find('b', one.id), undefined);
        assert.equal(await orders.findForUpdate('b', one.id), undefined);
      }
      assert.equal(await orders.find('a', 'O'), undefined);
      await assert.rejects(orders.insert(order('o')));
      await assert.rejects(orders.insert(order('p', { accountId: 'nobody' })));
      await assert.rejects(orders.insert(order('p', { status: 'other' as 'issued' })));
      await assert.rejects(orders.insert(order('p', { alternativeId: ODD })), 'the alternative id is taken');
      await orders.insert(order('p', { accountId: 'b', alternativeId: ODD }));
    });

    testStore('orders are listed per account, by id, page by page', async ({ orders, inventory }) => {
      for (const id of ['q', 'p', 's', 'r']) await orders.insert(order(id, { accountId: id === 'r' ? 'b' : 'a' }));
      const ids = async (accountId: string, after?: string) =>
        (await inventory.orders(accountId, {}, { after, limit: 2 })).rows.map(({ id }) => id);
      assert.deepEqual(await ids('a'), ['o', 'p']);
      assert.deepEqual(await ids('a', 'p'), ['q', 's']);
      assert.deepEqual(await ids('a', 's'), []);
      assert.deepEqual(await ids('b'), ['r']);
      assert.deepEqual(await ids('nobody'), []);
    });

    testStore('an order is found by its alternative id, which is unique', async ({ orders }) => {
      const named = order('n', { alternativeId: 'mine' });
      await orders.insert(named);
      await orders.insert(order('m', { accountId: 'b', alternativeId: 'mine' }));
      assert.deepEqual(await orders.findByAlternative('a', 'mine'), named);
      assert.equal((await orders.findByAlternative('b', 'mine'))?.id, 'm');
      for (const name of ['n', 'min', 'nothing']) assert.equal(await orders.findByAlternative('a', name), undefined);
      const twice = orders.insert(order('x', { alternativeId: 'mine' }));
      await assert.rejects(twice, { code: 'duplicate_alternative_order_id' });
      assert.equal(await orders.find('a', 'x'), undefined);
      for (const id of ['p', 'q']) await orders.insert(order(id, { alternativeId: null }));
    });

    testStore('a released alternative id can be used again, in its account only', async ({ orders }) => {
      for (const accountId of ['a', 'b'])
        await orders.insert(order(`of ${accountId}`, { accountId, alternativeId: 'mine' }));
      await orders.releaseAlternative('b', 'of a');
      assert.equal((await orders.findByAlternative('a', 'mine'))?.id, 'of a');
      await orders.releaseAlternative('a', 'of a');
      assert.equal(await orders.findByAlternative('a', 'mine'), undefined);
      assert.deepEqual(await orders.find('a', 'of a'), order('of a'));
      assert.equal((await orders.findByAlternative('b', 'mine'))?.id, 'of b');
      await orders.insert(order('second', { alternativeId: 'mine' }));
    });

    testStore('a lost signer frees an order by what it was: placed, waiting, or reissued', async (store, rows) => {
      const { orders, signings } = store;
      const cases = [
        ['placed', { status: 'issuing', alternativeId: 'x' }, ['canceled', null]],
        ['waited', { status: 'issuing', alternativeId: 'y', pendingCertificateId: 'c' }, ['domain_verifing', 'y']],
        ['reissued', { status: 'issued', alternativeId: 'z' }, ['issued', 'z']],
      ] as const;
      for (const [id, change] of cases) {
        await orders.insert(order(id, change));
        assert.ok(await signings.begin(prepared(`certificate of ${id}`, { orderId: id }), HOLDS));
      }
      let ids = 0;
      const newId = () => `id ${++ids}`;
      const voidAt = (at: number) => {
        const sharedNow = () => at;
        const transaction: Store['transaction'] = (work) => store.transaction((tx) => work({ ...tx, sharedNow }));
        return voidLostIssuances({ ...store, sharedNow, transaction }, sharedNow, newId);
      };
      assert.equal(await voidAt(NOW + 9), 0, 'while the lease lasts');
      assert.equal(await voidAt(NOW + 10), 3);
      for (const [id, , expected] of cases) {
        const { status, alternativeId } = (await orders.find('a', id))!;
        assert.deepEqual([status, alternativeId], expected, id);
      }
      assert.equal((await store.certificates.listVoided({ limit: 9 })).length, 3);
      assert.deepEqual(await rows('select id from outbox'), [], 'no event');
    });

    testStore(
      'save writes the mutable fields, leaves what is being signed, and affects one order of one account',
      async ({ orders, signings }) => {
        await orders.insert(order('other'));
        const signing = { certificateId: 'c', until: NOW + 10 };
        await signings.begin(prepared('c'), HOLDS);
        assert.deepEqual(await orders.findForUpdate('a', 'o'), { order: order('o'), signing });
        assert.deepEqual(await orders.findForUpdate('a', 'other'), { order: order('other'), signing: null });
        const changed = { ...FULL_ORDER, id: 'o', revision: 1 };
        // Neither from another account nor with a stale revision.
        for (const other of [{ accountId: 'b' }, { revision: 0 }]) {
          await assert.rejects(orders.save({ ...changed, ...other }), { code: 'service_busy' });
        }
        assert.deepEqual(await orders.findForUpdate('a', 'o'), { order: order('o'), signing });
        await orders.save(changed);
        const { productId, alternativeId, subject, termEndsAt, createdAt } = order('o');
        const fixed = { id: 'o', productId, alternativeId, subject, termEndsAt, createdAt };
        assert.deepEqual(await orders.findForUpdate('a', 'o'), {
          order: { ...changed, ...fixed, revision: 2 },
          signing,
        });
        assert.deepEqual(await orders.find('a', 'other'), order('other'));
      },
    );

    testStore('while an order is locked for update, other transactions wait', async (store) => {
      const steps = Array.from({ length: 20 }, () =>
        store.transaction(async ({ orders }) => {
          const { order: held } = (await orders.findForUpdate('a', 'o'))!;
          await orders.save({ ...held, names: [...held.names, String(held.names.length)] });
        }),
      );
      await Promise.all(steps);
      const { names, revision } = (await store.orders.find('a', 'o'))!;
      assert.deepEqual(names.join(), [...Array(20).keys()].join());
      assert.equal(revision, 21);
    });

    testStore('a revocation is scheduled once: the first cause stands', async ({ certificates, revocations }) => {
      await certificates.insert(issued('c1'));
      const first = revocation({ reason: 'key_compromise', cause: 'requested' });
      await revocations.schedule('a', 'c1', first);
      await revocations.schedule('a', 'c1', revocation({ causedById: 'c1', dueAt: NOW + 99 }));
      assert.deepEqual((await issuedIn({ certificates }, 'a', 'c1')).revocation, first);
      await assert.rejects(revocations.schedule('a', 'nothing', first));
    });

    testStore('a removed name takes precedence over a replacement', async ({ certificates, revocations }) => {
      for (const id of ['c1', 'c2', 'c3']) await certificates.insert(issued(id));
      const replaced = revocation({ cause: 'previous_replaced', causedById: 'c2', dueAt: NOW + 9 });
      await revocations.schedule('a', 'c1', replaced);
      const removed = revocation({ cause: 'name_removed', causedById: 'c3', dueAt: NOW + 5 });
      for (const later of [removed, { ...replaced, dueAt: NOW + 7 }]) await revocations.schedule('a', 'c1', later);
      assert.deepEqual((await issuedIn({ certificates }, 'a', 'c1')).revocation, removed);
    });

    testStore('an outbox event round-trips, and is unique', async ({ certificates, outbox }, rows) => {
      await certificates.insert(issued('c1'));
      const about = { accountId: 'a', orderId: 'o', orderStatus: 'issued', certificateId: 'c1' } as const;
      const event = { id: 'e', ...about, createdAt: NOW } as const;
      await outbox.add({ ...event, action: 'order:issued' });
      await assert.rejects(outbox.add({ ...event, action: 'order:issued' }));
      const columns = 'id, account_id, order_id, order_status, certificate_id, action, created_at';
      assert.deepEqual(await rows(`select ${columns} from outbox`), [
        {
          ...{ id: 'e', account_id: 'a', order_id: 'o', order_status: 'issued', certificate_id: 'c1' },
          ...{ action: 'order:issued', created_at: NOW },
        },
      ]);
    });

    testStore('a name is validated for its own account only, and for the requested period', async ({ proofs }) => {
      await proofs.record('a', 'one.example.com', 'dns', NOW);
      await proofs.record('a', 'two.example.com', 'dns', NOW - 10);
      await proofs.record('a', 'two.example.com', 'file', NOW - 5);
      await proofs.record('b', 'three.example.com', 'operator', NOW);
      const names = ['one.example.com', 'two.example.com', 'three.example.com', 'ONE.example.com', ODD];
      const proven = async (accountId: string, since: number) => [
        ...(await proofs.proven(accountId, names, since)).keys(),
      ];
      assert.deepEqual((await proven('a', NOW - 5)).sort(), ['one.example.com', 'two.example.com']);
      assert.deepEqual(await proven('a', NOW - 4), ['one.example.com']);
      assert.deepEqual(await proven('b', 0), ['three.example.com']);
      assert.deepEqual(await proofs.proven('a', [], 0), new Map());
      const methods = (await proofs.proven('a', ['two.example.com'], 0)).get('two.example.com');
      assert.deepEqual(methods?.map(({ method }) => method).sort(), ['dns', 'file']);
      await proofs.record('a', 'two.example.com', 'dns', NOW + 1);
      assert.deepEqual(await proven('a', NOW + 1), ['two.example.com']);
    });

    testStore(
      'an idempotency key belongs to one account and order, expires, and can then be reused',
      async ({ certificates, idempotencyKeys, orders }) => {
        await orders.insert(order('p'));
        for (const id of ['c1', 'c2']) await certificates.insert(certificate(id));
        const entry = { requestHash: 'h1', certificateId: 'c1' };
        await idempotencyKeys.put('a', 'o', ODD, { ...entry, at: NOW });
        assert.deepEqual(await idempotencyKeys.find('a', 'o', ODD, NOW - 1), entry);
        assert.equal(await idempotencyKeys.find('a', 'o', ODD, NOW), undefined, 'expired exactly at the limit');
        assert.equal(await idempotencyKeys.find('b', 'o', ODD, 0), undefined);
        assert.equal(await idempotencyKeys.find('a', 'p', ODD, 0), undefined);
        assert.equal(await idempotencyKeys.find('a', 'o', ODD.toLowerCase(), 0), undefined);
        const later = { requestHash: 'h2', certificateId: 'c2' };
        await idempotencyKeys.put('a', 'o', ODD, { ...later, at: NOW + 1 });
        assert.deepEqual(await idempotencyKeys.find('a', 'o', ODD, NOW), later);
      },
    );

    testStore(
      'the key of a placement is taken once per account, until it expires or its order was interrupted',
      async (store) => {
        const { placementKeys, signings } = store;
        const entry = { requestHash: 'h1', orderId: 'o', certificateId: 'c1' };
        const take = (at: number, taken = entry) => placementKeys.take('a', ODD, { ...taken, at }, at - 10);
        assert.equal(await take(NOW), true);
        assert.deepEqual(await placementKeys.find('a', ODD, NOW - 1), entry);
        assert.equal(await placementKeys.find('a', ODD, NOW), undefined, 'expired exactly at the limit');
        assert.equal(await placementKeys.find('b', ODD, 0), undefined);
        const other = { requestHash: 'h2', orderId: 'o', certificateId: 'c2' };
        assert.equal(await take(NOW + 9, other), false);
        assert.equal(await placementKeys.take('b', ODD, { ...entry, at: NOW }, 0), true);
        assert.deepEqual(await placementKeys.find('a', ODD, 0), entry, 'nothing was written');
        const both = [other, { ...other, certificateId: 'c3' }];
        const takenAtOnce = await Promise.all(
          both.map((one) => store.transaction((tx) => tx.placementKeys.take('a', ODD, { ...one, at: NOW + 10 }, NOW))),
        );
        assert.deepEqual(takenAtOnce.sort(), [false, true], 'the store decides');
        const winner = await placementKeys.find('a', ODD, NOW);
        assert.ok(await signings.begin(prepared(winner?.certificateId ?? ''), HOLDS));
        assert.ok(await placementKeys.find('a', ODD, NOW), 'being signed');
        await signings.void('o', 'unused');
        assert.equal(await placementKeys.find('a', ODD, NOW), undefined, 'its signer was lost');
        assert.equal(await take(NOW + 11, entry), true);
      },
    );

    testStore('a blocked key stays blocked, and adding it again changes nothing', async ({ blockedKeys }, rows) => {
      assert.equal(await blockedKeys.has(KEY, 'a'), false);
      await blockedKeys.report('b', 'f', NOW);
      await blockedKeys.report('b', 'f', NOW + 1);
      assert.deepEqual([await blockedKeys.has(KEY, 'a'), await blockedKeys.has(KEY, 'b')], [false, true]);
      await blockedKeys.add('f', ODD, NOW);
      await blockedKeys.add('f', 'again', NOW + 1);
      assert.equal(await blockedKeys.has(KEY, 'a'), true);
      assert.deepEqual(await rows('select fingerprint, reason from blocked_key'), [{ fingerprint: 'f', reason: ODD }]);
    });

    testStore(
      'a list of any length is blocked, and a listed modulus stands for every key on it',
      async (store, rows) => {
        const { blockedKeys } = store;
        const list = Array.from({ length: 1_201 }, (_, index) => `key ${index}`);
        await blockedKeys.addAll([...list, RSA_MODULUS, 'key 0'], '', NOW);
        assert.equal((await rows('select fingerprint from blocked_key')).length, 1_202);
        assert.equal(await blockedKeys.has({ ...KEY, fingerprint: 'key 1200' }, 'a'), true);
        for (const exponent of [65537n, 65539n]) {
          const key = { ...KEY, type: 'rsa' as const, spki: rsaSpki(RSA_NUMBER, exponent), fingerprint: `${exponent}` };
          assert.equal(await blockedKeys.has(key, 'a'), true);
          const record = prepared('c9', { publicKey: key });
          assert.equal(await store.signings.begin(record, { ...HOLDS, unblockedKey: key }), false);
        }
        const other = { ...KEY, type: 'rsa' as const, spki: rsaSpki(RSA_NUMBER + 2n) };
        assert.equal(await blockedKeys.has(other, 'a'), false);
        const free = { ...HOLDS, unblockedKey: other };
        assert.equal(await store.signings.begin(prepared('c9', { publicKey: other }), free), true);
      },
    );
  });
}
