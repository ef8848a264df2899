// The repository of certificates, on every engine: records of every state round-trip, and are visible only to their
// account.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { CertificateRecord } from '../../src/domain/certificate/certificate.ts';
import { bothEngines } from '../support/engines.ts';
import { storeTests } from '../support/order-store.ts';
import {
  certificate,
  EVERY_BYTE,
  issued,
  NOW,
  ODD,
  order,
  preparation,
  revocation,
  voided,
} from '../support/records.ts';

for (const engine of await bothEngines()) {
  const testStore = storeTests(engine);
  describe(engine.name, () => {
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
          ...{ der: EVERY_BYTE, issuedAt: NOW + 3, version: 2, replacesId: 'c0' },
        });
        await certificates.insert(full);
        const expected = revocation({ causedById: 'c0', revokedAt: NOW + 9 });
        assert.deepEqual(await certificates.find('a', 'c0'), certificate('c0'));
        assert.deepEqual(await certificates.find('a', 'c1'), full);
        await revocations.schedule('a', 'c1', expected);
        assert.deepEqual(await certificates.find('a', 'c1'), { ...full, revocation: expected });
        for (const id of ['c0', 'c1']) assert.equal(await certificates.find('b', id), undefined);
        await certificates.insert(issued('c3', { replacesId: 'c1' }));
        assert.equal(await certificates.findReplacing('a', 'c1'), 'c3');
        assert.equal(await certificates.findReplacing('b', 'c1'), undefined);
        assert.equal(await certificates.findReplacing('a', 'c3'), undefined);
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

    testStore('an order is found with what its reissue needs, by its account only', async (store) => {
      const { certificates, orders, proofs } = store;
      const usage = { quotas: { openOrders: null, storedBytes: null }, storedBytes: 0 };
      const nothing = { current: null, proofs: new Map(), usage };
      assert.deepEqual(await orders.findForReissue('a', 'o', []), { order: order('o'), ...nothing });
      await certificates.insert(issued('c1', { version: 7, commonName: ODD, names: [ODD, 'x'] }));
      await orders.save(order('o', { currentCertificateId: 'c1' }));
      await proofs.record('a', ODD, 'dns', NOW);
      await proofs.record('a', 'asked', 'file', NOW - 1);
      await proofs.record('a', 'asked', 'dns', NOW - 2);
      await proofs.record('a', 'another', 'dns', NOW);
      await proofs.record('b', 'x', 'operator', NOW);
      const found = (await orders.findForReissue('a', 'o', ['asked', 'nothing', 'asked', 'a\0b', '\ud800']))!;
      assert.deepEqual(found.order, await orders.find('a', 'o'));
      assert.deepEqual(found.current, await certificates.findCurrent('a', 'c1'));
      const methods = (name: string) => found.proofs.get(name)?.map(({ method, validatedAt }) => [method, validatedAt]);
      assert.deepEqual([...found.proofs.keys()].sort(), [ODD, 'asked'].sort());
      assert.deepEqual(methods(ODD), [['dns', NOW]]);
      assert.deepEqual(methods('asked')?.sort(), [
        ['dns', NOW - 2],
        ['file', NOW - 1],
      ]);
      assert.equal(await orders.findForReissue('b', 'o', []), undefined);
      assert.equal(await orders.findForReissue('a', 'nothing', []), undefined);
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
      const records = [certificate('c1'), certificate('c2'), voided('c3'), issued('c4')];
      for (const record of records) await certificates.insert(record);
      const cancel = (accountId: string, certificateId: string) =>
        certificates.cancel({ accountId, orderId: 'o', certificateId }, { reason: 'requested', at: NOW });
      await cancel('b', 'c1');
      for (const id of ['c2', 'c3', 'c4', 'c2']) await cancel('a', id);
      const states = await Promise.all(records.map(async ({ id }) => (await certificates.find('a', id))?.state));
      assert.deepEqual(states, ['pending', 'canceled', 'voided', 'issued']);
      const cancellation = { reason: 'requested', at: NOW } as const;
      assert.deepEqual(await certificates.find('a', 'c2'), { ...certificate('c2'), state: 'canceled', cancellation });
      const last = (accountId: string, after: string | null) => certificates.lastCanceled(accountId, 'o', after);
      assert.deepEqual(await last('a', null), { certificateId: 'c2', ...cancellation });
      assert.deepEqual(await last('a', 'c1'), { certificateId: 'c2', ...cancellation });
      for (const none of [await last('a', 'c2'), await last('b', null)]) assert.equal(none, undefined);
    });

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
        const summary = (id: string) => ({ id, status: 'pending', createdAt: NOW, ...unissued });
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
          ...[issued('c3'), issued('c4', { orderId: 'p' }), voided('c5'), certificate('c6'), issued('c7')],
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
  });
}
