import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  judgePersist,
  type PersistVerdict,
  parsePersistRecord,
  persistRecord,
} from '../../../src/domain/validation/dns-persist.ts';

const ISSUERS = ['ca.example', 'Bank.Example.'];
const URI = 'https://ca.example/accounts/42';
const SECOND = 1_800_000_000;
const RULES = { issuers: ISSUERS, accountUris: [URI], now: SECOND * 1000 + 500 };
const GOOD = `ca.example; accounturi=${URI}`;

const judge = (name: string, records: readonly string[], now = RULES.now): PersistVerdict =>
  judgePersist(name, [{ domain: name.replace('*.', ''), answer: { kind: 'found', records } }], { ...RULES, now });

const EMPTY = /semicolon has no parameter/;
const EQUALS = /equals sign/;
const VALUE = /plain ASCII/;
const TWICE = /twice/;
const ACCOUNT = /accounturi is missing or empty/;
const INTEGER = /Unix seconds/;
const OTHER_ACCOUNT = /another account/;
const EXPIRED = /expired/;
const POLICY = /policy=wildcard/;
const NONE = /There is no TXT record/;

type Row = readonly [record: string, kind: PersistVerdict['kind'], why?: RegExp];

/** One record at example.com, and its verdict for example.com. */
const OWN: readonly Row[] = [
  // Spellings of one record.
  [GOOD, 'authorized'],
  [`ca.example;accounturi=${URI}`, 'authorized'],
  [` \t ca.example \t; \t accounturi \t=\t ${URI} \t `, 'authorized'],
  [`CA.Example; accounturi=${URI}`, 'authorized'],
  [`ca.example.; accounturi=${URI}`, 'authorized'],
  [`bank.example; accounturi=${URI}`, 'authorized'],
  [`BANK.EXAMPLE.; accounturi=${URI}`, 'authorized'],
  [`ca.example; ACCOUNTURI=${URI}`, 'authorized'],
  [`ca.example; AccountUri=${URI}; POLICY=WildCard; PERSISTUNTIL=${SECOND}`, 'authorized'],
  [`ca.example; persistuntil=${SECOND}; policy=wildcard; accounturi=${URI}`, 'authorized'],
  // Unknown parameters are ignored, even if repeated.
  [`${GOOD}; foo=bar`, 'authorized'],
  [`${GOOD}; foo=bar; foo=baz; FOO=`, 'authorized'],
  [`${GOOD}; foo==;bar=a=b`, 'authorized'],
  [`${GOOD}; bad tag=1; under_score=2; é=3; \n=4; -=5`, 'authorized'],
  [`${GOOD}; constructor=1; __proto__=2; toString=3`, 'authorized'],
  [`${GOOD}; accounturi2=https://evil.example/`, 'authorized'],
  [`${GOOD}; account uri=https://evil.example/`, 'authorized'],
  [`${GOOD}; policy=`, 'authorized'],
  [`${GOOD}; policy=fqdn`, 'authorized'],
  [`${GOOD}; policy=anything`, 'authorized'],
  // Another issuer, whatever follows.
  ['', 'no_record', NONE],
  [' \t ', 'no_record'],
  [';', 'no_record'],
  [`; accounturi=${URI}`, 'no_record'],
  [`accounturi=${URI}`, 'no_record'],
  [`other.example; accounturi=${URI}`, 'no_record'],
  ['other.example;;; policy; persistUntil=x', 'no_record'],
  [`sub.ca.example; accounturi=${URI}`, 'no_record'],
  [`example; accounturi=${URI}`, 'no_record'],
  [`ca.example.evil.com; accounturi=${URI}`, 'no_record'],
  [`notca.example; accounturi=${URI}`, 'no_record'],
  [`ca.example..; accounturi=${URI}`, 'no_record'],
  [`.ca.example; accounturi=${URI}`, 'no_record'],
  [`ca..example; accounturi=${URI}`, 'no_record'],
  [`ca .example; accounturi=${URI}`, 'no_record'],
  [`ca.example accounturi=${URI}`, 'no_record'],
  [`ca.example, accounturi=${URI}`, 'no_record'],
  [`"ca.example"; accounturi=${URI}`, 'no_record'],
  [`ca.example\n; accounturi=${URI}`, 'no_record'],
  [`\u00a0ca.example; accounturi=${URI}`, 'no_record'],
  [`\ufeffca.example; accounturi=${URI}`, 'no_record'],
  [`ca.example\0; accounturi=${URI}`, 'no_record'],
  [`ban\u212a.example; accounturi=${URI}`, 'no_record'],
  [`ca。example; accounturi=${URI}`, 'no_record'],
  [`ca.example\\; accounturi=${URI}`, 'no_record'],
  [`*.example; accounturi=${URI}`, 'no_record'],
  ['v=spf1 -all', 'no_record'],
  [`${'x'.repeat(5000)}; accounturi=${URI}`, 'no_record'],
  [`${' '.repeat(4096)}${GOOD}`, 'no_record'],
  // Ours, but malformed.
  ['ca.example', 'malformed', ACCOUNT],
  ['ca.example;', 'malformed', ACCOUNT],
  ['ca.example; policy=wildcard', 'malformed', ACCOUNT],
  ['ca.example; accounturi=', 'malformed', ACCOUNT],
  ['ca.example; accounturi= \t ', 'malformed', ACCOUNT],
  [`ca.example; accounturi\u00a0=${URI}`, 'malformed', ACCOUNT],
  [`${GOOD};`, 'malformed', EMPTY],
  [`${GOOD}; `, 'malformed', EMPTY],
  [`ca.example;; accounturi=${URI}`, 'malformed', EMPTY],
  [`ca.example; ; accounturi=${URI}`, 'malformed', EMPTY],
  [`${GOOD};; policy=wildcard`, 'malformed', EMPTY],
  [`${GOOD}; wildcard`, 'malformed', EQUALS],
  [`${GOOD}; policy`, 'malformed', EQUALS],
  [`ca.example; ${URI}`, 'malformed', EQUALS],
  [`${GOOD}; =wildcard`, 'malformed', /no tag/],
  [`${GOOD}; =`, 'malformed', /no tag/],
  [`${GOOD}; \t = x`, 'malformed', /no tag/],
  [`${GOOD} policy=wildcard`, 'malformed', VALUE],
  [`${GOOD}, policy = wildcard`, 'malformed', VALUE],
  [`${GOOD}; policy=wild card`, 'malformed', VALUE],
  [`${GOOD}; policy=wild\tcard`, 'malformed', VALUE],
  [`${GOOD}; foo=a b`, 'malformed', VALUE],
  [`${GOOD}; foo=\x7f`, 'malformed', VALUE],
  [`${GOOD}\n`, 'malformed', VALUE],
  [`${GOOD}\0`, 'malformed', VALUE],
  [`${GOOD}é`, 'malformed', VALUE],
  [`${GOOD}\u200b`, 'malformed', VALUE],
  [`${GOOD}\ud800`, 'malformed', VALUE],
  [`${GOOD}; accounturi=${URI}`, 'malformed', TWICE],
  [`${GOOD}; ACCOUNTURI=https://ca.example/accounts/43`, 'malformed', TWICE],
  [`${GOOD}; accounturi=`, 'malformed', TWICE],
  [`${GOOD}; policy=wildcard; Policy=wildcard`, 'malformed', TWICE],
  [`${GOOD}; policy=; policy=`, 'malformed', TWICE],
  [`${GOOD}; persistUntil=${SECOND}; PersistUntil=${SECOND}`, 'malformed', TWICE],
  ...['', '+5', '1e3', '1e30', '0x10', '1 800000000', '5.0', '1,800', '-', '--5', '5-', '1_800', 'Infinity', 'NaN'].map(
    (value): Row => [`${GOOD}; persistUntil=${value}`, 'malformed', /1 800000000/.test(value) ? VALUE : INTEGER],
  ),
  [`${GOOD}; persistUntil=٢٠٠٠٠٠٠٠٠٠`, 'malformed', VALUE],
  [`${GOOD}; persistUntil=2027-01-31T12:00:00Z`, 'malformed', INTEGER],
  [`${GOOD}; foo=`.padEnd(4096, 'x'), 'authorized'],
  [`${GOOD}; foo=`.padEnd(4097, 'x'), 'malformed', /longer than 4096/],
  [`${GOOD}${';'.repeat(65_000)}`, 'malformed', /longer than 4096/],
  [`ca.example;${' '.repeat(65_000)}accounturi=${URI}`, 'malformed', /longer than 4096/],
  // Ours and well-formed, but insufficient.
  ['ca.example; accounturi=https://ca.example/accounts/43', 'unauthorized', OTHER_ACCOUNT],
  [`${GOOD}/`, 'unauthorized', OTHER_ACCOUNT],
  [`${GOOD}3`, 'unauthorized', OTHER_ACCOUNT],
  [GOOD.slice(0, -1), 'unauthorized', OTHER_ACCOUNT],
  [`ca.example; accounturi=${URI.toUpperCase()}`, 'unauthorized', OTHER_ACCOUNT],
  ['ca.example; accounturi=https://ca.example:443/accounts/42', 'unauthorized', OTHER_ACCOUNT],
  ['ca.example; accounturi=https://ca.example/accounts/%34%32', 'unauthorized', OTHER_ACCOUNT],
  [`ca.example; accounturi="${URI}"`, 'unauthorized', OTHER_ACCOUNT],
  [`ca.example; accounturi==${URI}`, 'unauthorized', OTHER_ACCOUNT],
  [`${GOOD},policy=wildcard`, 'unauthorized', OTHER_ACCOUNT],
  // Expiry.
  [`${GOOD}; persistUntil=${SECOND}`, 'authorized'],
  [`${GOOD}; persistUntil=${SECOND + 1}`, 'authorized'],
  [`${GOOD}; persistUntil=${SECOND - 1}`, 'unauthorized', EXPIRED],
  [`${GOOD}; persistUntil=0`, 'unauthorized', EXPIRED],
  [`${GOOD}; persistUntil=-0`, 'unauthorized', EXPIRED],
  [`${GOOD}; persistUntil=-1`, 'unauthorized', EXPIRED],
  [`${GOOD}; persistUntil=-${SECOND + 1}`, 'unauthorized', EXPIRED],
  [`${GOOD}; persistUntil=-${'9'.repeat(400)}`, 'unauthorized', EXPIRED],
  [`${GOOD}; persistUntil=000${SECOND}`, 'authorized'],
  [`${GOOD}; persistUntil=000${SECOND - 1}`, 'unauthorized', EXPIRED],
  [`${GOOD}; persistUntil=${'0'.repeat(400)}1`, 'unauthorized', EXPIRED],
  [`${GOOD}; persistUntil=${'9'.repeat(30)}`, 'authorized'],
  [`${GOOD}; persistUntil=${'9'.repeat(400)}`, 'authorized'],
  [`${GOOD}; persistUntil=18446744073709551616`, 'authorized'],
];

