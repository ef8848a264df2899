// Repositories of revocation, on every engine: a revocation is applied once, publishing a CRL is a compare and swap, and
// only issued serial numbers are good.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import type { PublishedCrl, RevokedSerial } from '../../src/domain/revocation/ports.ts';
import { shardOf } from '../../src/domain/revocation/revocation.ts';
import { bothEngines } from '../support/engines.ts';
import { claimPair, issued, NOW, order, preparation, prepared, revocation } from '../support/records.ts';
import { HOLDS } from '../support/signings.ts';

const ISSUER = 'x-issuing';
const LIST = { issuerId: ISSUER, shard: 1 };
const serialOf = (number: number): string => `${'40'.repeat(14)}${(number % 256).toString(16).padStart(2, '0')}01`;
const revoked = (number: number, change: Partial<RevokedSerial> = {}): RevokedSerial => ({
  ...{ ...LIST, serial: serialOf(number), certificateId: `c${number}` },
  ...{ reason: 'superseded', revokedAt: NOW + number, notAfter: NOW + 100, ...change },
});
const list = (number: number, change: Partial<PublishedCrl> = {}): PublishedCrl => ({
  ...{ ...LIST, number, thisUpdate: NOW, nextUpdate: NOW + 1, entries: 0, expiredBefore: 0, addresses: 'here' },
  der: Buffer.from([number]),
  ...change,
});

