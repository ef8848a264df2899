import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type CaaVerdict, caaDomains, judgeCaa } from '../../../src/domain/validation/caa.ts';
import type { CaaRecord, DnsAnswer, DomainAnswer } from '../../../src/domain/validation/dns.ts';

const URI = 'https://ca.example/accounts/42';
const RULES = { issuers: ['ca1.example.net', 'Bank.Example.'], accountUris: [URI], methods: ['dns-persist'] };

type Kind = CaaVerdict['kind'];
/** In zone file form: flags, tag and value. */
const caa = (line: string): CaaRecord => {
  const [flags = '', tag = '', ...value] = line.split(' ');
  return { flags: Number(flags), tag, value: value.join(' ') };
};

/** Records, none, or a failed lookup. */
type Seen = readonly string[] | null | 'timeout';

function answer(seen: Seen): DnsAnswer<CaaRecord> {
  if (seen === null) return { kind: 'absent' };
  if (seen === 'timeout') return { kind: 'failed', reason: 'dns_timeout' };
  return { kind: 'found', records: seen.map(caa) };
}

const levelsOf = (name: string, seen: readonly Seen[]): DomainAnswer<CaaRecord>[] =>
  caaDomains(name).map((domain, index) => ({ domain, answer: answer(seen[index] ?? null) }));

const OURS = '0 issue ca1.example.net';
const OURS_WILD = '0 issuewild ca1.example.net';
const THEIRS = '0 issue ca2.example.org';
const THEIRS_WILD = '0 issuewild ca2.example.org';
const NO_ISSUER = '0 issue ;';
const NO_ISSUER_WILD = '0 issuewild ;';
const REPORT = '0 iodef mailto:security@example.com';

const NOT_US = /not among those permitted\. Add the record: 0 issue "ca1\.example\.net"/;
const NOT_US_WILD = /not among those permitted\. Add the record: 0 issuewild "ca1\.example\.net"/;
const CRITICAL = /critical and not known/;
const ACCOUNT = /only this account/;
const METHOD = /proven by these methods.*ca-dns-persist/;

