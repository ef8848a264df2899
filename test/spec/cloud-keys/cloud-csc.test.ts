// Signing with cloud-held keys through the Cloud Signature Consortium API, and the shape of its responses.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash, randomBytes, verify, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { openSm2PublicKey, sm2Verify, sm2Z } from '../../../src/adapters/sm2/sm2.ts';
import { type Key, newFolder, startApp } from '../../support/app.ts';
import {
  authorization,
  authorize,
  type CloudKey,
  CODE,
  csc,
  digest,
  ECDSA_SHA256,
  HINT,
  INVALID,
  newCloudKey,
  OID,
  requireError,
  sign,
} from '../../support/cloud-keys.ts';
import { rule } from '../../support/contract.ts';
import { certificate, spkiIn } from '../../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const hash = (text: string) => digest('sha256', Buffer.from(text));
const METHODS = [
  'info',
  'auth/login',
  'auth/revoke',
  'credentials/list',
  'credentials/info',
  'credentials/authorize',
  'signatures/signHash',
] as const;

/** A second verifier, if installed. */
function askOpenssl(context: TestContext, pem: string, hashName: string, message: Uint8Array, signature: Uint8Array) {
  const folder = newFolder();
  const file = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const key = spawnSync('openssl', ['x509', '-in', file('certificate.pem', pem), '-noout', '-pubkey']);
  if (key.error) return context.diagnostic('there is no openssl on this machine');
  const args = ['-verify', file('key.pem', key.stdout), '-signature', file('signature', signature)];
  const id = hashName === 'sm3' ? ['-sigopt', 'distid:1234567812345678'] : [];
  const { stdout, stderr } = spawnSync('openssl', ['dgst', `-${hashName}`, ...args, ...id, file('message', message)]);
  assert.match(String(stdout), /Verified OK/, String(stderr));
}

rule('cloud-key 6', 'The account that owns the key, and no other, signs with it', async (context) => {
  const RSA = '1.2.840.113549.1.1.1';
  for (const [options, hashName, signAlgo] of [
    [{ like: 'p256' }, 'sha256', ECDSA_SHA256],
    [{ like: 'p256' }, 'sha384', '1.2.840.10045.4.3.3'],
    [{ like: 'rsa2048' }, 'sha256', RSA],
    [{ like: 'rsa2048' }, 'sha512', RSA],
    [{ like: 'rsa2048' }, 'sha384', '1.2.840.113549.1.1.12'],
    [{ product: 'code-signing' }, 'sha256', ECDSA_SHA256],
  ] as const) {
    const held = await newCloudKey(app, options);
    const messages = [randomBytes(40), randomBytes(1)];
    const hashes = messages.map((one) => digest(hashName, one));
    const answer = await sign(app, held, hashes, { signAlgo, hashAlgorithmOID: OID[hashName] });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(Object.keys(answer.body), ['signatures']);
    const { publicKey } = new X509Certificate(held.pem);
    for (const [index, message] of messages.entries()) {
      const signature = Buffer.from(answer.body.signatures[index], 'base64');
      assert.ok(verify(hashName, message, publicKey, signature), `${signAlgo} ${hashName}`);
      askOpenssl(context, held.pem, hashName, message, signature);
    }
  }
  await requireOwnerOnly();
});

rule('cloud-key 6', 'of the Cloud Signature Consortium API v2 under `/csc/v2`', async (context) => {
  const held = await newCloudKey(app, { signHash: 'sm3' });
  const shown = await certificate(app, { ...held, id: held.orderId }, held.certificateId);
  const key = openSm2PublicKey(spkiIn(shown));
  const message = randomBytes(40);
  const e = createHash('sm3').update(sm2Z(key.point)).update(message).digest('base64');
  const terms = { signAlgo: '1.2.156.10197.1.501', hashAlgorithmOID: OID.sm3 };
  const { body } = await sign(app, held, [e], terms);
  const signature = Buffer.from(body.signatures[0], 'base64');
  assert.ok(sm2Verify(key, message, signature));
  askOpenssl(context, held.pem, 'sm3', message, signature);
  const other = await sign(app, held, [hash('x')]);
  requireError(other, INVALID(/^Invalid parameter hashAlgorithmOID: a key of type sm2 does not sign sha256/));
});

