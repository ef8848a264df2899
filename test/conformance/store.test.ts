// Conformance of the store, for both engines on real databases. A deliberately broken query fails here.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import { newSealKey, SealBroken, sealerWith } from '../../src/adapters/seal/seal.ts';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import { type DatabaseLocation, engineAt, type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import type { Account } from '../../src/domain/access/account.ts';
import type { Credential } from '../../src/domain/access/credential.ts';
import type { AuditEntry } from '../../src/domain/access/ports.ts';
import type { Repositories } from '../../src/domain/store.ts';
import { bothEngines } from '../support/engines.ts';

const NOW = Date.UTC(2026, 10, 15);
const now = () => NOW;
const key = newSealKey();
const HASH = 'a'.repeat(64);

const account = (id: string, change: Partial<Account> = {}): Account => ({
  id,
  name: `Name of ${id}`,
  kind: 'standard',
  locale: 'en',
  createdAt: NOW,
  suspendedAt: null,
  quotas: { openOrders: null, storedBytes: null },
  storedBytes: 0,
  ...change,
});
const credential = (keyId: string, accountId: string, change: Partial<Credential> = {}): Credential => ({
  keyId,
  accountId,
  kind: 'standard',
  createdAt: NOW,
  expiresAt: null,
  disabledAt: null,
  lastUsedAt: null,
  ...change,
});
const entry = (id: string, accountId: string, change: Partial<AuditEntry> = {}): AuditEntry => ({
  id,
  at: NOW,
  accountId,
  actor: 'cli',
  action: 'account:created',
  subject: accountId,
  requestId: null,
  details: {},
  ...change,
});

