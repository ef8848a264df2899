import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { callbackUrl, MAX_CALLBACK_URL } from '../../../src/domain/egress/url.ts';
import { Refusal } from '../../../src/domain/errors.ts';

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
const host247 = `${label63}.${label63}.${label63}.${'b'.repeat(55)}`;
const ofLength = (length: number): string => 'https://example.com/'.padEnd(length, 'x');

/** URL, host, port, target. */
const NAMES: readonly (readonly [string, string, number, string])[] = [
  ['https://example.com', 'example.com', 443, '/'],
  ['https://example.com/', 'example.com', 443, '/'],
  ['HTTPS://EXAMPLE.com/Path', 'example.com', 443, '/Path'],
  ['hTTpS://a', 'a', 443, '/'],
  ['https://example.com?a=b', 'example.com', 443, '/?a=b'],
  ['https://example.com?', 'example.com', 443, '/?'],
  ['https://example.com/?', 'example.com', 443, '/?'],
  ['https://example.com:443/x', 'example.com', 443, '/x'],
  ['https://example.com:8443/x', 'example.com', 8443, '/x'],
  ['https://example.com:80', 'example.com', 80, '/'],
  ['https://example.com:1?q', 'example.com', 1, '/?q'],
  ['https://example.com:65535/', 'example.com', 65535, '/'],
  ['https://example.com/a/../b/./c', 'example.com', 443, '/a/../b/./c'],
  ['https://example.com/%2e%2E/%zz%', 'example.com', 443, '/%2e%2E/%zz%'],
  ['https://example.com//evil.com/x', 'example.com', 443, '//evil.com/x'],
  ['https://example.com/a@b:c?d=e@f', 'example.com', 443, '/a@b:c?d=e@f'],
  ['https://example.com?user@evil.com/', 'example.com', 443, '/?user@evil.com/'],
  ['https://example.com/?u=https://evil.com', 'example.com', 443, '/?u=https://evil.com'],
  ['https://example.com/"<>^`{|}\'', 'example.com', 443, '/"<>^`{|}\''],
  ['https://example.com/a;b=c,d!$&()*+~', 'example.com', 443, '/a;b=c,d!$&()*+~'],
  ['https://a_b.example.com/', 'a_b.example.com', 443, '/'],
  ['https://_hook_.example.com/', '_hook_.example.com', 443, '/'],
  ['https://a-b--c.example.com/', 'a-b--c.example.com', 443, '/'],
  ['https://XN--Mnchen-3ya.de/', 'xn--mnchen-3ya.de', 443, '/'],
  ['https://xn--fiqs8s/', 'xn--fiqs8s', 443, '/'],
  ['https://1.example.com/', '1.example.com', 443, '/'],
  ['https://127.0.0.1.example.com/', '127.0.0.1.example.com', 443, '/'],
  ['https://0xg/', '0xg', 443, '/'],
  ['https://1e3/', '1e3', 443, '/'],
  ['https://localhost/', 'localhost', 443, '/'],
  [`https://${label63}.com/`, `${label63}.com`, 443, '/'],
  [`https://${host247}/`, host247, 443, '/'],
  [ofLength(MAX_CALLBACK_URL), 'example.com', 443, ofLength(MAX_CALLBACK_URL).slice(19)],
];

