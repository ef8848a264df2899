// Repository of access tokens, on every engine: who they stand for, the bound of a key also under concurrency, deletion.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import type { AccessToken } from '../../src/domain/access/ports.ts';
import { bothEngines } from '../support/engines.ts';

const NOW = Date.UTC(2026, 10, 15);
const HASH = '0'.repeat(64);
const token = (tokenHash: string, change: Partial<AccessToken> = {}): AccessToken => ({
  ...{ tokenHash, keyId: 'k', createdAt: NOW, expiresAt: NOW + 1_000 },
  ...change,
});

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
        for (const id of ['a', 'b']) {
          await store.accounts.insert({ id, name: id, kind: 'standard', locale: 'en', createdAt: NOW });
        }
        const key = { createdAt: NOW, expiresAt: null, disabledAt: null, lastUsedAt: null } as const;
        for (const [keyId, accountId] of Object.entries({ k: 'a', l: 'a', m: 'b' })) {
          await store.credentials.insert({ keyId, accountId, kind: 'integration_key', ...key }, HASH);
        }
        await work(store, other);
      } finally {
        for (const one of [store, other]) await one.close();
      }
    });
  const insert = (store: OpenStore, one: AccessToken, most = 9) =>
    store.transaction((tx) => tx.accessTokens.insert(one, most));
  const live = async ({ accessTokens }: OpenStore, ...hashes: string[]) => {
    const found = await Promise.all(hashes.map((one) => accessTokens.findCaller(one, NOW)));
    return hashes.filter((_, index) => found[index]).join(' ');
  };

  describe(engine.name, () => {
    testStore('a token stands for its key and account as they are now, until it expires', async (store) => {
      await insert(store, token('t'));
      const { accessTokens } = store;
      const { caller } = (await store.credentials.findForAuthentication('k'))!;
      assert.deepEqual(await accessTokens.findCaller('t', NOW + 999), caller);
      assert.equal(await accessTokens.findCaller('t', NOW + 1_000), undefined);
      for (const unknown of ['', 'T', 't\0']) assert.equal(await accessTokens.findCaller(unknown, NOW), undefined);
      await store.credentials.disable('k', NOW + 7);
      await store.accounts.suspend('a', NOW + 8);
      const changed = await accessTokens.findCaller('t', NOW);
      assert.deepEqual([changed?.credential.disabledAt, changed?.account.suspendedAt], [NOW + 7, NOW + 8]);
      await assert.rejects(insert(store, token('t')), 'a digest is unique');
      await assert.rejects(insert(store, token('u', { keyId: 'nothing' })));
    });

    testStore('a key keeps its newest tokens, other keys keep theirs', async (store) => {
      await insert(store, token('other', { keyId: 'l', createdAt: NOW - 99 }), 3);
      for (let count = 0; count < 5; count += 1) await insert(store, token(`t${count}`, { createdAt: NOW + count }), 3);
      assert.equal(await live(store, 't0', 't1', 't2', 't3', 't4', 'other'), 't2 t3 t4 other');
      // In one millisecond: the one that is inserted stays.
      for (const name of ['x', 'y', 'z']) await insert(store, token(name, { createdAt: NOW + 4 }), 1);
      assert.equal(await live(store, 't4', 'x', 'y', 'z', 'other'), 'z other');
    });

    testStore('concurrent logins on two instances do not exceed the bound', async (store, other) => {
      const names = Array.from({ length: 20 }, (_, index) => `t${index}`);
      await Promise.all(names.map((name, index) => insert(index % 2 ? store : other, token(name), 4)));
      assert.equal((await live(store, ...names)).split(' ').length, 4);
    });

    testStore('a token is deleted by its own key, with its account, or once expired', async (store) => {
      const { accessTokens } = store;
      for (const [name, keyId] of Object.entries({ t: 'k', u: 'k', v: 'l', w: 'm' }))
        await insert(store, token(name, { keyId }));
      assert.equal(await accessTokens.delete('l', 't'), false);
      assert.equal(await accessTokens.delete('k', 't'), true);
      assert.equal(await accessTokens.delete('k', 't'), false);
      assert.equal(await live(store, 't', 'u', 'v', 'w'), 'u v w');
      await accessTokens.deleteOf('a');
      assert.equal(await live(store, 'u', 'v', 'w'), 'w');
      for (const name of ['x', 'y']) await insert(store, token(name, { keyId: 'm', expiresAt: NOW + 5_000 }));
      assert.equal(await accessTokens.deleteExpired(NOW + 999, 9), 0);
      assert.equal(await accessTokens.deleteExpired(NOW + 1_000, 9), 1);
      assert.deepEqual(
        [await accessTokens.deleteExpired(NOW + 5_000, 1), await accessTokens.deleteExpired(NOW + 5_000, 9)],
        [1, 1],
      );
    });
  });
}
