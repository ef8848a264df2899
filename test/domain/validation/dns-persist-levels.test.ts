import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DnsAnswer, DomainAnswer } from '../../../src/domain/validation/dns.ts';
import { judgePersist, type PersistVerdict, persistDomains } from '../../../src/domain/validation/dns-persist.ts';

const URI = 'https://ca.example/accounts/42';
const SECOND = 1_800_000_000;
const RULES = { issuers: ['ca.example'], accountUris: [URI], now: SECOND * 1000 };

const FQDN = `ca.example; accounturi=${URI}`;
const WILD = `${FQDN}; policy=wildcard`;
const EXPIRED = `${WILD}; persistUntil=${SECOND - 1}`;
const FOREIGN = 'ca.example; accounturi=https://ca.example/accounts/43; policy=wildcard';
const BROKEN = `${WILD};`;
const OTHERS = `other.example; accounturi=${URI}; policy=wildcard`;

/** Several records, one, none, or a failed lookup. */
type Seen = readonly string[] | string | null | 'timeout';
type Row = readonly [name: string, seen: readonly Seen[], kind: PersistVerdict['kind'], domain?: string];

const HOST = 'a.b.example.com';
const SUFFIXES = new Set(['com', 'co.uk', 'uk']);

function registrableDomain(name: string): string | undefined {
  const labels = name.split('.');
  const start = labels.findIndex((_, index) => SUFFIXES.has(labels.slice(index).join('.')));
  return start > 0 ? labels.slice(start - 1).join('.') : undefined;
}

function answer(seen: Seen): DnsAnswer<string> {
  if (seen === null) return { kind: 'absent' };
  if (seen === 'timeout') return { kind: 'failed', reason: 'dns_timeout' };
  return { kind: 'found', records: typeof seen === 'string' ? [seen] : seen };
}

const levelsOf = (name: string, seen: readonly Seen[]): DomainAnswer<string>[] =>
  persistDomains(name, registrableDomain).map((domain, index) => ({ domain, answer: answer(seen[index] ?? null) }));

/** The answer at the name, then at each parent up to example.com. */
const DECISIONS: readonly Row[] = [
  [HOST, [null, null, null], 'no_record', HOST],
  [HOST, [[], [], []], 'no_record', HOST],
  [HOST, [OTHERS, OTHERS, OTHERS], 'no_record', HOST],
  [HOST, ['', 'v=spf1 -all', ';'], 'no_record', HOST],
  [HOST, [FQDN, null, null], 'authorized', HOST],
  [HOST, [WILD, null, null], 'authorized', HOST],
  [HOST, [FQDN, 'timeout', 'timeout'], 'authorized', HOST],
  [HOST, [FQDN, BROKEN, FOREIGN], 'authorized', HOST],
  [HOST, [[OTHERS, FQDN], null, null], 'authorized', HOST],
  [HOST, [[BROKEN, FOREIGN, FQDN], null, null], 'authorized', HOST],
  // A record of ours there is decisive, whatever the parents have.
  [HOST, [BROKEN, WILD, WILD], 'malformed', HOST],
  [HOST, [FOREIGN, WILD, WILD], 'unauthorized', HOST],
  [HOST, [EXPIRED, WILD, WILD], 'unauthorized', HOST],
  [HOST, [`${FQDN}; persistUntil=0`, WILD, WILD], 'unauthorized', HOST],
  [HOST, ['ca.example', WILD, WILD], 'malformed', HOST],
  [HOST, [[OTHERS, FOREIGN], WILD, WILD], 'unauthorized', HOST],
  [HOST, [[FOREIGN, BROKEN], WILD, WILD], 'malformed', HOST],
  [HOST, [FOREIGN, 'timeout', WILD], 'unauthorized', HOST],
  // A failed lookup is not an absent record.
  [HOST, ['timeout', null, null], 'dns_failure', HOST],
  [HOST, ['timeout', WILD, WILD], 'dns_failure', HOST],
  [HOST, [null, 'timeout', WILD], 'dns_failure', 'b.example.com'],
  [HOST, [null, null, 'timeout'], 'dns_failure', 'example.com'],
  [HOST, [OTHERS, 'timeout', WILD], 'dns_failure', 'b.example.com'],
  [HOST, [null, WILD, 'timeout'], 'authorized', 'b.example.com'],
  [HOST, [null, BROKEN, 'timeout'], 'dns_failure', 'example.com'],
  [HOST, [null, FOREIGN, 'timeout'], 'dns_failure', 'example.com'],
  // Parents need policy=wildcard.
  [HOST, [null, WILD, null], 'authorized', 'b.example.com'],
  [HOST, [null, null, WILD], 'authorized', 'example.com'],
  [HOST, [[], [], [WILD]], 'authorized', 'example.com'],
  [HOST, [OTHERS, OTHERS, [OTHERS, WILD]], 'authorized', 'example.com'],
  [HOST, [null, WILD, WILD], 'authorized', 'b.example.com'],
  [HOST, [null, FQDN, null], 'unauthorized', 'b.example.com'],
  [HOST, [null, null, FQDN], 'unauthorized', 'example.com'],
  [HOST, [null, `${FQDN}; policy=fqdn`, null], 'unauthorized', 'b.example.com'],
  [HOST, [null, [FQDN, FOREIGN], null], 'unauthorized', 'b.example.com'],
  [HOST, [null, `${WILD}; persistUntil=${SECOND}`, null], 'authorized', 'b.example.com'],
  [HOST, [null, EXPIRED, null], 'unauthorized', 'b.example.com'],
  // A parent that does not authorize falls through to the next.
  [HOST, [null, FQDN, WILD], 'authorized', 'example.com'],
  [HOST, [null, FOREIGN, WILD], 'authorized', 'example.com'],
  [HOST, [null, BROKEN, WILD], 'authorized', 'example.com'],
  [HOST, [null, EXPIRED, WILD], 'authorized', 'example.com'],
  // If none authorizes, the nearest problem is reported.
  [HOST, [null, FQDN, BROKEN], 'unauthorized', 'b.example.com'],
  [HOST, [null, BROKEN, FQDN], 'malformed', 'b.example.com'],
  [HOST, [null, [FQDN, BROKEN], null], 'malformed', 'b.example.com'],
  [HOST, [null, OTHERS, BROKEN], 'malformed', 'example.com'],
  [HOST, [OTHERS, null, FOREIGN], 'unauthorized', 'example.com'],
  // Wildcards: their own level is the name without the asterisk, which needs policy=wildcard too.
  ['*.b.example.com', [WILD, null], 'authorized', 'b.example.com'],
  ['*.b.example.com', [FQDN, null], 'unauthorized', 'b.example.com'],
  ['*.b.example.com', [FQDN, WILD], 'unauthorized', 'b.example.com'],
  ['*.b.example.com', [null, WILD], 'authorized', 'example.com'],
  ['*.b.example.com', [null, FQDN], 'unauthorized', 'example.com'],
  ['*.b.example.com', [BROKEN, WILD], 'malformed', 'b.example.com'],
  ['*.b.example.com', ['timeout', WILD], 'dns_failure', 'b.example.com'],
  ['*.example.com', [WILD], 'authorized', 'example.com'],
  ['*.example.com', [null], 'no_record', 'example.com'],
  // The registrable domain is the last level.
  ['example.com', [FQDN, WILD], 'authorized', 'example.com'],
  ['example.com', [null, WILD], 'no_record', 'example.com'],
  ['www.example.co.uk', [null, null, WILD, WILD], 'no_record', 'www.example.co.uk'],
  ['co.uk', [null, WILD], 'no_record', 'co.uk'],
  ['db.internal', [null, WILD], 'no_record', 'db.internal'],
  ['db.internal', [FQDN], 'authorized', 'db.internal'],
  ['*.internal', [WILD], 'authorized', 'internal'],
];

