// CSC API: validation of the parameters of credentials/authorize and signatures/signHash.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startApp } from '../../support/app.ts';
import {
  authorize,
  CODE,
  csc,
  digest,
  ECDSA_SHA256,
  INVALID,
  newCloudKey,
  OID,
  requireError,
  sign,
} from '../../support/cloud-keys.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const hash = (text: string) => digest('sha256', text);

test('parameters of an authorization are validated before an attempt is counted', async () => {
  const held = await newCloudKey(app);
  const hashes = [hash('x'), hash('y')];
  for (const [change, phrase] of [
    [{ credentialID: undefined }, /^Missing \(or invalid type\) string parameter credentialID/],
    [{ credentialID: 7 }, /^Missing \(or invalid type\) string parameter credentialID/],
    [{ numSignatures: undefined }, /^Missing \(or invalid type\) integer parameter numSignatures/],
    [{ numSignatures: '2' }, /^Missing \(or invalid type\) integer parameter numSignatures/],
    [{ numSignatures: 1.5 }, /^Missing \(or invalid type\) integer parameter numSignatures/],
    [{ numSignatures: 0 }, /^Invalid value for parameter numSignatures/],
    [{ numSignatures: 1 }, /^Invalid value for parameter numSignatures.* 2\.$/],
    [{ numSignatures: 3 }, /^Invalid value for parameter numSignatures/],
    [{ hashes: undefined }, /^Missing \(or invalid type\) array parameter hashes/],
    [{ hashes: hash('x') }, /^Missing \(or invalid type\) array parameter hashes/],
    [{ hashes: [] }, /^Invalid parameter hashes: send 1 to 64/],
    [{ hashes: Array(65).fill(hash('x')), numSignatures: 65 }, /^Invalid parameter hashes: send 1 to 64/],
    [{ hashes: [hash('x'), 7] }, /^Invalid Base64 hash string parameter/],
    [{ hashes: [hash('x'), ''] }, /^Invalid Base64 hash string parameter/],
    [{ hashes: [hash('x'), hash('x').slice(0, -1)] }, /^Invalid Base64 hash string parameter/],
    [{ hashes: [hash('x'), digest('sha384', 'x')] }, /^Invalid digest value length: .* 32 bytes/],
    [{ hashAlgorithmOID: undefined }, /^Missing \(or invalid type\) string parameter hashAlgorithmOID/],
    [{ hashAlgorithmOID: '1.3.14.3.2.26' }, /^Invalid parameter hashAlgorithmOID/],
    [{ hashAlgorithmOID: OID.sm3 }, /^Invalid parameter hashAlgorithmOID: a key of type p256 does not sign sm3/],
    [{ authData: undefined }, /^Missing \(or invalid type\) array parameter authData/],
    [{ authData: {} }, /^Missing \(or invalid type\) array parameter authData/],
    [{ authData: [] }, /^Invalid parameter authData/],
    [{ authData: [null, { id: 'OTP', value: CODE }] }, /^Invalid parameter authData/],
    [{ authData: [{ id: 'PIN', value: '' }] }, /^Invalid parameter authData/],
    [{ authData: [1, 2].map(() => ({ id: 'PIN', value: CODE })) }, /^Invalid parameter authData/],
  ] as const) {
    requireError(await authorize(app, held, hashes, change), INVALID(phrase), JSON.stringify(change));
  }
  const { wrongCodes } = (await app.app.store.cloudKeys.find(held.key.accountId, held.id))!;
  assert.equal(wrongCodes, 0);
  const most = Array.from({ length: 64 }, (_, index) => hash(String(index)));
  const signed = await sign(app, held, most);
  assert.equal(new Set(signed.body.signatures).size, 64);
});

test('an authorization covers its hashes, each as often as authorized, once, for five minutes', async () => {
  const held = await newCloudKey(app);
  const [x, y, z] = [hash('x'), hash('y'), hash('z')];
  const signing = (SAD: string, hashes: readonly string[], change = {}) =>
    csc(app, 'signatures/signHash', held.key, {
      credentialID: held.id,
      SAD,
      hashes,
      signAlgo: ECDSA_SHA256,
      ...change,
    });
  const grant = async (...hashes: string[]): Promise<string> => {
    const { status, body } = await authorize(app, held, hashes);
    assert.deepEqual([status, body.expiresIn, Object.keys(body)], [200, 300, ['SAD', 'expiresIn']]);
    return body.SAD;
  };
  for (const hashes of [[z], [x, z], [x, x], [x, y, y]]) {
    const SAD = await grant(x, y);
    requireError(await signing(SAD, hashes), INVALID(/^Hash is not authorized by the SAD/), JSON.stringify(hashes));
    requireError(await signing(SAD, [x]), INVALID(/^Invalid parameter SAD/), 'it is used up');
  }
  const twice = await signing(await grant(x, y, x), [x, x]);
  assert.equal(twice.body.signatures.length, 2);
  const once = await grant(x);
  const together = await Promise.all([1, 2, 3, 4].map(() => signing(once, [x])));
  assert.deepEqual(together.map(({ status }) => status).sort(), [200, 400, 400, 400]);
  const late = await grant(x);
  app.advance(300_000 - 1);
  assert.equal((await signing(late, [x])).status, 200);
  const tooLate = await grant(x);
  app.advance(300_000);
  requireError(await signing(tooLate, [x]), INVALID(/^Invalid parameter SAD/));
  const other = await newCloudKey(app, {}, held.key);
  const forHeld = await grant(x);
  requireError(await signing(forHeld, [x], { credentialID: other.id }), INVALID(/^Invalid parameter SAD/));
  for (const [change, phrase] of [
    [{ SAD: undefined }, /^Missing \(or invalid type\) string parameter SAD/],
    [{ signAlgo: undefined }, /^Missing \(or invalid type\) string parameter signAlgo/],
    [{ signAlgo: '1.2.840.113549.1.1.11' }, /^Invalid parameter signAlgo: use 1\.2\.840\.10045\.4\.3\.2/],
    [{ signAlgo: 'constructor' }, /^Invalid parameter signAlgo/],
    [{ signAlgo: '1.2.840.10045.4.3.3' }, /^Invalid digest value length/],
    [{ operationMode: 'A' }, /^Invalid parameter operationMode/],
    [{ hashes: 'x' }, /^Missing \(or invalid type\) array parameter hashes/],
  ] as const) {
    requireError(await signing(forHeld, [x], change), INVALID(phrase), JSON.stringify(change));
  }
  assert.equal((await signing(forHeld, [x])).status, 200, 'a malformed request costs no attempt');
  const rsa = await newCloudKey(app, { like: 'rsa2048' });
  const bare = await sign(app, rsa, [x], { signAlgo: '1.2.840.113549.1.1.1', hashAlgorithmOID: OID.sha256 });
  assert.equal(bare.status, 200);
});

test('an RSA signAlgo that implies no hash needs hashAlgorithmOID', async () => {
  const held = await newCloudKey(app, { like: 'rsa2048' });
  const { body } = await authorize(app, held, [hash('x')]);
  const signing = { credentialID: held.id, SAD: body.SAD, hashes: [hash('x')], signAlgo: '1.2.840.113549.1.1.1' };
  requireError(
    await csc(app, 'signatures/signHash', held.key, signing),
    INVALID(/^Missing \(or invalid type\) string parameter hashAlgorithmOID/),
  );
});
