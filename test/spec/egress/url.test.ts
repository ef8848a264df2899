// The syntax of a callback URL, checked over HTTP: a valid one reaches the receiver or the rate limit, and an invalid
// one is refused before any query, call or charge.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import type { Key } from '../../support/app.ts';
import { callbackIn, resultOf, startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { HOST } from '../../support/outside.ts';

const world = await startCallbackApp({ RESEAL_CALLBACK_TEST_RATE: '1000/s' });
after(() => world[Symbol.asyncDispose]());
const { app, outside } = world;
const NAMES = [
  HOST,
  'a_b.example.test',
  'a-b--c.example.test',
  '127.0.0.1.example.test',
  'xn--mnchen-3ya.example.test',
];
const receiver = await outside.receiver({ identity: outside.ca.identity([...NAMES, 'single', '127.0.0.1']) });
for (const name of [...NAMES, 'single']) outside.dns.set(name, 'A', ['127.0.0.1']);
const key = await app.newKey();

// The rate limit comes after the checks of the URL itself. An account without tokens is refused by it for every valid
// URL, without any network traffic.
const narrow = await startCallbackApp({ RESEAL_CALLBACK_TEST_RATE: '1/h' });
after(() => narrow[Symbol.asyncDispose]());
const spent = await narrow.app.newKey();
assert.equal(resultOf(await narrow.test(spent, { url: narrow.url(), access_key: 'k' })), '200 success');

const GOOD = '429 request_too_fast';
const INVALID = '400 invalid_callback_url url';
const NOT_HTTPS = '400 callback_url_not_https url';
const each = (text: string): string[] => text.trim().split(/\s+/);

/** Checks of the syntax alone, with an account that is stopped by the rate limit. */
async function requireVerdict(urls: Iterable<string>, expected: string): Promise<void> {
  const counts = () => [narrow.outside.dns.queries.length, narrow.receiver.connections.length];
  const before = counts();
  for (const url of urls) {
    const answer = await narrow.test(spent, { url, access_key: 'k' });
    assert.equal(resultOf(answer), expected, `${JSON.stringify(url)} ${answer.text}`);
  }
  assert.deepEqual(counts(), before, 'no query, no call');
}

/** The same with an account that has tokens left. */
async function requireRefused(owner: Key, urls: readonly string[], expected: string): Promise<void> {
  const counts = () => [outside.dns.queries.length, receiver.connections.length, world.receiver.connections.length];
  const before = counts();
  for (const url of urls) {
    const answer = await world.test(owner, { url, access_key: 'k' });
    assert.equal(resultOf(answer), expected, `${JSON.stringify(url)} ${answer.text}`);
    const keys = Object.keys(answer.body).sort();
    assert.deepEqual(keys, ['code', 'field', 'message', 'request_id'], answer.text);
  }
  assert.deepEqual(counts(), before, 'no query, no call');
}

const REACHED = [
  ...[`https://${HOST}:PORT`, `https://${HOST}:PORT/`, `HTTPS://${HOST}:PORT/x`, `hTtPs://${HOST}:PORT/x`],
  ...[`https://${HOST.toUpperCase()}:PORT/Path`, `https://${HOST}:PORT?a=b`, `https://${HOST}:PORT/?`],
  ...[`https://${HOST}:PORT//b/../c/./%2e%2E/%zz%`, `https://${HOST}:PORT/a@b:c;d=e,f!$&()*+~`],
  ...[`https://${HOST}:PORT/"<>^\`{|}'[]`, `https://${HOST}:PORT/?u=https://user:pw@evil.example/`],
  ...[
    'https://a_b.example.test:PORT/',
    'https://a-b--c.example.test:PORT/',
    'https://XN--Mnchen-3ya.example.test:PORT/',
  ],
  ...[
    'https://127.0.0.1.example.test:PORT/',
    'https://single:PORT/',
    'https://127.0.0.1:PORT/',
    'https://127.1:PORT/x',
  ],
];

rule('callback-url 1', 'A URL is `https://`, in upper or lower case, followed by an authority', async () => {
  for (const pattern of REACHED) {
    const url = pattern.replace('PORT', String(receiver.port));
    const before = receiver.requests.length;
    assert.equal(resultOf(await world.test(key, { url, access_key: 'k' })), '200 success', url);
    assert.equal(receiver.requests.length, before + 1);
    const [, target = ''] = /^https:\/\/[^/?]+(.*)$/i.exec(pattern) ?? [];
    const path = target.startsWith('/') ? target : `/${target}`;
    assert.equal(callbackIn(receiver).line, `POST ${path} HTTP/1.1`, url);
  }
  await requireVerdict(
    each(`https://example.com https://example.com:443/x https://example.com:1 https://example.com:65535/ https://8.8.8.8/
      https://[2606:4700::1]/ https://[2606:4700::1]:8443?x https://1.example.com/ https://0xg/ https://1e3/
      https://${'a'.repeat(63)}.com/`),
    GOOD,
  );
});

rule('callback-url 1', 'all in printable ASCII without blank or backslash', async () => {
  // Every single-byte character, and others that parsers fold, drop or trim.
  const characters = Array.from({ length: 0x100 }, (_, code) => String.fromCharCode(code));
  const others = [...'。．｡①１ⓔﬀ\u200b\u200d\u2028\u202e\u3000\ufeff\ufffd', '\ud800', '😀'];
  const isGood = (one: string) => one >= '!' && one <= '~' && one !== '\\' && one !== '#';
  const good = characters.filter(isGood).map((one) => `https://example.com/a${one}b`);
  assert.equal(good.length, 92);
  await requireVerdict(good, GOOD);
  const bad = [...characters, ...others].filter((one) => !isGood(one));
  await requireVerdict(
    bad.map((one) => `https://example.com/a${one}b`),
    INVALID,
  );
  const anywhere = (one: string) => [
    `https://${HOST}${one}:${receiver.port}/`,
    `${one}https://${HOST}:${receiver.port}/`,
    `https://${HOST}:${receiver.port}/${one}`,
    `https://${HOST}:${receiver.port}${one}`,
    `https://hooks${one}.example.test:${receiver.port}/`,
  ];
  await requireRefused(key, [...' \t\r\n\0\x7f\\\x85\xa0\xad', ...others].flatMap(anywhere), INVALID);
});

const OTHER_FORMS = each(`
  https: https:/ https:// https:/// https:${HOST} https:/${HOST} https:///${HOST} https//${HOST} //${HOST}/ /${HOST} ${HOST} ://${HOST}
  https:\\\\${HOST} https://${HOST}\\@evil.example "https://${HOST}" <https://${HOST}> url=https://${HOST} xhttps:${HOST}
  https://user@${HOST}:PORT https://user:pw@${HOST}:PORT/ https://@${HOST}:PORT https://:@${HOST}:PORT/ https://a@b@${HOST}
  https://u%40@${HOST} https://evil.example@${HOST}:PORT/ https://${HOST}:PORT# https://${HOST}:PORT/#x https://${HOST}/?q#x https://#
  https://${HOST}#@evil.example/ https://%68ooks.example.test:PORT/ https://hooks%2eexample.test https://${HOST}%00.evil.example
  https://[fe80::1%25eth0]/ https://[::1%lo]/ https://::1/ https://2001:db8::1/ https://a:b:c https://?q https://:443 https://:PORT/
  https://${HOST}. https://${HOST}.:PORT/ https://. https://.. https://127.0.0.1./ https://-a.com https://a-.com https://a..b
  https://.a https://${'a'.repeat(64)}.com https://a!b.com https://*.example.com https://a,b https://a|b https://a^b https://xn--/
  https://256.1.1.1 https://1.2.3.4.5 https://example.123 https://08 https://4294967296 https://1.2.3.0xfff https://[] https://[::1
  https://[1.2.3.4] https://[::1]x https://x[::1] https://[::g] https://[1::2::3] https://[[::1]] https://[v1.a]
  https://${HOST}: https://${HOST}:/ https://${HOST}:0 https://${HOST}:65536 https://${HOST}:x https://${HOST}:0443 https://${HOST}:+443
  https://${HOST}:-1 https://${HOST}:4.3 https://${HOST}:99999999999 https://${HOST}:PORT:PORT/ https://[::1]: https://${HOST}:%34`);

rule(
  'callback-url 1',
  'with no user information and no fragment; any other form is `invalid_callback_url`',
  async () => {
    const urls = OTHER_FORMS.map((url) => url.replaceAll('PORT', String(receiver.port)));
    await requireRefused(key, urls, INVALID);
    await requireVerdict(urls, INVALID);
    const others = [' https://example.com', 'https://example.com ', 'https://exa mple.com', 'ht\ntps://example.com'];
    await requireRefused(key, [...others, 'https://example.com/\r\nHost: evil', 'x'], INVALID);
  },
);

const SCHEMES = each(`
  http://example.com http://HOST:PORT/ HTTP://HOST:80/x?y http://127.0.0.1/ http://[::1]:80/ ftp://HOST/x ws://HOST/ wss://HOST/
  gopher://127.0.0.1:70/_x file://server/x x://y javascript://HOST/%0aalert(1) httpss://HOST:PORT/ https+unix://HOST/ git+ssh://HOST/
  h2.c-0://a/ example.com://x unix://a ldap://HOST dict://HOST:11211/stat`);

rule('callback-url 2', 'A well-formed URL that begins with another scheme and `://`', async () => {
  const urls = SCHEMES.map((url) => url.replaceAll('HOST', HOST).replaceAll('PORT', String(receiver.port)));
  await requireRefused(key, urls, NOT_HTTPS);
  await requireVerdict(urls, NOT_HTTPS);
  // Malformed, so the syntax is reported.
  const broken =
    each(`http://user@${HOST} http://${HOST}/#x http://a..b http://256.1.1.1/ http://a: http://[::g]/ http://a\\b
    1http://${HOST} -x://a h_t://a ftp://%68ooks/ http://ü http://`);
  await requireRefused(key, [...broken, 'http://a b/', 'http://a\tb/'], INVALID);
});

rule('callback-url 2', 'whereas `example.com:443/x` is `invalid_callback_url`', async () => {
  const urls = each(`example.com:443/x ${HOST}:PORT/x localhost:443 127.0.0.1:443 mailto:a@example.com data:text/plain,x
    javascript:alert(1) http:example.com http:/example.com HTTP:example.com about:blank [::1]:443  urn:x:y`);
  await requireRefused(
    key,
    urls.map((url) => url.replace('PORT', String(receiver.port))),
    INVALID,
  );
});
