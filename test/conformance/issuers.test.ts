// Issuers in the store, on every engine: one active pair per key type, also when instances start at once; keys are sealed.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newSealKey, SealBroken, sealerWith } from '../../src/adapters/seal/seal.ts';
import { type DatabaseLocation, openStore } from '../../src/adapters/store/store.ts';
import { bothEngines } from '../support/engines.ts';
import { EVERY_BYTE, issuer, NOW, pairOf } from '../support/records.ts';

const key = newSealKey();

for (const engine of await bothEngines()) {
  const open = (location: DatabaseLocation, keys = [key]) => openStore(location, sealerWith(keys), () => NOW);

  describe(engine.name, () => {
    test('issuers are found as they were written, by id, and their keys only with the seal key', async () => {
      const location = await engine.newLocation();
      const store = await open(location);
      const [root, issuing] = pairOf('1', { keyType: 'rsa', certificate: EVERY_BYTE, privateKey: EVERY_BYTE });
      await store.issuers.claim([root, issuing]);
      const without = issuer('0', { state: 'retired', privateKey: null, createdAt: 2 ** 52 });
      await store.issuers.claim([without]);
      assert.deepEqual(await store.issuers.list(), [without, issuing, root]);
      await store.close();
      const stranger = await open(location, [newSealKey()]);
      await assert.rejects(stranger.issuers.list(), SealBroken);
      const shown = [without, issuing, root].map(({ privateKey, ...rest }) => ({
        ...rest,
        hasKey: privateKey !== null,
      }));
      assert.deepEqual(await stranger.issuers.listPublic(), shown);
      await stranger.close();
    });

    test('an active issuer of a role and key type is claimed once; retired ones may be many', async () => {
      const store = await open(await engine.newLocation());
      await store.issuers.claim(pairOf('1'));
      await store.issuers.claim(pairOf('2'));
      await store.issuers.claim(pairOf('3', { keyType: 'p384' }));
      for (const id of ['r1', 'r2']) await store.issuers.claim([issuer(id, { state: 'retired' })]);
      const ids = (await store.issuers.list()).map(({ id }) => id);
      assert.deepEqual(ids, ['1-issuing', '1-root', '3-issuing', '3-root', 'r1', 'r2']);
      await store.close();
    });

    test('of instances that claim at the same time one wins whole', async () => {
      const location = await engine.newLocation();
      const stores = [await open(location), await open(location)];
      const claim = (index: number) =>
        stores[index % 2]!.transaction(({ issuers }) => issuers.claim(pairOf(String(index))));
      await Promise.all(Array.from({ length: 10 }, (_, index) => claim(index)));
      const all = await stores[0]!.issuers.list();
      assert.deepEqual(all.map(({ role }) => role).sort(), ['issuing', 'root']);
      const root = all.find(({ role }) => role === 'root')!;
      assert.equal(all.find(({ role }) => role === 'issuing')?.parentId, root.id);
      for (const store of stores) await store.close();
    });
  });
}