/** URL, host, port, bytes: what the parser yields is what would be connected to. */
const LITERALS: readonly (readonly [string, string, number, string])[] = [
  ['https://127.0.0.1/', '127.0.0.1', 443, '7f000001'],
  ['https://8.8.8.8:8443', '8.8.8.8', 8443, '08080808'],
  ['https://127.1/', '127.0.0.1', 443, '7f000001'],
  ['https://127.0.1', '127.0.0.1', 443, '7f000001'],
  ['https://0x7f000001/', '127.0.0.1', 443, '7f000001'],
  ['https://0X7F.1/', '127.0.0.1', 443, '7f000001'],
  ['https://2130706433/', '127.0.0.1', 443, '7f000001'],
  ['https://0177.0.0.1/', '127.0.0.1', 443, '7f000001'],
  ['https://017700000001:444/', '127.0.0.1', 444, '7f000001'],
  ['https://0/', '0.0.0.0', 443, '00000000'],
  ['https://0x/', '0.0.0.0', 443, '00000000'],
  ['https://0xa9fea9fe/', '169.254.169.254', 443, 'a9fea9fe'],
  ['https://010.0.0.1/', '8.0.0.1', 443, '08000001'],
  ['https://[::1]/', '::1', 443, `${'0'.repeat(31)}1`],
  ['https://[::1]:9443', '::1', 9443, `${'0'.repeat(31)}1`],
  ['https://[::]?x', '::', 443, '0'.repeat(32)],
  ['https://[0:0:0:0:0:0:0:1]/', '::1', 443, `${'0'.repeat(31)}1`],
  ['https://[2001:0DB8:0:0::00A]/', '2001:db8::a', 443, '20010db800000000000000000000000a'],
  ['https://[::ffff:127.0.0.1]/', '::ffff:7f00:1', 443, '00000000000000000000ffff7f000001'],
  ['https://[::127.0.0.1]/', '::7f00:1', 443, `${'0'.repeat(24)}7f000001`],
  ['https://[64:ff9b::8.8.8.8]/', '64:ff9b::808:808', 443, '0064ff9b000000000000000008080808'],
];

/** One URL per word. */
const each = (text: string): string[] => text.trim().split(/\s+/);

const NOT_HTTPS = each(`
  http://example.com http://example.com/ HTTP://example.com:80/x?y http://127.0.0.1/ http://[::1]:80/ http://443
  ftp://example.com/x ws://example.com/ wss://example.com/ gopher://127.0.0.1:70/_x file://server/x x://y
  javascript://example.com/%0aalert(1) httpss://example.com/ git+ssh://example.com/ example.com://x h2.c-0://a/`);

/** Grouped by the reason; of several faults the most specific is reported. */
const INVALID: readonly (readonly [reason: RegExp, urls: readonly string[]])[] = [
  [
    /more than 256 characters/,
    [
      ...[ofLength(MAX_CALLBACK_URL + 1), `${ofLength(MAX_CALLBACK_URL)}😀`, 'x'.repeat(300), ' '.repeat(100_000)],
      ...[`http://${'x'.repeat(250)}`, '😀'.repeat(MAX_CALLBACK_URL + 1)],
    ],
  ],
  [
    /blank, a line break or a control character/,
    [
      ...[' https://example.com', 'https://example.com/ ', 'https://exa mple.com', 'https://example.com/a b', ' '],
      ...['https://example.com/\n', '\thttps://example.com', 'ht\ntps://example.com', 'https://exam\tple.com/'],
      ...['https://example.com/\r\nHost: evil', 'http:// example.com', 'https://example.com/\u3000', '\u0000'],
      ...['https://example.com/\u007f', 'https://example.com/\u0085', 'https://a/\u00a0', '\ufeffhttps://a/'],
    ],
  ],
  [
    /outside ASCII/,
    [
      ...each(
        'https://münchen.de/ https://①②⑦.0.0.1/ https://１２７.0.0.1/ https://example。com/ https：//example.com',
      ),
      ...each('https://example.com/ü https://example.com/😀 http://ü https://ⓔxample.com https://\u212aelvin.com'),
      ...['https://exam\u00adple.com', 'https://a/\u200b', 'https://a/\ud800', '😀'.repeat(MAX_CALLBACK_URL)],
    ],
  ],
  [
    /backslash/,
    [
      'https:\\\\example.com',
      'https://example.com\\@evil.com',
      'https://example.com/\\x',
      'https:/\\example.com',
      '\\',
    ],
  ],
  [
    /does not begin with https:\/\//,
    [
      '',
      ...each(`example.com example.com:443/x //example.com/ /x ? # https https: https:/ https:example.com [::1]
        https:/example.com https//example.com mailto:a@example.com data:text/plain,x ://example.com localhost:443
        1http://example.com "https://example.com" javascript:alert(1) h_t://a url=https://example.com -x://a`),
    ],
  ],
  [
    /fragment/,
    each(`https://example.com# https://example.com/#x https://example.com/?q#x https://# http://example.com/#
      https://example.com#@evil.com/ https://user@example.com/#x`),
  ],
  [
    /user name or a password/,
    each(`https://user@example.com https://user:secret@example.com/ https://@example.com https://:@example.com/ https://@
      https://example.com@evil.com https://a@b@c/ http://user@example.com https://u%40@example.com`),
  ],
  [
    /percent sign/,
    each(`https://%65xample.com/ https://example%2ecom https://example.com%2f.evil https://% https://127.0.0%2e1
      https://[fe80::1%25eth0]/ https://[fe80::1%eth0]/ https://example.com:4%343`),
  ],
  [/in brackets/, each('https://::1/ https://2001:db8::1/ https://a:b:c https://example.com::443 https://::')],
  [
    /no host/,
    each('https:// https:/// https:///example.com https://?q https://:443 http:// http:///x file:///etc/passwd'),
  ],
  [/ends with a dot/, each('https://example.com. https://example.com.:443/ https://. https://127.0.0.1./ https://a..')],
  [
    /neither a DNS name nor an IP address/,
    each(`https://-a.com https://a-.com https://a.- https://a..b https://.example.com https://xn--/ https://1]
      https://${'a'.repeat(64)}.com https://a!b.com https://a,b https://a*b https://*.example.com https://a+b
      https://a~b https://a|b https://a^b https://a=b https://a'b https://a;b https://a{b https://a"b https://a<b
      https://256.1.1.1 https://1.2.3.4.5 https://example.123 https://08 https://a.0x https://4294967296
      https://999999999999 https://0x100000000 https://1.2.3.0xfff https://[1:2:3:4:5:6:7] http://256.1.1.1/
      https://[] https://[::1 https://[1.2.3.4] https://[::1]x https://x[::1] https://[::g] https://[1::2::3]
      https://[[::1]] https://[::1.2.3] https://[v1.a] https://[::01.2.3.4] http://a~b https://[::1]] https://[`),
  ],
  [
    /not a number from 1 to 65535/,
    each(`https://example.com: https://example.com:/ https://example.com:0 https://example.com:65536 https://a:x
      https://example.com:0443 https://example.com:+443 https://example.com:-1 https://example.com:4.3 http://a:
      https://[::1]: https://[::1]:0 https://[::1]:1:2 https://example.com:0x1bb https://example.com:99999999999`),
  ],
];