async function requireOwnerOnly() {
  const held = await newCloudKey(app);
  const stranger = await app.newKey();
  const { body } = await authorize(app, held, [hash('x')]);
  const signing = { credentialID: held.id, SAD: body.SAD, hashes: [hash('x')], signAlgo: ECDSA_SHA256 };
  for (const [method, json] of [
    ['credentials/info', { credentialID: held.id }],
    ['credentials/authorize', authorization(held.id, [hash('x')])],
    ['signatures/signHash', signing],
  ] as const) {
    const theirs = await csc(app, method, stranger, json);
    const nowhere = await csc(app, method, stranger, { ...json, credentialID: 'nothing' });
    requireError(theirs, INVALID(/^Invalid parameter credentialID/), method);
    assert.deepEqual(theirs.body, nowhere.body, 'exactly as if it did not exist');
  }
  assert.deepEqual((await csc(app, 'credentials/list', stranger)).body, { credentialIDs: [] });
  assert.equal((await csc(app, 'signatures/signHash', held.key, signing)).status, 200, 'the owner still may');
}

rule(
  'csc 11',
  'names `supportedHashTypes`, `signAlgorithms`, `signature_formats` and `conformance_levels`',
  async () => {
    const { status, body } = await csc(app, 'info', undefined);
    assert.equal(status, 200);
    assert.deepEqual(
      [body.specs, body.authType, body.methods, body.lang, body.conformance_levels],
      ['2.0.0.2', ['basic'], METHODS, 'en-US', []],
    );
    for (const member of ['name', 'logo', 'region', 'description']) assert.equal(typeof body[member], 'string', member);
    assert.ok(body.signAlgorithms.algos.includes(ECDSA_SHA256));
    assert.deepEqual(body.signature_formats, { formats: [], envelope_properties: [] });
    assert.deepEqual([body.supportedHashTypes, body.asynchronousOperationMode], [['dtbsr'], false]);
    for (const lang of [5, {}, '']) {
      requireError(await csc(app, 'info', undefined, { lang }), INVALID(/string parameter lang/), `${lang}`);
    }
    const chinese = await csc(app, 'info', undefined, { lang: 'zh-CN' });
    assert.equal(chinese.body.lang, 'zh-CN');
    assert.match(chinese.body.description, /\p{Script=Han}/u);
    assert.equal((await app.call('POST', '/csc/v2/info')).status, 200, 'without a body too');
  },
);

test('credentials/info returns only the requested parts', async () => {
  const held = await newCloudKey(app);
  const info = async (json: object) =>
    (await csc(app, 'credentials/info', held.key, { credentialID: held.id, ...json })).body;
  const short = await info({});
  const leaf = new X509Certificate(held.pem);
  assert.deepEqual(short, {
    key: {
      ...{ status: 'enabled', algo: [ECDSA_SHA256, '1.2.840.10045.4.3.3', '1.2.840.10045.4.3.4'] },
      ...{ len: 256, curve: '1.2.840.10045.3.1.7' },
    },
    cert: { status: 'valid', certificates: [leaf.raw.toString('base64')] },
    auth: { mode: 'explicit' },
    ...{ SCAL: '2', multisign: 64, lang: 'en-US' },
  });
  assert.deepEqual((await info({ certificates: 'none' })).cert, { status: 'valid' });
  const full = await info({ certificates: 'chain', certInfo: true, authInfo: true });
  const chain = full.cert.certificates.map((one: string) => new X509Certificate(Buffer.from(one, 'base64')));
  assert.ok(chain.length >= 2 && chain[0].raw.equals(leaf.raw) && chain[0].verify(chain[1].publicKey));
  const { serialNumber, subjectDN, issuerDN, validFrom, validTo } = full.cert;
  assert.deepEqual([serialNumber, subjectDN], [leaf.serialNumber, 'CN=Acme Ltd']);
  assert.match(issuerDN, /^CN=[^,]+,O=[^,]+,C=XX$/);
  const time = (date: Date) => `${date.toISOString().slice(0, 19).replaceAll(/[-:T]/g, '')}Z`;
  assert.deepEqual([validFrom, validTo], [time(leaf.validFromDate), time(leaf.validToDate)]);
  assert.deepEqual(full.auth, {
    ...{ mode: 'explicit', expression: 'PIN' },
    objects: [{ type: 'Password', id: 'PIN', format: 'A', label: 'Access code', description: HINT }],
  });
  const rsa = await newCloudKey(app, { like: 'rsa2048' });
  const { key } = (await csc(app, 'credentials/info', rsa.key, { credentialID: rsa.id, lang: null })).body;
  assert.deepEqual([key.len, key.curve], [3072, undefined]);
});

