// Rotation of the seal key, on both engines: every value is re-sealed, none is lost, and no instance is left without the
// key that a value needs. The heavy version, with kills under load, is `npm run campaign -- seal-kill`.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import { newSealKey, parseSealKeys, SealBroken, type SealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { storeContents } from '../../src/adapters/store/engine/contents.ts';
import { openEngine } from '../../src/adapters/store/engine/engine.ts';
import type { Db } from '../../src/adapters/store/engine/schema.ts';
import { countSealed, findUnopenable } from '../../src/adapters/store/engine/sealed.ts';
import { type DatabaseLocation, engineAt, type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import { Secret } from '../../src/domain/secret.ts';
import { Problem } from '../../src/kernel/problem.ts';
import { bothEngines } from '../support/engines.ts';
import { restoreFixture, storeFixtures } from '../support/store-fixture.ts';

const FIXTURE = storeFixtures().at(-1)!;
const [OLD] = parseSealKeys(FIXTURE.sealKey) as [SealKey];
const NEW = newSealKey();
const ACCOUNT = FIXTURE.contents.issued.key.accountId;
const isProblem = (pattern: RegExp) => (error: unknown) => error instanceof Problem && pattern.test(error.message);
const isBroken = (pattern: RegExp) => (error: unknown) => error instanceof SealBroken && pattern.test(error.message);

interface World {
  /** Opens the store as an instance with these keys would, without serving. */
  open(...keys: SealKey[]): Promise<OpenStore>;
  readonly db: Db;
  readonly location: DatabaseLocation;
}

for (const engine of await bothEngines()) {
  const sealingTest = (name: string, work: (world: World) => Promise<void>) =>
    test(name, async () => {
      await using closing = new AsyncDisposableStack();
      const location = await engine.newEmptyLocation();
      await restoreFixture(location, FIXTURE);
      const bare = engineAt(location);
      const db = openEngine(bare, () => {});
      closing.defer(() => db.destroy());
      const open = async (...keys: SealKey[]) => {
        const store = await openStore(location, sealerWith(keys), () => FIXTURE.now);
        closing.defer(() => store.close());
        await store.sealing.confirm();
        return store;
      };
      await work({ open, db, location });
    });

  describe(engine.name, () => {
    sealingTest('a rotation re-seals every value; then the old key is not needed', async ({ open, db }) => {
      const store = await open(NEW, OLD);
      const before = await countSealed(db);
      const { keyId, resealed, unopenable } = await store.sealing.rotate(() => {});
      assert.deepEqual([keyId, unopenable], [NEW.id, []]);
      const values = before.reduce((total, one) => total + one.values, 0);
      // The canary is the switch itself.
      assert.equal(resealed, values - 1);
      assert.deepEqual(
        await countSealed(db),
        before.map((one) => ({ ...one, keyId: NEW.id })),
      );
      assert.deepEqual(await findUnopenable(db, sealerWith([NEW])), []);
      const afterwards = await open(NEW);
      assert.ok((await afterwards.issuers.list()).some(({ privateKey }) => privateKey));
      const settings = await afterwards.callbacks.find(ACCOUNT);
      assert.equal(settings?.accessKey.reveal(), 'fixture-access-key-0123456789');
      assert.equal((await store.sealing.rotate(() => {})).resealed, 0, 'there is nothing left to do');
    });

    sealingTest('without a needed key a store does not open, and says what needs it', async ({ open, db }) => {
      await (await open(NEW, OLD)).sealing.rotate(() => {});
      const value = sealerWith([OLD]).seal('x', `issuer/x`);
      await sql`update issuer set sealed_key = ${value}
        where id = (select min(id) from issuer where role = 'issuing')`.execute(db);
      await assert.rejects(open(NEW), isBroken(new RegExp(`1 in issuer\\.sealed_key need ${OLD.id}`)));
      await assert.rejects(open(OLD), isBroken(new RegExp(`no seal key with id ${NEW.id}`)));
    });

    sealingTest('an instance without the new key stops a rotation before its first value', async (world) => {
      const { open, db } = world;
      const [behind, ready] = [await open(OLD), await open(NEW, OLD)];
      await behind.sealing.announce({ id: 'b', name: 'behind.example' });
      await ready.sealing.announce({ id: 'r', name: 'ready.example' });
      const contents = () => storeContents(db, engineAt(world.location));
      const before = await contents();
      await assert.rejects(
        ready.sealing.rotate(() => {}),
        isProblem(/behind\.example/),
      );
      assert.deepEqual(await contents(), before);
      // It stops: orderly, or killed and not seen for a while.
      await sql`update instance set seen_at = seen_at - 31000 where id = 'b'`.execute(db);
      const done = ready.sealing.rotate(({ waitingFor }) => {
        if (waitingFor.length > 0) void ready.sealing.announce({ id: 'r', name: 'ready.example' });
      });
      assert.equal((await done).keyId, NEW.id);
      await assert.rejects(behind.sealing.announce({ id: 'b', name: 'behind.example' }), isBroken(/no seal key/));
      await assert.rejects(behind.sealing.requireKeys(), isBroken(/no key/));
    });

    sealingTest('an instance with a new key seals under the old one until the rotation', async ({ open, db }) => {
      const instance = await open(NEW, OLD);
      const name = { id: 'i', name: 'instance.example' };
      await instance.sealing.announce(name);
      await instance.secrets.claim('before', 'x');
      const underNew = async () => (await countSealed(db)).filter(({ keyId }) => keyId === NEW.id).length;
      assert.equal(await underNew(), 0);
      const rotating = await open(NEW, OLD);
      let followed = false;
      await rotating.sealing.rotate(({ waitingFor }) => {
        if (waitingFor.length === 0 || followed) return;
        followed = true;
        // What it seals before it follows is re-sealed too.
        void instance.secrets.claim('meanwhile', 'y').then(() => instance.sealing.announce(name));
      });
      assert.ok(followed);
      assert.deepEqual(new Set((await countSealed(db)).map(({ keyId }) => keyId)), new Set([NEW.id]));
      assert.equal(await (await open(NEW)).secrets.get('meanwhile'), 'y');
    });

    sealingTest('an interrupted rotation continues; a value changed meanwhile keeps its change', async (world) => {
      const { open, db } = world;
      const store = await open(NEW, OLD);
      await assert.rejects(
        store.sealing.rotate(() => {
          throw new Error('interrupted');
        }),
        /interrupted/,
      );
      const keyIds = new Set((await countSealed(db)).map(({ keyId }) => keyId));
      assert.deepEqual(keyIds, new Set([OLD.id, NEW.id]));
      const settings = (await store.callbacks.find(ACCOUNT))!;
      const late = await open(OLD, NEW);
      let changed: Promise<unknown> | undefined;
      await (await open(NEW, OLD)).sealing.rotate(() => {
        changed ??= late.callbacks.save({ ...settings, accessKey: new Secret('changed-meanwhile') });
      });
      await changed;
      const found = await (await open(NEW)).callbacks.find(ACCOUNT);
      assert.equal(found?.accessKey.reveal(), 'changed-meanwhile');
    });

    sealingTest('a value that does not open is named, and the others are re-sealed', async ({ open, db }) => {
      await sql`update sealed_secret set name = 'moved' where name in ('cloud-key-secret', 'service-secret')`.execute(
        db,
      );
      const { unopenable } = await (await open(NEW, OLD)).sealing.rotate(() => {});
      assert.deepEqual(unopenable, [
        'sealed_secret.sealed of moved: the sealed value was altered or belongs elsewhere',
      ]);
      const left = (await countSealed(db)).filter(({ keyId }) => keyId !== NEW.id);
      assert.deepEqual(
        left.map(({ table, values }) => [table, values]),
        [['sealed_secret', 1]],
      );
    });
  });
}
