import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  certifiedName,
  combineNames,
  differenceOf,
  dnsName,
  MAX_NAMES,
  PRIVATE_NAMES,
  requireCertifiable,
  requireMaxNames,
  spelledName,
} from '../../../src/domain/certificate/names.ts';
import { Refusal } from '../../../src/domain/errors.ts';

const SUFFIXES = new Set(['com', 'org', 'net', 'de', 'uk', 'co.uk', 'arpa', 'xn--p1ai', 'salt']);

/** A small public suffix list. */
function registrableDomain(name: string): string | undefined {
  const labels = name.split('.');
  const start = labels.findIndex((_, index) => SUFFIXES.has(labels.slice(index).join('.')));
  return start > 0 ? labels.slice(start - 1).join('.') : undefined;
}

const PUBLIC = { allowsWildcard: true, isPublicTrust: true, privateNames: [], registrableDomain };
const INSIDE = { isPublicTrust: false, privateNames: PRIVATE_NAMES };

function refusalOf(work: () => unknown): Refusal {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof Refusal, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: 'nothing was refused' });
}

const label63 = 'a'.repeat(63);
const name253 = `${label63}.${label63}.${label63}.${'b'.repeat(57)}.com`;

const ACCEPTED: readonly (readonly [string, string])[] = [
  ['example.com', 'example.com'],
  ['EXAMPLE.Com', 'example.com'],
  ['example.com.', 'example.com'],
  ['*.example.com', '*.example.com'],
  ['*.EXAMPLE.com.', '*.example.com'],
  ['a.b.c.d.e.example.com', 'a.b.c.d.e.example.com'],
  ['1and1.com', '1and1.com'],
  ['123.com', '123.com'],
  ['a-b.com', 'a-b.com'],
  ['ab--cd.com', 'ab--cd.com'],
  ['localhost', 'localhost'],
  ['xn--mnchen-3ya.de', 'xn--mnchen-3ya.de'],
  ['XN--MNCHEN-3YA.de', 'xn--mnchen-3ya.de'],
  ['xn--e1afmkfd.xn--p1ai', 'xn--e1afmkfd.xn--p1ai'],
  ['xn--fa-hia.de', 'xn--fa-hia.de'],
  ['*.xn--mnchen-3ya.de', '*.xn--mnchen-3ya.de'],
  ['0xdead.com', '0xdead.com'],
  [`${label63}.com`, `${label63}.com`],
  [name253, name253],
  [`${name253}.`, name253],
  ['constructor', 'constructor'],
  ['münchen.de', 'xn--mnchen-3ya.de'],
  ['*.münchen.de', '*.xn--mnchen-3ya.de'],
  ['MÜNCHEN.de.', 'xn--mnchen-3ya.de'],
  ['faß.de', 'xn--fa-hia.de'],
  ['пример.рф', 'xn--e1afmkfd.xn--p1ai'],
  ['उदाहरण.भारत', 'xn--p1b6ci4b4b3a.xn--h2brj9c'],
  ['例え.com', 'xn--r8jz45g.com'],
];

