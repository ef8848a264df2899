import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { preferredLocale } from '../../src/kernel/locale.ts';

test('any header yields a supported language or undefined, and never throws', () => {
  const piece = fc.constantFrom(
    'en',
    'zh',
    'zh-CN',
    'fr',
    '*',
    ';q=',
    '0.5',
    '1',
    '0',
    ',',
    ';',
    '=',
    ' ',
    'q',
    '-',
    '\u0000',
    '9e9',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 200 }), (pieces) => {
      assert.ok([undefined, 'en', 'zh-CN'].includes(preferredLocale(pieces.join(''))));
    }),
  );
});

test('preferences', () => {
  const table: [string | undefined, string | undefined][] = [
    [undefined, undefined],
    ['', undefined],
    ['en', 'en'],
    ['EN-us', 'en'],
    ['zh-TW', 'zh-CN'],
    ['zhx', undefined],
    ['english', undefined],
    ['fr, de', undefined],
    ['en;q=0', undefined],
    ['en;q=0.5, zh;q=0.6', 'zh-CN'],
    ['zh;q=0.5, en;q=0.5', 'zh-CN'],
    ['en;q=2, zh;q=0.1', 'zh-CN'],
    ['en;q=abc, zh;q=0.1', 'zh-CN'],
    [`${'fr,'.repeat(1000)}en`, undefined],
  ];
  for (const [header, expected] of table) assert.equal(preferredLocale(header), expected, header?.slice(0, 40));
});
