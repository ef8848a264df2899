// With two faults the earlier check answers. Each row has two faults, named by the checks that find them; the response
// and the queries and calls made tell which one answered.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Answer, Call, Key } from '../../support/app.ts';
import { startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { HOST } from '../../support/outside.ts';
import { respond } from '../../support/receiver.ts';
import { TestCa } from '../../support/receiver-certificates.ts';

const world = await startCallbackApp();
after(() => world[Symbol.asyncDispose]());
const { app, receiver, outside, url } = world;
receiver.script = (socket, request) =>
  socket.end(`HTTP/1.1 ${request.startsWith('POST /500') ? 500 : 200} X\r\nContent-Length: 0\r\n\r\n`);

/** In the order of the contract, with the response of each. */
const ANSWERS = {
  authentication: '401 unauthenticated_request',
  kind: '403 permission_denied',
  object: '400 invalid_parameters',
  managed: '403 permission_denied',
  types: '400 invalid_parameters',
  form: '400 invalid_callback_url',
  scheme: '400 callback_url_not_https',
  merging: '400 callback_not_configured',
  literal: '422 callback_private_domain',
  rate: '429 request_too_fast',
  resolution: '422 callback_send_error',
  resolved: '422 callback_private_domain',
  sending: '422 callback_send_error',
  status: '422 callback_response_not_200',
} as const;
type Check = keyof typeof ANSWERS;
const CHECKS = Object.keys(ANSWERS) as Check[];
const isBeforeNetwork = (check: Check) => CHECKS.indexOf(check) <= CHECKS.indexOf('rate');

const SAVED = { url: url('/saved'), access_key: 'k' };
const configured = async () => {
  const key = await app.newKey();
  assert.equal((await world.save(key, SAVED)).status, 200);
  return key;
};
/** No token is left, and the clock is frozen. */
async function spend(key: Key, json?: unknown): Promise<Key> {
  for (let token = 0; token < 10; token += 1) assert.equal((await world.test(key, json)).status, 200);
  return key;
}
const good = await configured();
const unsaved = await app.newKey();
const spent = await spend(await configured());
const spentUnsaved = await spend(await app.newKey(), SAVED);
const managed = await app.newKey({ kind: 'managed_pki' });
const spentManaged = await app.newKey({ kind: 'managed_pki' });
await world.saveAsOperator(spentManaged.accountId, SAVED);
await spend(spentManaged);
const ofAnotherKind = (key: Key) => app.anotherKey(key.accountId, 'integration_key');
const integration = await ofAnotherKind(good);
const stranger: Key = { ...good, authKey: 'wrong' };
const strangeIntegration: Key = { ...integration, authKey: 'wrong' };
const disabled = await ofAnotherKind(good);
await app.app.access.disableKey(disabled.keyId);

const closedPort = await (async () => {
  await using closed = await outside.receiver();
  return closed.port;
})();
const untrusted = await outside.receiver({
  identity: new TestCa('Unknown Root').identity([HOST]),
  script: respond('HTTP/1.1 500 X\r\n\r\n'),
});
outside.dns.set('private.example.test', 'A', ['10.0.0.1']);
outside.dns.set('mixed.example.test', 'A', ['127.0.0.1', '10.0.0.1']);
outside.dns.set('half.example.test', 'A', 'servfail');
outside.dns.set('half.example.test', 'AAAA', ['fd00::1']);

const PRIVATE = 'https://10.0.0.1/';
const MISSING = 'https://missing.example.test/';
const RESOLVED = 'https://private.example.test/';
const REFUSING = `https://${HOST}:${closedPort}/`;
const TOO_LONG = url('/').padEnd(257, 'x');
const MALFORMED = 'https://a b/';
const NOT_HTTPS = 'http://example.com/';
const LONG_KEY = 'k'.repeat(257);
const NO_HEADER = 'a\nb';
const onMixed = (port: number, path: string) => `https://mixed.example.test:${port}${path}`;

type Body = Record<string, unknown> | string | undefined;
type Row = readonly [first: Check, second: Check | null, key: Key, body: Body];

const SINGLE: readonly Row[] = [
  ['authentication', null, stranger, {}],
  ['authentication', null, disabled, {}],
  ['kind', null, integration, {}],
  ['object', null, good, '[]'],
  ['object', null, good, '{"url":"x"'],
  ['managed', null, spentManaged, { access_key: 'k' }],
  ...[{ url: 5 }, { url: ' ' }, { access_key: '' }, { access_key: NO_HEADER }].map((body) => single('types', body)),
  ...[{ url: TOO_LONG }, { url: MALFORMED }, { access_key: LONG_KEY }].map((body) => single('form', body)),
  single('scheme', { url: NOT_HTTPS }),
  ['merging', null, unsaved, { url: url() }],
  ...[PRIVATE, 'https://[::]/'].map((address) => single('literal', { url: address })),
  ['rate', null, spent, {}],
  ['rate', null, spentUnsaved, SAVED],
  single('resolution', { url: MISSING }),
  single('resolved', { url: RESOLVED }),
  single('sending', { url: REFUSING }),
  single('sending', { url: `https://${HOST}:${untrusted.port}/` }),
  single('status', { url: url('/500') }),
];
function single(check: Check, body: Body): Row {
  return [check, null, good, body];
}

const PAIRS: readonly Row[] = [
  ['authentication', 'kind', strangeIntegration, {}],
  ['authentication', 'kind', disabled, {}],
  ['authentication', 'object', stranger, '{"url":'],
  ['authentication', 'managed', { ...managed, authKey: 'wrong' }, SAVED],
  ['authentication', 'types', stranger, { url: 5 }],
  ['authentication', 'rate', { ...spent, authKey: 'wrong' }, {}],
  ['authentication', 'status', stranger, { url: url('/500') }],
  ['kind', 'object', integration, '{"url":'],
  ['kind', 'object', integration, 'null'],
  ['kind', 'managed', await ofAnotherKind(managed), SAVED],
  ['kind', 'types', integration, { url: 5 }],
  ['kind', 'scheme', integration, { url: NOT_HTTPS }],
  ['kind', 'merging', await ofAnotherKind(unsaved), {}],
  ['kind', 'rate', await ofAnotherKind(spent), {}],
  ['kind', 'resolution', integration, { url: MISSING }],
  ['object', 'managed', managed, `[${JSON.stringify(SAVED)}]`],
  ['object', 'managed', managed, JSON.stringify(SAVED).slice(0, -1)],
  ['object', 'types', good, '[{"url":5}]'],
  ['object', 'form', good, `["${MALFORMED}"]`],
  ['object', 'merging', unsaved, '[]'],
  ['object', 'rate', spent, 'null'],
  ['managed', 'types', managed, { url: null }],
  ['managed', 'types', managed, { access_key: NO_HEADER }],
  ['managed', 'form', managed, { url: TOO_LONG, access_key: LONG_KEY }],
  ['managed', 'scheme', managed, { url: NOT_HTTPS }],
  ['managed', 'merging', managed, { url: url() }],
  ['managed', 'literal', managed, { url: PRIVATE, access_key: 'k' }],
  ['managed', 'rate', spentManaged, { url: url() }],
  ['managed', 'resolution', managed, { url: MISSING, access_key: 'k' }],
  ['types', 'form', good, { url: TOO_LONG, access_key: 5 }],
  ['types', 'form', good, { url: MALFORMED, access_key: ' ' }],
  ['types', 'form', good, { url: MALFORMED, access_key: NO_HEADER }],
  ['types', 'form', good, { url: 5, access_key: LONG_KEY }],
  ['types', 'form', good, { access_key: '\n'.padEnd(257, 'k') }],
  ['types', 'form', good, { url: ' '.repeat(257) }],
  ['types', 'scheme', good, { url: NOT_HTTPS, access_key: '' }],
  ['types', 'merging', unsaved, { access_key: '' }],
  ['types', 'literal', good, { url: PRIVATE, access_key: NO_HEADER }],
  ['types', 'rate', spent, { url: [] }],
  ['types', 'resolved', good, { url: RESOLVED, access_key: null }],
  ['form', 'scheme', good, { url: 'http://a b/' }],
  ['form', 'scheme', good, { url: 'http://'.padEnd(257, 'x') }],
  ['form', 'scheme', good, { url: 'ftp://user@example.com/' }],
  ['form', 'scheme', good, { url: NOT_HTTPS, access_key: LONG_KEY }],
  ['form', 'merging', unsaved, { url: MALFORMED }],
  ['form', 'merging', unsaved, { access_key: LONG_KEY }],
  ['form', 'literal', good, { url: PRIVATE.padEnd(257, 'x') }],
  ['form', 'literal', good, { url: PRIVATE, access_key: LONG_KEY }],
  ['form', 'rate', spent, { url: TOO_LONG }],
  ['form', 'resolution', good, { url: MISSING, access_key: LONG_KEY }],
  ['scheme', 'merging', unsaved, { url: NOT_HTTPS }],
  ['scheme', 'literal', good, { url: PRIVATE.replace('https', 'http') }],
  ['scheme', 'rate', spent, { url: NOT_HTTPS }],
  ['scheme', 'resolved', good, { url: RESOLVED.replace('https', 'http') }],
  ['merging', 'literal', unsaved, { url: PRIVATE }],
  ['merging', 'rate', spentUnsaved, { url: url() }],
  ['merging', 'rate', spentUnsaved, {}],
  ['merging', 'resolution', unsaved, { url: MISSING }],
  ['merging', 'status', unsaved, { url: url('/500') }],
  ['literal', 'rate', spent, { url: PRIVATE }],
  ['literal', 'sending', good, { url: 'https://10.0.0.1:1/' }],
  ['rate', 'resolution', spent, { url: MISSING }],
  ['rate', 'resolved', spent, { url: RESOLVED }],
  ['rate', 'sending', spent, { url: REFUSING }],
  ['rate', 'status', spent, { url: url('/500') }],
  // A failed lookup together with a private address: contract address 5 gives the address precedence.
  ['resolved', 'resolution', good, { url: 'https://half.example.test/' }],
  ['resolved', 'sending', good, { url: onMixed(closedPort, '/') }],
  ['resolved', 'status', good, { url: onMixed(receiver.port, '/500') }],
  ['sending', 'status', good, { url: `https://${HOST}:${untrusted.port}/` }],
];

/** Which check answered. */
function speaker({ status, body: { code, field, message, details } }: Answer, hasAsked: boolean): Check | string {
  const isManaged = /managed-PKI/.test(message);
  const ambiguous: Readonly<Record<string, Check>> = {
    permission_denied: isManaged ? 'managed' : 'kind',
    invalid_parameters: field === undefined ? 'object' : 'types',
    callback_private_domain: hasAsked ? 'resolved' : 'literal',
    callback_send_error: details?.stage === 'resolve' ? 'resolution' : 'sending',
    api_key_disabled: 'authentication',
  };
  return ambiguous[code] ?? CHECKS.find((check) => ANSWERS[check] === `${status} ${code}`) ?? `${status} ${code}`;
}

async function requireFirst([first, second, key, body]: Row): Promise<void> {
  const call: Call =
    typeof body === 'string' ? { raw: body, headers: { 'content-type': 'application/json' } } : { json: body };
  const counts = () => [outside.dns.queries.length, receiver.connections.length + untrusted.connections.length];
  const before = counts();
  const answer = await world.test(key, undefined, call);
  const [asked, connected] = counts();
  const what = `${first} + ${second}: ${JSON.stringify(body)?.slice(0, 100)} ${answer.text}`;
  assert.equal(speaker(answer, asked !== before[0]), first, what);
  const expected = answer.body.code === 'api_key_disabled' ? '403 api_key_disabled' : ANSWERS[first];
  assert.equal(`${answer.status} ${answer.body.code}`, expected, what);
  if (isBeforeNetwork(first)) assert.equal(asked, before[0], `${what} no query was made`);
  if (isBeforeNetwork(first) || first === 'resolved') assert.equal(connected, before[1], `${what} no call was made`);
}

rule('callback-test 10', 'The checks run in this order, and the first that fails is the answer', async () => {
  for (const row of SINGLE) await requireFirst(row);
  assert.deepEqual([...new Set(SINGLE.map(([check]) => check))], CHECKS, 'every fault alone is refused');
  // Otherwise the next test would hit the rate limit.
  app.advance(60_000);
  for (const key of [spent, spentUnsaved]) await spend(key, SAVED);
  await spend(spentManaged);
  for (const row of PAIRS) await requireFirst(row);
});

test('every check is paired with the one after it', () => {
  const listed = new Set(PAIRS.map(([first, second]) => `${first} ${second}`));
  for (const [index, check] of CHECKS.slice(0, -1).entries()) {
    const next = CHECKS[index + 1];
    // A pair that cannot occur: a failed lookup resolves nothing, except under address 5.
    if (check === 'resolution') continue;
    assert.ok(listed.has(`${check} ${next}`), `no row has ${check} and ${next} at once`);
  }
});