const REFUSED: readonly (readonly [text: string, why: RegExp])[] = [
  ['', /empty\. Send \[\] for the common name alone/],
  ['.', /empty/],
  ['..', /nothing/],
  ['.com', /nothing/],
  ['example..com', /nothing/],
  ['example.com..', /nothing/],
  ['*', /asterisk/],
  ['*.', /asterisk/],
  ['**.example.com', /asterisk/],
  ['*.*.example.com', /asterisk/],
  ['a.*.example.com', /asterisk/],
  ['*a.example.com', /asterisk/],
  ['a*.example.com', /asterisk/],
  ['example.*', /asterisk/],
  ['*..com', /nothing/],
  ['*.1.2.3.4', /IP address/],
  ['192.0.2.1', /IP address/],
  ['192.0.2.1.', /IP address/],
  ['999.999.999.999', /IP address/],
  ['::1', /IP address/],
  ['[2001:db8::1]', /IP address/],
  ['::ffff:192.0.2.1', /IP address/],
  ['fe80::1%1', /IP address/],
  ['1.2.3', /number/],
  ['127.1', /number/],
  ['2130706433', /number/],
  ['0x7f000001', /number/],
  ['0x7f.1', /number/],
  ['example.0x1f', /number/],
  ['example.0x', /number/],
  ['example.123', /number/],
  ['_dmarc.example.com', /underscore/],
  ['a_b.example.com', /underscore/],
  ['*._tcp.example.com', /underscore/],
  ['-a.example.com', /hyphen/],
  ['a-.example.com', /hyphen/],
  ['example.-', /hyphen/],
  ['example.com-', /hyphen/],
  ['https://example.com', /bare name/],
  ['example.com:443', /bare name/],
  ['example.com/path', /bare name/],
  ['user@example.com', /bare name/],
  ['example .com', /bare name/],
  [' example.com', /bare name/],
  ['example.com\n', /bare name/],
  ['example.com\r\nSet-Cookie: x', /bare name/],
  ['exam\u0000ple.com', /bare name/],
  ['example.com\t', /bare name/],
  ['exam%70le.com', /bare name/],
  ['example.com,example.org', /bare name/],
  ['"example.com"', /bare name/],
  ["a'b.com", /bare name/],
  ['a\\b.com', /bare name/],
  ['$(id).com', /bare name/],
  ['../../etc/passwd', /bare name/],
  [`${'a'.repeat(64)}.com`, /at most 253 .* 63/],
  [`*.${name253}`, /at most 253/],
  [`c${name253}`, /at most 253/],
  ['a.'.repeat(200_000), /at most 253/],
  ['xn--.com', /hyphen/],
  ['xn--a.com', /A-label/],
  ['xn--abc.com', /A-label/],
  ['xn--example.com', /A-label/],
  ['xn--99999999999.com', /A-label/],
  ['xn--a-ecp.ru', /A-label/],
  ['xn--xn---epa.com', /A-label/],
  ['xn--1ug.com', /A-label/],
  ['example.xn--', /hyphen/],
  [`xn--a${'a'.repeat(58)}.com`, /A-label/],
  ['mu\u0308nchen.de', /A-label: xn--mnchen-3ya\.de$/],
  ['例え。com', /A-label: xn--r8jz45g\.com$/],
  ['🔏.com', /A-label: xn--/],
  ['a\u0301.com', /A-label: xn--1ca\.com/],
  ['\u212Aelvin.com', /A-label: kelvin\.com$/],
  ['ｅｘａｍｐｌｅ.com', /A-label: example\.com$/],
  ['exam\u00adple.com', /A-label: example\.com$/],
  ['exam\u200bple.com', /A-label/],
  ['\u202emoc.elpmaxe', /A-label \(xn--…\)/],
  ['é/example.com', /A-label \(xn--…\)/],
  ['é@example.com', /A-label \(xn--…\)/],
  ['é_a.com', /A-label \(xn--…\)/],
  ['*.*.é.com', /A-label \(xn--…\)/],
  ['\ud800.com', /A-label \(xn--…\)/],
  ['１２７.0.0.1', /A-label \(xn--…\)/],
  ['a\u200db.com', /A-label \(xn--…\)/],
];

test('names and their canonical form', () => {
  for (const [text, name] of ACCEPTED) assert.equal(dnsName(text, 'f'), name, text.slice(0, 80));
});

test('an invalid name is refused with its field, an excerpt and a remedy', () => {
  for (const [text, why] of REFUSED) {
    const { code, facts } = refusalOf(() => dnsName(text, 'certificate.dns_names.3'));
    const shown = JSON.stringify(text.slice(0, 80));
    assert.equal(code, 'invalid_domain', shown);
    assert.equal(facts.field, 'certificate.dns_names.3');
    assert.match(facts.reason?.en ?? '', why, shown);
    assert.ok((facts.reason?.zh ?? '').length > 10, shown);
    assert.doesNotMatch(`${facts.reason?.en}${facts.reason?.zh}`, /\p{C}/u, shown);
    assert.ok((facts.reason?.en ?? '').length < 500, shown);
  }
  assert.ok(ACCEPTED.length + REFUSED.length >= 100);
});

