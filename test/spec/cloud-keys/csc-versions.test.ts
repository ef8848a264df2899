// The signing API as clients of version 1.0.4.0 use it: the requests of pyHanko's signer, the older names and shapes; and
// that an authorization ends with its certificate.
import assert from 'node:assert/strict';
import { createHash, randomBytes, verify, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { startApp } from '../../support/app.ts';
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
import { reissue } from '../../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const hash = (text: string) => digest('sha256', text);
const v1 = (method: string, { key }: Pick<CloudKey, 'key'>, json: object = {}) =>
  app.call('POST', `/csc/v1/${method}`, { key, json });
const revoke = (held: CloudKey, certificateId = held.certificateId) =>
  app.call('POST', `/openapi/v3/certs/${certificateId}/revoke`, { key: held.key, json: { reason: 'superseded' } });

/** As campaigns/csc-pyhanko.ts has recorded them; it compares them with what pyHanko sends. */
const EXCHANGE: readonly { path: string; headers: Record<string, string>; body: object }[] = JSON.parse(
  readFileSync(new URL('../../fixtures/csc-pyhanko.json', import.meta.url), 'utf8'),
);

rule('csc 7', '`/csc/v1` answers the same methods with the names and shapes of version 1.0.4.0', async () => {
  const held = await newCloudKey(app);
  const message = randomBytes(40);
  const known = new Map<string, unknown>([
    ['CREDENTIAL', held.id],
    ['PIN', CODE],
    ['HASH', digest('sha256', message)],
    ['Basic …', `Basic ${Buffer.from(`${held.key.keyId}:${held.key.authKey}`).toString('base64')}`],
  ]);
  const filled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(filled);
    return typeof value === 'string' ? (known.get(value) ?? value) : value;
  };
  const filledIn = (fields: object) =>
    Object.fromEntries(Object.entries(fields).map(([k, value]) => [k, filled(value)]));
  assert.equal(EXCHANGE.length, 4);
  let signature = '';
  for (const { path, headers, body } of EXCHANGE) {
    const response = await fetch(app.url + path, {
      method: 'POST',
      headers: filledIn(headers) as Record<string, string>,
      body: JSON.stringify(filledIn(body)),
    });
    const text = await response.text();
    assert.equal(response.status, 200, `${path} ${text}`);
    // pyHanko takes no other type for JSON.
    assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
    const { access_token, cert, key, multisign, SCAL, SAD, signatures } = JSON.parse(text);
    if (access_token) known.set('Bearer …', `Bearer ${access_token}`);
    if (SAD) known.set('SAD', SAD);
    if (cert) {
      assert.deepEqual(Buffer.from(cert.certificates[0], 'base64'), new X509Certificate(held.pem).raw);
      assert.ok(key.algo.includes(ECDSA_SHA256) && multisign >= 1 && SCAL === '2', text);
    }
    signature = signatures?.[0] ?? signature;
  }
  assert.ok(verify('sha256', message, new X509Certificate(held.pem).publicKey, Buffer.from(signature, 'base64')));
});

test('info and credentials of version 1 have its shape', async () => {
  const held = await newCloudKey(app);
  const { body: info } = await app.call('POST', '/csc/v1/info');
  assert.deepEqual(Object.keys(info).sort(), [
    ...['authType', 'description', 'lang', 'logo', 'methods', 'name', 'region', 'specs'],
  ]);
  const { body: newer } = await app.call('POST', '/csc/v2/info');
  assert.deepEqual([info.specs, info.authType, info.methods], ['1.0.4.0', ['basic'], newer.methods]);
  for (const method of info.methods) {
    const { status } = await app.call('POST', `/csc/v1/${method}`);
    assert.equal(status, method === 'info' ? 200 : 401, method);
  }
  const { body: short } = await v1('credentials/info', held, { credentialID: held.id });
  assert.deepEqual(Object.keys(short).sort(), ['SCAL', 'authMode', 'cert', 'key', 'lang', 'multisign']);
  assert.deepEqual([short.authMode, short.key.status, short.cert.status], ['explicit', 'enabled', 'valid']);
  const { body: full } = await v1('credentials/info', held, { credentialID: held.id, authInfo: true, certInfo: true });
  assert.deepEqual(
    [full.PIN, full.OTP],
    [{ presence: 'true', format: 'A', label: 'Access code', description: HINT }, { presence: 'false' }],
  );
  assert.equal(full.cert.subjectDN, 'CN=Acme Ltd');
  requireError(await v1('signatures/signDoc', held), [501, 'invalid_request', /not implemented/]);
  const request = { credentialID: held.id, numSignatures: 1, hash: [hash('x')], PIN: 'not the code' };
  requireError(await v1('credentials/authorize', held, request), [400, 'invalid_pin', /./]);
});

