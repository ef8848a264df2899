// The store's callback settings and rate limits, on both engines: settings round-trip with both secrets sealed to their
// row, and rates are counted exactly.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import { newSealKey, SealBroken, sealerWith } from '../../src/adapters/seal/seal.ts';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import { type DatabaseLocation, engineAt, type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import { rate as rateFrom } from '../../src/config/values.ts';
import type { CallbackSettings } from '../../src/domain/callbacks/callback.ts';
import { Secret } from '../../src/domain/secret.ts';
import { bothEngines } from '../support/engines.ts';

const NOW = Date.UTC(2026, 10, 15);
const key = newSealKey();

const settings = (accountId: string, change: Partial<CallbackSettings> = {}): CallbackSettings => ({
  accountId,
  url: `https://hooks.example.com/${accountId}`,
  accessKey: new Secret(`access key of ${accountId}`),
  signingSecret: new Secret(`signing secret of ${accountId}`),
  former: null,
  isDisabled: false,
  enabledActions: null,
  updatedAt: NOW,
  ...change,
});

/** Secret instances always compare equal, so their values are compared. */
const clear = (saved: CallbackSettings | undefined) =>
  saved && { ...saved, accessKey: saved.accessKey.reveal(), signingSecret: saved.signingSecret.reveal() };

const SEALED = ['sealed_access_key', 'sealed_signing_secret'] as const;
type SealedRow = Readonly<Record<(typeof SEALED)[number], string>>;

