// ACME requests as bytes: directory, nonces, signed requests, problem documents, and a table of hostile ones.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after } from 'node:test';
import {
  answerOf,
  type Bend,
  b64,
  b64json,
  newAcmeClient,
  newAcmeKey,
  problemOf,
  type SentJws,
  signature,
  signedParts,
} from '../../support/acme.ts';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';

const app = await startApp();
after(() => app.stop());
const get = async (path: string, method = 'GET') => await answerOf(await fetch(app.url + path, { method }));

const client = await newAcmeClient(app);
const URLS = await client.directory();

rule('acme 1', 'the same account works in all of them', async () => {
  const { body } = await get('/acme/ssl-dv/directory');
  for (const { meta: _, ...urls } of [body, URLS]) {
    const names = ['newNonce', 'newAccount', 'newOrder', 'revokeCert', 'keyChange', 'renewalInfo'];
    assert.deepEqual(Object.keys(urls), names);
    for (const url of Object.values<string>(urls)) assert.ok(url.startsWith(`${app.url}/acme/`), url);
  }
  assert.deepEqual([body.newAccount, body.keyChange], [URLS.newAccount, URLS.keyChange]);
  assert.notEqual(body.newOrder, URLS.newOrder);
});

rule('acme 2', '`meta` of a directory has `externalAccountRequired` true, `caaIdentities`', async () => {
  const { externalAccountRequired, caaIdentities, profiles } = URLS.meta;
  assert.deepEqual([externalAccountRequired, caaIdentities], [true, ['ca.reseal.test']]);
  const products = ['ssl-dv', 'ssl-dv-add', 'ssl-dv-fixed', 'ssl-dv-replace', 'tls-private'];
  assert.deepEqual(Object.keys(profiles).sort(), products);
  assert.equal((await get('/acme/tls-private/directory')).body.meta.externalAccountRequired, true);
});

rule('acme 3', 'A product that is unknown, or whose certificates need more', async () => {
  for (const product of ['none', 'code-signing', 'document-signing', 'toString']) {
    const answer = await get(`/acme/${product}/directory`);
    assert.deepEqual([answer.status, problemOf(answer)], [404, 'malformed'], product);
  }
});

rule('acme 4', '`newNonce` answers HEAD with 200 and GET with 204', async () => {
  for (const [method, status] of [['HEAD', 200] as const, ['GET', 204] as const]) {
    const { headers, status: found, text } = await get('/acme/new-nonce', method);
    assert.deepEqual([found, text, headers.get('cache-control')], [status, '', 'no-store']);
    assert.match(headers.get('replay-nonce') ?? '', /^[A-Za-z0-9_-]{20,}$/);
  }
});

rule('acme 5', 'errors included, has a fresh `Replay-Nonce` in base64url', async () => {
  const post = (path: string, headers = {}) => fetch(app.url + path, { method: 'POST', body: '{}', headers });
  const signed = [await client.post(client.kid), await client.post(client.kid, { contact: 1 })];
  assert.deepEqual(
    signed.map(({ status }) => status),
    [200, 400],
  );
  const answers = [...signed, await post('/acme/new-account'), await post('/acme/none'), await post('/acme/directory')];
  const nonces = answers.map(({ headers }) => headers.get('replay-nonce') ?? '');
  for (const nonce of nonces) assert.match(nonce, /^[A-Za-z0-9_-]+$/);
  assert.equal(new Set(nonces).size, answers.length);
});

rule('acme 6', 'Every answer but a directory has a `Link` with `rel="index"`', async () => {
  const index = `<${app.url}/acme/directory>;rel="index"`;
  for (const answer of [await get('/acme/new-nonce'), await get('/acme/none'), await client.post(client.kid)]) {
    assert.equal(answer.headers.get('link'), index);
  }
  assert.equal((await get('/acme/directory')).headers.get('link'), null);
});

