// What is being signed, on every engine: it is written down only if everything that was decided upon still holds, an order
// has one signer at a time, and a serial number that was written down is never used again.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { OpenStore } from '../../src/adapters/store/store.ts';
import type { PreparedCertificate } from '../../src/domain/certificate/certificate.ts';
import type { BeginConditions, Signings } from '../../src/domain/issuance/ports.ts';
import { bothEngines } from '../support/engines.ts';
import { dump, storeTests } from '../support/order-store.ts';
import { certificate, EVERY_BYTE, issued, NOW, ODD, order, preparation, prepared, voided } from '../support/records.ts';
import { finished, HOLDS, half } from '../support/signings.ts';

interface Beginning {
  given?(store: OpenStore): Promise<unknown>;
  readonly record?: Partial<PreparedCertificate>;
  readonly conditions?: Partial<BeginConditions>;
}

const RECORD_KEY = certificate('any').publicKey;
const KEY = { key: ODD, since: NOW - 1 };
const useKey =
  (accountId: string, orderId: string, key = ODD) =>
  async ({ certificates, idempotencyKeys }: OpenStore) => {
    await certificates.insert(certificate('c0', { accountId, orderId }));
    await idempotencyKeys.put(accountId, orderId, key, { requestHash: '', certificateId: 'c0', at: NOW });
  };
const escrow = ({ escrowedKeys }: OpenStore, fingerprint = 'escrowed') =>
  escrowedKeys.insert({
    ...{ id: 'e', accountId: 'a', orderId: 'o', privateKey: EVERY_BYTE, createdAt: NOW },
    publicKey: { ...certificate('any').publicKey, fingerprint },
  });

/** One condition fails. */
const REFUSED: Readonly<Record<string, Beginning>> = {
  'the order has another revision': { conditions: { revision: 2 } },
  'the order is of another account': { record: { accountId: 'b' } },
  'there is no such order': { record: { orderId: 'nothing' } },
  'the order is being signed': { given: ({ signings }) => signings.begin(prepared('other'), HOLDS) },
  'the same certificate is being signed': { given: ({ signings }) => signings.begin(prepared('c1'), HOLDS) },
  'the key is blocked for all': {
    given: ({ blockedKeys }) => blockedKeys.add('f', '', NOW),
    conditions: { unblockedKey: RECORD_KEY },
  },
  'the account has reported the key': {
    given: ({ blockedKeys }) => blockedKeys.report('a', 'f', NOW),
    conditions: { unblockedKey: RECORD_KEY },
  },
  'the idempotency key was used': { given: useKey('a', 'o'), conditions: { idempotency: KEY } },
  'the serial number is taken': {
    given: ({ certificates }) => certificates.insert(issued('c2')),
    record: { preparation: preparation('serial of c2') },
  },
  'the serial number of the half is taken': {
    async given(store) {
      await escrow(store);
      await store.certificates.insert(voided('c2', { encryption: half('of the half') }));
    },
    record: { encryption: half('of the half') },
  },
};

/** Something similar, which is no reason to refuse. */
const ACCEPTED: Readonly<Record<string, Beginning>> = {
  'nothing else is known': {},
  'another account has reported the key': {
    given: ({ blockedKeys }) => blockedKeys.report('b', 'f', NOW),
    conditions: { unblockedKey: RECORD_KEY },
  },
  'another key is blocked': {
    given: ({ blockedKeys }) => blockedKeys.add('F', '', NOW),
    conditions: { unblockedKey: RECORD_KEY },
  },
  'no key has to be unblocked': { given: ({ blockedKeys }) => blockedKeys.add('f', '', NOW) },
  'the idempotency key has expired': {
    given: useKey('a', 'o'),
    conditions: { idempotency: { ...KEY, since: NOW } },
  },
  'another idempotency key was used': { given: useKey('a', 'o', 'another'), conditions: { idempotency: KEY } },
  'it was used for another order': { given: useKey('a', 'q'), conditions: { idempotency: KEY } },
  'it was used by another account': { given: useKey('b', 'p'), conditions: { idempotency: KEY } },
  'another order is being signed': {
    given: ({ signings }) => signings.begin(prepared('other', { orderId: 'q' }), HOLDS),
  },
};

type Begin = (store: OpenStore, ...args: Parameters<Signings['begin']>) => Promise<boolean>;
const WAYS: Readonly<Record<string, Begin>> = {
  alone: ({ signings }, ...args) => signings.begin(...args),
  'in a transaction': (store, ...args) => store.transaction((tx) => tx.signings.begin(...args)),
};

