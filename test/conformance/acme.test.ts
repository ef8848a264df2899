// Repositories of ACME, on every engine: one account for a key and for a binding, one use of a nonce, also under concurrency.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import type { AcmeAccount } from '../../src/domain/acme/account.ts';
import type { Binding } from '../../src/domain/acme/binding.ts';
import { NONCE_MS } from '../../src/domain/acme/nonce.ts';
import type { AccountKey } from '../../src/domain/acme/ports.ts';
import { NO_KEY } from '../../src/domain/certificate/public-key.ts';
import { Secret } from '../../src/domain/secret.ts';
import { bothEngines } from '../support/engines.ts';

const NOW = Date.UTC(2026, 10, 15);
const bindingOf = (id: string, change: Partial<Binding> = {}): Binding => ({
  ...{ id, accountId: 'tenant', name: 'cluster', products: ['ssl-dv'], nameSuffixes: ['example.com'] },
  ...{ revokesReplaced: true, isReusable: false, createdAt: NOW, expiresAt: NOW + 9, disabledAt: null, usedAt: null },
  ...change,
});
const accountOf = (id: string, change: Partial<AcmeAccount> = {}): AcmeAccount => ({
  ...{ id, accountId: 'tenant', bindingId: 'b', status: 'valid', thumbprint: `key of ${id}` },
  ...{ spki: Buffer.from([1, 2, 3]), contacts: ['mailto:a@example.com'], termsAgreedAt: NOW, createdAt: NOW },
  ...change,
});
const keyOf = (thumbprint: string): AccountKey => ({ thumbprint, publicKey: { ...NO_KEY, spki: Buffer.from([7]) } });
const statusesOf = (settled: readonly PromiseSettledResult<boolean>[]) =>
  settled.map((one) => one.status === 'fulfilled' && one.value).sort();

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
        const account = { name: 'Tenant', kind: 'standard', locale: 'zh-CN', createdAt: NOW } as const;
        await store.accounts.insert({ ...account, id: 'tenant' });
        await store.acmeBindings.insert(bindingOf('b'), new Secret('mac key'));
        await work(store, other);
      } finally {
        for (const one of [store, other]) await one.close();
      }
    });

  describe(engine.name, () => {
    testStore(
      'an account is read with its binding and its tenant, by id and by key',
      async ({ acmeAccounts, acmeBindings }) => {
        assert.equal(await acmeAccounts.insert(accountOf('one')), true);
        const found = await acmeAccounts.find('one');
        assert.deepEqual(found, await acmeAccounts.findByKey('key of one'));
        assert.deepEqual(found?.account, accountOf('one'));
        assert.deepEqual(found?.binding, bindingOf('b'));
        assert.deepEqual([found?.tenant.id, found?.tenant.name, found?.tenant.locale], ['tenant', 'Tenant', 'zh-CN']);
        const { binding, tenant, key } = (await acmeBindings.findWithKey('b')) ?? assert.fail();
        assert.deepEqual([binding, tenant, key.reveal()], [found?.binding, found?.tenant, 'mac key']);
        assert.equal(await acmeBindings.findWithKey('none'), undefined);
        assert.deepEqual([await acmeAccounts.count('b', 9), await acmeAccounts.count('none', 9)], [1, 0]);
        assert.deepEqual(await acmeAccounts.listOf('tenant', { limit: 9 }), [accountOf('one')]);
        assert.deepEqual(await acmeBindings.listOf('tenant', { limit: 9 }), [bindingOf('b')]);
        assert.deepEqual(await acmeBindings.listOf('tenant', { limit: 9, after: 'b' }), []);
      },
    );

    testStore(
      'a binding for one account is claimed once, a reusable one by all, a disabled one by none',
      async (store, other) => {
        await store.acmeBindings.insert(bindingOf('many', { isReusable: true }), new Secret('x'));
        const claims = async (id: string) =>
          statusesOf(
            await Promise.allSettled(
              [store, other, store].map((one) => one.transaction((tx) => tx.acmeBindings.claim(id, NOW))),
            ),
          );
        assert.deepEqual(await claims('b'), [false, false, true]);
        assert.deepEqual(await claims('many'), [true, true, true]);
        assert.equal((await store.acmeBindings.disable('many', NOW + 1))?.disabledAt, NOW + 1);
        assert.equal((await other.acmeBindings.disable('many', NOW + 2))?.disabledAt, NOW + 1);
        assert.deepEqual(await claims('many'), [false, false, false]);
        assert.equal(await store.acmeBindings.disable('none', NOW), undefined);
      },
    );

    testStore('a key has one account, also when two register or change to it at a time', async (store, other) => {
      const insert = (one: OpenStore, id: string) =>
        one.transaction((tx) => tx.acmeAccounts.insert(accountOf(id, { thumbprint: 'shared' })));
      const inserted = await Promise.allSettled([insert(store, 'one'), insert(other, 'two')]);
      assert.deepEqual(statusesOf(inserted), [false, true]);
      for (const id of ['three', 'four']) await store.acmeAccounts.insert(accountOf(id));
      const change = (one: OpenStore, id: string, to: string) =>
        one.transaction(async (tx) => {
          if (!(await tx.acmeAccounts.changeKey(accountOf(id), keyOf(to)))) throw new Error('refused');
          return true;
        });
      const changed = await Promise.allSettled([change(store, 'three', 'new'), change(other, 'four', 'new')]);
      assert.deepEqual(statusesOf(changed), [false, true]);
      const { account } = (await store.acmeAccounts.findByKey('new')) ?? assert.fail();
      assert.deepEqual([...account.spki], [7]);
      // Not from a key that the account no longer has, nor for one that has ended.
      assert.equal(await store.acmeAccounts.changeKey(accountOf(account.id), keyOf('newer')), false);
      assert.equal((await store.acmeAccounts.end(account.id, 'deactivated'))?.status, 'deactivated');
      assert.equal((await store.acmeAccounts.end(account.id, 'revoked'))?.status, 'deactivated');
      assert.equal(await store.acmeAccounts.changeKey(account, keyOf('newer')), false);
      assert.equal(await store.acmeAccounts.end('none', 'revoked'), undefined);
    });

    testStore('a nonce is spent once, and forgotten when it has expired', async (store, other) => {
      const nonce = (id: string, expiresAt: number) => ({ id, expiresAt });
      const spent = await Promise.allSettled(
        [store, other, store, other].map(({ usedNonces }) => usedNonces.spend(nonce('n', NOW + 1))),
      );
      assert.deepEqual(statusesOf(spent), [false, false, false, true]);
      for (const [id, ms] of Object.entries({ ended: 0, lasts: 5, stray: 2 * NONCE_MS })) {
        assert.equal(await store.usedNonces.spend(nonce(id, NOW + ms)), true);
      }
      assert.equal(await store.usedNonces.deleteExpired(NOW, 1), 1);
      assert.equal(await store.usedNonces.deleteExpired(NOW, 9), 1);
      for (const [id, isFree] of [
        ['n', false],
        ['lasts', false],
        ['ended', true],
        ['stray', true],
      ] as const) {
        assert.equal(await other.usedNonces.spend(nonce(id, NOW + 1)), isFree, id);
      }
    });
  });
}