rule('acme 7', 'is not `application/jose+json` is answered 415', async () => {
  for (const type of ['application/json', 'text/plain', 'application/jose', 'application/jose+jsonx']) {
    const answer = await client.post(client.kid, undefined, { headers: { 'Content-Type': type } });
    assert.deepEqual([answer.status, problemOf(answer)], [415, 'malformed'], type);
  }
  const bend = { headers: { 'Content-Type': 'Application/JOSE+JSON; charset=utf-8' } };
  assert.equal((await client.post(client.kid, undefined, bend)).status, 200);
});

rule('acme 8', 'is answered 405 `malformed` with `Allow`; an unknown path 404', async () => {
  const shown = await get(new URL(client.kid).pathname);
  assert.deepEqual([shown.status, problemOf(shown), shown.headers.get('allow')], [405, 'malformed', 'POST']);
  assert.equal((await get('/acme/new-account', 'PUT')).status, 405);
  assert.equal((await get('/acme/directory', 'POST')).headers.get('allow')?.includes('GET'), true);
  const unknown = await get('/acme/a/b/c');
  assert.deepEqual([unknown.status, problemOf(unknown)], [404, 'malformed']);
});

rule('acme 9', 'in the language of `Content-Language`: that of `Accept-Language`, else of the tenant', async () => {
  const { accountId } = await app.newKey({ locale: 'zh-CN' });
  const chinese = await newAcmeClient(app, { accountId });
  const ask = async (language?: string) => {
    const bend = { headers: { ...(language !== undefined && { 'Accept-Language': language }) } };
    const answer = await chinese.post(chinese.kid, { contact: ['tel:1'] }, bend);
    assert.equal(problemOf(answer), 'unsupportedContact');
    return [answer.headers.get('content-language'), /\p{Script=Han}/u.test(answer.body.detail)];
  };
  assert.deepEqual(await ask('en'), ['en', false]);
  assert.deepEqual(await ask('*'), ['zh-CN', true]);
});

rule('acme 10', 'any other payload must be one JSON object', async () => {
  assert.equal((await client.post(client.kid)).body.status, 'valid');
  for (const payload of ['null', '[]', '"x"', '{', '{}{}', '1', ' ']) {
    const body = (_: SentJws, header: object) => signedParts(client.key, b64json(header), b64(payload));
    assert.equal(problemOf(await client.post(client.kid, {}, { body })), 'malformed', payload);
  }
});

rule('acme 49', 'and preflight requests are answered 204', async () => {
  for (const answer of [await get('/acme/directory'), await client.post(client.kid), await get('/acme/none')]) {
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    assert.match(answer.headers.get('access-control-expose-headers') ?? '', /Replay-Nonce/);
  }
  const { status, headers } = await get('/acme/new-account', 'OPTIONS');
  assert.deepEqual([status, headers.get('access-control-allow-headers')], [204, 'Content-Type, Accept-Language']);
});

/** The parts of the JWS, changed after it was signed. */
const parts = (change: (jws: SentJws) => object): Bend => ({ body: change });
/** The header as text, changed before it is signed. */
const headed = (change: (text: string) => string): Bend => ({
  body: (sent, header) => signedParts(client.key, b64(change(JSON.stringify(header))), sent.payload),
});
const macWith = (secret: string | Buffer): Bend => ({
  body(sent, header) {
    const head = b64json({ ...header, alg: 'HS256' });
    const mac = createHmac('sha256', secret).update(`${head}.${sent.payload}`).digest('base64url');
    return { protected: head, payload: sent.payload, signature: mac };
  },
});
const PUBLIC_PEM = client.key.publicKey.export({ format: 'pem', type: 'spki' });
const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;