test('canonicalization is idempotent, and yields valid names only', () => {
  const piece = fc.constantFrom(
    'a',
    'Z',
    '9',
    '-',
    '.',
    '*',
    '*.',
    '_',
    'xn--',
    'é',
    '。',
    ' ',
    ':',
    '\n',
    'mnchen-3ya',
    'com',
  );
  const anything = fc.oneof(
    fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join('')),
    fc.string(),
    fc.domain(),
  );
  fc.assert(
    fc.property(anything, (text) => {
      let name: string;
      try {
        name = dnsName(text, 'f');
      } catch (error) {
        assert.ok(error instanceof Refusal && error.code === 'invalid_domain', String(error));
        return;
      }
      assert.match(name, /^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/);
      assert.ok(name.length <= 253);
      assert.equal(dnsName(name, 'f'), name);
      assert.equal(dnsName(`${name.toUpperCase()}.`, 'f'), name);
    }),
    { numRuns: 2000 },
  );
});

test('an A-label is accepted if and only if it round-trips through its U-label', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 10 }), (label) => {
      const host = URL.parse(`https://${label.replace(/[^\p{L}\p{N}]/gu, '')}x.com/`)?.hostname;
      // A parenthesized digit normalizes to parentheses, which no host name contains.
      if (host && /^xn--[a-z0-9.-]{1,56}$/.test(host)) assert.equal(dnsName(host, 'f'), host);
    }),
  );
});