function assertVerdict(verdict: PersistVerdict, kind: PersistVerdict['kind'], why: RegExp | undefined, shown: string) {
  assert.equal(verdict.kind, kind, `${shown}: ${JSON.stringify(verdict)}`);
  if (verdict.kind === 'authorized') return;
  const { en, zh } = verdict.reason;
  if (why) assert.match(en, why, shown);
  assert.ok(zh.length > 10 && en.length < 500 && zh.length < 500, shown);
  assert.doesNotMatch(en + zh, /\p{C}/u, shown);
}

test('one record and its own name', () => {
  for (const [record, kind, why] of OWN) {
    assertVerdict(judge('example.com', [record]), kind, why, JSON.stringify(record.slice(0, 120)));
  }
  assert.ok(OWN.length >= 80, String(OWN.length));
});

test('an unreadable or foreign record does not affect others, in any order', () => {
  for (const [record, kind] of OWN) {
    const shown = JSON.stringify(record.slice(0, 120));
    assert.equal(judge('example.com', [record, GOOD]).kind, 'authorized', shown);
    assert.equal(judge('example.com', [GOOD, record]).kind, 'authorized', shown);
    // Beside a record of another account, a malformed one is reported first: it may be the intended one.
    const beside = kind === 'no_record' ? 'unauthorized' : kind;
    assert.equal(judge('example.com', ['ca.example; accounturi=x', record]).kind, beside, shown);
    assert.equal(judge('example.com', [record, 'ca.example; accounturi=x']).kind, beside, shown);
  }
});

