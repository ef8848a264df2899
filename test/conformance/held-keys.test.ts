// Repositories of escrowed and cloud-held keys, on every engine: round trips, tenant isolation, sealing, atomic counting
// of attempts, and single use of grants.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import { newSealKey, SealBroken, sealerWith } from '../../src/adapters/seal/seal.ts';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import { type DatabaseLocation, engineAt, type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import { type CloudKey, lockoutMs } from '../../src/domain/cloud-keys/cloud-key.ts';
import type { EscrowedKey, SigningGrant } from '../../src/domain/cloud-keys/ports.ts';
import { bothEngines } from '../support/engines.ts';
import { certificate, claimPair, EVERY_BYTE, issued, NOW, ODD, order, prepared } from '../support/records.ts';
import { HOLDS } from '../support/signings.ts';

const key = newSealKey();
const MINUTE = 60_000;

const cloudKey = (id: string, change: Partial<CloudKey> = {}): CloudKey => ({
  ...{ id, accountId: 'a', wrappedKey: `wrapped ${id}`, hint: null, wrongCodes: 0, lockedUntil: 0, createdAt: NOW },
  publicKey: { type: 'p256', bits: 256, spki: Buffer.from(`spki of ${id}`), fingerprint: 'f' },
  destroyedAt: null,
  ...change,
});
/** Every column is set, to an unusual value. */
const FULL = cloudKey('full', {
  ...{ wrappedKey: ODD, hint: ODD, wrongCodes: 3, lockedUntil: 2 ** 52, createdAt: 2 ** 52 - 1 },
  publicKey: { type: 'rsa', bits: 3072, spki: EVERY_BYTE, fingerprint: ODD },
});
const escrowed = (id: string, change: Partial<EscrowedKey> = {}): EscrowedKey => ({
  ...{ id, accountId: 'a', orderId: 'o', createdAt: 2 ** 52, privateKey: EVERY_BYTE },
  publicKey: { type: 'sm2', bits: 256, spki: EVERY_BYTE, fingerprint: ODD },
  ...change,
});
const grant = (tokenHash: string, change: Partial<SigningGrant> = {}): SigningGrant => ({
  ...{ tokenHash, accountId: 'a', keyId: 'k', hashes: ['eA==', 'eQ==', 'eA=='], wrappedKey: ODD, expiresAt: NOW + 1 },
  certificateId: null,
  ...change,
});

