// Issuers in the store, on every engine: one per purpose and key type, also when instances make them at once; keys are sealed.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newSealKey, SealBroken, sealerWith } from '../../src/adapters/seal/seal.ts';
import { type DatabaseLocation, openStore } from '../../src/adapters/store/store.ts';
import type { Issuer } from '../../src/domain/certificate/authority.ts';
import { bothEngines } from '../support/engines.ts';
import { claimPair, EVERY_BYTE, issuer, NOW, pairOf } from '../support/records.ts';

const key = newSealKey();

for (const engine of await bothEngines()) {
  const open = (location: DatabaseLocation, keys = [key]) => openStore(location, sealerWith(keys), () => NOW);

  describe(engine.name, () => {
    test('issuers are found as they were written, by id, and their keys only with the seal key', async () => {
      const location = await engine.newLocation();
      const store = await open(location);
      const [root, issuing] = pairOf('1', { keyType: 'rsa', certificate: EVERY_BYTE, privateKey: EVERY_BYTE });
      await claimPair(store, [
        { ...root, purposes: [] },
        { ...issuing, purposes: ['code-signing'] },
      ]);
      const without = issuer('0', { privateKey: null, createdAt: 2 ** 52 });
      await store.issuers.claimRoot(without);
      const all = [without, { ...issuing, purposes: ['code-signing'] }, { ...root, purposes: [] }];
      assert.deepEqual(await store.issuers.list(), all);
      await store.close();
      const stranger = await open(location, [newSealKey()]);
      await assert.rejects(stranger.issuers.list(), SealBroken);
      const shown = all.map(({ privateKey: _, ...rest }) => rest);
      assert.deepEqual(await stranger.issuers.listPublic(), shown);
      await stranger.close();
    });

    test('of instances that make a root and an issuer at the same time one wins', async () => {
      const location = await engine.newLocation();
      const stores = [await open(location), await open(location)];
      await stores[0]!.issuers.claimRoot(issuer('root'));
      const claim = async (index: number) => {
        const store = stores[index % 2]!;
        await store.issuers.claimRoot(issuer(`root-${index}`));
        const issuing = issuer(`issuing-${index}`, { role: 'issuing', parentId: 'root' });
        const slot = { purpose: index < 5 ? 'public-tls' : 'private-tls', keyType: 'p256' } as const;
        await store.transaction(({ issuers }) => issuers.claimSlot(issuing, slot));
      };
      await Promise.all(Array.from({ length: 10 }, (_, index) => claim(index)));
      const all = await stores[0]!.issuers.list();
      assert.deepEqual(all.map(({ role, purposes }) => [role, ...purposes].join(' ')).sort(), [
        'issuing private-tls',
        'issuing public-tls',
        'root',
      ]);
      for (const store of stores) await store.close();
    });

    test('a root whose key was removed stays, is not replaced, and its key is in no row', async () => {
      const store = await open(await engine.newLocation());
      await claimPair(store, pairOf('own'));
      assert.equal(await store.issuers.removeKey('own-root'), true);
      assert.equal(await store.issuers.removeKey('own-root'), false);
      assert.ok((await store.purge()).length > 0, 'what cannot be purged is said');
      const root = (await store.issuers.list()).find(({ id }) => id === 'own-root');
      assert.deepEqual([root?.keyPlace, root?.privateKey], ['offline', null]);
      // An authority below it finds it again by its certificate.
      const below = issuer('below', { role: 'issuing', purposes: ['private-tls'], parentId: 'copy' });
      const copy = { ...issuer('copy', { privateKey: null }), certificate: root?.certificate ?? EVERY_BYTE };
      const adopted = await store.transaction(({ issuers }) => issuers.adopt([below, copy]));
      assert.equal(adopted.parentId, 'own-root');
      await store.issuers.retire('below');
      assert.deepEqual((await store.issuers.list()).find(({ id }) => id === 'below')?.purposes, []);
      await store.close();
    });

    test('what waits, alternate chains and backups are found as they were written', async () => {
      const store = await open(await engine.newLocation());
      await claimPair(store, pairOf('own'));
      const pending = {
        ...({ id: 'p', keyType: 'p384', purposes: ['code-signing', 'public-tls'], createdAt: 2 ** 52 } as const),
        ...{ request: EVERY_BYTE, privateKey: EVERY_BYTE },
      };
      await store.pendingIssuers.insert(pending);
      assert.deepEqual(await store.pendingIssuers.list(), [pending]);
      assert.equal(await store.pendingIssuers.count(), 1);
      assert.deepEqual([await store.pendingIssuers.delete('p'), await store.pendingIssuers.delete('p')], [true, false]);
      const chain = { issuerId: 'own-issuing', fingerprint: 'f', certificates: [EVERY_BYTE], createdAt: NOW };
      for (const one of [chain, { ...chain, createdAt: 1 }]) await store.alternateChains.insert(one);
      assert.deepEqual(await store.alternateChains.of('own-issuing'), [chain]);
      assert.deepEqual(await store.alternateChains.of('own-root'), []);
      const backups = [1, 2, 3].map((takenAt) => ({ digest: `d${takenAt}`, takenAt, file: `/b/${takenAt}` }));
      for (const one of backups) await store.takenBackups.insert(one);
      assert.deepEqual(await store.takenBackups.since(2), backups.slice(1));
      await store.close();
    });

    test('an imported authority gets its purposes and no others, and is stored once', async () => {
      const store = await open(await engine.newLocation());
      const adopt = (chain: readonly [Issuer, ...Issuer[]]) => store.transaction(({ issuers }) => issuers.adopt(chain));
      const purposesOf = async () =>
        Object.fromEntries((await store.issuers.list()).map(({ id, purposes }) => [id, purposes.join(' ')]));
      await claimPair(store, pairOf('own'));
      const root = issuer('above', { privateKey: null });
      const middle = issuer('between', { role: 'issuing', privateKey: null, parentId: 'above' });
      const imported = issuer('imported', {
        ...{ role: 'issuing', parentId: 'between', policy: '1.2.3', purposes: ['private-tls', 'public-tls'] },
      });
      assert.equal((await adopt([imported, middle, root])).id, 'imported');
      const rest = { above: '', between: '', 'own-root': '' };
      assert.deepEqual(await purposesOf(), { ...rest, imported: 'private-tls public-tls', 'own-issuing': '' });
      // The same chain again, and another authority below the same root.
      const again = await adopt([
        { ...imported, id: 'again', parentId: 'x', purposes: ['code-signing'], policy: null },
        { ...middle, id: 'x', parentId: 'y' },
        { ...root, id: 'y' },
      ]);
      assert.deepEqual([again.id, again.parentId], ['imported', 'between']);
      const sibling = issuer('sibling', { role: 'issuing', parentId: 'y', purposes: ['public-tls'] });
      await adopt([sibling, { ...root, id: 'y' }]);
      assert.deepEqual(await purposesOf(), {
        ...{ ...rest, imported: 'code-signing', 'own-issuing': '', sibling: 'public-tls' },
      });
      const all = await store.issuers.list();
      assert.equal(all.find(({ id }) => id === 'sibling')?.parentId, 'above');
      assert.equal(all.find(({ id }) => id === 'imported')?.policy, null);
      await store.close();
    });
  });
}