test('several records are never combined', () => {
  const table: readonly (readonly [name: string, records: readonly string[], PersistVerdict['kind'], why?: RegExp])[] =
    [
      ['*.example.com', [GOOD, 'ca.example; accounturi=x; policy=wildcard'], 'unauthorized', POLICY],
      ['*.example.com', ['ca.example; accounturi=x; policy=wildcard', GOOD], 'unauthorized', POLICY],
      ['*.example.com', [GOOD, 'ca.example; policy=wildcard'], 'malformed', ACCOUNT],
      ['*.example.com', [`${GOOD}; policy=wildcard; persistUntil=1`, GOOD], 'unauthorized', POLICY],
      ['*.example.com', [`${GOOD}; policy=wildcard; persistUntil=1`], 'unauthorized', EXPIRED],
      ['*.example.com', [GOOD, `other.example; accounturi=${URI}; policy=wildcard`], 'unauthorized', POLICY],
      ['*.example.com', [GOOD, `${GOOD}; policy=wildcard`], 'authorized'],
      ['example.com', [`${GOOD}; persistUntil=1`, 'ca.example; accounturi=x'], 'unauthorized', EXPIRED],
      ['example.com', ['ca.example; accounturi=x', `${GOOD}; persistUntil=1`], 'unauthorized', EXPIRED],
      ['example.com', [`${GOOD}; persistUntil=1`, `ca.example; accounturi=x; persistUntil=${SECOND}`], 'unauthorized'],
      ['example.com', ['ca.example', `accounturi=${URI}`], 'malformed', ACCOUNT],
      ['example.com', [], 'no_record', NONE],
    ];
  for (const [name, records, kind, why] of table) {
    assertVerdict(judge(name, records), kind, why, `${name} ${records.join(' | ')}`);
  }
});

