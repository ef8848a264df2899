// The forms under which a text that a customer quotes may be stored.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { firstIdAt, idMaker, timeOf } from '../../../src/domain/ids.ts';
import { spellingsOf } from '../../../src/domain/support/ports.ts';

test('serial numbers and fingerprints are found however tools print them', () => {
  const table: [given: string, hex: string | null][] = [
    ['4A:0F:B3', '4a0fb3'],
    ['0x4A0FB3', '4a0fb3'],
    ['4a 0f b3', '4a0fb3'],
    ['00:4A:0F:B3', '4a0fb3'],
    ['A0FB3', '0a0fb3'],
    [`00${'ab'.repeat(31)}`, `00${'ab'.repeat(31)}`],
    ['www.example.com', null],
    ['ab'.repeat(33), null],
    ['', null],
  ];
  for (const [given, hex] of table) assert.equal(spellingsOf(given).hex, hex, given);
});

test('a name is found by itself and by the wildcard that covers it', () => {
  assert.deepEqual(spellingsOf(' WWW.Example.com. ').names, ['www.example.com', '*.example.com', 'WWW.Example.com.']);
  assert.deepEqual(spellingsOf('*.example.com').names, ['*.example.com']);
  assert.ok(spellingsOf('Acme Ltd').names.includes('Acme Ltd'));
});

test('no text makes it throw, and forms do not multiply', () => {
  fc.assert(fc.property(fc.string(), (text) => spellingsOf(text).names.length <= 3));
});

test('an id tells the time at which it was made, and nothing else does', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 47 }), (time) => {
      assert.equal(timeOf(firstIdAt(time)), time);
      assert.equal(
        timeOf(
          idMaker(
            () => time,
            (count) => new Uint8Array(count).fill(255),
          )(),
        ),
        time,
      );
    }),
  );
  for (const text of [
    '',
    'x',
    '0'.repeat(25),
    '0'.repeat(27),
    `${'0'.repeat(25)}u`,
    `${'0'.repeat(25)}A`,
    `8${'0'.repeat(25)}`,
  ]) {
    assert.equal(timeOf(text), undefined, text);
  }
});
