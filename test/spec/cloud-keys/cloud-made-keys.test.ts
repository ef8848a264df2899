// The kind of key that is generated for a certificate, and the rules for access codes.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { Secret } from '../../../src/domain/secret.ts';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { certificate, csrFor, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';
import { issuedIn } from '../../support/records.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const request = (signHash: string, top: Record<string, unknown> = {}) => ({
  certificate: { csr_from: 'sign-cloud-csc', sign_hash: signHash },
  sign_key_pin: 'correct horse',
  ...top,
});

/** Type and size of the generated key. */
async function madeKey(order: PlacedOrder, signHash: string): Promise<string> {
  const { status, body, text } = await reissue(app, order, request(signHash));
  assert.equal(status, 200, text);
  const { cloud_key_id: id } = await certificate(app, order, body.data.certificate.id);
  const { body: listed } = await app.call('GET', '/openapi/v3/cloud-keys', { key: order.key });
  const made = listed.data.cloud_keys.find((one: { id: string }) => one.id === id);
  return `${made.key_type} ${made.bits}`;
}

rule(
  'cloud-key 10',
  'The key that is made is on SM2 for `sm3`; otherwise it is RSA if the current certificate is',
  async () => {
    const elliptic = await newOrder(app, {
      product: 'document-signing',
      commonName: 'Acme',
      key: 'p384',
      signHash: 'sha384',
    });
    assert.equal(await madeKey(elliptic, 'sha256'), 'p256 256');
    assert.equal(await madeKey(elliptic, 'sm3'), 'sm2 256');
    assert.equal(await madeKey(elliptic, 'sha256'), 'p256 256', 'only SM3 implies SM2');
    const rsa = await newOrder(app, { product: 'code-signing', commonName: 'Acme', key: 'rsa2048' });
    assert.equal(await madeKey(rsa, 'sha512'), 'rsa 3072');
  },
);

rule(
  'cloud-key 11',
  'An access code has 6 to 128 printable characters; another one is `invalid_parameters`',
  async () => {
    const order = await newOrder(app, { product: 'document-signing', commonName: 'Acme' });
    const dryRun = (pin: string) => reissue(app, order, request('sha256', { sign_key_pin: pin }), '?dry_run=true');
    for (const pin of ['123456', 'x'.repeat(128), '密码密码密码', '🔑🔑🔑🔑🔑🔑', 'a     ']) {
      assert.equal((await dryRun(pin)).status, 200, pin);
    }
    for (const pin of [
      '',
      '       ',
      '12345',
      'x'.repeat(129),
      'line\nbreak',
      'nul\0l12',
      '密码密码密',
      '🔑🔑🔑🔑🔑',
      '\ud800half-a-pair',
    ]) {
      const { status, body } = await dryRun(pin);
      assert.deepEqual(
        [status, body.code, body.field],
        [400, 'invalid_parameters', 'sign_key_pin'],
        JSON.stringify(pin),
      );
    }
  },
);

rule('cloud-key 3', 'With `sign-cloud-csc` a `csr` that was sent is ignored', async () => {
  // Also when an order is placed, and also a CSR whose key is on the blocklist.
  const { accountId } = await app.newKey();
  const csr = csrFor('p521');
  const owner = await newOrder(app, { product: 'tls-private', key: 'p521', signHash: 'sha384' });
  const { publicKey } = await issuedIn(app.app.store, owner.key.accountId, owner.certificateId);
  await app.app.store.blockedKeys.add(publicKey.fingerprint, 'leaked', app.now());
  const { orderId } = await app.issuance.placeOrder({
    ...{ accountId, productId: 'document-signing', alternativeId: null, actor: 'cli', vouchesForNames: false },
    request: {
      ...{ commonName: 'Acme', csr, keySource: 'sign-cloud-csc', signHash: 'sha256', keepsEncryptionKey: false },
      pin: new Secret('correct horse'),
    },
  });
  assert.equal((await app.app.store.orders.find(accountId, orderId))?.status, 'issued');
});