/** One set of records at example.com. */
const SETS: readonly (readonly [name: string, records: readonly string[], kind: Kind, why?: RegExp])[] = [
  // The examples of RFC 8659.
  ['example.com', [OURS, THEIRS], 'permitted'],
  ['example.com', [NO_ISSUER], 'forbidden', NOT_US],
  ['example.com', ['0 issue %%%%%'], 'forbidden', NOT_US],
  ['example.com', ['0 issue ca1.example.net; account=230123'], 'permitted'],
  ['example.com', [OURS, '0 iodef mailto:security@example.com', '0 iodef https://iodef.example.com/'], 'permitted'],
  ['example.com', [OURS, '128 tbs Unknown'], 'forbidden', CRITICAL],
  ['example.com', [OURS, THEIRS_WILD], 'permitted'],
  ['*.example.com', [OURS, THEIRS_WILD], 'forbidden', NOT_US_WILD],
  ['example.com', [THEIRS, OURS_WILD], 'forbidden', NOT_US],
  ['*.example.com', [THEIRS, OURS_WILD], 'permitted'],
  ['*.example.com', [OURS], 'permitted'],
  ['*.example.com', [OURS_WILD, NO_ISSUER], 'permitted'],
  ['example.com', [OURS_WILD, NO_ISSUER], 'forbidden', NOT_US],
  ['example.com', [THEIRS_WILD], 'permitted'],
  ['*.example.com', [THEIRS_WILD], 'forbidden', NOT_US_WILD],
  // Matching of the issuer.
  ['example.com', [OURS], 'permitted'],
  ['example.com', [THEIRS], 'forbidden', NOT_US],
  ['example.com', [THEIRS, OURS], 'permitted'],
  ['example.com', [NO_ISSUER, OURS], 'permitted'],
  ['example.com', ['0 issue ', OURS], 'permitted'],
  ['example.com', ['0 issue '], 'forbidden'],
  ['example.com', ['0 issue  \t '], 'forbidden'],
  ['example.com', ['0 issue CA1.Example.NET'], 'permitted'],
  ['example.com', ['0 issue  \t ca1.example.net \t '], 'permitted'],
  ['example.com', ['0 issue ca1.example.net;'], 'permitted'],
  ['example.com', ['0 issue ca1.example.net ; \t'], 'permitted'],
  ['example.com', ['0 issue bank.example'], 'permitted'],
  ['example.com', ['0 issue ban\u212a.example'], 'forbidden'],
  ['example.com', ['0 issue ca1.example.net.'], 'forbidden'],
  ['example.com', ['0 issue .ca1.example.net'], 'forbidden'],
  ['example.com', ['0 issue x.ca1.example.net'], 'forbidden'],
  ['example.com', ['0 issue example.net'], 'forbidden'],
  ['example.com', ['0 issue xca1.example.net'], 'forbidden'],
  ['example.com', ['0 issue "ca1.example.net"'], 'forbidden'],
  ['example.com', ['0 issue ca1.example.net ca2.example.org'], 'forbidden'],
  ['example.com', ['0 issue ca1.example.net,ca2.example.org'], 'forbidden'],
  ['example.com', ['0 issue ca2.example.org;ca1.example.net'], 'forbidden'],
  ['example.com', ['0 issue *'], 'forbidden'],
  ['example.com', ['0 issue ca1.example.net\n'], 'forbidden'],
  // Tags and flags.
  ['example.com', [REPORT], 'permitted'],
  ['*.example.com', [REPORT], 'permitted'],
  ['example.com', ['0 ISSUE ca1.example.net'], 'permitted'],
  ['example.com', ['0 IsSuE ca2.example.org'], 'forbidden'],
  ['*.example.com', [OURS, '0 IssueWild ;'], 'forbidden'],
  ['example.com', ['128 issue ca1.example.net'], 'permitted'],
  ['example.com', ['128 ISSUE ca1.example.net', '128 IODEF mailto:x', '128 IssueWild ;'], 'permitted'],
  ['example.com', ['128 issue ca2.example.org'], 'forbidden', NOT_US],
  ['example.com', [OURS, '0 tbs Unknown'], 'permitted'],
  ['example.com', ['0 tbs Unknown'], 'permitted'],
  ['example.com', ['128 tbs Unknown'], 'forbidden', CRITICAL],
  ['*.example.com', [OURS_WILD, '128 tbs Unknown'], 'forbidden', CRITICAL],
  ['example.com', [OURS, '255 tbs Unknown'], 'forbidden', CRITICAL],
  ['example.com', [OURS, '129 TBS Unknown'], 'forbidden', CRITICAL],
  ['example.com', [OURS, '127 tbs Unknown'], 'permitted'],
  ['example.com', [OURS, '1 tbs Unknown'], 'permitted'],
  ['example.com', [OURS, '128 contactemail a@example.com'], 'forbidden', CRITICAL],
  ['example.com', [OURS, '128 issuemail ca1.example.net'], 'forbidden', CRITICAL],
  ['example.com', [OURS, '128  ca1.example.net'], 'forbidden', CRITICAL],
  ['example.com', [OURS, '128 is_sue ca1.example.net'], 'forbidden', CRITICAL],
  ['example.com', [OURS, '128 issue\0 ca1.example.net'], 'forbidden', CRITICAL],
  ['example.com', [OURS, '128 \u0130ssue ca1.example.net'], 'forbidden', CRITICAL],
  ['example.com', [OURS, '128 constructor x'], 'forbidden', CRITICAL],
  ['example.com', [OURS, '0  x', '0 is_sue ;', '0 é ;'], 'permitted'],
  // Wildcards: any issuewild overrides issue, and is ignored for other names.
  ['*.example.com', [OURS, NO_ISSUER_WILD], 'forbidden', NOT_US_WILD],
  ['*.example.com', [OURS, '0 issuewild '], 'forbidden'],
  ['*.example.com', [OURS, '0 issuewild %%%'], 'forbidden'],
  ['*.example.com', [OURS, NO_ISSUER_WILD, OURS_WILD], 'permitted'],
  ['*.example.com', [THEIRS], 'forbidden', NOT_US],
  ['*.example.com', [THEIRS, THEIRS_WILD, OURS_WILD], 'permitted'],
  ['example.com', [NO_ISSUER_WILD], 'permitted'],
  ['example.com', [OURS, NO_ISSUER_WILD], 'permitted'],
  // An unreadable value permits nothing, even if it names us.
  [`example.com`, [`${OURS};;`], 'forbidden', /semicolon/],
  ['example.com', [`${OURS}; a=b;`], 'forbidden', /semicolon/],
  ['example.com', [`${OURS}; ; a=b`], 'forbidden', /semicolon/],
  ['example.com', [`${OURS}; a`], 'forbidden', /equals sign/],
  ['example.com', [`${OURS}; =b`], 'forbidden', /no tag/],
  ['example.com', [`${OURS}; a=b c`], 'forbidden', /plain ASCII/],
  ['example.com', [`${OURS}; a=\x01`], 'forbidden', /plain ASCII/],
  ['example.com', [`${OURS}; a=é`], 'forbidden', /plain ASCII/],
  ['example.com', [`${OURS}; a_b=c`], 'forbidden', /tag of a parameter/],
  ['example.com', [`${OURS}; a b=c`], 'forbidden', /tag of a parameter/],
  ['example.com', [`${OURS}; \u212a=c`], 'forbidden', /tag of a parameter/],
  ['example.com', [`${OURS}; -a=c`], 'forbidden', /tag of a parameter/],
  ['example.com', [`${OURS}; a=${'x'.repeat(5000)}`], 'forbidden', /longer than/],
  ['example.com', [`${OURS};;`, OURS], 'permitted'],
  ['example.com', [`${OURS}; a=; b-c = d=e; a=2`], 'permitted'],
  // RFC 8657: accounts.
  ['example.com', [`${OURS}; accounturi=${URI}`], 'permitted'],
  ['example.com', [`${OURS};AccountURI = ${URI}`], 'permitted'],
  ['example.com', [`${OURS}; accounturi=${URI}3`], 'forbidden', ACCOUNT],
  ['example.com', [`${OURS}; accounturi=${URI}/`], 'forbidden', ACCOUNT],
  ['example.com', [`${OURS}; accounturi=${URI.toUpperCase()}`], 'forbidden', ACCOUNT],
  ['example.com', [`${OURS}; accounturi=`], 'forbidden', ACCOUNT],
  ['example.com', [`${OURS}; ACCOUNTURI=x`], 'forbidden', ACCOUNT],
  ['example.com', [`${OURS}; accounturi=${URI}; accounturi=${URI}`], 'forbidden', ACCOUNT],
  ['example.com', [`${OURS}; accounturi=${URI}; AccountUri=x`], 'forbidden', ACCOUNT],
  ['example.com', [`${THEIRS}; accounturi=${URI}`], 'forbidden', NOT_US],
  ['example.com', [`${OURS}; accounturi=x`, `${OURS}; accounturi=${URI}`], 'permitted'],
  ['example.com', [`${OURS}; accounturi=x`, THEIRS], 'forbidden', ACCOUNT],
  ['example.com', [THEIRS, `${OURS}; accounturi=x`], 'forbidden', ACCOUNT],
  ['*.example.com', [OURS, `${OURS_WILD}; accounturi=x`], 'forbidden', ACCOUNT],
  // RFC 8657: methods.
  ['example.com', [`${OURS}; validationmethods=ca-dns-persist`], 'permitted'],
  ['example.com', [`${OURS}; ValidationMethods=http-01,ca-dns-persist,x`], 'permitted'],
  ['example.com', [`${OURS}; accounturi=${URI}; validationmethods=ca-dns-persist`], 'permitted'],
  ['example.com', [`${OURS}; accounturi=x; validationmethods=ca-dns-persist`], 'forbidden', ACCOUNT],
  ['example.com', [`${OURS}; accounturi=${URI}; validationmethods=ca-dns`], 'forbidden', METHOD],
  ['example.com', [`${OURS}; validationmethods=dns-persist`], 'forbidden', METHOD],
  ['example.com', [`${OURS}; validationmethods=dns-01`], 'forbidden', METHOD],
  ['example.com', [`${OURS}; validationmethods=ca-dns-persist-01`], 'forbidden', METHOD],
  ['example.com', [`${OURS}; validationmethods=xca-dns-persist`], 'forbidden', METHOD],
  ['example.com', [`${OURS}; validationmethods=CA-DNS-PERSIST`], 'forbidden', METHOD],
  ['example.com', [`${OURS}; validationmethods=`], 'forbidden', METHOD],
  ['example.com', [`${OURS}; validationmethods=ca-dns-persist,`], 'forbidden', METHOD],
  ['example.com', [`${OURS}; validationmethods=ca-dns-persist,*`], 'forbidden', METHOD],
  ['example.com', [`${OURS}; validationmethods=ca-dns-persist; validationmethods=ca-dns-persist`], 'forbidden', METHOD],
  // Properties are not combined.
  ['example.com', [`${OURS}; accounturi=${URI}; validationmethods=x`, `${OURS}; accounturi=x`], 'forbidden', METHOD],
];