for (const engine of await bothEngines()) {
  const openAt = async (location: DatabaseLocation, keys = [key]): Promise<OpenStore> =>
    await openStore(location, sealerWith(keys), () => NOW);

  /** Accounts a and b. */
  const fresh = async (location: DatabaseLocation): Promise<OpenStore> => {
    const store = await openAt(location);
    for (const id of ['a', 'b']) {
      await store.accounts.insert({ id, name: id, kind: 'standard', locale: 'en', createdAt: NOW });
    }
    return store;
  };
  const withStore = (work: (store: OpenStore, location: DatabaseLocation) => Promise<void>) => async () => {
    const location = await engine.newLocation();
    const store = await fresh(location);
    await work(store, location).finally(() => store.close());
  };
  const rawly = async <T>(location: DatabaseLocation, statement: string): Promise<T[]> => {
    const db = openEngine(engineAt(location), () => {});
    const { rows } = await sql
      .raw<T>(statement)
      .execute(db)
      .finally(() => db.destroy());
    return rows;
  };
  const sealedRow = async (location: DatabaseLocation, id: string): Promise<SealedRow> =>
    (await rawly<SealedRow>(location, `select ${SEALED.join()} from callback_settings where account_id = '${id}'`))[0]!;

  describe(`callback settings in ${engine.name}`, () => {
    test(
      'settings round-trip in every field',
      withStore(async ({ callbacks }) => {
        assert.equal(await callbacks.find('a'), undefined);
        const table: Partial<CallbackSettings>[] = [
          {},
          { url: `https://hooks.example.com/?q='";--%5C`, updatedAt: 2 ** 52 },
          { isDisabled: true },
          { isDisabled: false },
          { enabledActions: [] },
          { enabledActions: ['order:revoked', 'order:issued'] },
          { enabledActions: null },
          { accessKey: new Secret(`~ "k' \\ ;-- ${'x'.repeat(256)}`) },
        ];
        for (const change of table) {
          const saved = settings('a', change);
          assert.deepEqual(clear(await callbacks.save(saved)), clear(saved));
          assert.deepEqual(clear(await callbacks.find('a')), clear(saved));
        }
        assert.equal(await callbacks.find('A'), undefined);
        assert.equal(await callbacks.find(''), undefined);
      }),
    );

    test(
      'settings belong to one account, and deletion affects only that account',
      withStore(async ({ callbacks }) => {
        for (const id of ['a', 'b']) await callbacks.save(settings(id));
        await callbacks.save(settings('a', { url: 'https://new.example.com/', isDisabled: true, updatedAt: NOW + 1 }));
        assert.deepEqual(clear(await callbacks.find('b')), clear(settings('b')));
        assert.equal(await callbacks.delete('a'), true);
        assert.equal(await callbacks.delete('a'), false);
        assert.equal(await callbacks.delete('nobody'), false);
        assert.equal(await callbacks.find('a'), undefined);
        assert.deepEqual(clear(await callbacks.find('b')), clear(settings('b')));
        await assert.rejects(callbacks.save(settings('nobody')), 'there is no such account');
      }),
    );

    test(
      'the first signing secret is kept until the settings are deleted',
      withStore(async ({ callbacks }) => {
        await callbacks.save(settings('a'));
        const again = settings('a', { signingSecret: new Secret('second'), accessKey: new Secret('new key') });
        const { signingSecret, accessKey } = await callbacks.save(again);
        assert.deepEqual([signingSecret.reveal(), accessKey.reveal()], ['signing secret of a', 'new key']);
        assert.equal((await callbacks.find('a'))?.signingSecret.reveal(), 'signing secret of a');
        await callbacks.delete('a');
        assert.equal((await callbacks.save(again)).signingSecret.reveal(), 'second');
      }),
    );

    test(
      'of concurrent first saves one sets the signing secret, and all return it',
      withStore(async (store) => {
        const told = await Promise.all(
          Array.from({ length: 20 }, (_, index) =>
            store.transaction(async ({ callbacks }) => {
              await callbacks.find('a');
              return await callbacks.save(settings('a', { signingSecret: new Secret(`secret ${index}`) }));
            }),
          ),
        );
        const secrets = new Set(told.map(({ signingSecret }) => signingSecret.reveal()));
        assert.equal(secrets.size, 1);
        assert.ok(secrets.has((await store.callbacks.find('a'))!.signingSecret.reveal()));
      }),
    );

    test(
      'a failed transaction neither saves nor deletes',
      withStore(async (store) => {
        await store.callbacks.save(settings('b'));
        const failing = store.transaction(async ({ callbacks }) => {
          await callbacks.save(settings('a'));
          await callbacks.delete('b');
          throw new Error('on purpose');
        });
        await assert.rejects(failing, /on purpose/);
        assert.equal(await store.callbacks.find('a'), undefined);
        assert.deepEqual(clear(await store.callbacks.find('b')), clear(settings('b')));
      }),
    );

    test(
      'an action unknown to this version is ignored',
      withStore(async ({ callbacks }, location) => {
        await callbacks.save(settings('a', { enabledActions: ['order:issued'] }));
        const actions = JSON.stringify(['order:later', 'order:issued', 'constructor']);
        await rawly(location, `update callback_settings set enabled_actions = '${actions}'`);
        assert.deepEqual((await callbacks.find('a'))?.enabledActions, ['order:issued']);
      }),
    );

    for (const from of SEALED) {
      for (const [to, id] of SEALED.flatMap((column) => [[column, 'a'] as const, [column, 'b'] as const])) {
        if (to === from && id === 'a') continue;
        test(
          `${from} of one account does not open as ${to} of ${id === 'a' ? 'the same' : 'another'}`,
          withStore(async ({ callbacks }, location) => {
            // The same plaintext everywhere, so that only the row differs.
            const [accessKey, signingSecret] = [new Secret('same'), new Secret('same')];
            for (const one of ['a', 'b']) await callbacks.save(settings(one, { accessKey, signingSecret }));
            const { [from]: sealed } = await sealedRow(location, 'a');
            await rawly(location, `update callback_settings set ${to} = '${sealed}' where account_id = '${id}'`);
            await assert.rejects(callbacks.find(id), SealBroken);
            assert.equal((await callbacks.find(id === 'a' ? 'b' : 'a'))?.accessKey.reveal(), 'same');
            await rawly(location, `update callback_settings set ${from} = '${sealed}x' where account_id = 'a'`);
            await assert.rejects(callbacks.find('a'), SealBroken);
          }),
        );
      }
    }

    test('secrets are stored encrypted, never with equal ciphertexts, and open under no other key', async () => {
      const location = await engine.newLocation();
      const [accessKey, signingSecret] = [new Secret('clear-access-key'), new Secret('whsec_clear')];
      const store = await fresh(location);
      await store.callbacks.save(settings('a', { accessKey, signingSecret }));
      const first = await sealedRow(location, 'a');
      await store.callbacks.save(settings('a', { accessKey, signingSecret, updatedAt: NOW + 1 }));
      const second = await sealedRow(location, 'a');
      assert.notEqual(second.sealed_access_key, first.sealed_access_key);
      assert.equal(second.sealed_signing_secret, first.sealed_signing_secret);
      const rows = await rawly(location, 'select * from callback_settings');
      const files = location.kind === 'sqlite' ? globSync(`${location.file}*`).map((file) => readFileSync(file)) : [];
      assert.equal(rows.length, 1);
      const sealed = Object.values(second).map((text) => Buffer.from(text.split('.')[3] ?? '', 'base64url'));
      for (const bytes of [Buffer.from(JSON.stringify(rows)), ...sealed, ...files]) {
        for (const text of ['clear-access-key', 'whsec_clear']) {
          for (const form of [text, Buffer.from(text).toString('hex'), Buffer.from(text).toString('base64url')]) {
            assert.equal(bytes.includes(form), false, form);
          }
        }
      }
      await store.close();
      const stranger = await openAt(location, [newSealKey()]);
      await assert.rejects(stranger.callbacks.find('a'), SealBroken);
      await stranger.close();
    });
  });

  describe(`rate limits in ${engine.name}`, () => {
    const RATE = { burst: 5, everyMs: 1_000 };
    /** How many of `count` concurrent takes succeed. */
    const passing = async ({ rateLimits }: Pick<OpenStore, 'rateLimits'>, count: number, at: number, rate = RATE) => {
      let passed = 0;
      for (let index = 0; index < count; index += 1) if ((await rateLimits.take('k', rate, at)) === 0) passed += 1;
      return passed;
    };

    test(
      'exactly the burst at once, then one per interval, and never more than the burst after a long time',
      withStore(async (store) => {
        assert.equal(await passing(store, 8, NOW), 5);
        assert.equal(await passing(store, 2, NOW + 999), 0);
        assert.equal(await passing(store, 2, NOW + 1_000), 1);
        assert.equal(await passing(store, 2, NOW + 1_999), 0);
        assert.equal(await passing(store, 5, NOW + 4_000), 3);
        assert.equal(await passing(store, 9, NOW + 86_400_000), 5);
      }),
    );

    test(
      'the wait is exact to the millisecond, and a refused take costs nothing',
      withStore(async ({ rateLimits }) => {
        for (let index = 0; index < 5; index += 1) assert.equal(await rateLimits.take('k', RATE, NOW + 100 * index), 0);
        for (const [at, wait] of [
          [400, 600],
          [400, 600],
          [999, 1],
          [1_000, 0],
          [1_000, 1_000],
          [1_500, 500],
          [2_000, 0],
        ] as const) {
          assert.equal(await rateLimits.take('k', RATE, NOW + at), wait, String(at));
        }
      }),
    );

    test(
      'of fifty concurrent takes exactly the burst succeeds, with and without transactions',
      withStore(async (store) => {
        const rate = { burst: 7, everyMs: 60_000 };
        const takers: Readonly<Record<string, () => Promise<number>>> = {
          alone: () => store.rateLimits.take('alone', rate, NOW),
          within: () => store.transaction(({ rateLimits }) => rateLimits.take('within', rate, NOW)),
        };
        for (const [name, take] of Object.entries(takers)) {
          const waits = await Promise.all(Array.from({ length: 50 }, take));
          assert.equal(waits.filter((wait) => wait === 0).length, 7, name);
          assert.deepEqual(new Set(waits), new Set([0, 60_000]), name);
        }
      }),
    );

    test(
      'each key has its own bucket, and a failed transaction returns its token',
      withStore(async (store) => {
        assert.equal(await passing(store, 5, NOW), 5);
        for (const other of ['K', 'k ', '', 'k2']) assert.equal(await store.rateLimits.take(other, RATE, NOW), 0);
        assert.equal(await store.rateLimits.take('k', RATE, NOW), 1_000);
        const failing = store.transaction(async (tx) => {
          assert.equal(await tx.rateLimits.take('k', RATE, NOW + 1_000), 0);
          throw new Error('on purpose');
        });
        await assert.rejects(failing, /on purpose/);
        assert.equal(await store.rateLimits.take('k', RATE, NOW + 1_000), 0);
      }),
    );

    test(
      'a clock that goes back, or differs between instances, never yields more than the burst',
      withStore(async (store) => {
        assert.equal(await passing(store, 5, NOW), 5);
        for (const at of [NOW - 1, NOW - 600_000, NOW]) assert.equal(await passing(store, 3, at), 0);
        assert.equal(await passing(store, 2, NOW + 1_000), 1, 'it refills afterwards');
        let passed = 0;
        for (const offset of [0, -900, -300, -999, -1, -500, -700, -2, -998]) {
          if ((await store.rateLimits.take('skewed', RATE, NOW + offset)) === 0) passed += 1;
        }
        assert.ok(passed > 0 && passed <= 5, String(passed));
      }),
    );

    test(
      'a bucket written under a slower rate, or by a clock far ahead, refills at the current rate',
      withStore(async (store) => {
        for (const [key, at, rate] of [
          ['slower', NOW, { burst: 1, everyMs: 3_600_000 }],
          ['ahead', NOW + 86_400_000, RATE],
        ] as const) {
          assert.equal(await store.rateLimits.take(key, rate, at), 0);
          assert.equal(await store.rateLimits.take(key, RATE, NOW), RATE.everyMs);
          assert.equal(await store.rateLimits.take(key, RATE, NOW + RATE.everyMs - 1), 1);
          assert.equal(await store.rateLimits.take(key, RATE, NOW + RATE.everyMs), 0);
          assert.notEqual(await store.rateLimits.take(key, RATE, NOW + RATE.everyMs), 0);
        }
      }),
    );

    for (const text of ['1/h', '7/min', '3/s', '11/h', '999/s', '1000/s', '1000/h']) {
      test(
        `a configurable rate is enforced exactly: ${text}`,
        withStore(async (store) => {
          const read = rateFrom(text);
          assert.ok('value' in read);
          const { burst, everyMs } = read.value;
          assert.equal(await passing(store, Math.min(burst, 12), NOW + 1, read.value), Math.min(burst, 12));
          if (burst > 12) return;
          const wait = await store.rateLimits.take('k', read.value, NOW + 1);
          assert.ok(wait > 0 && Math.abs(wait - everyMs) <= 1, String(wait));
          assert.equal(await store.rateLimits.take('k', read.value, NOW + 1 + Math.ceil(wait)), 0);
        }),
      );
    }
  });
}