for (const engine of await bothEngines()) {
  const testStore = storeTests(engine);
  /** With the orders p of b and q of a. */
  const testBegin = (name: string, { given, record, conditions }: Beginning, begins: boolean) =>
    testStore(name, async (store, rows) => {
      await store.orders.insert(order('p', { accountId: 'b' }));
      await store.orders.insert(order('q'));
      await given?.(store);
      for (const [way, begin] of Object.entries(WAYS)) {
        const before = await dump(engine, rows);
        const wanted = prepared('c1', { preparation: preparation(way), ...record });
        assert.equal(await begin(store, wanted, { ...HOLDS, ...conditions }), begins, way);
        const after = await dump(engine, rows);
        assert.equal(after.get('signing')!.length - before.get('signing')!.length, begins ? 1 : 0, way);
        if (begins) for (const dumped of [before, after]) dumped.delete('signing');
        assert.deepEqual(after, before, way);
        if (begins) await store.signings.void('o', 'unused');
      }
    });

  describe(engine.name, () => {
    testStore('of several that are begun at once, each is answered for itself, and an order has one', async (store) => {
      const { orders, signings } = store;
      for (const id of ['p', 'q', 'r']) await orders.insert(order(id));
      const again = prepared('c5', { orderId: 'r' });
      const begun = await Promise.all([
        signings.begin(prepared('c1', { commonName: ODD, names: [ODD, ''], csr: null }), HOLDS),
        signings.begin(prepared('c2', { orderId: 'p' }), { ...HOLDS, revision: 2 }),
        ...['c3', 'c4'].map((id) => signings.begin(prepared(id, { orderId: 'q' }), HOLDS)),
        ...[again, again].map((record) => signings.begin(record, HOLDS)),
      ]);
      assert.deepEqual(begun, [true, false, true, false, true, false]);
    });

    for (const [what, beginning] of Object.entries(REFUSED)) testBegin(`refused: ${what}`, beginning, false);
    for (const [what, beginning] of Object.entries(ACCEPTED)) testBegin(`begun: ${what}`, beginning, true);

    testStore('what begins in a transaction ends with it, and a refusal does not end it', async (store, rows) => {
      const before = await dump(engine, rows);
      const failing = store.transaction(async ({ signings }) => {
        assert.equal(await signings.begin(prepared('c1'), HOLDS), true);
        assert.equal(await signings.begin(prepared('c2'), HOLDS), false);
        throw new Error('something else failed');
      });
      await assert.rejects(failing, /something else/);
      assert.deepEqual(await dump(engine, rows), before);
      await store.transaction(async ({ signings, orders }) => {
        assert.equal(await signings.begin(prepared('c1'), { ...HOLDS, revision: 9 }), false);
        await orders.save(order('o', { commonName: ODD }));
        assert.equal(await signings.begin(prepared('c1'), { ...HOLDS, revision: 2 }), true);
      });
      const held = await store.orders.findForUpdate('a', 'o');
      assert.deepEqual([held?.order.commonName, held?.signing?.certificateId], [ODD, 'c1']);
    });

    testStore('two orders cannot sign one serial number at a time', async (store, rows) => {
      await store.orders.insert(order('q'));
      assert.ok(await store.signings.begin(prepared('c1'), HOLDS));
      const before = await dump(engine, rows);
      const same = prepared('c2', { orderId: 'q', preparation: preparation('serial of c1') });
      await assert.rejects(store.signings.begin(same, HOLDS));
      assert.deepEqual(await dump(engine, rows), before);
    });

    testStore('the lease is shown with the order, to its account, whatever else changes', async (store) => {
      const { orders, signings } = store;
      await orders.insert(order('other'));
      const lease = { preparation: preparation('00ff', { leaseEndsAt: NOW + 7 }) };
      await signings.begin(prepared('c1', lease), HOLDS);
      const signing = { certificateId: 'c1', until: NOW + 7 };
      assert.deepEqual(await orders.findForUpdate('a', 'o'), { order: order('o'), signing });
      assert.deepEqual((await orders.findForUpdate('a', 'other'))?.signing, null);
      assert.equal(await orders.findForUpdate('b', 'o'), undefined);
      assert.equal(await store.certificates.find('a', 'c1'), undefined, 'it has no record yet');
      await orders.save(order('o', { status: 'issued' }));
      assert.deepEqual((await orders.findForUpdate('a', 'o'))?.signing, signing);
    });

    testStore('expired leases are listed, longest expired first, in all accounts', async ({ orders, signings }) => {
      for (const [id, leaseEndsAt] of Object.entries({ p: NOW + 1, q: NOW, r: NOW - 5, s: NOW - 9 })) {
        const owner = { accountId: id === 's' ? 'b' : 'a' };
        await orders.insert(order(id, owner));
        const lease = { preparation: preparation(`serial of ${id}`, { leaseEndsAt }) };
        assert.ok(await signings.begin(prepared(`c of ${id}`, { orderId: id, ...owner, ...lease }), HOLDS));
      }
      const overdue = async (now: number, limit: number) =>
        (await signings.overdue(now, limit)).map(({ accountId, orderId }) => accountId + orderId);
      assert.deepEqual(await overdue(NOW, 10), ['bs', 'ar', 'aq']);
      assert.deepEqual(await overdue(NOW, 1), ['bs']);
      await signings.void('s', 'unused');
      assert.deepEqual(await overdue(NOW - 1, 10), ['ar']);
    });

    testStore('a voided one keeps what may exist somewhere, and nothing else of the request', async (store, rows) => {
      const { certificates, signings } = store;
      await escrow(store);
      const record = prepared('c1', {
        ...{ createdAt: NOW - 3, commonName: ODD, names: [ODD, 'x'], signHash: 'sha512', encryption: half('of half') },
        publicKey: { type: 'rsa', bits: 4096, spki: EVERY_BYTE, fingerprint: 'ff' },
        ...{ csr: ODD, validityDays: 7, customExpirationDate: '2027-01-01', keepsEncryptionKey: true },
        willRevoke: [{ certificateId: 'c0', reason: 'superseded', cause: 'previous_replaced', afterHours: 24 }],
      });
      await signings.begin(record, HOLDS);
      await signings.void('o', 'v1');
      const unsaid = { csr: null, validityDays: null, customExpirationDate: null, keepsEncryptionKey: false };
      const { state: _, ...lost } = record;
      assert.deepEqual(await certificates.find('a', 'c1'), voided('c1', { ...lost, ...unsaid, willRevoke: [] }));
      assert.equal(await certificates.find('a', 'v1'), undefined, 'its id was never answered, so it is its own');
      assert.deepEqual(await certificates.listVoided({ limit: 9 }), [
        { accountId: 'a', orderId: 'o', certificateId: 'c1' },
      ]);
      const before = await dump(engine, rows);
      for (const id of ['o', 'nothing']) await signings.void(id, 'v2');
      assert.deepEqual(await dump(engine, rows), before, 'there is nothing to void');
      assert.equal(await signings.begin(record, HOLDS), false, 'its serial number is never signed again');
      assert.equal(await signings.begin(prepared('c3'), HOLDS), true, 'and the order is free');
    });

    testStore('what was voided under another id can be lost again', async ({ certificates, signings }) => {
      const waits = { pendingSince: NOW };
      await certificates.insert(certificate('c1', waits));
      for (const time of ['first', 'second']) {
        assert.ok(await signings.begin(prepared('c1', { ...waits, preparation: preparation(time) }), HOLDS));
        await signings.void('o', `${time} loss`);
      }
      assert.deepEqual(await certificates.find('a', 'c1'), certificate('c1', waits));
      const serials = await Promise.all(
        ['first loss', 'second loss'].map(async (id) => {
          const found = await certificates.find('a', id);
          return found?.state === 'voided' && found.preparation.serial;
        }),
      );
      assert.deepEqual(serials, ['first', 'second']);
    });

    testStore(
      'what is being signed on a reported key is marked, in any account, and by its half',
      async (store, rows) => {
        const { orders, signings } = store;
        await escrow(store, 'of the half');
        const on = (fingerprint: string) => ({ publicKey: { ...certificate('any').publicKey, fingerprint } });
        const records = [
          prepared('c1', on('f')),
          prepared('c2', { orderId: 'p', accountId: 'b', ...on('f') }),
          prepared('c3', { orderId: 'q', ...on('F') }),
          prepared('c4', { orderId: 'r', ...on('own'), encryption: half('serial of the half') }),
        ];
        for (const { orderId: id, accountId } of records.slice(1)) await orders.insert(order(id, { accountId }));
        for (const record of records) assert.ok(await signings.begin(record, HOLDS));
        const marked = async () =>
          (await rows('select certificate_id from signing where key_reported = 1 order by certificate_id')).flatMap(
            Object.values,
          );
        await signings.reportKey('nothing', null);
        assert.deepEqual(await marked(), []);
        await signings.reportKey('f', null);
        assert.deepEqual(await marked(), ['c1', 'c2']);
        await signings.reportKey('of the half', null);
        assert.deepEqual(await marked(), ['c1', 'c2', 'c4']);
        for (const record of records) {
          const isMarked = record.id !== 'c3';
          assert.equal(await signings.finish(finished(record), { evenIfReported: false }), !isMarked, record.id);
        }
        for (const record of records) await signings.finish(finished(record), { evenIfReported: true });
        assert.deepEqual(await rows('select * from signing'), []);
      },
    );
  });
}
