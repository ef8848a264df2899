import assert from 'node:assert/strict';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { newSealKey, parseSealKeys, SealBroken, type Sealed, sealerWith } from '../../../src/adapters/seal/seal.ts';
import { createSealKeyFile, readSealKeyFile } from '../../../src/adapters/seal/seal-key-file.ts';
import { Problem } from '../../../src/kernel/problem.ts';
import { newFolder, startApp, TestApp } from '../../support/app.ts';

const key = newSealKey();
const sealer = sealerWith([key]);

test('a sealed value opens under its binding, and differs each time', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string(), (text, binding) => {
      // UTF-8 cannot encode lone surrogates.
      const wellFormed = text.toWellFormed();
      const sealed = sealer.seal(wellFormed, binding);
      assert.equal(sealer.open(sealed, binding), wellFormed);
      assert.notEqual(sealer.seal(wellFormed, binding), sealed);
    }),
  );
});

test('does not open under another binding, altered, truncated, or with another key', () => {
  const value = sealer.seal('text', 'place');
  assert.throws(() => sealer.open(value, 'other place'), SealBroken);
  assert.throws(() => sealerWith([newSealKey()]).open(value, 'place'), SealBroken);
  const sealed = String(value);
  const open = (text: string) => sealer.open(text as unknown as Sealed, 'place');
  for (let index = 0; index < sealed.length; index += 1) {
    const altered = `${sealed.slice(0, index)}${sealed[index] === 'A' ? 'B' : 'A'}${sealed.slice(index + 1)}`;
    // The last base64 character has unused bits; texts that decode to the same bytes are the same value.
    if (
      Buffer.from(altered.split('.')[3] ?? '', 'base64url').equals(
        Buffer.from(sealed.split('.')[3] ?? '', 'base64url'),
      ) &&
      altered.slice(0, -1) === sealed.slice(0, -1)
    )
      continue;
    assert.throws(() => open(altered), SealBroken, `character ${index}`);
  }
  for (const cut of [
    '',
    'v1',
    'v1.',
    sealed.slice(0, 20),
    sealed.slice(0, -2),
    `v2${sealed.slice(2)}`,
    `${sealed}.x`.replace(/\.[^.]*\.x$/, '.'),
  ]) {
    assert.throws(() => open(cut), SealBroken, cut);
  }
});

test('keys are parsed strictly, newest first', () => {
  const [one, two] = [newSealKey(), newSealKey()];
  const text = (bytes: Buffer) => bytes.toString('base64');
  assert.deepEqual(
    parseSealKeys(`${text(one.bytes)}\n${text(two.bytes)}\n`)?.map(({ id }) => id),
    [one.id, two.id],
  );
  assert.deepEqual(
    parseSealKeys(`${text(one.bytes)},${text(two.bytes)}`)?.map(({ id }) => id),
    [one.id, two.id],
  );
  for (const bad of [
    '',
    ' ',
    'x',
    text(one.bytes).slice(4),
    `${text(one.bytes)}x`,
    `${text(one.bytes)}\n#`,
    'A'.repeat(44),
  ]) {
    assert.equal(parseSealKeys(bad), undefined, bad);
  }
});

test('the key file is created once, with mode 0600, and refused if others can read it', () => {
  const folder = newFolder();
  const file = join(folder, 'seal.key');
  assert.equal(readSealKeyFile(file), undefined);
  const [made] = createSealKeyFile(file);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(
    createSealKeyFile(file).map(({ id }) => id),
    [made?.id],
    'a second process takes what is there',
  );
  assert.deepEqual(readdirSync(folder), ['seal.key'], 'no drafts are left');
  chmodSync(file, 0o640);
  assert.throws(
    () => readSealKeyFile(file),
    (error) => error instanceof Problem && /chmod 600/.test(error.remedy),
  );
  chmodSync(file, 0o600);
  writeFileSync(file, 'not a key\n');
  assert.throws(() => readSealKeyFile(file), Problem);
});

test('a store does not open with another key, and a lost key file is not replaced', async () => {
  await using app = await startApp();
  const file = join(app.folder, 'seal.key');
  const right = readFileSync(file);
  await app.stop();
  const again = new TestApp(app.folder);
  rmSync(file);
  await assert.rejects(again.start({}), (error) => error instanceof Problem && /another key/.test(error.message));
  assert.equal(existsSync(file), false);
  writeFileSync(file, `${newSealKey().bytes.toString('base64')}\n`, { mode: 0o600 });
  await assert.rejects(again.start({}), Problem);
  await assert.rejects(again.start({ RESEAL_SEAL_KEY: newSealKey().bytes.toString('base64') }), Problem);
  writeFileSync(file, right, { mode: 0o600 });
  await again.start({});
  await again.stop();
  const rotated = [newSealKey().bytes.toString('base64'), right.toString().trim()].join(',');
  await again.start({ RESEAL_SEAL_KEY: rotated });
  await again.stop();
});
