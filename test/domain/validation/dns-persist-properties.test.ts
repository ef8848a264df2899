import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { PERSIST_POLICIES } from '../../../src/domain/certificate/order.ts';
import { judgePersist, parsePersistRecord, persistRecord } from '../../../src/domain/validation/dns-persist.ts';

const ISSUER = 'ca.example';
const URI = 'https://ca.example/accounts/42';
const SECOND = 1_800_000_000;
const RULES = { issuers: [ISSUER], accountUris: [URI], now: SECOND * 1000 };

/** Every character that a value may contain. */
const VALUE_CHARACTERS = Array.from({ length: 0x5e }, (_, index) => String.fromCharCode(0x21 + index)).filter(
  (character) => character !== ';',
);
const uri = fc.string({ unit: fc.constantFrom(...VALUE_CHARACTERS), minLength: 1, maxLength: 80 });

const binding = fc.record({
  issuer: fc.domain().map((domain) => domain.toLowerCase()),
  accountUri: uri,
  persistUntil: fc.option(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })),
  persistPolicy: fc.constantFrom(...PERSIST_POLICIES),
});

/** Fragments of records, so that random input is nearly valid. */
const piece = fc.constantFrom(
  ...[ISSUER, 'other.example', ';', ';', '; ', '=', ' ', '\t', '.', '\n', '\0', 'é', '\ud800', '-', '0', '1e3'],
  ...[
    'accounturi',
    'accounturi=',
    'ACCOUNTURI=',
    'policy=',
    'wildcard',
    'persistUntil=',
    String(SECOND),
    '9'.repeat(40),
  ],
  ...['https://ca.example/accounts/4', 'https://ca.example/accounts/', 'foo=bar', '__proto__=', '"'],
);
const garbage = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
  fc.array(piece, { maxLength: 12 }).map((pieces) => `${ISSUER}; ${pieces.join('')}`),
);

const judge = (records: readonly string[], name = 'example.com') =>
  judgePersist(name, [{ domain: 'example.com', answer: { kind: 'found', records } }], RULES);

test('a written record is read back', () => {
  fc.assert(
    fc.property(binding, (given) => {
      assert.deepEqual(parsePersistRecord(persistRecord(given), [given.issuer]), {
        kind: 'record',
        accountUri: given.accountUri,
        isWildcard: given.persistPolicy === 'wildcard',
        until: given.persistUntil || null,
      });
    }),
    { numRuns: 1000 },
  );
});

test('the record that an order shows authorizes its name until it expires, and the wildcard with its policy', () => {
  fc.assert(
    fc.property(binding, fc.integer({ min: 1, max: 4_000_000_000_000 }), (given, now) => {
      const records = [persistRecord(given)];
      const rules = { issuers: [given.issuer], accountUris: [given.accountUri], now };
      const kindFor = (name: string) =>
        judgePersist(name, [{ domain: 'example.com', answer: { kind: 'found', records } }], rules).kind;
      const lasts = !given.persistUntil || now < (given.persistUntil + 1) * 1000;
      const isWild = given.persistPolicy === 'wildcard';
      assert.equal(kindFor('example.com'), lasts ? 'authorized' : 'unauthorized');
      assert.equal(kindFor('*.example.com'), lasts && isWild ? 'authorized' : 'unauthorized');
    }),
    { numRuns: 1000 },
  );
});

test('garbage never throws, never authorizes, and yields a readable message', () => {
  fc.assert(
    fc.property(fc.array(garbage, { maxLength: 5 }), fc.boolean(), (records, isWild) => {
      const texts = records.filter((record) => !record.includes(URI));
      const verdict = judge(texts, isWild ? '*.example.com' : 'example.com');
      assert.ok(verdict.kind !== 'authorized', JSON.stringify(texts));
      for (const text of Object.values(verdict.reason)) {
        assert.ok(text.length > 10 && text.length < 400, text);
        assert.doesNotMatch(text, /\p{C}/u);
      }
    }),
    { numRuns: 5000 },
  );
});

test('garbage next to a valid record does not affect it', () => {
  fc.assert(
    fc.property(fc.array(garbage, { maxLength: 5 }), fc.nat({ max: 5 }), (records, at) => {
      const verdict = judge(records.toSpliced(at, 0, `${ISSUER}; accounturi=${URI}`));
      assert.equal(verdict.kind, 'authorized');
    }),
    { numRuns: 1000 },
  );
});

test('one byte of the account changed, added or removed never authorizes', () => {
  const change = fc.record({
    at: fc.nat({ max: URI.length }),
    removed: fc.constantFrom(0, 1),
    added: fc.oneof(
      fc.constant(''),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
      fc.constantFrom(...VALUE_CHARACTERS),
    ),
  });
  fc.assert(
    fc.property(change, fc.constantFrom('', '; policy=wildcard'), ({ at, removed, added }, rest) => {
      const mutated = URI.slice(0, at) + added + URI.slice(at + removed);
      // Blanks around a value, and an unknown parameter after it, do not change the account.
      fc.pre(mutated.replace(/^[ \t]+|[ \t]+$/g, '') !== URI);
      assert.notEqual(judge([`${ISSUER}; accounturi=${mutated}${rest}`]).kind, 'authorized', JSON.stringify(mutated));
    }),
    { numRuns: 5000 },
  );
});

test('one changed byte of the issuer makes it another CA', () => {
  fc.assert(
    fc.property(
      fc.nat({ max: ISSUER.length - 1 }),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
      (at, byte) => {
        const mutated = ISSUER.slice(0, at) + byte + ISSUER.slice(at + 1);
        fc.pre(mutated.toUpperCase() !== ISSUER.toUpperCase());
        const { kind } = judge([`${mutated}; accounturi=${URI}`]);
        assert.notEqual(kind, 'authorized', JSON.stringify(mutated));
      },
    ),
    { numRuns: 2000 },
  );
});

test('names below are covered only by the policy, and only at label boundaries', () => {
  const label = fc.stringMatching(/^[a-z0-9]{1,8}$/);
  fc.assert(
    fc.property(
      fc.array(label, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      fc.boolean(),
      (labels, isWild, isBelow) => {
        const host = isBelow ? `${labels.join('.')}.example.com` : `${labels.join('.')}example.com`;
        const record = `${ISSUER}; accounturi=${URI}${isWild ? '; policy=wildcard' : ''}`;
        const { kind } = judgePersist(
          host,
          [
            { domain: host, answer: { kind: 'absent' } },
            { domain: 'example.com', answer: { kind: 'found', records: [record] } },
          ],
          RULES,
        );
        assert.equal(kind, isBelow ? (isWild ? 'authorized' : 'unauthorized') : 'no_record', host);
      },
    ),
  );
});
