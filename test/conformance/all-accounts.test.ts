// Lists over all accounts, on every engine: which rows, in which order, and page by page.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { bothEngines } from '../support/engines.ts';
import { storeTests } from '../support/order-store.ts';
import { certificate, NOW } from '../support/records.ts';

const NAMES = { c: 'Acme 100%', d: 'ACME_PKI', e: 'acmeXPKI', f: '证书 <b>' };
const ACCOUNT = { kind: 'standard', locale: 'en', createdAt: NOW } as const;

for (const engine of await bothEngines()) {
  const testStore = storeTests(engine);
  describe(engine.name, () => {
    testStore('accounts are found by a part of their name, the newest first', async ({ accounts, allAccounts }) => {
      for (const [id, name] of Object.entries(NAMES)) await accounts.insert({ id, name, ...ACCOUNT });
      const found = async (text: string) => {
        const { rows, nextAfter } = await allAccounts.accounts(text, { limit: 10 });
        assert.equal(nextAfter, null);
        return rows.map(({ id }) => id).join('');
      };
      assert.equal(await found(''), 'fedcba');
      assert.equal(await found('acme'), 'edc');
      assert.equal(await found('证书'), 'f');
      // What LIKE takes for itself is only text.
      assert.deepEqual(
        [await found('_pki'), await found('100%'), await found('%'), await found('!')],
        ['d', 'c', 'c', ''],
      );
      const first = await allAccounts.accounts('acme', { limit: 2 });
      assert.deepEqual([first.rows.map(({ id }) => id), first.nextAfter], [['e', 'd'], 'd']);
      const next = await allAccounts.accounts('acme', { limit: 2, after: 'd' });
      assert.deepEqual([next.rows.map(({ name }) => name), next.nextAfter], [['Acme 100%'], null]);
    });

    testStore('waiting certificates of all accounts are listed with their names', async (store) => {
      const finding = { at: NOW, of: 'control', problem: 'no_record', reason: { en: 'en', zh: 'zh' } } as const;
      for (const id of ['w2', 'w1', 'w3']) {
        await store.certificates.insert(certificate(id, { names: ['a.example.com'], commonName: 'a.example.com' }));
        const times = { dueAt: NOW + 1, tries: 2, expiresAt: NOW + 9 };
        const findings = { 'a.example.com': finding };
        await store.waiting.insert({ certificateId: id, accountId: 'a', orderId: 'o', ...times, findings });
      }
      await store.accounts.suspend('a', NOW);
      const { rows, nextAfter } = await store.allAccounts.waiting({ limit: 2 });
      assert.deepEqual([rows.map(({ certificateId }) => certificateId), nextAfter], [['w1', 'w2'], 'w2']);
      const { accountName, isSuspended, commonName, names, findings, tries, dueAt } = rows[0]!;
      assert.deepEqual(
        { accountName, isSuspended, commonName, names, findings, tries, dueAt },
        {
          ...{ accountName: 'Name', isSuspended: true, commonName: 'a.example.com', names: ['a.example.com'] },
          ...{ findings: { 'a.example.com': finding }, tries: 2, dueAt: NOW + 1 },
        },
      );
      const rest = await store.allAccounts.waiting({ limit: 2, after: 'w2' });
      assert.deepEqual([rest.rows.map(({ certificateId }) => certificateId), rest.nextAfter], [['w3'], null]);
    });

    testStore('lanes are listed with what is pending in them, on request only failing ones', async (store, rows) => {
      await store.certificates.insert(certificate('c1'));
      for (const accountId of ['a', 'b']) {
        const event = {
          id: `e${accountId}`,
          accountId,
          orderId: 'o',
          orderStatus: 'issued',
          certificateId: 'c1',
        } as const;
        await store.transaction((tx) => tx.outbox.add({ ...event, action: 'order:issued', createdAt: NOW }));
        await store.transaction((tx) => tx.deliveries.resend(accountId, `e${accountId}`, NOW));
      }
      await rows(`update callback_lane set trips = 1, failures = 8, closed_until = ${NOW + 1} where account_id = 'b'`);
      const all = await store.allAccounts.lanes(false, { limit: 10 });
      const failing = await store.allAccounts.lanes(true, { limit: 1 });
      assert.deepEqual(
        all.rows.map(({ lane, accountName, pending }) => [lane.accountId, lane.failures, accountName, pending]),
        [
          ['a', 0, 'Name', 1],
          ['b', 8, 'Name', 1],
        ],
      );
      assert.deepEqual([failing.rows.map(({ lane }) => lane.openUntil), failing.nextAfter], [[NOW + 1], 'b']);
    });
  });
}
