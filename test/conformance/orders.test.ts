// Repositories of orders and certificates, on every engine: records round-trip, are visible only to their account, and
// single-use transitions happen once.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import { type DatabaseLocation, engineAt, type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import type { CertificateRecord } from '../../src/domain/certificate/certificate.ts';
import { bothEngines } from '../support/engines.ts';
import {
  certificate,
  EVERY_BYTE,
  FULL_ORDER,
  issued,
  issuedIn,
  NOW,
  ODD,
  order,
  pairOf,
  preparation,
  prepared,
  revocation,
  voided,
} from '../support/records.ts';

const key = newSealKey();

type Rows = (statement: string) => Promise<object[]>;
/** Drops the row prototype of the driver, and converts numbers. */
const plain = (row: object): object =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, name.endsWith('_at') ? Number(value) : value]));

for (const engine of await bothEngines()) {
  const open = (location: DatabaseLocation, keys = [key]) => openStore(location, sealerWith(keys), () => NOW);
  /** Accounts a and b, one pair of issuers, and the order o of a. */
  const testStore = (name: string, work: (store: OpenStore, rows: Rows) => Promise<void>) =>
    test(name, async () => {
      const location = await engine.newLocation();
      const store = await open(location);
      const db = openEngine(engineAt(location), () => {});
      try {
        const account = { name: 'Name', kind: 'standard', locale: 'en', createdAt: NOW } as const;
        for (const id of ['a', 'b']) await store.accounts.insert({ id, ...account });
        await store.issuers.claim(pairOf('x'));
        await store.orders.insert(order('o'));
        await work(store, async (statement) => (await sql.raw<object>(statement).execute(db)).rows.map(plain));
      } finally {
        await db.destroy();
        await store.close();
      }
    });

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

    testStore('orders are listed per account, by id, page by page', async ({ orders }) => {
      for (const id of ['q', 'p', 's', 'r']) await orders.insert(order(id, { accountId: id === 'r' ? 'b' : 'a' }));
      const ids = async (accountId: string, after?: string) =>
        (await orders.list(accountId, { after, limit: 2 })).map(({ id }) => id);
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

    testStore(
      'save writes the mutable fields, ends the signing, and affects one order of one account',
      async ({ orders }) => {
        await orders.insert(order('other'));
        const signing = { certificateId: 'c', until: NOW + 5 };
        await orders.beginSigning('o', signing);
        assert.deepEqual(await orders.findForUpdate('a', 'o'), { order: order('o'), signing });
        assert.deepEqual(await orders.findForUpdate('a', 'other'), { order: order('other'), signing: null });
        const changed = { ...FULL_ORDER, id: 'o', revision: 1 };
        // Neither from another account nor with a stale revision.
        for (const other of [{ accountId: 'b' }, { revision: 0 }]) {
          await assert.rejects(orders.save({ ...changed, ...other }), { code: 'service_busy' });
        }
        assert.deepEqual(await orders.findForUpdate('a', 'o'), { order: order('o'), signing });
        await orders.save(changed);
        const { productId, alternativeId, termEndsAt, createdAt } = order('o');
        const fixed = { id: 'o', productId, alternativeId, termEndsAt, createdAt };
        assert.deepEqual(await orders.findForUpdate('a', 'o'), {
          order: { ...changed, ...fixed, revision: 2 },
          signing: null,
        });
        assert.deepEqual(await orders.find('a', 'other'), order('other'));
      },
    );

    testStore('only the certificate that is being signed can finish the signing, once', async ({ orders }) => {
      await orders.insert(order('other'));
      const changed = { ...order('o'), status: 'issued' as const, currentCertificateId: 'c' };
      assert.equal(await orders.finishSigning(changed, 'c'), false);
      const signing = { certificateId: 'c', until: NOW + 5 };
      for (const id of ['o', 'other']) await orders.beginSigning(id, signing);
      assert.equal(await orders.finishSigning(changed, 'd'), false);
      assert.equal(await orders.finishSigning({ ...changed, revision: 0 }, 'c'), false);
      assert.equal(await orders.finishSigning({ ...changed, accountId: 'b' }, 'c'), false);
      assert.deepEqual(await orders.findForUpdate('a', 'o'), { order: order('o'), signing });
      assert.equal(await orders.finishSigning(changed, 'c'), true);
      assert.equal(await orders.finishSigning({ ...changed, revision: 2 }, 'c'), false);
      assert.deepEqual(await orders.findForUpdate('a', 'o'), { order: { ...changed, revision: 2 }, signing: null });
      assert.deepEqual(await orders.findForUpdate('a', 'other'), { order: order('other'), signing });
    });

    testStore('orders with an overdue signer are found, longest overdue first', async ({ orders }) => {
      for (const [id, until] of Object.entries({ p: NOW + 1, q: NOW, r: NOW - 5, s: NOW - 9 })) {
        await orders.insert(order(id, { accountId: id === 's' ? 'b' : 'a' }));
        await orders.beginSigning(id, { certificateId: 'c', until });
      }
      const overdue = async (now: number, limit: number) =>
        (await orders.overdue(now, limit)).map(({ accountId, orderId }) => accountId + orderId);
      assert.deepEqual(await overdue(NOW, 10), ['bs', 'ar', 'aq']);
      assert.deepEqual(await overdue(NOW, 1), ['bs']);
      await orders.save(order('s', { accountId: 'b' }));
      assert.deepEqual(await overdue(NOW - 1, 10), ['ar']);
    });

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

    testStore(
      'a certificate round-trips, and is found only through its account',
      async ({ certificates, revocations }) => {
        await certificates.insert(certificate('c0'));
        const full = issued('c1', {
          ...{ createdAt: 2 ** 52, pendingSince: 2 ** 51, commonName: ODD, names: [ODD, 'x'] },
          ...{ csr: ODD, signHash: 'sha512', validityDays: 199, customExpirationDate: '2027-01-01' },
          willRevoke: [{ certificateId: 'c0', reason: 'superseded', cause: 'previous_replaced', afterHours: 24 }],
          publicKey: { type: 'rsa', bits: 4096, spki: EVERY_BYTE, fingerprint: 'ff' },
          preparation: preparation('00ff', { notAfter: 2 ** 52, preparedAt: NOW + 1, leaseEndsAt: NOW + 2 }),
          ...{ der: EVERY_BYTE, issuedAt: NOW + 3, version: 7, replacesId: 'c0' },
        });
        await certificates.insert(full);
        const expected = revocation({ causedById: 'c0', revokedAt: NOW + 9 });
        assert.deepEqual(await certificates.find('a', 'c0'), certificate('c0'));
        assert.deepEqual(await certificates.find('a', 'c1'), full);
        await revocations.schedule('a', 'c1', expected);
        assert.deepEqual(await certificates.find('a', 'c1'), { ...full, revocation: expected });
        for (const id of ['c0', 'c1']) assert.equal(await certificates.find('b', id), undefined);
        assert.equal(await certificates.findReplacing('a', 'c0'), 'c1');
        assert.equal(await certificates.findReplacing('b', 'c0'), undefined);
        assert.equal(await certificates.findReplacing('a', 'c1'), undefined);
      },
    );

    testStore('the current certificate is found only through its account', async ({ certificates }) => {
      const [first, second] = [issued('c1', { version: 7 }), certificate('c2')];
      for (const one of [first, second]) await certificates.insert(one);
      const comparedOf = ({ id, commonName, names, publicKey, cloudKeyId }: CertificateRecord, version: number) => ({
        ...{ id, commonName, names, publicKey, cloudKeyId, version },
      });
      assert.deepEqual(await certificates.findCurrent('a', 'c1'), comparedOf(first, 7));
      assert.deepEqual(await certificates.findCurrent('a', 'c2'), comparedOf(second, 0));
      assert.equal(await certificates.findCurrent('b', 'c1'), undefined);
    });

    testStore('serial numbers are unique, and so are versions within an order', async ({ certificates, orders }) => {
      await orders.insert(order('p'));
      await certificates.insert(issued('c1', { version: 1 }));
      await assert.rejects(certificates.insert(certificate('c1')));
      await assert.rejects(certificates.insert(issued('c2', { preparation: preparation('serial of c1') })));
      await assert.rejects(certificates.insert(issued('c2', { version: 1 })));
      await assert.rejects(certificates.insert(certificate('c2', { orderId: 'nothing' })));
      await certificates.insert(issued('c2', { version: 1, orderId: 'p' }));
    });

    testStore('only pending certificates are canceled, and only by their account', async ({ certificates }) => {
      const records = [certificate('c1'), certificate('c2'), prepared('c3'), issued('c4')];
      for (const record of records) await certificates.insert(record);
      await certificates.cancel('b', 'c1');
      for (const id of ['c2', 'c3', 'c4']) await certificates.cancel('a', id);
      const states = await Promise.all(records.map(async ({ id }) => (await certificates.find('a', id))?.state));
      assert.deepEqual(states, ['pending', 'canceled', 'prepared', 'issued']);
    });

    testStore(
      'only prepared certificates are issued, once, and the bytes to be signed are erased',
      async ({ certificates }) => {
        const records = [prepared('c1'), prepared('c2'), certificate('c3'), prepared('c4')];
        for (const record of records) await certificates.insert(record);
        const result = { der: EVERY_BYTE, issuedAt: NOW + 5, version: 3, replacesId: 'c2' };
        assert.equal(await certificates.issue('c1', { ...result, encryptionDer: null }), true);
        const after = issued('c1', result);
        assert.deepEqual(await certificates.find('a', 'c1'), after);
        await certificates.void('c2', 'unused');
        const again = { ...result, der: Buffer.from('another'), version: 4, encryptionDer: null };
        for (const id of ['c1', 'c2', 'c3', 'nothing']) assert.equal(await certificates.issue(id, again), false);
        assert.deepEqual(await certificates.find('a', 'c1'), after);
        assert.deepEqual(await certificates.find('a', 'c2'), voided('c2'));
        for (const id of ['c1', 'c3', 'nothing']) await certificates.void(id, 'unused');
        assert.deepEqual(await certificates.find('a', 'c1'), after);
        assert.deepEqual(await certificates.find('a', 'c3'), certificate('c3'));
        assert.deepEqual(await certificates.find('a', 'c4'), prepared('c4'));
      },
    );

    testStore(
      'the last certificates of an order are listed oldest first, without voided ones',
      async ({ certificates, orders }) => {
        await orders.insert(order('p'));
        for (const id of ['c3', 'c1', 'c4', 'c2']) {
          await certificates.insert(certificate(id, { orderId: id === 'c2' ? 'p' : 'o' }));
        }
        await certificates.insert(voided('c5'));
        const list = (accountId: string, limit: number) => certificates.listLast(accountId, 'o', limit);
        const unissued = { version: null, replacesId: null, issuedAt: null };
        const summary = (id: string) => ({ id, state: 'pending', createdAt: NOW, ...unissued });
        assert.deepEqual(await list('a', 9), [summary('c1'), summary('c3'), summary('c4')]);
        assert.deepEqual(await list('a', 2), [summary('c3'), summary('c4')]);
        assert.deepEqual(await list('b', 9), []);
      },
    );

    testStore(
      'certificates are valid if issued, not expired and not yet revoked',
      async ({ certificates, orders, revocations }) => {
        await orders.insert(order('p'));
        const ends = (id: string, notAfter: number) => ({
          preparation: preparation(`serial of ${id}`, { notAfter }),
        });
        const records = [
          issued('c1', { names: [ODD], ...ends('c1', NOW) }),
          issued('c2', ends('c2', NOW - 1)),
          ...[issued('c3'), issued('c4', { orderId: 'p' }), prepared('c5'), certificate('c6'), issued('c7')],
        ];
        for (const record of records) await certificates.insert(record);
        await revocations.schedule('a', 'c7', revocation({ dueAt: NOW + 1_000 }));
        await revocations.schedule('a', 'c3', revocation({ dueAt: NOW, revokedAt: NOW }));
        assert.deepEqual(await certificates.listValid('a', 'o', NOW), [
          { id: 'c1', names: [ODD] },
          { id: 'c7', names: [] },
        ]);
        assert.deepEqual(await certificates.listValid('b', 'o', NOW), []);
      },
    );

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

    testStore('a blocked key stays blocked, and adding it again changes nothing', async ({ blockedKeys }, rows) => {
      assert.equal(await blockedKeys.has('f', 'a'), false);
      await blockedKeys.report('b', 'f', NOW);
      await blockedKeys.report('b', 'f', NOW + 1);
      assert.deepEqual([await blockedKeys.has('f', 'a'), await blockedKeys.has('f', 'b')], [false, true]);
      await blockedKeys.add('f', ODD, NOW);
      await blockedKeys.add('f', 'again', NOW + 1);
      assert.equal(await blockedKeys.has('f', 'a'), true);
      assert.deepEqual(await rows('select fingerprint, reason from blocked_key'), [{ fingerprint: 'f', reason: ODD }]);
    });
  });
}