test('verdict of one record set', () => {
  for (const [name, records, kind, why] of SETS) {
    const shown = `${name} ${JSON.stringify(records).slice(0, 200)}`;
    const verdict = judgeCaa(name, levelsOf(name, [records, null]), RULES);
    assert.deepEqual([verdict.kind, verdict.domain], [kind, 'example.com'], `${shown}: ${JSON.stringify(verdict)}`);
    if (verdict.kind === 'permitted') continue;
    const { en, zh } = verdict.reason;
    if (why) assert.match(en, why, shown);
    assert.ok(en.startsWith('CAA at example.com') && zh.includes('example.com') && zh.length > 10, shown);
    assert.ok(en.length < 400 && zh.length < 400, shown);
    assert.doesNotMatch(en + zh, /\p{C}/u, shown);
  }
  assert.ok(SETS.length >= 50, String(SETS.length));
});

/** The answer at the name, then at each parent. */
const CLIMBS: readonly (readonly [name: string, seen: readonly Seen[], kind: Kind, domain: string | null])[] = [
  ['a.example.com', [null, null, null], 'permitted', null],
  ['a.example.com', [[], [], []], 'permitted', null],
  ['a.example.com', [[OURS], [THEIRS], [THEIRS]], 'permitted', 'a.example.com'],
  ['a.example.com', [[THEIRS], [OURS], [OURS]], 'forbidden', 'a.example.com'],
  ['a.example.com', [null, [OURS], [THEIRS]], 'permitted', 'example.com'],
  ['a.example.com', [null, [THEIRS], [OURS]], 'forbidden', 'example.com'],
  ['a.example.com', [[], [THEIRS], null], 'forbidden', 'example.com'],
  ['a.example.com', [null, null, [NO_ISSUER]], 'forbidden', 'com'],
  ['a.example.com', [null, null, [OURS]], 'permitted', 'com'],
  // The nearest record set decides, even without issue properties.
  ['a.example.com', [[REPORT], [NO_ISSUER], null], 'permitted', 'a.example.com'],
  ['a.example.com', [[THEIRS_WILD], [NO_ISSUER], null], 'permitted', 'a.example.com'],
  ['a.example.com', [null, ['128 tbs x'], [OURS]], 'forbidden', 'example.com'],
  ['a.example.com', [[OURS], ['128 tbs x'], null], 'permitted', 'a.example.com'],
  ['*.a.example.com', [null, [OURS, NO_ISSUER_WILD], null], 'forbidden', 'example.com'],
  ['*.a.example.com', [null, [NO_ISSUER, OURS_WILD], null], 'permitted', 'example.com'],
  ['a.example.com', [null, [NO_ISSUER, OURS_WILD], null], 'forbidden', 'example.com'],
  // A failed lookup never permits, but levels above the nearest record set do not matter.
  ['a.example.com', ['timeout', null, null], 'dns_failure', 'a.example.com'],
  ['a.example.com', ['timeout', [OURS], null], 'dns_failure', 'a.example.com'],
  ['a.example.com', [null, 'timeout', [OURS]], 'dns_failure', 'example.com'],
  ['a.example.com', [null, null, 'timeout'], 'dns_failure', 'com'],
  ['a.example.com', [[], 'timeout', null], 'dns_failure', 'example.com'],
  ['a.example.com', [[OURS], 'timeout', 'timeout'], 'permitted', 'a.example.com'],
  ['a.example.com', [[THEIRS], 'timeout', 'timeout'], 'forbidden', 'a.example.com'],
  ['*.example.com', ['timeout', [OURS]], 'dns_failure', 'example.com'],
  ['intranet', [null], 'permitted', null],
  ['intranet', [[THEIRS]], 'forbidden', 'intranet'],
];