test('an address has one spelling, and what is written otherwise is no name at all', () => {
  for (const [text, name] of [
    ['10.0.0.1', '10.0.0.1'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['fd00:0:0:1::', 'fd00:0:0:1::'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['::ffff:10.0.0.1', '::ffff:a00:1'],
    ['WWW.example.com.', 'www.example.com'],
  ] as const) {
    assert.equal(certifiedName(text, 'f'), name);
    assert.equal(spelledName(text), name);
    assert.equal(certifiedName(name, 'f'), name);
  }
  for (const text of ['10.0.0.01', '10.0.0.1.', '*.10.0.0.1', '*.::1', '[::1]', 'fe80::1%1', '::1::', '10.0.0.1/32']) {
    assert.equal(refusalOf(() => certifiedName(text, 'f')).code, 'invalid_domain', text);
  }
});

test('which names a product can certify', () => {
  const table: readonly (readonly [name: string, rules: object, why: RegExp | null])[] = [
    ['example.com', {}, null],
    ['a.b.example.co.uk', {}, null],
    ['*.example.com', {}, null],
    ['*.example.com', { allowsWildcard: false }, /no wildcards/],
    ['*.example.com', { allowsWildcard: false, isPublicTrust: false }, /no wildcards/],
    ['xn--mnchen-3ya.de', {}, null],
    ['example.org', {}, null],
    ['test.com', {}, null],
    ['notlocal.com', {}, null],
    ['sea.salt', {}, null],
    ['localhost', {}, /without a dot/],
    ['com', {}, /without a dot/],
    ['*.com', {}, /without a dot/],
    ['co.uk', {}, /public suffix/],
    ['*.co.uk', {}, /public suffix/],
    ['host.corp', {}, /public suffix/],
    ['printer.local', {}, /internal or reserved/],
    ['db.internal', {}, /internal or reserved/],
    ['a.localhost', {}, /internal or reserved/],
    ['nas.home.arpa', {}, /internal or reserved/],
    ['home.arpa', {}, /internal or reserved/],
    ['a.test', {}, /internal or reserved/],
    ['a.example', {}, /internal or reserved/],
    ['a.invalid', {}, /internal or reserved/],
    ['a.onion', {}, /internal or reserved/],
    ['a.alt', {}, /internal or reserved/],
    ['*.db.internal', {}, /internal or reserved/],
    ['1.2.0.192.in-addr.arpa', {}, /internal or reserved/],
    ['8.b.d.0.1.0.0.2.ip6.arpa', {}, /internal or reserved/],
    ['ab--cd.example.com', {}, /two hyphens/],
    ['r3---sn-a.example.com', {}, /two hyphens/],
    ['a--b.example.com', {}, null],
    ['db.internal', INSIDE, null],
    ['intranet', INSIDE, null],
    ['*.com', INSIDE, null],
    ['ab--cd.lan', INSIDE, null],
    ['10.0.0.1', INSIDE, null],
    ['fd12:3456::1', { ...INSIDE, allowsWildcard: false }, null],
    ['db.internal', { isPublicTrust: false }, /internal or reserved/],
    ['intranet', { ...INSIDE, privateNames: ['ip'] }, /without a dot/],
    ['nas.home.arpa', { ...INSIDE, privateNames: ['ip'] }, /internal or reserved/],
    ['10.0.0.1', { ...INSIDE, privateNames: ['internal'] }, /no IP addresses/],
    ['10.0.0.1', {}, /no IP addresses/],
    // Public trust wins over a list that the loader would have refused.
    ['10.0.0.1', { privateNames: PRIVATE_NAMES }, /no IP addresses/],
    ['db.internal', { privateNames: PRIVATE_NAMES }, /internal or reserved/],
    ['169.254.169.254', INSIDE, /metadata/],
    ['fd00:ec2::254', INSIDE, /metadata/],
    ['fe80::1', INSIDE, /link-local/],
    ['224.0.0.1', INSIDE, /multicast/],
    ['0.0.0.0', INSIDE, /unspecified/],
    ['::ffff:a00:1', INSIDE, /mapped/],
  ];
  for (const [name, rules, why] of table) {
    const judge = (): void => requireCertifiable(name, { ...PUBLIC, ...rules }, 'certificate.common_name');
    if (why === null) {
      assert.doesNotThrow(judge, name);
      continue;
    }
    const { code, facts } = refusalOf(judge);
    assert.equal(code, 'invalid_domain', name);
    assert.equal(facts.field, 'certificate.common_name');
    assert.match(facts.reason?.en ?? '', why, name);
  }
});

test('requested names: the common name first, then the given or current ones, without duplicates', () => {
  assert.deepEqual(combineNames('c', ['b', 'a', 'c', 'b'], ['x']), ['c', 'b', 'a']);
  assert.deepEqual(combineNames('c', [], ['x', 'y']), ['c']);
  assert.deepEqual(combineNames('c', undefined, ['x', 'y', 'c']), ['c', 'x', 'y']);
  assert.deepEqual(combineNames(undefined, undefined, []), []);
  assert.deepEqual(combineNames(undefined, ['a'], ['b']), ['a']);
});

test('additions and removals lead from the current names to exactly the requested ones', () => {
  const names = fc.uniqueArray(fc.constantFrom(...'abcdefgh'), { maxLength: 8 });
  fc.assert(
    fc.property(names, names, (current, wanted) => {
      const { added, removed } = differenceOf(current, wanted);
      const after = new Set([...current.filter((name) => !removed.includes(name)), ...added]);
      assert.deepEqual([...after].sort(), [...wanted].sort());
      assert.ok(added.every((name) => !current.includes(name)) && removed.every((name) => current.includes(name)));
      assert.deepEqual(
        added,
        wanted.filter((name) => added.includes(name)),
      );
      assert.deepEqual(
        removed,
        current.filter((name) => removed.includes(name)),
      );
    }),
  );
});

test('at most a hundred names are accepted', () => {
  const names = Array.from({ length: MAX_NAMES + 1 }, (_, index) => `n${index}.example.com`);
  assert.doesNotThrow(() => requireMaxNames(names.slice(1), 'certificate.dns_names'));
  const { code, facts } = refusalOf(() => requireMaxNames(names, 'certificate.dns_names'));
  assert.deepEqual([code, facts.field], ['invalid_sans', 'certificate.dns_names']);
  assert.match(facts.reason?.en ?? '', /at most 100 names, these are 101/);
});