test('credentials/list returns live keys only, with the requested parts', async () => {
  const first = await newCloudKey(app);
  const second = await newCloudKey(app, { signHash: 'sm3', hint: undefined }, first.key);
  const list = async (json: object) => (await csc(app, 'credentials/list', first.key, json)).body;
  assert.deepEqual(await list({}), { credentialIDs: [first.id, second.id] });
  const { credentialInfos } = await list({ credentialInfo: true, authInfo: true, userID: null });
  const info = await csc(app, 'credentials/info', first.key, { credentialID: second.id, authInfo: true });
  assert.deepEqual(credentialInfos[1], { credentialID: second.id, ...info.body });
  for (let tries = 0; tries < 5; tries += 1) {
    await csc(app, 'credentials/authorize', first.key, {
      ...authorization(first.id, [hash('x')]),
      authData: [{ id: 'PIN', value: 'not the code' }],
    });
  }
  assert.deepEqual(await list({ onlyValid: true }), { credentialIDs: [second.id], onlyValid: true });
  const json = { pin: CODE };
  await app.call('DELETE', `/openapi/v3/cloud-keys/${second.id}`, { key: first.key, json });
  assert.deepEqual(await list({}), { credentialIDs: [first.id] });
  requireError(
    await csc(app, 'credentials/list', first.key, { userID: 'x' }),
    INVALID(/^userID parameter MUST be null/),
  );
});

rule('csc 12', 'and, if there are more, `nextPageToken`, which `pageToken` continues from', async () => {
  const first = await newCloudKey(app);
  const second = await newCloudKey(app, {}, first.key);
  const third = await newCloudKey(app, {}, first.key);
  const list = async (json: object) => (await csc(app, 'credentials/list', first.key, json)).body;
  const newest = await list({ maxResults: 2 });
  assert.deepEqual(newest, { credentialIDs: [second.id, third.id], nextPageToken: second.id });
  assert.deepEqual(await list({ maxResults: 2, pageToken: newest.nextPageToken }), { credentialIDs: [first.id] });
  assert.deepEqual(await list({ maxResults: 3 }), { credentialIDs: [first.id, second.id, third.id] });
  assert.deepEqual(await list({ maxResults: 10 ** 9, pageToken: first.id }), { credentialIDs: [] });
  for (const [json, phrase] of [
    [{ maxResults: 0 }, /^Invalid parameter maxResults/],
    [{ maxResults: 1.5 }, /^Invalid parameter maxResults/],
    [{ maxResults: '2' }, /^Invalid parameter maxResults/],
    [{ pageToken: 7 }, /^Missing \(or invalid type\) string parameter pageToken/],
  ] as const) {
    requireError(await csc(app, 'credentials/list', first.key, json), INVALID(phrase), JSON.stringify(json));
  }
});