for (const engine of await bothEngines()) {
  const open = (location: DatabaseLocation, keys = [key]) => openStore(location, sealerWith(keys), () => NOW);
  type Rows = (statement: string) => Promise<Record<string, unknown>[]>;
  /** Accounts a and b, the order o and the cloud-held key k of a; two instances on one database. */
  const testStore = (name: string, work: (store: OpenStore, rows: Rows, other: OpenStore) => Promise<void>) =>
    test(name, async () => {
      const location = await engine.newLocation();
      const [store, other] = [await open(location), await open(location)];
      const db = openEngine(engineAt(location), () => {});
      try {
        const account = { name: 'Name', kind: 'standard', locale: 'en', createdAt: NOW } as const;
        for (const id of ['a', 'b']) await store.accounts.insert({ id, ...account });
        await store.orders.insert(order('o'));
        await store.cloudKeys.insert(cloudKey('k'));
        const rows: Rows = async (text) => (await sql.raw<Record<string, unknown>>(text).execute(db)).rows;
        await work(store, rows, other);
      } finally {
        await db.destroy();
        for (const one of [store, other]) await one.close();
      }
    });

  describe(engine.name, () => {
    testStore('an escrowed key round-trips, and is found only through its account', async ({ escrowedKeys }) => {
      await escrowedKeys.insert(escrowed('e'));
      assert.deepEqual(await escrowedKeys.find('a', 'e'), escrowed('e'));
      for (const [accountId, id] of [
        ['b', 'e'],
        ['a', 'E'],
        ['a', ''],
      ] as const)
        assert.equal(await escrowedKeys.find(accountId, id), undefined);
      await assert.rejects(escrowedKeys.insert(escrowed('e')));
      await assert.rejects(escrowedKeys.insert(escrowed('f', { orderId: 'nothing' })));
    });

    testStore('a cloud-held key round-trips, and is found only through its account', async ({ cloudKeys }) => {
      await cloudKeys.insert(FULL);
      for (const one of [FULL, cloudKey('k')]) {
        assert.deepEqual(await cloudKeys.find('a', one.id), one);
        assert.equal(await cloudKeys.find('b', one.id), undefined);
      }
      assert.equal(await cloudKeys.find('a', 'K'), undefined);
      await assert.rejects(cloudKeys.insert(cloudKey('k')));
      await assert.rejects(cloudKeys.insert(cloudKey('l', { accountId: 'nobody' })));
    });

    testStore('list returns the keys of one account by id, paged, including destroyed ones', async ({ cloudKeys }) => {
      for (const id of ['n', 'm', 'l']) await cloudKeys.insert(cloudKey(id, { accountId: id === 'm' ? 'b' : 'a' }));
      await cloudKeys.insert(cloudKey('o', { wrappedKey: null, destroyedAt: NOW }));
      const ids = async (accountId: string, after?: string) =>
        (await cloudKeys.list(accountId, { after, limit: 2 })).map(({ id }) => id);
      assert.deepEqual(await ids('a'), ['k', 'l']);
      assert.deepEqual(await ids('a', 'l'), ['n', 'o']);
      assert.deepEqual(await ids('a', 'o'), []);
      assert.deepEqual(await ids('b'), ['m']);
      const [last] = await cloudKeys.list('a', { after: 'n', limit: 1 });
      assert.deepEqual(last, cloudKey('o', { wrappedKey: null, destroyedAt: NOW }));
      assert.equal(await cloudKeys.find('a', 'o'), undefined);
    });

    testStore('a value sealed for one row opens in no other, and not without the seal key', async (store, rows) => {
      await store.escrowedKeys.insert(escrowed('e1'));
      await store.escrowedKeys.insert(escrowed('e2'));
      await store.cloudKeys.insert(cloudKey('l'));
      await store.signingGrants.insert(grant('g1'));
      await store.signingGrants.insert(grant('g2'));
      for (const [table, column] of [
        ['escrowed_key', 'id'],
        ['cloud_key', 'id'],
        ['signing_grant', 'token_hash'],
      ] as const) {
        const [first, second] = await rows(`select ${column} as name, sealed_key from ${table} order by ${column}`);
        const bytes = Buffer.from(String(first?.sealed_key).split('.')[3] ?? '', 'base64url').toString('latin1');
        assert.doesNotMatch(String(first?.sealed_key) + bytes, /wrapped k|Brien/);
        await rows(`update ${table} set sealed_key = '${first?.sealed_key}' where ${column} = '${second?.name}'`);
      }
      await assert.rejects(store.escrowedKeys.find('a', 'e2'), SealBroken);
      await assert.rejects(store.cloudKeys.find('a', 'l'), SealBroken);
      await assert.rejects(store.signingGrants.take('a', 'k', 'g2', NOW), SealBroken);
      assert.deepEqual(await store.cloudKeys.find('a', 'k'), cloudKey('k'), 'where it belongs it opens');
    });

    test('another seal key opens nothing', async () => {
      const location = await engine.newLocation();
      const store = await open(location);
      await store.accounts.insert({ id: 'a', name: 'Name', kind: 'standard', locale: 'en', createdAt: NOW });
      await store.cloudKeys.insert(cloudKey('k'));
      await store.close();
      const stranger = await open(location, [newSealKey()]);
      await assert.rejects(stranger.cloudKeys.find('a', 'k'), SealBroken);
      await stranger.close();
    });

    testStore('listLive returns the newest live keys of one account, oldest first', async ({ cloudKeys }) => {
      for (const id of ['l', 'm', 'n']) await cloudKeys.insert(cloudKey(id, id === 'n' ? { accountId: 'b' } : {}));
      await cloudKeys.destroy('a', 'l', NOW);
      const ids = async (limit: number, before?: string) =>
        (await cloudKeys.listLive('a', { limit, before })).map(({ id }) => id);
      assert.deepEqual([await ids(9), await ids(1)], [['k', 'm'], ['m']]);
      assert.deepEqual([await ids(1, 'm'), await ids(9, 'k'), await ids(9, '')], [['k'], [], []]);
    });

    testStore('an attempt counts before it is compared, and the fifth in a row locks', async ({ cloudKeys }) => {
      const begin = (now: number) => cloudKeys.beginAttempt('a', 'k', now);
      for (let wrongCodes = 0; wrongCodes < 5; wrongCodes += 1) {
        const attempt = await begin(NOW);
        assert.ok(attempt?.kind === 'allowed');
        assert.deepEqual([attempt.wrappedKey, attempt.wrongCodes], ['wrapped k', wrongCodes]);
      }
      const locked = { kind: 'locked', until: NOW + MINUTE };
      for (const now of [NOW, NOW + MINUTE - 1]) assert.deepEqual(await begin(now), locked);
      assert.equal((await cloudKeys.find('a', 'k'))?.wrongCodes, 5, 'a locked-out attempt is not counted');
      const later = NOW + MINUTE;
      assert.equal((await begin(later))?.kind, 'allowed');
      assert.deepEqual(await begin(later), { kind: 'locked', until: later + lockoutMs(6) });
      assert.equal(lockoutMs(6), 2 * MINUTE);
    });

    testStore(
      'an attempt that was never compared is withdrawn, unless another began after it',
      async ({ cloudKeys }) => {
        const begin = async () => {
          const attempt = await cloudKeys.beginAttempt('a', 'k', NOW);
          assert.ok(attempt?.kind === 'allowed');
          return attempt;
        };
        for (let tries = 0; tries < 10; tries += 1) await cloudKeys.withdrawAttempt('a', 'k', await begin());
        assert.deepEqual(await cloudKeys.find('a', 'k'), cloudKey('k'), 'ten withdrawn attempts lock nothing');
        const first = await begin();
        await begin();
        await cloudKeys.withdrawAttempt('a', 'k', first);
        assert.equal((await cloudKeys.find('a', 'k'))?.wrongCodes, 2);
        await cloudKeys.withdrawAttempt('b', 'k', { ...first, wrongCodes: 1 });
        assert.equal((await cloudKeys.find('a', 'k'))?.wrongCodes, 2, 'another account withdraws nothing');
      },
    );

    testStore('the right code resets one key of one account', async ({ cloudKeys }) => {
      await cloudKeys.insert(cloudKey('l'));
      for (const id of ['k', 'l'])
        for (let tries = 0; tries < 5; tries += 1) await cloudKeys.beginAttempt('a', id, NOW);
      await cloudKeys.resetAttempts('b', 'l');
      await cloudKeys.resetAttempts('a', 'k');
      assert.deepEqual(await cloudKeys.find('a', 'k'), cloudKey('k'));
      assert.equal((await cloudKeys.find('a', 'l'))?.wrongCodes, 5);
      assert.equal(await cloudKeys.beginAttempt('b', 'k', NOW), undefined);
      assert.equal(await cloudKeys.beginAttempt('a', 'nothing', NOW), undefined);
      assert.equal((await cloudKeys.find('a', 'k'))?.wrongCodes, 0, 'another account counts nothing');
    });

    testStore('concurrent instances share five attempts', async (store, _rows, other) => {
      const attempts = await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          (index % 2 ? store : other).transaction(({ cloudKeys }) => cloudKeys.beginAttempt('a', 'k', NOW)),
        ),
      );
      const allowed = attempts.flatMap((one) => (one?.kind === 'allowed' ? [one.wrongCodes] : []));
      assert.deepEqual(allowed.sort(), [0, 1, 2, 3, 4]);
      assert.equal(attempts.filter((one) => one?.kind === 'locked').length, 35);
    });

    testStore('rewrap replaces wrapped key and hint', async ({ cloudKeys }) => {
      await cloudKeys.insert(cloudKey('l', { hint: 'old' }));
      await cloudKeys.insert(cloudKey('m', { wrongCodes: 7, lockedUntil: NOW + 5 }));
      await cloudKeys.rewrap('a', 'm', ODD, 'new');
      const rewrapped = cloudKey('m', { wrappedKey: ODD, hint: 'new', wrongCodes: 7, lockedUntil: NOW + 5 });
      assert.deepEqual(await cloudKeys.find('a', 'm'), rewrapped, 'rewrap does not reset attempts');
      await cloudKeys.rewrap('b', 'l', ODD, 'stolen');
      assert.deepEqual(await cloudKeys.find('a', 'l'), cloudKey('l', { hint: 'old' }));
      await cloudKeys.rewrap('a', 'l', 'again', null);
      assert.deepEqual(await cloudKeys.find('a', 'l'), cloudKey('l', { wrappedKey: 'again', hint: null }));
    });

    testStore('destroy erases the key and its grants irreversibly', async (store, rows) => {
      const { cloudKeys, signingGrants } = store;
      await cloudKeys.insert(cloudKey('l', { hint: 'hint' }));
      for (const [name, keyId] of [
        ['g1', 'l'],
        ['g2', 'l'],
        ['g3', 'k'],
      ] as const)
        await signingGrants.insert(grant(name, { keyId }));
      assert.equal(await cloudKeys.destroy('b', 'l', NOW), false);
      assert.equal(await cloudKeys.destroy('a', 'nothing', NOW), false);
      assert.deepEqual(await cloudKeys.find('a', 'l'), cloudKey('l', { hint: 'hint' }));
      assert.equal((await rows('select token_hash from signing_grant')).length, 3, 'another account deletes nothing');
      assert.equal(await cloudKeys.destroy('a', 'l', NOW + 5), true);
      assert.equal(await cloudKeys.destroy('a', 'l', NOW + 6), false);
      const gone = cloudKey('l', { wrappedKey: null, hint: null, destroyedAt: NOW + 5 });
      assert.deepEqual(await cloudKeys.list('a', { limit: 9 }), [cloudKey('k'), gone]);
      assert.deepEqual((await rows("select sealed_key, hint from cloud_key where id = 'l'")).map(Object.values), [
        [null, null],
      ]);
      assert.deepEqual((await rows('select token_hash from signing_grant')).map(Object.values), [['g3']]);
      assert.equal(await cloudKeys.find('a', 'l'), undefined);
      assert.equal(await cloudKeys.beginAttempt('a', 'l', NOW), undefined);
      await cloudKeys.rewrap('a', 'l', 'back', 'hint');
      await cloudKeys.resetAttempts('a', 'l');
      assert.deepEqual(await cloudKeys.list('a', { after: 'k', limit: 9 }), [gone], 'destruction is final');
    });

    testStore('a grant is taken once, by its account and for its key', async (store) => {
      const { cloudKeys, signingGrants } = store;
      await cloudKeys.insert(cloudKey('l'));
      await signingGrants.insert(grant('g'));
      await assert.rejects(signingGrants.insert(grant('g')));
      await assert.rejects(signingGrants.insert(grant('h', { keyId: 'nothing' })));
      for (const [accountId, keyId, token, now] of [
        ['b', 'k', 'g', NOW],
        ['a', 'l', 'g', NOW],
        ['a', 'k', 'G', NOW],
        ['a', 'k', 'g', NOW + 1],
      ] as const)
        assert.equal(await signingGrants.take(accountId, keyId, token, now), undefined);
      assert.deepEqual(await signingGrants.take('a', 'k', 'g', NOW), grant('g'));
      assert.equal(await signingGrants.take('a', 'k', 'g', NOW), undefined);
    });

    testStore('of concurrent takes of a grant one succeeds', async (store, _rows, other) => {
      await store.signingGrants.insert(grant('g'));
      const taken = await Promise.all(
        Array.from({ length: 20 }, (_, index) => (index % 2 ? store : other).signingGrants.take('a', 'k', 'g', NOW)),
      );
      assert.equal(taken.filter((one) => one !== undefined).length, 1);
    });

    testStore('deleteExpired deletes expired grants in batches', async ({ signingGrants }, rows) => {
      for (let index = 0; index < 6; index += 1) {
        await signingGrants.insert(grant(`g${index}`, { expiresAt: index < 5 ? NOW : NOW + 1 }));
      }
      assert.equal(await signingGrants.deleteExpired(NOW - 1, 10), 0);
      assert.equal(await signingGrants.deleteExpired(NOW, 3), 3);
      assert.equal(await signingGrants.deleteExpired(NOW, 3), 2);
      assert.equal(await signingGrants.deleteExpired(NOW, 3), 0);
      assert.deepEqual((await rows('select token_hash from signing_grant')).map(Object.values), [['g5']]);
    });

    testStore('the latest issued certificate of a key is found, through its account', async (store) => {
      const { certificates } = store;
      await claimPair(store);
      assert.equal(await certificates.findByCloudKey('a', 'k'), undefined);
      const of = { cloudKeyId: 'k' };
      await certificates.insert(certificate('c1', of));
      assert.ok(await store.signings.begin(prepared('c2', of), HOLDS));
      assert.equal(await certificates.findByCloudKey('a', 'k'), undefined);
      await certificates.insert(issued('c4', { ...of, issuedAt: NOW }));
      await certificates.insert(issued('c3', { ...of, issuedAt: NOW + 1 }));
      await certificates.insert(issued('c5'));
      assert.deepEqual(await certificates.findByCloudKey('a', 'k'), await certificates.find('a', 'c3'));
      assert.equal(await certificates.findByCloudKey('b', 'k'), undefined);
      assert.equal(await certificates.findByCloudKey('a', 'nothing'), undefined);
    });
  });
}