test('which record decides about a name', () => {
  for (const [name, seen, kind, domain] of DECISIONS) {
    const shown = `${name} ${JSON.stringify(seen)}`;
    const verdict = judgePersist(name, levelsOf(name, seen), RULES);
    assert.deepEqual([verdict.kind, verdict.domain], [kind, domain], `${shown}: ${JSON.stringify(verdict)}`);
    if (verdict.kind === 'authorized') continue;
    assert.ok(verdict.reason.en.includes(`_validation-persist.${domain}`), shown);
    assert.ok(verdict.reason.zh.includes(`_validation-persist.${domain}`), shown);
    if (verdict.kind === 'dns_failure') assert.match(verdict.reason.en, /\(dns_timeout\)/);
  }
  assert.ok(DECISIONS.length >= 60, String(DECISIONS.length));
});

test('an answer about a domain that is not above the name is ignored', () => {
  const found = (domain: string): DomainAnswer<string> => ({ domain, answer: { kind: 'found', records: [WILD] } });
  const absent = (domain: string): DomainAnswer<string> => ({ domain, answer: { kind: 'absent' } });
  const kinds = (name: string, ...levels: DomainAnswer<string>[]) => judgePersist(name, levels, RULES).kind;
  assert.equal(kinds('www.example.com', absent('www.example.com'), found('ample.com')), 'no_record');
  assert.equal(kinds('www.example.com', absent('www.example.com'), found('a.www.example.com')), 'no_record');
  assert.equal(kinds('www.example.com', absent('www.example.com'), found('example.org')), 'no_record');
  assert.equal(kinds('www.example.com', absent('www.example.com'), found('')), 'no_record');
  assert.equal(kinds('www.example.com', absent('www.example.com'), found('example.com')), 'authorized');
});

test('parents count only if the name itself was queried', () => {
  const above: DomainAnswer<string> = { domain: 'example.com', answer: { kind: 'found', records: [WILD] } };
  const verdict = judgePersist('www.example.com', [above], RULES);
  assert.deepEqual([verdict.kind, verdict.domain], ['dns_failure', 'www.example.com']);
  assert.equal(judgePersist('www.example.com', [], RULES).kind, 'dns_failure');
});

test('the domains that are queried', () => {
  const table: readonly (readonly [name: string, domains: readonly string[]])[] = [
    ['example.com', ['example.com']],
    ['*.example.com', ['example.com']],
    ['a.b.example.com', ['a.b.example.com', 'b.example.com', 'example.com']],
    ['*.a.example.com', ['a.example.com', 'example.com']],
    ['www.example.co.uk', ['www.example.co.uk', 'example.co.uk']],
    ['com.example.com', ['com.example.com', 'example.com']],
    ['example.com.example.com', ['example.com.example.com', 'com.example.com', 'example.com']],
    ['co.uk', ['co.uk']],
    ['*.co.uk', ['co.uk']],
    ['com', ['com']],
    ['db.internal', ['db.internal']],
    ['a.b.c.internal', ['a.b.c.internal']],
    ['intranet', ['intranet']],
    ['a.b.undefined', ['a.b.undefined']],
  ];
  for (const [name, domains] of table) assert.deepEqual(persistDomains(name, registrableDomain), domains, name);
  // A registrable domain that is not a parent adds no levels.
  assert.deepEqual(
    persistDomains('www.example.com', () => 'ample.com'),
    ['www.example.com'],
  );
});