for (const engine of await bothEngines()) {
  const fresh = async (): Promise<OpenStore> => openStore(await engine.newLocation(), sealerWith([key]), now);
  const withStore = (work: (store: OpenStore) => Promise<void>) => async () => {
    const store = await fresh();
    await work(store).finally(() => store.close());
  };
  const rawly = async <T>(location: DatabaseLocation, statement: string): Promise<T[]> => {
    const db = openEngine(engineAt(location), () => {});
    return (
      await sql
        .raw<T>(statement)
        .execute(db)
        .finally(() => db.destroy())
    ).rows;
  };

  describe(engine.name, () => {
    test(
      'an account round-trips',
      withStore(async ({ accounts }) => {
        const odd = account('a', {
          name: `O'Brien "证书" \\ ; -- 🔒`,
          kind: 'managed_pki',
          locale: 'zh-CN',
          createdAt: 2 ** 52,
        });
        await accounts.insert(odd);
        assert.deepEqual(await accounts.find('a'), odd);
        assert.equal(await accounts.find('A'), undefined);
        assert.equal(await accounts.find(''), undefined);
      }),
    );

    test(
      'accounts are listed by id, page by page',
      withStore(async ({ accounts }) => {
        for (const id of ['c', 'a', 'e', 'b', 'd']) await accounts.insert(account(id));
        const ids = async (after: string | undefined, limit: number) =>
          (await accounts.list({ after, limit })).map(({ id }) => id);
        assert.deepEqual(await ids(undefined, 2), ['a', 'b']);
        assert.deepEqual(await ids('b', 2), ['c', 'd']);
        assert.deepEqual(await ids('d', 2), ['e']);
        assert.deepEqual(await ids('e', 2), []);
      }),
    );

    test(
      'an update affects one account, and only the given fields',
      withStore(async ({ accounts }) => {
        await accounts.insert(account('a'));
        await accounts.insert(account('b'));
        assert.deepEqual(await accounts.update('a', { name: 'New' }), account('a', { name: 'New' }));
        assert.deepEqual(
          await accounts.update('a', { locale: 'zh-CN' }),
          account('a', { name: 'New', locale: 'zh-CN' }),
        );
        assert.deepEqual(await accounts.find('b'), account('b'));
        assert.equal(await accounts.update('c', { name: 'Nobody' }), undefined);
      }),
    );

    test(
      'values outside the lists are refused, and so is a second row with the same id',
      withStore(async ({ accounts, credentials }) => {
        await accounts.insert(account('a'));
        await assert.rejects(accounts.insert(account('a')));
        await assert.rejects(accounts.insert(account('b', { kind: 'other' as 'standard' })));
        await assert.rejects(accounts.insert(account('b', { locale: 'fr' as 'en' })));
        await assert.rejects(credentials.insert(credential('k', 'nobody'), HASH));
        await assert.rejects(credentials.insert(credential('k', 'a', { kind: 'other' as 'standard' }), HASH));
        await assert.rejects(credentials.insert(credential('k', 'a'), 'short'));
        assert.equal(await credentials.find('k'), undefined);
      }),
    );

    test(
      'a key id finds its own account, kind and hash',
      withStore(async ({ accounts, credentials }) => {
        await accounts.insert(account('a'));
        await accounts.insert(account('b', { kind: 'managed_pki', locale: 'zh-CN', createdAt: NOW + 1 }));
        await credentials.insert(credential('ka', 'a'), HASH);
        const other = credential('kb', 'b', {
          kind: 'integration_key',
          expiresAt: NOW + 5,
          disabledAt: NOW + 6,
          lastUsedAt: NOW + 7,
          createdAt: NOW + 8,
        });
        await credentials.insert(other, 'b'.repeat(64));
        assert.deepEqual(await credentials.findForAuthentication('ka'), {
          caller: { account: account('a'), credential: credential('ka', 'a') },
          secretHash: HASH,
        });
        assert.deepEqual(await credentials.findForAuthentication('kb'), {
          caller: {
            account: account('b', { kind: 'managed_pki', locale: 'zh-CN', createdAt: NOW + 1 }),
            credential: other,
          },
          secretHash: 'b'.repeat(64),
        });
        assert.equal(await credentials.findForAuthentication('kc'), undefined);
        assert.deepEqual(await credentials.find('kb'), other);
      }),
    );

    test(
      'keys are listed per account, in order',
      withStore(async ({ accounts, credentials }) => {
        for (const id of ['a', 'b']) await accounts.insert(account(id));
        for (const [keyId, owner] of [
          ['k3', 'a'],
          ['k1', 'a'],
          ['k2', 'b'],
        ] as const)
          await credentials.insert(credential(keyId, owner), HASH);
        assert.deepEqual(
          (await credentials.listOf('a')).map(({ keyId }) => keyId),
          ['k1', 'k3'],
        );
        assert.deepEqual(await credentials.listOf('nobody'), []);
      }),
    );

    test(
      'disabling keeps the first time, expiry the earliest, last use the latest, each for one key only',
      withStore(async ({ accounts, credentials }) => {
        await accounts.insert(account('a'));
        for (const keyId of ['k', 'other']) await credentials.insert(credential(keyId, 'a'), HASH);
        assert.equal((await credentials.disable('k', 10))?.disabledAt, 10);
        assert.equal((await credentials.disable('k', 20))?.disabledAt, 10);
        assert.equal((await credentials.expire('k', 50))?.expiresAt, 50);
        assert.equal((await credentials.expire('k', 60))?.expiresAt, 50);
        assert.equal((await credentials.expire('k', 40))?.expiresAt, 40);
        for (const at of [100, 300, 200]) await credentials.touch('k', at);
        assert.deepEqual(
          await credentials.find('k'),
          credential('k', 'a', { disabledAt: 10, expiresAt: 40, lastUsedAt: 300 }),
        );
        assert.deepEqual(await credentials.find('other'), credential('other', 'a'));
        assert.equal(await credentials.disable('nothing', 1), undefined);
        assert.equal(await credentials.expire('nothing', 1), undefined);
      }),
    );

    test(
      'the audit trail is listed per account, in order, page by page',
      withStore(async ({ accounts, audit }) => {
        for (const id of ['a', 'b']) await accounts.insert(account(id));
        const written = entry('2', 'a', { requestId: 'r', details: { name: '证书 "x"', at: 2 ** 45, gone: null } });
        for (const one of [entry('3', 'a'), written, entry('1', 'a'), entry('0', 'b')]) await audit.append(one);
        assert.deepEqual(await audit.listOf('a', { limit: 2 }), [entry('1', 'a'), written]);
        assert.deepEqual(await audit.listOf('a', { after: '2', limit: 2 }), [entry('3', 'a')]);
      }),
    );

    test(
      'a secret is claimed once, and the stored one is returned',
      withStore(async ({ secrets }) => {
        assert.equal(await secrets.get('name'), undefined);
        assert.equal(await secrets.claim('name', 'first'), 'first');
        assert.equal(await secrets.claim('name', 'second'), 'first');
        assert.equal(await secrets.get('name'), 'first');
      }),
    );

    test('a secret is sealed, and bound to its row', async () => {
      const location = await engine.newLocation();
      const sealedText = async (name: string) =>
        (await rawly<{ sealed: string }>(location, `select sealed from sealed_secret where name = '${name}'`))[0]
          ?.sealed ?? '';
      const store = await openStore(location, sealerWith([key]), now);
      await store.secrets.claim('one', 'clear text');
      await store.secrets.claim('two', 'other text');
      await store.close();
      const before = await sealedText('one');
      assert.doesNotMatch(
        before + Buffer.from(before.split('.')[3] ?? '', 'base64url').toString('latin1'),
        /clear text/,
      );
      await rawly(location, `update sealed_secret set sealed = '${before}' where name = 'two'`);
      const again = await openStore(location, sealerWith([key]), now);
      await assert.rejects(again.secrets.get('two'), SealBroken);
      assert.equal(await again.secrets.get('one'), 'clear text');
      await again.close();
    });

    test(
      'a setting can be claimed once and overwritten',
      withStore(async ({ settings }) => {
        assert.equal(await settings.get('mode'), undefined);
        assert.equal(await settings.claim('mode', 'serve'), 'serve');
        assert.equal(await settings.claim('mode', 'sandbox'), 'serve');
        await settings.put('last_write_probe', '1');
        await settings.put('last_write_probe', '2');
        assert.equal(await settings.get('last_write_probe'), '2');
        assert.equal(await settings.get('mode'), 'serve');
      }),
    );

    test(
      'of concurrent claims one wins',
      withStore(async ({ secrets, settings }) => {
        const names = Array.from({ length: 20 }, (_, index) => String(index));
        assert.equal(new Set(await Promise.all(names.map((name) => secrets.claim('x', name)))).size, 1);
        assert.equal(new Set(await Promise.all(names.map((name) => settings.claim('mode', name)))).size, 1);
      }),
    );

    test(
      'a transaction is atomic, and its error is rethrown unchanged',
      withStore(async (store) => {
        const mistake = new Error('on purpose');
        await assert.rejects(
          store.transaction(async ({ accounts, audit }) => {
            await accounts.insert(account('a'));
            await audit.append(entry('1', 'a'));
            assert.deepEqual(await accounts.find('a'), account('a'), 'it sees its own writes');
            throw mistake;
          }),
          (error) => error === mistake,
        );
        assert.equal(await store.accounts.find('a'), undefined);
        const result = await store.transaction(async ({ accounts }) => {
          await accounts.insert(account('a'));
          return 'result';
        });
        assert.equal(result, 'result');
        assert.deepEqual(await store.accounts.find('a'), account('a'));
      }),
    );

    test(
      'uncommitted changes are invisible to other readers',
      withStore(async (store) => {
        await store.transaction(async ({ accounts }) => {
          await accounts.insert(account('a'));
          assert.equal(await store.accounts.find('a'), undefined);
        });
        assert.deepEqual(await store.accounts.find('a'), account('a'));
      }),
    );

    test(
      'of concurrent transactions, a failing one affects no other',
      withStore(async (store) => {
        await store.accounts.insert(account('taken'));
        const ids = Array.from({ length: 60 }, (_, index) => (index % 3 === 0 ? 'taken' : `a${index}`));
        const results = await Promise.allSettled(
          ids.map((id, index) =>
            store.transaction(async ({ accounts, audit }) => {
              await audit.append(entry(String(index), 'taken'));
              await accounts.insert(account(id));
            }),
          ),
        );
        for (const [index, { status }] of results.entries())
          assert.equal(status, ids[index] === 'taken' ? 'rejected' : 'fulfilled');
        assert.equal((await store.accounts.list({ limit: 1000 })).length, 1 + 40);
        assert.equal(
          (await store.audit.listOf('taken', { limit: 1000 })).length,
          40,
          'writes of a failed transaction are rolled back',
        );
      }),
    );

    test('committed data survives closing and reopening', async () => {
      const location = await engine.newLocation();
      const first = await openStore(location, sealerWith([key]), now);
      await Promise.all(Array.from({ length: 100 }, (_, index) => first.accounts.insert(account(`a${index}`))));
      await first.close();
      const second = await openStore(location, sealerWith([key]), now);
      assert.equal((await second.accounts.list({ limit: 1000 })).length, 100);
      await second.close();
    });

    test('a failed statement fails the whole transaction, even if its error is caught', async () => {
      const location = await engine.newLocation();
      const store = await openStore(location, sealerWith([key]), now);
      await store.accounts.insert(account('taken'));
      const goesOn = (then: (tx: Repositories) => Promise<void>) =>
        store.transaction(async (tx) => {
          await tx.accounts.insert(account('before'));
          await tx.accounts.insert(account('taken')).catch(() => {});
          await then(tx);
        });
      await assert.rejects(goesOn(async () => {}));
      await assert.rejects(goesOn((tx) => tx.accounts.insert(account('after'))));
      assert.deepEqual(await store.accounts.list({ limit: 10 }), [account('taken')]);
      await store.accounts.insert(account('next'));
      await store.close();
    });

    test('no database setting risks an acknowledged commit, and the clocks agree', async () => {
      const one = engineAt(await engine.newLocation());
      const db = openEngine(one, () => {});
      assert.deepEqual(await one.durabilityGaps(db), []);
      assert.ok(Math.abs(await one.clockOffsetMs(db, Date.now)) < 2_000);
      await db.destroy();
    });
  });
}