const HOSTILE: Readonly<Record<string, readonly (readonly [string, string, Bend])[]>> = {
  'acme 11': [
    ['an unprotected header', 'malformed', parts((jws) => ({ ...jws, header: { kid: client.kid } }))],
    ['the general serialization', 'malformed', parts(({ payload, ...one }) => ({ payload, signatures: [one] }))],
    ['both serializations', 'malformed', parts((jws) => ({ ...jws, signatures: [] }))],
    ['no signature', 'malformed', parts(({ signature: _, ...rest }) => rest)],
    ['a payload that is no text', 'malformed', parts((jws) => ({ ...jws, payload: {} }))],
    ['a list', 'malformed', parts((jws) => [jws])],
    ['the compact serialization', 'malformed', parts((jws) => Object.values(jws).join('.') as unknown as object)],
  ],
  'acme 12': [
    ['b64', 'malformed', { header: { b64: false } }],
    ['b64 true', 'malformed', { header: { b64: true } }],
    ['crit', 'malformed', { header: { crit: ['exp'], exp: 1 } }],
    ['crit and b64', 'malformed', { header: { crit: ['b64'], b64: false } }],
    ['an empty crit', 'malformed', { header: { crit: [] } }],
  ],
  'acme 13': [
    [
      'payload twice in the body',
      'malformed',
      { body: (jws) => JSON.stringify(jws).replace('"payload"', '"payload":"","payload"') },
    ],
    ['alg twice', 'malformed', headed((text) => text.replace('{', '{"alg":"none",'))],
    ['alg twice, escaped', 'malformed', headed((text) => text.replace('{', '{"\\u0061lg":"none",'))],
    ['url twice', 'malformed', headed((text) => text.replace('{', '{"url":"https://other.example",'))],
    [
      'contact twice in the payload',
      'malformed',
      { body: (_, header) => signedParts(client.key, b64json(header), b64('{"contact":[],"contact":[]}')) },
    ],
  ],
  'acme 14': [
    ['padding of the signature', 'malformed', parts((jws) => ({ ...jws, signature: `${jws.signature}==` }))],
    ['padding of the header', 'malformed', parts((jws) => ({ ...jws, protected: `${jws.protected}=` }))],
    ['stray bits', 'malformed', parts((jws) => ({ ...jws, signature: strayBits(jws.signature) }))],
    ['a line break', 'malformed', parts((jws) => ({ ...jws, payload: `${jws.payload}\n` }))],
    ['another alphabet', 'malformed', parts((jws) => ({ ...jws, signature: `+/${jws.signature.slice(2)}` }))],
  ],
  'acme 15': [
    ['no alg', 'badSignatureAlgorithm', { header: { alg: undefined } }],
    ['no url', 'malformed', { header: { url: undefined } }],
    ['both jwk and kid', 'malformed', { header: { jwk: client.key.jwk } }],
    ['neither jwk nor kid', 'malformed', { header: { kid: undefined } }],
    ['a kid that is no text', 'malformed', { header: { kid: [client.kid] } }],
    ['a header that is no object', 'malformed', headed(() => '[]')],
    ['a header that is no UTF-8', 'malformed', parts((jws) => ({ ...jws, protected: b64(Buffer.from([0xff])) }))],
  ],
  'acme 16': [
    ['none', 'badSignatureAlgorithm', { header: { alg: 'none' } }],
    ['none without a signature', 'badSignatureAlgorithm', { ...headed((text) => text.replace('ES256', 'none')) }],
    ['HS256 with the public key', 'badSignatureAlgorithm', macWith(PUBLIC_PEM)],
    ['HS256 with the public point', 'badSignatureAlgorithm', macWith(Buffer.from(String(client.key.jwk.x)))],
    ['ES512', 'badSignatureAlgorithm', { header: { alg: 'ES512' } }],
    ['PS256', 'badSignatureAlgorithm', { header: { alg: 'PS256' } }],
    ['another case', 'badSignatureAlgorithm', { header: { alg: 'es256' } }],
    ['a list', 'badSignatureAlgorithm', { header: { alg: ['ES256'] } }],
    ['a property of every object', 'badSignatureAlgorithm', { header: { alg: 'constructor' } }],
  ],
  'acme 17': [
    ['RS256 with a P-256 key', 'badSignatureAlgorithm', { header: { alg: 'RS256' } }],
    ['ES384 with a P-256 key', 'badSignatureAlgorithm', { header: { alg: 'ES384' } }],
    ['EdDSA with a P-256 key', 'badSignatureAlgorithm', { header: { alg: 'EdDSA' } }],
  ],
  'acme 19': [
    ['another resource', 'unauthorized', { header: { url: URLS.newOrder } }],
    ['another host', 'unauthorized', { header: { url: client.kid.replace('127.0.0.1', 'localhost') } }],
    ['a slash more', 'unauthorized', { header: { url: `${client.kid}/` } }],
    ['a query', 'unauthorized', { header: { url: `${client.kid}?x=1` } }],
    ['the path alone', 'unauthorized', { header: { url: new URL(client.kid).pathname } }],
  ],
  'acme 20': [
    ['another payload', 'malformed', parts((jws) => ({ ...jws, payload: b64json({ status: 'deactivated' }) }))],
    ['an empty signature', 'malformed', parts((jws) => ({ ...jws, signature: '' }))],
    ['a signature of zeros', 'malformed', parts((jws) => ({ ...jws, signature: b64(Buffer.alloc(64)) }))],
    ['a signature in DER', 'malformed', parts((jws) => ({ ...jws, signature: inDer(jws) }))],
    [
      'the signature of another key',
      'malformed',
      parts((jws) => ({ ...jws, signature: signature(newAcmeKey(), `${jws.protected}.${jws.payload}`) })),
    ],
  ],
  'acme 48': [
    ['a long header', 'malformed', { header: { x: 'x'.repeat(8_192) } }],
    ['deep nesting', 'malformed', { body: nested(100) }],
    [
      'deep nesting of the payload',
      'malformed',
      { body: (_, header) => signedParts(client.key, b64json(header), b64(nested(65))) },
    ],
  ],
};