test('a wildcard needs the policy, case-insensitively and with no other value', () => {
  for (const policy of ['wildcard', 'WILDCARD', 'wIlDcArD']) {
    assert.equal(judge('*.example.com', [`${GOOD}; policy=${policy}`]).kind, 'authorized', policy);
  }
  for (const policy of [
    '',
    'fqdn',
    'wildcards',
    'wildcar',
    '*',
    'wildcard,fqdn',
    '"wildcard"',
    'true',
    'w\u0131ldcard',
  ]) {
    const kind = policy === 'w\u0131ldcard' ? 'malformed' : 'unauthorized';
    assert.equal(judge('*.example.com', [`${GOOD}; policy=${policy}`]).kind, kind, policy);
  }
  assertVerdict(judge('*.example.com', [GOOD]), 'unauthorized', POLICY, 'no policy');
});

test('persistUntil is inclusive', () => {
  const record = [`${GOOD}; persistUntil=${SECOND}`];
  assert.equal(judge('example.com', record, SECOND * 1000 + 999).kind, 'authorized');
  assert.equal(judge('example.com', record, SECOND * 1000 + 1000).kind, 'unauthorized');
  // Even at time 0: persistUntil=0 is always expired.
  assert.equal(judge('example.com', [`${GOOD}; persistUntil=0`], 0).kind, 'unauthorized');
});

