// What an operator sees of seal keys: their state, a rotation, and what is wrong with files that others can change.
import assert from 'node:assert/strict';
import { chmodSync, chownSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { newSealKey, parseSealKeys, SealBroken, sealerWith } from '../../src/adapters/seal/seal.ts';
import { readSealKeyFile } from '../../src/adapters/seal/seal-key-file.ts';
import { openStore } from '../../src/adapters/store/store.ts';
import { Problem } from '../../src/kernel/problem.ts';
import { newFolder, startApp, TestApp } from '../support/app.ts';
import { rule } from '../support/contract.ts';
import { reseal, withoutStore } from '../support/in-process.ts';

test('a rotation as documented: put the new key first, rotate, remove the old one', async () => {
  const app = await startApp();
  await app.stop();
  const settings = { RESEAL_DATA_DIR: app.folder };
  const file = join(app.folder, 'seal.key');
  const old = readFileSync(file, 'utf8');
  const added = newSealKey();
  const status = async () => JSON.parse((await reseal(['seal', 'status', '--json'], settings)).out);
  const states = async () =>
    (await status()).keys.map(({ key, state }: { key: string; state: string }) => [key, state]);
  const oldId = parseSealKeys(old)?.[0]?.id;
  assert.deepEqual(await states(), [[oldId, 'active']]);

  writeFileSync(file, `${added.bytes.toString('base64')}\n${old}`);
  assert.deepEqual(await states(), [
    [added.id, 'new'],
    [oldId, 'active'],
  ]);
  const { out } = await reseal(['doctor'], settings);
  assert.match(out, new RegExp(`WARNING {2}sealed values {2}the first key, ${added.id}, is not in use: ${oldId} is`));
  const rotated = await reseal(['seal', 'rotate'], settings);
  assert.deepEqual([rotated.code, withoutStore(rotated.err)], [0, '']);
  assert.match(rotated.out, new RegExp(`values were re-sealed\\. The key ${added.id} seals\\.`));
  assert.deepEqual(await states(), [
    [added.id, 'active'],
    [oldId, 'unused'],
  ]);

  // Removing the wrong one is noticed by everything that opens the store.
  writeFileSync(file, old);
  const wrong = await reseal(['seal', 'status'], settings);
  assert.equal(wrong.code, 1);
  assert.match(wrong.out, new RegExp(`${added.id} +MISSING +\\d+`));
  assert.match((await reseal(['doctor'], settings)).out, /PROBLEM {2}store +it was sealed with another key/);
  assert.equal((await reseal(['account', 'list'], settings)).code, 3);
  writeFileSync(file, `${added.bytes.toString('base64')}\n`);
  assert.equal((await reseal(['doctor'], settings)).code, 0);
  const again = new TestApp(app.folder);
  await again.start({});
  await again.stop();
});

rule(
  'ops 14',
  '`GET /readyz` answers 503 `service_busy` while a sealed value needs a key that is not at hand',
  async () => {
    await using app = await startApp();
    const { sealing, secrets } = app.app.store;
    await sealing.requireKeys();
    const foreign = newSealKey();
    const store = await openStore(
      { kind: 'sqlite', file: join(app.folder, 'reseal.db') },
      sealerWith([foreign]),
      app.now,
    );
    await store.secrets.claim('foreign', 'x');
    await store.close();
    const { status, body } = await app.call('GET', '/readyz');
    assert.deepEqual([status, body.code], [503, 'service_busy']);
    await assert.rejects(secrets.get('foreign'), SealBroken);
    assert.match(app.output, new RegExp(`1 in sealed_secret\\.sealed need ${foreign.id}`));
    await app.stop();
    await assert.rejects(new TestApp(app.folder).start({}), (error) => error instanceof Problem);
  },
);

test('a key file, or a folder, that other users own or can write in is refused', () => {
  const folder = newFolder();
  const file = join(folder, 'seal.key');
  writeFileSync(file, `${newSealKey().bytes.toString('base64')}\n`, { mode: 0o600 });
  const refused = (pattern: RegExp) =>
    assert.throws(
      () => readSealKeyFile(file),
      (error) => error instanceof Problem && pattern.test(`${error.message} ${error.remedy}`),
    );
  assert.ok(readSealKeyFile(file));
  chmodSync(folder, 0o777);
  refused(/other users can replace the seal key.*chmod go-w/);
  // As in /run/secrets: others can add files, and not replace this one.
  chmodSync(folder, 0o1777);
  assert.ok(readSealKeyFile(file));
  chmodSync(folder, 0o700);
  // Only root can give files away.
  if (process.getuid?.() !== 0) return;
  chownSync(file, 65_534, 65_534);
  refused(/another user owns .*seal\.key/);
  chownSync(file, 0, 0);
  chownSync(folder, 65_534, 65_534);
  refused(/another user owns /);
});