test('the nearest domain with records decides, and a failed lookup never permits', () => {
  for (const [name, seen, kind, domain] of CLIMBS) {
    const verdict = judgeCaa(name, levelsOf(name, seen), RULES);
    const shown = `${name} ${JSON.stringify(seen)}: ${JSON.stringify(verdict)}`;
    assert.deepEqual([verdict.kind, verdict.domain], [kind, domain], shown);
    if (verdict.kind === 'dns_failure') assert.match(verdict.reason.en + verdict.reason.zh, /dns_timeout.*dns_timeout/);
  }
});

test('a domain that was not queried counts as a failed lookup', () => {
  const levels = levelsOf('a.example.com', [null, null, null]);
  const kindOf = (some: readonly DomainAnswer<CaaRecord>[]) => judgeCaa('a.example.com', some, RULES).kind;
  assert.equal(kindOf(levels), 'permitted');
  assert.equal(kindOf([]), 'dns_failure');
  for (const missing of levels) assert.equal(kindOf(levels.filter((level) => level !== missing)), 'dns_failure');
  assert.equal(kindOf(levelsOf('a.example.org', [[OURS]])), 'dns_failure');
  // Levels above the first records may be missing.
  assert.equal(kindOf(levelsOf('a.example.com', [[OURS]]).slice(0, 1)), 'permitted');
});