test('how long an authorization lasts does not depend on the order of records', () => {
  const untils = (...values: number[]) => values.map((value) => `${GOOD}; persistUntil=${value}`);
  const untilOf = (records: readonly string[]) => {
    const verdict = judge('example.com', records);
    return verdict.kind === 'authorized' ? verdict.until : verdict.kind;
  };
  assert.equal(untilOf(untils(SECOND + 5)), SECOND + 5);
  assert.equal(untilOf(untils(SECOND + 5, SECOND + 9, 1)), SECOND + 9);
  assert.equal(untilOf(untils(1, SECOND + 9, SECOND + 5)), SECOND + 9);
  assert.equal(untilOf([...untils(SECOND + 5), GOOD]), null);
  assert.equal(untilOf([GOOD, ...untils(SECOND + 5)]), null);
  assert.equal(untilOf([`${GOOD}; persistUntil=${'9'.repeat(400)}`]), Number.MAX_SAFE_INTEGER);
});

test('the fields of a record', () => {
  const record = { kind: 'record', accountUri: URI, isWildcard: false, until: null };
  assert.deepEqual(parsePersistRecord(GOOD, ISSUERS), record);
  assert.deepEqual(parsePersistRecord(`${GOOD}; policy=WILDCARD; persistUntil=007`, ISSUERS), {
    ...record,
    isWildcard: true,
    until: 7,
  });
  assert.deepEqual(parsePersistRecord(`${GOOD}; persistUntil=-12`, ISSUERS), { ...record, until: -12 });
  assert.deepEqual(parsePersistRecord(`${GOOD}; persistUntil=-${'9'.repeat(400)}`, ISSUERS), {
    ...record,
    until: Number.MIN_SAFE_INTEGER,
  });
  assert.deepEqual(parsePersistRecord('ca.example; accounturi=a=b', ISSUERS), { ...record, accountUri: 'a=b' });
  assert.deepEqual(parsePersistRecord(GOOD, []), { kind: 'other' });
  // An empty configured issuer matches nothing.
  assert.deepEqual(parsePersistRecord(`; accounturi=${URI}`, ['', '.']), { kind: 'other' });
});

test('the text to publish', () => {
  const binding = { issuer: 'ca.example', accountUri: URI, persistUntil: null, persistPolicy: 'fqdn' } as const;
  assert.equal(persistRecord(binding), GOOD);
  assert.equal(persistRecord({ ...binding, persistUntil: 0 }), GOOD);
  assert.equal(persistRecord({ ...binding, persistUntil: -5 }), GOOD);
  assert.equal(persistRecord({ ...binding, persistUntil: 1 }), `${GOOD}; persistUntil=1`);
  assert.equal(persistRecord({ ...binding, persistPolicy: 'wildcard' }), `${GOOD}; policy=wildcard`);
  assert.equal(
    persistRecord({ ...binding, persistPolicy: 'wildcard', persistUntil: 1_799_999_999 }),
    'ca.example; accounturi=https://ca.example/accounts/42; policy=wildcard; persistUntil=1799999999',
  );
});

test('a message quotes an excerpt of the record, without deceptive characters', () => {
  const verdict = judge('example.com', [`${GOOD}; foo=\u202e\r\nok: ${'x'.repeat(200)}`]);
  assert.ok(verdict.kind === 'malformed');
  assert.match(
    verdict.reason.en,
    /^The TXT record at _validation-persist\.example\.com: "foo=\?\?\?ok: x{49}…": a value/,
  );
  assert.match(verdict.reason.zh, /^_validation-persist\.example\.com 的 TXT 记录：“foo=\?\?\?ok: x{49}…”：/);
});
