// Cloud-held keys under concurrent operations and after earlier ones.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, test } from 'node:test';
import { type Key, startApp } from '../../support/app.ts';
import { type CloudKey, CODE, csc, newCloudKey, OID } from '../../support/cloud-keys.ts';
import { newOrder, reissue } from '../../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const HASHES = [createHash('sha256').update('hello').digest('base64')];
const authorize = (held: CloudKey, pin = CODE) =>
  csc(app, 'credentials/authorize', held.key, {
    ...{ credentialID: held.id, numSignatures: 1, hashes: HASHES, hashAlgorithmOID: OID.sha256 },
    authData: [{ id: 'PIN', value: pin }],
  });
const sign = (held: CloudKey, SAD: string) =>
  csc(app, 'signatures/signHash', held.key, {
    ...{ credentialID: held.id, SAD, hashes: HASHES, hashAlgorithmOID: OID.sha256, signAlgo: '1.2.840.10045.4.3.2' },
  });
const changePin = (key: Key, id: string, pin: string, newPin: string) =>
  app.call('PUT', `/openapi/v3/cloud-keys/${id}/pin`, { key, json: { pin, new_pin: newPin } });

test('concurrent attempts with the right code do not lock the key', async () => {
  const held = await newCloudKey(app);
  const answers = await Promise.all(Array.from({ length: 10 }, () => authorize(held)));
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array(10).fill(200),
  );
});

test('of two concurrent changes of the code one wins, and its code is in force', async () => {
  const held = await newCloudKey(app);
  const codes = ['first-new-code', 'second-new-code'];
  const answers = await Promise.all(codes.map((code) => changePin(held.key, held.id, CODE, code)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 403]);
  const winner = codes[answers.findIndex(({ status }) => status === 200)]!;
  assert.equal((await authorize(held, winner)).status, 200);
  for (const code of [CODE, ...codes.filter((one) => one !== winner)]) {
    assert.equal((await authorize(held, code)).status, 400, code);
  }
});

test('a change of the code ends all grants under the old code, even concurrent ones', async () => {
  for (let round = 0; round < 3; round += 1) {
    const held = await newCloudKey(app);
    const before = await authorize(held);
    const [changed, ...meanwhile] = await Promise.all([
      changePin(held.key, held.id, CODE, 'the-new-code'),
      ...Array.from({ length: 3 }, () => authorize(held)),
    ]);
    assert.equal(changed.status, 200, changed.text);
    for (const { body } of [before, ...meanwhile]) {
      if (body.SAD) assert.equal((await sign(held, body.SAD)).status, 400);
    }
    const { body: granted } = await authorize(held, 'the-new-code');
    assert.equal((await sign(held, granted.SAD)).status, 200);
  }
});

test('a destroyed key is not certified again; the newest live one is', async () => {
  const held = await newCloudKey(app);
  const order = { key: held.key, id: held.orderId, certificateId: held.certificateId };
  const again = () => reissue(app, order, { certificate: { sign_hash: 'sha256' } });
  assert.equal((await again()).status, 200);
  const { status } = await app.call('DELETE', `/openapi/v3/cloud-keys/${held.id}`, {
    key: held.key,
    json: { pin: CODE },
  });
  assert.equal(status, 200);
  const { status: refused, body } = await again();
  assert.deepEqual([refused, body.code, body.field], [400, 'invalid_parameters', 'certificate.csr']);
  const made = await reissue(app, order, {
    certificate: { csr_from: 'sign-cloud-csc', sign_hash: 'sha256' },
    sign_key_pin: CODE,
  });
  assert.equal(made.status, 200);
});

test('an idempotency key with another access code is another request, and its digest cannot be brute-forced', async () => {
  const order = await newOrder(app, { product: 'document-signing', commonName: 'Acme' });
  const ask = (pin: string, csrFrom = 'sign-cloud-csc') =>
    reissue(app, order, { certificate: { csr_from: csrFrom, sign_hash: 'sha256' }, sign_key_pin: pin }, '', {
      'Idempotency-Key': `same ${csrFrom}`.replace(' ', '-'),
    });
  const first = await ask('access-code-1');
  assert.deepEqual((await ask('access-code-1')).body, first.body);
  const { status, body } = await ask('access-code-2');
  assert.deepEqual([status, body.code], [422, 'idempotency_key_reused']);
  // Where the code is unused, it is ignored.
  const unused = await ask('one', '');
  assert.deepEqual((await ask('another', '')).body, unused.body);
});