test('the domains that are queried', () => {
  assert.deepEqual(caaDomains('a.b.example.com'), ['a.b.example.com', 'b.example.com', 'example.com', 'com']);
  assert.deepEqual(caaDomains('*.example.com'), ['example.com', 'com']);
  assert.deepEqual(caaDomains('com'), ['com']);
});

test('a name validated by no method matches no validationmethods list', () => {
  const kindOf = (value: string) => {
    const records = [{ flags: 0, tag: 'issue', value }];
    const levels: DomainAnswer<CaaRecord>[] = [{ domain: 'intranet', answer: { kind: 'found', records } }];
    return judgeCaa('intranet', levels, { ...RULES, methods: [] }).kind;
  };
  for (const list of ['ca-', 'ca-null', 'null', '', 'ca-dns-persist']) {
    assert.equal(kindOf(`ca1.example.net; validationmethods=${list}`), 'forbidden', list);
  }
  assert.equal(kindOf('ca1.example.net'), 'permitted');
});

const piece = fc.constantFrom(
  ...['ca1.example.net', 'other.example', ';', '; ', '=', ' ', '\t', ',', '.', '\n', '\0', 'é', '\ud800', '%'],
  ...['accounturi=', URI, 'validationmethods=', 'ca-dns-persist', 'ca-dns', 'a=b'],
);
const value = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join('')),
  fc.array(piece, { maxLength: 8 }).map((pieces) => `ca1.example.net${pieces.join('')}`),
);
const tag = fc.oneof(fc.constantFrom('issue', 'issuewild', 'iodef', 'Issue', 'ISSUEWILD', 'tbs', ''), fc.string());
const flags = fc.oneof(fc.constantFrom(0, 128), fc.nat({ max: 255 }));
const record: fc.Arbitrary<CaaRecord> = fc.record({ flags, tag, value });
const records = fc.array(record, { maxLength: 5 });