test('a URL is split without normalization', () => {
  for (const [url, host, port, target] of NAMES) {
    assert.deepEqual(callbackUrl(url), { scheme: 'https', host, literal: null, port, target }, url);
  }
});

test('an address in a URL is the one that the parser yields', () => {
  for (const [url, host, port, hex] of LITERALS) {
    const parts = callbackUrl(url);
    assert.deepEqual([parts.host, parts.port], [host, port], url);
    assert.equal(Buffer.from(parts.literal ?? []).toString('hex'), hex, url);
  }
});

test('a well-formed URL of another scheme is not https', () => {
  for (const url of NOT_HTTPS) {
    const { code, facts } = refusalOf(() => callbackUrl(url, 'callback.url'));
    assert.deepEqual([code, facts.field], ['callback_url_not_https', 'callback.url'], url);
    assert.match(facts.reason?.en ?? '', /https:\/\//, url);
    assert.match(facts.reason?.zh ?? '', /https:\/\//, url);
  }
});

test('any other form is invalid, and the reason names the fault', () => {
  const told = new Map<string, string>();
  for (const [why, urls] of INVALID) {
    for (const url of urls) {
      const { code, facts } = refusalOf(() => callbackUrl(url));
      assert.deepEqual([code, facts.field], ['invalid_callback_url', 'url'], JSON.stringify(url));
      assert.match(facts.reason?.en ?? '', why, JSON.stringify(url));
      told.set(facts.reason?.en ?? '', facts.reason?.zh ?? '');
    }
  }
  // Every reason also has a distinct Chinese text.
  assert.equal(new Set(told.values()).size, told.size);
  for (const zh of told.values()) assert.match(zh, /\p{Script=Han}.*。$/u);
});

test('a reason does not repeat the URL, which may hold a secret', () => {
  for (const url of [
    'https://u:hunter2@example.com',
    'https://example.com/#hunter2',
    'http://example.com/?k=hunter2',
  ]) {
    assert.doesNotMatch(JSON.stringify(refusalOf(() => callbackUrl(url)).facts), /hunter2/);
  }
});

test('a URL that the parser reads as another host or port is refused', (t) => {
  const READINGS: readonly (readonly [string, { hostname: string; port: string } | null])[] = [
    ['https://example.com/', null],
    ['https://example.com/', { hostname: 'evil.com', port: '' }],
    ['https://example.com/', { hostname: 'example.com', port: '8443' }],
    ['https://example.com:8443/', { hostname: 'example.com', port: '' }],
    ['https://example.com:8443/', { hostname: 'example.com', port: '8444' }],
    ['https://example.com/', { hostname: '127.0.0.1', port: '' }],
    ['https://127.1/', { hostname: '[::1]', port: '' }],
    ['https://[::1]/', { hostname: '[::2]', port: '' }],
    ['https://[::1]/', { hostname: '::1', port: '' }],
    ['https://[::1]/', { hostname: '127.0.0.1', port: '' }],
    ['https://[1.2.3.4]/', { hostname: '[1.2.3.4]', port: '' }],
  ];
  for (const [url, reading] of READINGS) {
    const parse = t.mock.method(URL, 'parse', () => reading as URL | null);
    const { code } = refusalOf(() => callbackUrl(url));
    parse.mock.restore();
    assert.equal(code, 'invalid_callback_url', `${url} as ${JSON.stringify(reading)}`);
  }
});

/** Fragments of URLs in any order: often nearly a URL, sometimes one. */
const PIECES = [
  ...each(
    'https:// http:// https: // / \\ @ # ? : 443 :443 :0 00 . % %2e [ ] :: - _ example com EXAMPLE.com 127.0.0.1',
  ),
  ...each('127.1 0x7f 1 [::1] [::ffff:1.2.3.4] xn-- xn--mnchen-3ya 。 ① ß \u212a \u00ad \u200d'),
  ...[' ', '\t', '\n'],
];
const pieced = fc.array(fc.constantFrom(...PIECES), { maxLength: 8 }).map((pieces) => pieces.join(''));
const anything = fc.oneof(
  pieced,
  pieced.map((text) => `https://${text}`),
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.webUrl({ validSchemes: ['https', 'http'], withQueryParameters: true, withFragments: true }),
  fc.string({ unit: 'grapheme-ascii' }).map((text) => `https://example.com${text}`),
);

/** The URL, or the refusal; any other error fails the test. */
function attempt(text: string) {
  try {
    return callbackUrl(text);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

test('any input is refused with one of the two codes, or equals what the parser yields', () => {
  let accepted = 0;
  fc.assert(
    fc.property(anything, (text) => {
      const outcome = attempt(text);
      if (outcome instanceof Refusal) {
        assert.ok(['invalid_callback_url', 'callback_url_not_https'].includes(outcome.code), outcome.code);
        assert.ok(outcome.facts.field === 'url' && outcome.facts.reason?.en && outcome.facts.reason.zh);
        return;
      }
      accepted += 1;
      const { scheme, host, literal, port, target } = outcome;
      const parsed = new URL(text);
      assert.deepEqual([`${scheme}:`, parsed.protocol], ['https:', 'https:']);
      assert.equal(literal?.length === 16 ? `[${host}]` : host, parsed.hostname);
      assert.equal(literal === null, !/^\[|^[\d.]+$/.test(parsed.hostname));
      assert.equal(String(port), parsed.port || '443');
      assert.equal(parsed.username + parsed.password + parsed.hash, '');
      assert.match(target, /^\/[!-~]*$/);
      assert.ok(text.endsWith(target) || text.endsWith(target.slice(1)));
      assert.ok([...text].length <= MAX_CALLBACK_URL && !/[#\\]/.test(text));
      // Its canonical form leads to the same place.
      assert.deepEqual(attempt(`https://${parsed.host}${target}`), outcome);
    }),
    { numRuns: 5000 },
  );
  assert.ok(accepted > 200, `only ${accepted} were URLs`);
});
