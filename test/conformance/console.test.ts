// Repositories of operators, links and sessions, on every engine: what they stand for, their bounds also under concurrency,
// and deletion.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import { IDLE_MS, LINK_MS, SESSION_MS, type SessionOwner } from '../../src/domain/console/session.ts';
import { bothEngines } from '../support/engines.ts';

const NOW = Date.UTC(2026, 10, 15);
const KEY = { keyId: 'k' };
const OPERATOR = { operatorName: 'ann' };

for (const engine of await bothEngines()) {
  const testStore = (name: string, work: (store: OpenStore, other: OpenStore) => Promise<void>) =>
    test(name, async () => {
      const location = await engine.newLocation();
      const sealer = sealerWith([newSealKey()]);
      const [store, other] = [
        await openStore(location, sealer, () => NOW),
        await openStore(location, sealer, () => NOW),
      ];
      try {
        await store.accounts.insert({ id: 'a', name: 'a', kind: 'standard', locale: 'en', createdAt: NOW });
        const key = { createdAt: NOW, expiresAt: null, disabledAt: null, lastUsedAt: null } as const;
        for (const keyId of ['k', 'l']) {
          await store.credentials.insert({ keyId, accountId: 'a', kind: 'standard', ...key }, '0'.repeat(64));
        }
        for (const name of ['ann', 'ben']) {
          await store.operators.insert({ name, role: 'view', createdAt: NOW, disabledAt: null });
        }
        await work(store, other);
      } finally {
        for (const one of [store, other]) await one.close();
      }
    });
  const begin = (store: OpenStore, id: string, owner: SessionOwner, most = 9, change = {}) =>
    store.transaction((tx) =>
      tx.sessions.insert(
        {
          ...{ id, tokenHash: `hash of ${id}`, createdAt: NOW, lastSeenAt: NOW, expiresAt: NOW + SESSION_MS },
          ...{ network: '192.0.2.1', ...change },
        },
        owner,
        most,
      ),
    );
  const find = ({ sessions }: OpenStore, id: string, now = NOW) => sessions.find(`hash of ${id}`, now);
  const ids = async ({ sessions }: OpenStore, owner: SessionOwner) =>
    (await sessions.listOf(owner, NOW)).map(({ id }) => id).join(' ');

  describe(engine.name, () => {
    testStore('a session stands for its key and account, or its operator, as they are now', async (store) => {
      await begin(store, 's1', KEY);
      await begin(store, 's2', OPERATOR);
      const { caller } = (await store.credentials.findForAuthentication('k'))!;
      const record = { createdAt: NOW, lastSeenAt: NOW, expiresAt: NOW + SESSION_MS, network: '192.0.2.1' };
      assert.deepEqual(await find(store, 's1'), {
        ...{ id: 's1', ...record, kind: 'account', caller: { ...caller, sessionId: 's1' } },
      });
      const operator = { name: 'ann', role: 'view', createdAt: NOW, disabledAt: null };
      assert.deepEqual(await find(store, 's2'), { id: 's2', ...record, kind: 'operator', operator });
      await store.credentials.disable('k', NOW + 7);
      const changed = await find(store, 's1');
      assert.equal(changed?.kind === 'account' && changed.caller.credential.disabledAt, NOW + 7);
      assert.equal(await find(store, 's'), undefined);
      await assert.rejects(begin(store, 's3', { keyId: 'nothing' }));
      await assert.rejects(begin(store, 's1', KEY), 'ids and digests are unique');
    });

    testStore('a session lives until its end, and while it is used', async (store) => {
      await begin(store, 's1', KEY);
      const lives = async (now: number) => (await find(store, 's1', now)) !== undefined;
      assert.deepEqual([await lives(NOW + IDLE_MS - 1), await lives(NOW + IDLE_MS)], [true, false]);
      await store.sessions.touch('s1', NOW + SESSION_MS - 2);
      await store.sessions.touch('s1', NOW);
      assert.deepEqual([await lives(NOW + SESSION_MS - 1), await lives(NOW + SESSION_MS)], [true, false]);
      // Of a clock that was ahead.
      await begin(store, 's2', KEY, 9, { expiresAt: NOW + 2 * SESSION_MS });
      await begin(store, 's3', KEY, 9, { lastSeenAt: NOW + SESSION_MS });
      assert.deepEqual([await find(store, 's2'), await find(store, 's3')], [undefined, undefined]);
      await begin(store, 's4', KEY);
      assert.equal(await store.sessions.deleteExpired(NOW, 9), 3);
      assert.equal(await ids(store, KEY), 's4');
      assert.equal(await store.sessions.deleteExpired(NOW + IDLE_MS, 9), 1);
    });

    testStore(
      'an owner keeps the newest sessions, also under concurrency; others keep theirs',
      async (store, other) => {
        await begin(store, 's0', { keyId: 'l' }, 2);
        for (const id of ['s1', 's2', 's3']) await begin(store, id, KEY, 2);
        assert.deepEqual([await ids(store, KEY), await ids(store, { keyId: 'l' })], ['s3 s2', 's0']);
        const names = Array.from({ length: 12 }, (_, index) => `t${String(index).padStart(2, '0')}`);
        await Promise.all(names.map((id, index) => begin(index % 2 ? store : other, id, OPERATOR, 4)));
        assert.equal((await ids(store, OPERATOR)).split(' ').length, 4);
        assert.equal((await store.sessions.list(NOW, 5)).length, 5);
      },
    );

    testStore('sessions end one by one by their owner, with the account, or with the operator', async (store) => {
      for (const id of ['s1', 's2']) await begin(store, id, KEY);
      for (const id of ['t1', 't2']) await begin(store, id, OPERATOR);
      const { sessions, operators } = store;
      assert.equal(await sessions.delete('s1', { keyId: 'l' }), undefined);
      assert.equal(await sessions.delete('s1', OPERATOR), undefined);
      assert.deepEqual(await sessions.delete('s1', KEY), KEY);
      assert.deepEqual(await sessions.delete('t1'), OPERATOR);
      await sessions.deleteOf('a');
      assert.deepEqual([await ids(store, KEY), await ids(store, OPERATOR)], ['', 't2']);
      const disabled = await store.transaction((tx) => tx.operators.disable('ann', NOW + 1));
      await store.transaction((tx) => tx.operators.disable('ann', NOW + 2));
      assert.deepEqual([disabled?.disabledAt, (await operators.find('ann'))?.disabledAt], [NOW + 1, NOW + 1]);
      assert.equal(await ids(store, OPERATOR), '');
      assert.equal(await operators.insert({ name: 'ann', role: 'act', createdAt: NOW, disabledAt: null }), false);
      assert.deepEqual(
        [(await operators.list()).map(({ name }) => name), await operators.count()],
        [['ann', 'ben'], 2],
      );
    });

    testStore('a link works once, in time; an operator keeps the newest', async (store, other) => {
      const make = (tokenHash: string, change = {}, most = 9) =>
        store.transaction((tx) => {
          const link = { tokenHash, operatorName: 'ann', createdAt: NOW, expiresAt: NOW + LINK_MS, ...change };
          return tx.loginLinks.insert(link, most);
        });
      await make('h1');
      const redeemed = await Promise.all([store, other].map((one) => one.loginLinks.redeem('h1', NOW)));
      assert.deepEqual(redeemed.map((one) => one?.name).sort(), ['ann', undefined]);
      await make('h2');
      assert.equal(await store.loginLinks.redeem('h2', NOW + LINK_MS), undefined);
      await make('h3', { expiresAt: NOW + LINK_MS * 9 });
      assert.equal(await store.loginLinks.redeem('h3', NOW), undefined, 'of a clock that was ahead');
      for (const [index, name] of ['h4', 'h5', 'h6'].entries()) await make(name, { createdAt: NOW + index }, 2);
      assert.equal(await store.loginLinks.redeem('h4', NOW), undefined);
      assert.equal(await store.loginLinks.deleteExpired(NOW + LINK_MS - 1, 9), 0);
      assert.equal(await store.loginLinks.deleteExpired(NOW + LINK_MS, 1), 1);
      await begin(store, 's1', KEY);
      await store.transaction((tx) => tx.sessions.deleteAll());
      assert.equal(await store.loginLinks.redeem('h6', NOW), undefined);
      assert.equal(await ids(store, KEY), '');
    });
  });
}