const PINS = { authData: [{ id: 'PIN', value: CODE }], PIN: 'not the code' };

rule('csc 6', 'are read where `authData`, `hashes` and `hashAlgorithmOID` are absent', async () => {
  const held = await newCloudKey(app);
  const message = randomBytes(40);
  const [x, other] = [digest('sha384', message), digest('sha384', 'another')];
  const { publicKey } = new X509Certificate(held.pem);
  for (const [version, authorizes, signs] of [
    ['v1', { hash: [x], PIN: CODE }, { hash: [x], hashAlgo: OID.sha384 }],
    ['v2', { hash: [x], PIN: CODE }, { hash: [x], hashAlgo: OID.sha384 }],
    ['v2', { hash: [x], hashAlgo: OID.sha384, PIN: CODE, authData: null, hashes: null }, { hash: [x] }],
    ['v1', { hashes: [x], hashAlgorithmOID: OID.sha384, authData: PINS.authData }, { hashes: [x] }],
    // The newer name wins.
    [
      'v2',
      { hashes: [x], hash: [other], hashAlgorithmOID: OID.sha384, hashAlgo: OID.sha256, ...PINS },
      { hashes: [x], hash: [other] },
    ],
  ] as const) {
    const call = (method: string, json: object) =>
      app.call('POST', `/csc/${version}/${method}`, { key: held.key, json });
    const common = { credentialID: held.id, numSignatures: 1, signAlgo: '1.2.840.10045.4.3.3' };
    const { body } = await call('credentials/authorize', { ...common, ...authorizes });
    const signed = await call('signatures/signHash', { ...common, SAD: body.SAD, ...signs });
    assert.equal(signed.status, 200, `${version} ${JSON.stringify(authorizes)} ${signed.text}`);
    assert.ok(verify('sha384', message, publicKey, Buffer.from(signed.body.signatures[0], 'base64')));
  }
});

rule('csc 6', 'which then follows from the key and the length of the digests', async () => {
  const held = await newCloudKey(app);
  const attempt = (change: object) =>
    v1('credentials/authorize', held, { credentialID: held.id, numSignatures: 1, PIN: CODE, ...change });
  for (const [change, phrase] of [
    [{ hash: [digest('sha1', 'x')] }, /^Invalid digest value length/],
    [{ hash: [hash('x'), digest('sha384', 'x')], numSignatures: 2 }, /^Invalid digest value length/],
    [{ hash: [] }, /^Invalid parameter hashes: send 1 to 64/],
    [{ hash: 'x' }, /^Missing \(or invalid type\) array parameter hash\./],
    [{ hash: [hash('x').slice(1)] }, /^Invalid Base64 hash string parameter/],
    [{ hash: [hash('x')], hashAlgo: '1.3.14.3.2.26' }, /^Invalid parameter hashAlgo: use /],
    [{ hash: [hash('x')], hashAlgo: OID.sha384 }, /^Invalid digest value length/],
    [{ hashes: [hash('x')] }, /^Missing \(or invalid type\) string parameter hashAlgorithmOID, or hashAlgo\./],
    [{}, /^Missing \(or invalid type\) array parameter hashes, or hash\./],
    [{ hash: [hash('x')], PIN: '' }, /^Missing \(or invalid type\) string parameter PIN/],
    [{ hash: [hash('x')], PIN: 7 }, /^Missing \(or invalid type\) string parameter PIN/],
    [{ hash: [hash('x')], PIN: null }, /^Missing \(or invalid type\) array parameter authData, or PIN\./],
  ] as const) {
    requireError(await attempt(change), INVALID(phrase), JSON.stringify(change));
  }
  const { wrongCodes } = (await app.app.store.cloudKeys.find(held.key.accountId, held.id))!;
  assert.equal(wrongCodes, 0, 'none of these was an attempt');
  // 32 bytes are SM3 for an SM2 key.
  const sm2 = await newCloudKey(app, { signHash: 'sm3' });
  const e = digest('sm3', 'x');
  const request = { credentialID: sm2.id, numSignatures: 1, PIN: CODE, hash: [e] };
  const { body } = await v1('credentials/authorize', sm2, request);
  const terms = { credentialID: sm2.id, SAD: body.SAD, hash: [e], signAlgo: '1.2.156.10197.1.501' };
  assert.equal((await v1('signatures/signHash', sm2, terms)).status, 200);
});