function strayBits(text: string): string {
  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return text.slice(0, -1) + ALPHABET[ALPHABET.indexOf(text.at(-1) ?? '') + 1];
}

const inDer = (jws: SentJws): string => signature({ ...client.key, type: 'rsa' }, `${jws.protected}.${jws.payload}`);

async function refusesAll(id: string): Promise<void> {
  const before = (await client.post(client.kid)).body;
  for (const [name, type, bend] of HOSTILE[id] ?? assert.fail()) {
    const answer = await client.post(client.kid, { contact: ['mailto:hostile@example.com'] }, bend);
    assert.equal(problemOf(answer), type, `${name}: ${answer.text}`);
    assert.ok(answer.headers.get('replay-nonce'), name);
  }
  assert.deepEqual((await client.post(client.kid)).body, before, 'nothing was changed');
}

rule('acme 11', 'or with an unprotected header, is `malformed`', () => refusesAll('acme 11'));
rule('acme 12', 'A protected header with `crit` or `b64` is `malformed`', () => refusesAll('acme 12'));
rule('acme 13', 'A key that occurs twice in an object of the body', () => refusesAll('acme 13'));
rule('acme 14', 'Padding, another alphabet or stray bits in a base64url value', () => refusesAll('acme 14'));
rule('acme 15', 'and exactly one of `jwk` and `kid`', () => refusesAll('acme 15'));
rule('acme 19', 'that is not exactly the URL that was asked', () => refusesAll('acme 19'));
rule('acme 20', 'A signature that does not verify with the key of the account', () => refusesAll('acme 20'));
rule('acme 16', 'is `badSignatureAlgorithm`, which lists `algorithms`', async () => {
  await refusesAll('acme 16');
  const { body } = await client.post(client.kid, {}, { header: { alg: 'none' } });
  assert.deepEqual(body.algorithms, ['ES256', 'ES384', 'RS256', 'EdDSA']);
});

rule('acme 17', 'A key verifies with its own algorithm only', async () => {
  await refusesAll('acme 17');
  const { body } = await client.post(client.kid, {}, { header: { alg: 'RS256' } });
  assert.deepEqual(body.algorithms, ['ES256']);
});

rule('acme 48', 'A body of more than 256 KiB is answered 413', async () => {
  await refusesAll('acme 48');
  const answer = await client.post(client.kid, { contact: ['x'.repeat(256 * 1024)] });
  assert.deepEqual([answer.status, problemOf(answer)], [413, 'malformed']);
});
