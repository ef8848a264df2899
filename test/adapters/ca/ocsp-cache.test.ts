import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerCache, isCurrent, type SignedAnswer } from '../../../src/adapters/ca/status/ocsp-cache.ts';
import type { SerialStatus } from '../../../src/domain/revocation/ports.ts';

const HOUR = 3_600_000;
const AT = 1_000 * HOUR;
const GOOD: SerialStatus = { kind: 'good' };
const REVOKED: SerialStatus = { kind: 'revoked', revokedAt: AT - HOUR, reason: 'superseded' };

const answer = (change: Partial<SignedAnswer> = {}): SignedAnswer => ({
  der: new Uint8Array(1_000),
  producedAt: AT,
  validity: { thisUpdate: AT - HOUR, nextUpdate: AT + 12 * HOUR },
  ...{ signers: new Map(), issuers: [] as unknown as SignedAnswer['issuers'], serial: '0a' },
  ...{ status: GOOD, responderSerial: '01' },
  ...change,
});

test('an answer is current only for the status, responder and time that it was signed for', () => {
  const facts = { status: GOOD, responderSerial: '01' };
  const short = { validity: { thisUpdate: AT - HOUR, nextUpdate: AT + HOUR } };
  const revoked = { status: REVOKED };
  const cases: readonly (readonly [
    Partial<SignedAnswer>,
    Partial<typeof facts | { status: SerialStatus }>,
    number,
    boolean,
  ])[] = [
    [{}, {}, AT, true],
    [{}, {}, AT + HOUR - 1, true],
    [{}, {}, AT + HOUR, false],
    [{}, {}, AT - 1, false],
    [short, {}, AT + HOUR / 2 - 1, true],
    [short, {}, AT + HOUR / 2, false],
    [{}, { responderSerial: '02' }, AT, false],
    [{}, revoked, AT, false],
    [{}, { status: { kind: 'unknown' } }, AT, false],
    [revoked, {}, AT, false],
    [revoked, { status: { ...REVOKED } }, AT, true],
    [revoked, { status: { ...REVOKED, reason: 'key_compromise' } }, AT, false],
    [revoked, { status: { ...REVOKED, revokedAt: AT } }, AT, false],
  ];
  for (const [change, now, at, expected] of cases) {
    assert.equal(isCurrent(answer(change), { ...facts, ...now }, at), expected, JSON.stringify([change, now, at - AT]));
  }
});

const request = (number: number, length = 80): Uint8Array => {
  const bytes = new Uint8Array(length);
  new DataView(bytes.buffer).setUint32(0, number);
  return bytes;
};

test('the cache holds so many bytes, drops the least recently used answers, and no long requests', () => {
  const cache = answerCache(100_000);
  const kept = answer();
  cache.set(request(0), kept);
  for (let number = 1; number < 1_000; number += 1) {
    cache.set(request(number), answer());
    assert.equal(cache.get(request(0)), kept, 'used all the time');
  }
  const held = Array.from({ length: 1_000 }, (_, number) => cache.get(request(number))).filter(
    (one) => one !== undefined,
  );
  assert.ok(held.length > 50 && held.length * 1_080 <= 100_000, `${held.length} answers`);
  assert.ok(cache.get(request(999)));
  cache.set(request(0, 257), kept);
  assert.equal(cache.get(request(0, 257)), undefined);
});

test('an answer that replaces another counts once', () => {
  const cache = answerCache(4_000);
  cache.set(request(1), answer());
  for (let count = 0; count < 100; count += 1) cache.set(request(2), answer());
  assert.ok(cache.get(request(1)) && cache.get(request(2)));
});

test('an answer larger than the cache is not kept', () => {
  const cache = answerCache(1_000);
  cache.set(request(1), answer());
  assert.equal(cache.get(request(1)), undefined);
});
