// Lockout after wrong access codes; neither code nor key is ever stored or logged in clear.
import assert from 'node:assert/strict';
import { createHash, createPrivateKey } from 'node:crypto';
import { globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { keyMaker } from '../../../src/adapters/keys/key-maker.ts';
import { sm2Scalar } from '../../../src/adapters/sm2/sm2.ts';
import { workerPool } from '../../../src/adapters/workers/pool.ts';
import { Secret } from '../../../src/domain/secret.ts';
import { serviceSecrets } from '../../../src/wiring/service-secrets.ts';
import { type Answer, startApp, type TestApp } from '../../support/app.ts';
import { authorize, type CloudKey, CODE, csc, HINT, newCloudKey, sign, withCode } from '../../support/cloud-keys.ts';
import { rule } from '../../support/contract.ts';

const hash = (text: string) => createHash('sha256').update(text).digest('base64');
const HASHES = [hash('x')];
const MINUTE = 60_000;

const told = ({ status, headers, body }: Answer) => [status, body.error, headers.get('retry-after')];
const WRONG = [400, 'invalid_authentication_data', null];
const wrongly = (app: TestApp, held: CloudKey) => authorize(app, held, HASHES, withCode('not the code'));

async function lockOut(app: TestApp, held: CloudKey): Promise<void> {
  for (let tries = 1; tries <= 4; tries += 1) assert.deepEqual(told(await wrongly(app, held)), WRONG);
  assert.deepEqual(told(await wrongly(app, held)), [400, 'invalid_authentication_data', '60']);
}

rule('cloud-key 7', 'during it, also over a restart, the right code is refused too', async () => {
  await using app = await startApp();
  const held = await newCloudKey(app);
  await lockOut(app, held);
  const refused = await authorize(app, held, HASHES);
  assert.deepEqual(told(refused), [400, 'invalid_request', '60']);
  assert.match(refused.body.error_description, /^Credential locked/);
  app.advance(MINUTE - 1_000);
  await app.stop();
  await app.start({});
  assert.deepEqual(told(await authorize(app, held, HASHES)), [400, 'invalid_request', '1']);
  const info = await csc(app, 'credentials/info', held.key, { credentialID: held.id });
  assert.equal(info.body.key.status, 'disabled');
  app.advance(1_000);
  assert.equal((await authorize(app, held, HASHES)).status, 200);
  for (let tries = 1; tries <= 4; tries += 1)
    assert.deepEqual(told(await wrongly(app, held)), WRONG, 'the count starts again');
});

rule('cloud-key 7', 'Wrong access codes lock the key for a time that grows', async () => {
  await using app = await startApp();
  const held = await newCloudKey(app);
  await lockOut(app, held);
  for (const minutes of [1, 2, 4, 8, 16, 32]) {
    app.advance(minutes * MINUTE - 1);
    assert.deepEqual(told(await authorize(app, held, HASHES)), [400, 'invalid_request', '1']);
    app.advance(1);
    assert.deepEqual(told(await wrongly(app, held)), [400, 'invalid_authentication_data', String(minutes * 120)]);
  }
  app.advance(30 * 24 * 60 * MINUTE);
  assert.deepEqual(told(await wrongly(app, held))[2], String(64 * 2 * 60), 'waiting alone does not reset the count');
});

rule('errors sign_key_locked', 'is 429 with a `Retry-After` header: wrong access codes have locked', async () => {
  await using app = await startApp();
  const held = await newCloudKey(app);
  await lockOut(app, held);
  const path = `/openapi/v3/cloud-keys/${held.id}`;
  const json = { pin: CODE, new_pin: 'another code' };
  for (const answer of [
    await app.call('PUT', `${path}/pin`, { key: held.key, json }),
    await app.call('DELETE', path, { key: held.key, json }),
  ]) {
    const { status, headers, body } = answer;
    assert.deepEqual([status, body.code, headers.get('retry-after')], [429, 'sign_key_locked', '60']);
  }
  const { body } = await app.call('GET', '/openapi/v3/cloud-keys', { key: held.key });
  assert.equal(body.data.cloud_keys[0].locked_until, new Date(app.now() + MINUTE).toISOString());
});

rule('errors sign_key_pin_wrong', 'is 403: the access code of a cloud-held key is wrong', async () => {
  await using app = await startApp();
  const held = await newCloudKey(app);
  const json = { pin: 'not the code', new_pin: 'another code' };
  const { status, body } = await app.call('PUT', `/openapi/v3/cloud-keys/${held.id}/pin`, { key: held.key, json });
  assert.deepEqual([status, body.code], [403, 'sign_key_pin_wrong']);
});

test('concurrent attempts get no more guesses than sequential ones', async () => {
  await using app = await startApp();
  const held = await newCloudKey(app);
  const answers = await Promise.all(Array.from({ length: 20 }, () => wrongly(app, held)));
  const compared = answers.filter(({ body }) => body.error === 'invalid_authentication_data');
  assert.equal(compared.length, 5);
  assert.equal(answers.filter(({ body }) => /^Credential locked/.test(body.error_description)).length, 15);
});

test('a lockout affects one key, not the other keys of the account', async () => {
  await using app = await startApp();
  const held = await newCloudKey(app);
  const other = await newCloudKey(app, {}, held.key);
  await lockOut(app, held);
  assert.equal((await sign(app, other, HASHES)).status, 200);
});

test('attempts are rate limited per account, across keys', async () => {
  await using app = await startApp();
  const held = await newCloudKey(app);
  const other = await newCloudKey(app, {}, held.key);
  for (let tries = 0; tries < 30; tries += 1) {
    assert.equal((await authorize(app, tries % 2 ? held : other, HASHES)).status, 200);
  }
  const refused = await authorize(app, held, HASHES);
  assert.deepEqual(told(refused), [429, 'temporarily_unavailable', '2']);
  const json = { pin: CODE, new_pin: CODE };
  const ours = await app.call('PUT', `/openapi/v3/cloud-keys/${held.id}/pin`, { key: held.key, json });
  assert.deepEqual([ours.status, ours.body.code], [429, 'request_too_fast']);
  app.advance(2_000);
  assert.equal((await authorize(app, held, HASHES)).status, 200);
  assert.equal((await authorize(app, await newCloudKey(app), HASHES)).status, 200, 'other accounts do not wait');
});

/** Encodings to search for: raw, hex, and base64 at each of its three alignments. */
function waysToWrite(bytes: Uint8Array): string[] {
  const whole = Buffer.from(bytes);
  const base64 = [0, 1, 2].map((skipped) => {
    const rest = whole.subarray(skipped);
    return rest.subarray(0, rest.length - (rest.length % 3)).toString('base64');
  });
  const urls = base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'));
  return [whole.toString('latin1'), whole.toString('hex'), whole.toString('hex').toUpperCase(), ...base64, ...urls];
}

/** The secret numbers of a private key. */
function secretsIn(pkcs8: Uint8Array): Uint8Array[] {
  const key = createPrivateKey({ key: Buffer.from(pkcs8), format: 'der', type: 'pkcs8' });
  if (key.asymmetricKeyType !== 'rsa' && key.asymmetricKeyType !== 'ec') return [sm2Scalar(pkcs8)];
  const { d, p, q } = key.export({ format: 'jwk' });
  return [d, p, q].filter((one) => one !== undefined).map((one) => Buffer.from(one, 'base64url'));
}

rule(
  'cloud-key 5',
  'neither it nor the access code appears in clear in any stored file, log line or answer',
  async () => {
    await using app = await startApp();
    const needles: string[] = [];
    const answers: Answer[] = [];
    const codes = [CODE, 'Green-Valley-41', 'Wrong-Turning-88'] as const;
    for (const options of [{ like: 'p256' }, { like: 'rsa2048' }, { signHash: 'sm3' }] as const) {
      const held = await newCloudKey(app, options);
      const { wrappedKey } = (await app.app.store.cloudKeys.find(held.key.accountId, held.id))!;
      const secret = Buffer.from((await serviceSecrets(app.app.store))('cloud-key wrapping'));
      await using pool = workerPool();
      const pkcs8 = (await keyMaker(pool, secret).unwrap(wrappedKey!, new Secret(CODE), held.id))!;
      needles.push(...[pkcs8, secret, ...secretsIn(pkcs8)].flatMap(waysToWrite));
      const path = `/openapi/v3/cloud-keys/${held.id}`;
      const { key } = held;
      answers.push(
        await sign(app, held, HASHES),
        await authorize(app, held, HASHES, withCode(codes[2])),
        await authorize(app, held, HASHES, { authData: [{ id: 'PIN', value: [CODE] }] }),
        await authorize(app, held, HASHES, { authData: CODE, hashes: CODE }),
        await app.call('PUT', `${path}/pin`, { key, json: { pin: CODE, new_pin: codes[1], new_pin_tip: codes[1] } }),
        requireOk(
          await app.call('PUT', `${path}/pin`, { key, json: { pin: CODE, new_pin: codes[1], new_pin_tip: HINT } }),
        ),
        await app.call('PUT', `${path}/pin`, { key, json: { pin: { x: CODE }, new_pin: CODE } }),
        await app.call('GET', '/openapi/v3/cloud-keys', { key }),
        await app.call('GET', `/openapi/v3/certs/${held.certificateId}`, { key }),
        await app.call('POST', '/csc/v2/credentials/authorize', { key, raw: `{"authData": "${CODE}"`, ...JSON_TYPE }),
        // Leaves an unused grant in the store for the search below.
        await authorize(app, held, HASHES, withCode(codes[1])),
      );
    }
    needles.push(...codes.flatMap((code) => waysToWrite(Buffer.from(code)).filter((text) => text.length >= 8)));
    const output = app.output;
    await app.stop();
    const files = globSync('**/*', { cwd: app.folder })
      .map((name) => join(app.folder, name))
      .filter((file) => statSync(file).isFile());
    assert.ok(files.length >= 2);
    const places = [output, ...answers.map(({ text }) => text), ...files.map((file) => readFileSync(file, 'latin1'))];
    for (const needle of needles) {
      for (const [index, place] of places.entries()) assert.ok(!place.includes(needle), `place ${index}`);
    }
    // Positive control: the search finds what may be stored in clear.
    assert.ok(places.some((place) => place.includes(HINT)));
  },
);

function requireOk(answer: Answer): Answer {
  assert.equal(answer.status, 200, answer.text);
  return answer;
}

const JSON_TYPE = { headers: { 'content-type': 'application/json' } };