for (const engine of await bothEngines()) {
  /** Accounts a and b, issuers, the order o of a with the issued certificates c1 to c9. */
  const testStore = (name: string, work: (store: OpenStore) => Promise<void>) =>
    test(name, async () => {
      const store = await openStore(await engine.newLocation(), sealerWith([newSealKey()]), () => NOW);
      try {
        const account = { name: 'Name', kind: 'standard', locale: 'en', createdAt: NOW } as const;
        for (const id of ['a', 'b']) await store.accounts.insert({ id, ...account });
        await claimPair(store);
        await store.orders.insert(order('o'));
        for (let number = 1; number <= 9; number += 1) {
          const change = { version: number, preparation: preparation(serialOf(number)) };
          await store.certificates.insert(issued(`c${number}`, change));
        }
        await work(store);
      } finally {
        await store.close();
      }
    });

  describe(engine.name, () => {
    testStore(
      'a revocation can be changed by its account until it is applied, and is applied once',
      async ({ revocations }) => {
        await revocations.schedule('a', 'c1', revocation({ dueAt: NOW + 5 }));
        await revocations.schedule('a', 'c2', revocation({ dueAt: NOW + 3 }));
        const scheduled = async (accountId: string, limit = 9) =>
          (await revocations.listScheduled(accountId, 'o', limit)).map(({ certificateId, dueAt }) => [
            certificateId,
            dueAt,
          ]);
        assert.deepEqual(await scheduled('a'), [
          ['c2', NOW + 3],
          ['c1', NOW + 5],
        ]);
        assert.deepEqual([await scheduled('b'), await scheduled('a', 1)], [[], [['c2', NOW + 3]]]);
        const all = async (accountId: string, limit: number) =>
          (await revocations.listOfAccount(accountId, limit)).map((one) => [one.certificateId, one.orderId, one.dueAt]);
        assert.deepEqual(await all('a', 9), [
          ['c2', 'o', NOW + 3],
          ['c1', 'o', NOW + 5],
        ]);
        assert.deepEqual([await all('b', 9), await all('a', 1)], [[], [['c2', 'o', NOW + 3]]]);
        assert.deepEqual(
          [await revocations.reschedule('b', 'c1', NOW), await revocations.unschedule('b', 'c1')],
          [false, false],
        );
        assert.equal(await revocations.reschedule('a', 'c1', NOW + 4), true);
        const due = async (now: number) => (await revocations.due(now, 9)).map(({ certificateId }) => certificateId);
        assert.deepEqual([await due(NOW + 2), await due(NOW + 3), await due(NOW + 4)], [[], ['c2'], ['c2', 'c1']]);
        assert.deepEqual(await revocations.due(NOW + 3, 1), [{ accountId: 'a', orderId: 'o', certificateId: 'c2' }]);
        const deed = { reason: 'key_compromise', cause: 'requested', at: NOW + 4 } as const;
        assert.deepEqual(
          [
            await revocations.markRevoked('c1', deed),
            await revocations.markRevoked('c1', deed),
            await revocations.markRevoked('c9', deed),
          ],
          [true, false, false],
        );
        assert.deepEqual(
          [await revocations.reschedule('a', 'c1', NOW), await revocations.unschedule('a', 'c1')],
          [false, false],
        );
        assert.deepEqual([await due(NOW + 9), await scheduled('a')], [['c2'], [['c2', NOW + 3]]]);
        assert.equal(await revocations.unschedule('a', 'c2'), true);
        assert.deepEqual(await due(NOW + 9), []);
      },
    );

    testStore('of two concurrent applications one succeeds', async (store) => {
      await store.revocations.schedule('a', 'c1', revocation());
      const deed = { reason: 'superseded', cause: 'requested', at: NOW } as const;
      const attempt = () =>
        store.transaction(async (tx) => {
          await tx.orders.findForUpdate('a', 'o');
          return await tx.revocations.markRevoked('c1', deed);
        });
      assert.deepEqual((await Promise.all([attempt(), attempt(), attempt()])).filter(Boolean), [true]);
    });

    testStore(
      'certificates are valid if issued, not expired and not revoked',
      async ({ certificates, revocations }) => {
        assert.equal(await certificates.hasUnrevoked('a', 'o', NOW), true);
        assert.equal(await certificates.hasUnrevoked('b', 'o', NOW), false);
        assert.equal(await certificates.hasUnrevoked('a', 'o', NOW + 101), false, 'all have expired');
        for (let number = 1; number <= 9; number += 1) {
          await revocations.schedule('a', `c${number}`, revocation());
          assert.equal(
            await certificates.hasUnrevoked('a', 'o', NOW),
            true,
            'a scheduled revocation does not count yet',
          );
          await revocations.markRevoked(`c${number}`, { reason: 'superseded', cause: 'requested', at: NOW });
        }
        assert.equal(await certificates.hasUnrevoked('a', 'o', NOW), false);
      },
    );

    testStore('publishing a CRL replaces only the CRL it names', async ({ crls }) => {
      assert.equal(await crls.head(LIST), undefined);
      assert.equal(await crls.publish(list(5), 4, [], NOW), false, 'there is none to replace');
      assert.equal(await crls.publish(list(5), null, [], NOW), true);
      assert.equal(await crls.publish(list(6), null, [], NOW), false);
      assert.equal(await crls.publish(list(7), 6, [], NOW), false);
      const next = list(7, {
        thisUpdate: 2 ** 50,
        nextUpdate: 2 ** 50 + 1,
        entries: 3,
        expiredBefore: 2,
        addresses: '',
      });
      assert.equal(await crls.publish(next, 5, [], NOW), true);
      const { der, ...head } = next;
      assert.deepEqual(await crls.head(LIST), head);
      assert.deepEqual(await crls.heads(), [head]);
      const found = await crls.find(LIST);
      assert.deepEqual([found && { ...found, der: [...found.der] }], [{ ...head, der: [...der] }]);
      assert.equal(await crls.head({ ...LIST, shard: 2 }), undefined);
    });

    testStore('a revoked serial number stays unlisted until a CRL has it, and records the first one', async (store) => {
      const { revokedSerials, crls } = store;
      for (const number of [1, 2, 3]) await revokedSerials.insert(revoked(number));
      await assert.rejects(revokedSerials.insert(revoked(1)), 'once');
      const unlisted = async () => (await revokedSerials.unlisted(LIST, 9)).map(({ serial }) => serial).sort();
      assert.deepEqual(await unlisted(), [1, 2, 3].map(serialOf));
      assert.deepEqual(await revokedSerials.crlsWithUnlisted(9), [LIST]);
      // Its reason changes between being read and being listed: the CRL has the old reason.
      const read = await revokedSerials.unlisted(LIST, 9);
      await revokedSerials.changeReason('c2', 'key_compromise');
      await store.transaction((tx) => tx.crls.publish(list(5), null, read, NOW));
      assert.deepEqual(await unlisted(), [serialOf(2)]);
      await crls.publish(list(6), 5, await revokedSerials.unlisted(LIST, 9), NOW);
      assert.deepEqual([await unlisted(), await revokedSerials.crlsWithUnlisted(9)], [[], []]);
      const seen = async (id: string) =>
        (await revokedSerials.ofCertificate(id)).map(({ crlNumber, reason }) => [crlNumber, reason]);
      assert.deepEqual([await seen('c1'), await seen('c2')], [[[5, 'superseded']], [[5, 'key_compromise']]]);
      // Changed later, it is listed again; crl_number keeps the first CRL.
      await revokedSerials.changeReason('c1', 'key_compromise');
      assert.deepEqual(
        (await revokedSerials.unlisted(LIST, 9)).map(({ wasListed }) => wasListed),
        [true],
      );
      await crls.publish(list(7), 6, await revokedSerials.unlisted(LIST, 9), NOW);
      assert.deepEqual(await seen('c1'), [[5, 'key_compromise']]);
      const between = async (after: number, upTo: number) =>
        (await revokedSerials.listedBetween(LIST, after, upTo, 9)).map(({ serial, wasListed }) => [serial, wasListed]);
      assert.deepEqual(await between(5, 6), [[serialOf(2), true]], 'an earlier CRL has another reason');
      assert.deepEqual(await between(6, 7), [[serialOf(1), true]]);
    });

    testStore('a page has the entries of its CRL, without expired ones', async ({ revokedSerials, crls }) => {
      for (const number of [1, 2, 3, 4]) await revokedSerials.insert(revoked(number, { notAfter: NOW + number }));
      await crls.publish(list(5), null, await revokedSerials.unlisted(LIST, 9), NOW);
      await revokedSerials.insert(revoked(5));
      const page = async (number: number, expiredBefore: number, after = '', limit = 9) =>
        (await revokedSerials.page(LIST, { upTo: number, expiredBefore, after, limit })).map(({ serial }) => serial);
      assert.deepEqual(await page(5, 0), [1, 2, 3, 4].map(serialOf), 'without those of the next CRL');
      assert.deepEqual(await page(5, NOW + 3), [3, 4].map(serialOf));
      assert.deepEqual(await page(5, 0, serialOf(1), 2), [2, 3].map(serialOf));
      assert.deepEqual(await page(4, 0), []);
    });

    testStore('only serial numbers issued by this issuer are good', async (store) => {
      const { revokedSerials, signings, ocspResponders } = store;
      const kind = async (serial: string, issuerId = ISSUER) => (await revokedSerials.statusOf(issuerId, serial)).kind;
      assert.equal(await kind(serialOf(1)), 'good');
      assert.equal(await kind(serialOf(1), 'x-root'), 'unknown');
      assert.equal(await kind(serialOf(99)), 'unknown');
      const late = '50'.repeat(16);
      assert.ok(await signings.begin(prepared('late', { preparation: preparation(late) }), HOLDS));
      assert.equal(await kind(late), 'unknown', 'while it is being signed');
      await signings.void('o', 'unused');
      assert.equal(await kind(late), 'unknown', 'when its signer is lost');
      await revokedSerials.insert(revoked(1));
      assert.deepEqual(await revokedSerials.statusOf(ISSUER, serialOf(1)), {
        ...{ kind: 'revoked', revokedAt: NOW + 1, reason: 'superseded' },
      });
      await revokedSerials.insert(revoked(9, { serial: late, shard: shardOf(late), certificateId: 'late' }));
      assert.equal(await kind(late), 'revoked');
      const serial = '60'.repeat(16);
      const responder = { serial, issuerId: ISSUER, notBefore: NOW, notAfter: NOW + 9 };
      await ocspResponders.prepare(responder, NOW);
      assert.deepEqual(
        [await kind(serial), await ocspResponders.current(ISSUER, Number.MAX_SAFE_INTEGER)],
        ['unknown', undefined],
      );
      const whole = { ...responder, certificate: Buffer.from('certificate'), privateKey: Buffer.from('private key') };
      await ocspResponders.finish(whole);
      assert.deepEqual([await kind(serial), await kind(serial, 'x-root')], ['good', 'unknown']);
      const found = await ocspResponders.current(ISSUER, Number.MAX_SAFE_INTEGER);
      assert.deepEqual(found, whole);
      await assert.rejects(ocspResponders.prepare(responder, NOW), 'serial numbers are unique');
    });

    testStore('certificates on a key, and interrupted issuances', async ({ certificates, signings }) => {
      const onKey = async (after?: string, limit = 9) =>
        (await certificates.listOnKey('f', { after, limit })).map(({ certificateId }) => certificateId);
      assert.equal((await onKey()).length, 9);
      assert.deepEqual(await onKey('c2', 2), ['c3', 'c4']);
      assert.deepEqual(await certificates.listOnKey('other', { limit: 9 }), []);
      assert.ok(await signings.begin(prepared('late', { preparation: preparation('70'.repeat(16)) }), HOLDS));
      assert.deepEqual(await onKey('c9'), [], 'what is being signed is marked instead');
      assert.deepEqual(await certificates.listVoided({ limit: 9 }), []);
      await signings.void('o', 'unused');
      assert.deepEqual(await onKey('c9'), ['late']);
      assert.deepEqual(await certificates.listVoided({ limit: 9 }), [
        { accountId: 'a', orderId: 'o', certificateId: 'late' },
      ]);
    });

    testStore('a serial number without a certificate is revoked, and its reason may become graver', async (store) => {
      const { revokedSerials } = store;
      const orphan = revoked(200, { certificateId: null });
      await revokedSerials.insert(orphan);
      await revokedSerials.insert(revoked(1));
      const { serial } = orphan;
      assert.equal((await revokedSerials.statusOf(ISSUER, serial)).kind, 'revoked');
      await revokedSerials.changeReasonOf({ ...orphan, reason: 'key_compromise' });
      await revokedSerials.changeReasonOf({ ...revoked(1), reason: 'key_compromise' });
      assert.deepEqual(
        await revokedSerials.reasonsOf(ISSUER, [orphan, revoked(1), revoked(2)]),
        new Map([
          [serial, 'key_compromise'],
          [serialOf(1), 'superseded'],
        ]),
      );
      const ref = { accountId: 'a', orderId: 'o', certificateId: 'c2' };
      assert.deepEqual(
        [await revokedSerials.ownerOf(ISSUER, serialOf(2)), await revokedSerials.ownerOf(ISSUER, serial)],
        [ref, undefined],
      );
      assert.equal(await revokedSerials.ownerOf('x-root', serialOf(2)), undefined);
    });

    testStore('a CRL that was published before is adopted unless a later one is stored', async ({ crls }) => {
      assert.equal(await crls.adopt(list(5)), true);
      assert.deepEqual(
        [await crls.adopt(list(5)), await crls.adopt(list(4)), await crls.adopt(list(6))],
        [false, false, true],
      );
      assert.deepEqual([(await crls.find(LIST))?.number, [...((await crls.find(LIST))?.der ?? [])]], [6, [6]]);
      await crls.makeDue(NOW - 5);
      assert.equal((await crls.head(LIST))?.thisUpdate, NOW - 5);
      await crls.makeDue(NOW - 1);
      assert.equal((await crls.head(LIST))?.thisUpdate, NOW - 5, 'never moved forward');
    });

    testStore('addresses are listed by last use', async ({ pkiAddresses }) => {
      for (const [url, at] of [
        ['http://one', 1],
        ['http://two', 2],
        ['http://one', 3],
      ] as const) {
        await pkiAddresses.remember(url, at);
      }
      assert.deepEqual(await pkiAddresses.list(9), ['http://one', 'http://two']);
      assert.deepEqual(await pkiAddresses.list(1), ['http://one']);
    });
  });
}