test('HTTP Basic and the two headers both authenticate, before the body is read', async () => {
  const held = await newCloudKey(app);
  const { keyId, authKey } = held.key;
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });
  const list = (headers: Record<string, string>, raw = '{}') =>
    app.call('POST', '/csc/v2/credentials/list', { headers: { 'content-type': 'application/json', ...headers }, raw });
  assert.deepEqual((await list(basic(`${keyId}:${authKey}`))).body, { credentialIDs: [held.id] });
  for (const headers of [
    {},
    basic(`${keyId}:wrong`),
    basic(keyId),
    basic(''),
    { authorization: `Basic ${keyId}:${authKey}` },
    { 'X-CC-Key-ID': keyId },
  ]) {
    const answer = await list(headers as Record<string, string>, '{');
    requireError(answer, [401, 'invalid_token', /HTTP Basic/], JSON.stringify(headers));
    assert.match(answer.headers.get('www-authenticate') ?? '', /^Basic /);
  }
  const disabled = await app.anotherKey(held.key.accountId, 'standard');
  await app.app.access.disableKey(disabled.keyId);
  requireError(await csc(app, 'credentials/list', disabled), [401, 'expired_token', /disabled/]);
});

test('unknown methods and malformed bodies get errors in the shape of the CSC API', async () => {
  const key = await app.newKey();
  requireError(await csc(app, 'signatures/signDoc', key), [501, 'invalid_request', /not implemented/]);
  requireError(await csc(app, 'auth/login', undefined), [401, 'invalid_token', /./]);
  const got = await app.call('GET', '/csc/v2/info', { key });
  requireError(got, [405, 'invalid_request', /Allow/]);
  assert.equal(got.headers.get('allow'), 'POST');
  const raw = (text: string, type = 'application/json') =>
    app.call('POST', '/csc/v2/credentials/info', { key, raw: text, headers: { 'content-type': type } });
  requireError(await raw('{'), INVALID(/not valid JSON/));
  requireError(await raw('[]'), INVALID(/JSON object/));
  requireError(await raw('x=1', 'text/plain'), [415, 'invalid_request', /application\/json/]);
  requireError(await raw(`"${'x'.repeat(300_000)}"`), [413, 'invalid_request', /256 KiB/]);
  const chinese = await csc(app, 'credentials/info', key, {}, { 'accept-language': 'zh-CN' });
  requireError(chinese, INVALID(/\p{Script=Han}/u));
  const { body } = await app.call('GET', '/openapi.json');
  const { methods } = (await csc(app, 'info', undefined)).body;
  assert.deepEqual(
    Object.keys(body.paths)
      .filter((path) => path.startsWith('/csc'))
      .sort(),
    methods.map((method: string) => `/csc/v2/${method}`).sort(),
    'the document has what info lists',
  );
});

test('a key whose certificate has expired signs nothing', async () => {
  await using later = await startApp();
  const held: CloudKey = await newCloudKey(later, { validityDays: 1 });
  later.advance(2 * 86_400_000);
  requireError(await authorize(later, held, [hash('x')]), INVALID(/^Signing certificate is expired/));
  const { body } = await csc(later, 'credentials/info', held.key, { credentialID: held.id });
  assert.equal(body.cert.status, 'expired');
});

test('the audit log has the number of signatures, but no hashes', async () => {
  const held = await newCloudKey(app);
  const answer = await sign(app, held, [hash('x'), hash('y')]);
  const signer: Key = held.key;
  const entries = await app.app.store.audit.listOf(signer.accountId, { limit: 100 });
  const { id: _, ...entry } = entries.find(({ action }) => action === 'cloud-key:signed')!;
  assert.deepEqual(entry, {
    ...{ at: app.now(), accountId: signer.accountId, actor: signer.keyId, action: 'cloud-key:signed' },
    ...{ subject: held.id, requestId: answer.headers.get('x-request-id'), details: { hashes: 2, sign_hash: 'sha256' } },
  });
  assert.ok(!JSON.stringify(entries).includes(hash('x')));
});