rule('csc 8', 'ends with the revocation or the expiry of the certificate that it was given under', async () => {
  await using later = await startApp();
  const expiring = await newCloudKey(later, { validityDays: 1 });
  const { notAfter } = (await later.app.store.certificates.findByCloudKey(expiring.key.accountId, expiring.id))!
    .preparation;
  later.advance(notAfter - later.now());
  const granted = await authorize(later, expiring, [hash('x')]);
  assert.equal(granted.status, 200, granted.text);
  later.advance(1);
  const late = { credentialID: expiring.id, SAD: granted.body.SAD, hashes: [hash('x')], signAlgo: ECDSA_SHA256 };
  requireError(await csc(later, 'signatures/signHash', expiring.key, late), INVALID(/^Signing certificate is expired/));

  const held = await newCloudKey(app);
  const signing = (SAD: string) =>
    csc(app, 'signatures/signHash', held.key, {
      credentialID: held.id,
      SAD,
      hashes: [hash('x')],
      signAlgo: ECDSA_SHA256,
    });
  const { SAD } = (await authorize(app, held, [hash('x')])).body;
  assert.equal((await revoke(held)).status, 200);
  requireError(await signing(SAD), INVALID(/^Signing certificate is revoked/));
  requireError(await signing(SAD), INVALID(/^Invalid parameter SAD/), 'it is used up');
  requireError(await authorize(app, held, [hash('x')]), INVALID(/^Signing certificate is revoked/));
  const entries = await app.app.store.audit.listOf(held.key.accountId, { limit: 100 });
  assert.deepEqual(entries.at(-1)?.details, { reason: 'certificate not valid' });
});

test('an authorization ends with its own certificate, whether or not the key has got another one', async () => {
  const held = await newCloudKey(app);
  const { SAD } = (await authorize(app, held, [hash('x')])).body;
  const order = { key: held.key, id: held.orderId, certificateId: held.certificateId };
  // Without a CSR the last key is certified again.
  const again = await reissue(app, order, { certificate: { sign_hash: 'sha256' } });
  assert.equal(again.status, 200, again.text);
  const renewed = await app.app.store.certificates.findByCloudKey(held.key.accountId, held.id);
  assert.equal(renewed?.id, again.body.data.certificate.id, 'it is on the same key');
  await revoke(held);
  const late = { credentialID: held.id, SAD, hashes: [hash('x')], signAlgo: ECDSA_SHA256 };
  requireError(await csc(app, 'signatures/signHash', held.key, late), INVALID(/^Signing certificate is revoked/));
  assert.equal((await sign(app, held, [hash('x')])).status, 200, 'under the new one it signs');
  // An earlier version has recorded no certificate: the latest counts.
  const { body } = await csc(app, 'credentials/authorize', held.key, authorization(held.id, [hash('x')]));
  const { accountId } = held.key;
  const tokenHash = createHash('sha256').update(body.SAD).digest('hex');
  const grant = (await app.app.store.signingGrants.take(accountId, held.id, tokenHash, app.now()))!;
  await app.app.store.signingGrants.insert({ ...grant, certificateId: null });
  await revoke(held, again.body.data.certificate.id);
  const older = { ...late, SAD: body.SAD };
  requireError(await csc(app, 'signatures/signHash', held.key, older), INVALID(/^Signing certificate is revoked/));
});