const anyAnswer: fc.Arbitrary<DnsAnswer<CaaRecord>> = fc.oneof(
  records.map((found) => ({ kind: 'found' as const, records: found })),
  fc.constant({ kind: 'absent' as const }),
  fc
    .constantFrom('dns_timeout' as const, 'dns_failure' as const)
    .map((reason) => ({ kind: 'failed' as const, reason })),
);
const NAMES = ['a.example.com', '*.a.example.com'];
const HOST = 'a.example.com';

const judge = (name: string, answers: readonly DnsAnswer<CaaRecord>[]) =>
  judgeCaa(
    name,
    caaDomains(name).map((domain, index) => ({ domain, answer: answers[index] ?? { kind: 'absent' } })),
    RULES,
  );
const judgeSet = (name: string, found: readonly CaaRecord[]) => judge(name, [{ kind: 'found', records: found }]);

test('garbage never throws, and yields a readable message', () => {
  fc.assert(
    fc.property(fc.array(anyAnswer, { maxLength: 3 }), fc.constantFrom(...NAMES), (answers, name) => {
      const verdict = judge(name, answers);
      if (verdict.kind === 'permitted') return;
      for (const text of Object.values(verdict.reason)) {
        assert.ok(text.length > 10 && text.length < 400, text);
        assert.doesNotMatch(text, /\p{C}/u);
      }
    }),
    { numRuns: 3000 },
  );
});

test('an unknown critical property revokes every permission, and lifts no prohibition', () => {
  const known = ['issue', 'issuewild', 'iodef'];
  const critical = fc
    .record({ flags: fc.nat({ max: 127 }).map((low) => 128 + low), tag, value })
    .filter((one) => !known.includes(one.tag.toLowerCase()));
  fc.assert(
    fc.property(records, critical, fc.nat({ max: 5 }), fc.constantFrom(...NAMES), (found, one, at, name) => {
      assert.equal(judgeSet(name, found.toSpliced(at, 0, one)).kind, 'forbidden');
      assert.equal(judgeSet(name, [{ flags: 0, tag: 'issue', value: 'ca1.example.net' }, one]).kind, 'forbidden');
    }),
    { numRuns: 2000 },
  );
});

test('a failed lookup of the name itself never permits, and one further up only above records', () => {
  fc.assert(
    fc.property(fc.array(anyAnswer, { maxLength: 3 }), fc.constantFrom(...NAMES), (answers, name) => {
      const failed = { kind: 'failed', reason: 'dns_timeout' } as const;
      assert.deepEqual(judge(name, [failed, ...answers]).kind, 'dns_failure');
      const [own = { kind: 'absent' as const }] = answers;
      const isSilent = own.kind === 'absent' || (own.kind === 'found' && own.records.length === 0);
      assert.equal(judge(name, [own, failed]).kind, isSilent ? 'dns_failure' : judge(name, [own]).kind);
    }),
    { numRuns: 1000 },
  );
});

test('records that name only other CAs never permit', () => {
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 5 }), fc.constantFrom(...NAMES), (values, name) => {
      const others = values
        .filter((one) => !/ca1\.example\.net/i.test(one))
        .map((one) => ({ flags: 0, tag: 'issue', value: one }));
      fc.pre(others.length > 0);
      assert.equal(judgeSet(name, others).kind, 'forbidden');
    }),
    { numRuns: 2000 },
  );
});

test('an unconditional permission is overridden only by an unknown critical property', () => {
  fc.assert(
    fc.property(records, (found) => {
      const harmless = found.map((one) => ({ ...one, flags: one.flags & 127 }));
      for (const [name, tagOfOurs] of [
        [HOST, 'issue'],
        [`*.${HOST}`, 'issuewild'],
      ] as const) {
        const ours = { flags: 128, tag: tagOfOurs, value: 'ca1.example.net' };
        assert.equal(judgeSet(name, [...harmless, ours]).kind, 'permitted');
      }
    }),
    { numRuns: 1000 },
  );
});
