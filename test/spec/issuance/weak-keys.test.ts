// Weak keys, at every door and for every product: each is refused for a reason of its own, in both languages.
import assert from 'node:assert/strict';
import { PRODUCTS } from '../../../src/domain/catalog/products.ts';
import { Refusal } from '../../../src/domain/errors.ts';
import type { Answer } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { csr, KEY_KINDS, newKeyPair, pem } from '../../support/csr.ts';
import { newDualOrder, newSm2Csr } from '../../support/dual.ts';
import { body, csrFor, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';
import { DRY, requireError, startWatchedApp } from '../../support/watched-app.ts';
import { type WeakKey, weakEd25519Keys, weakKeys, weakSm2Keys } from '../../support/weak-keys.ts';

const { app, requireRefused, requireIssued } = await startWatchedApp();

const FIELD = 'certificate.csr';
const EXPECTED = [400, 'invalid_csr', FIELD] as const;
const CONSENT = { i_know_will_revoke_last_cert: true };
const CHINESE = { 'accept-language': 'zh-CN' };
const WEAK = weakKeys();
const WEAK_OF_TYPE: Readonly<Record<string, typeof WEAK>> = {
  rsa: WEAK,
  sm2: weakSm2Keys(),
  ed25519: weakEd25519Keys(),
};

function requireReason({ reason: { en, zh } }: WeakKey, english: Answer, chinese: Answer, what: string): void {
  for (const answer of [english, chinese]) requireError(answer, EXPECTED, what);
  assert.match(english.body.message, en, what);
  assert.match(english.body.message, /Make a new key: openssl genpkey /, what);
  assert.match(chinese.body.message, zh, what);
  assert.match(chinese.body.message, /请生成新密钥：openssl genpkey /, what);
}

const orderOf = async (product: string): Promise<PlacedOrder> =>
  product === 'ssl-sm2-dual' ? await newDualOrder(app, await newSm2Csr()) : await newOrder(app, { product });

rule('key 1', 'No product certifies an RSA key with the ROCA weakness', async () => {
  for (const { id, keys } of PRODUCTS) {
    const order = await orderOf(id);
    const tables = keys.map(({ type }) => WEAK_OF_TYPE[type] ?? {});
    for (const [name, weak] of tables.flatMap((table) => Object.entries(table))) {
      const hash = keys.every(({ type }) => type === 'sm2') ? 'sm3' : 'sha256';
      const sent = body({ csr: weak.csr, sign_hash: hash }, CONSENT);
      const english = await reissue(app, order, sent, DRY);
      requireReason(weak, english, await reissue(app, order, sent, DRY, CHINESE), `${id}: ${name}`);
    }
  }
});

rule('key 1', 'Each is `invalid_csr` with a reason of its own', async () => {
  const order = await newOrder(app, { product: 'tls-private' });
  const messages = new Set<string>();
  for (const [name, weak] of Object.entries(WEAK)) {
    const { message } = await requireRefused(order, body({ csr: weak.csr }), EXPECTED, '', name);
    assert.match(message, weak.reason.en);
    messages.add(message);
    const place = (headers = {}) =>
      app.call('POST', '/openapi/v3/orders/tls-private', { key: order.key, json: body({ csr: weak.csr }), headers });
    requireReason(weak, await place(), await place(CHINESE), name);
    // As `reseal order place` does.
    const request = { commonName: 'Acme Ltd', csr: weak.csr, keySource: 'caller', signHash: 'sha256' } as const;
    const placing = app.issuance.placeOrder({
      ...{ accountId: order.key.accountId, productId: 'code-signing', alternativeId: null, actor: 'cli' },
      ...{ vouchesForNames: true, request: { ...request, keepsEncryptionKey: false } },
    });
    await assert.rejects(
      placing,
      (error) => error instanceof Refusal && weak.reason.en.test(error.facts.reason?.en ?? ''),
    );
  }
  assert.equal(messages.size, Object.keys(WEAK).length);
});

rule('key 5', 'a point of small order, off the curve or in a second encoding is `invalid_csr`', async () => {
  const order = await newOrder(app, { product: 'tls-private' });
  const messages = new Set<string>();
  for (const [name, weak] of Object.entries(weakEd25519Keys())) {
    const { message } = await requireRefused(order, body({ csr: weak.csr }), EXPECTED, '', name);
    assert.match(message, weak.reason.en, name);
    messages.add(message);
  }
  assert.equal(messages.size, 3);
});

rule('key 2', 'A key whose private half is printed in an RFC', async () => {
  const order = await newOrder(app);
  const { message } = await requireRefused(order, body({ csr: WEAK['a published key']?.csr }), EXPECTED);
  assert.match(message, /RFC 6979, A.2.5/);
});

rule('key 1', 'with a reason of its own; sound ones are certified', async () => {
  const order = await newOrder(app, { product: 'tls-private' });
  for (const kind of KEY_KINDS) await requireIssued(order, body({ csr: csrFor(kind) }), kind);
  for (const kind of ['p256', 'p384', 'rsa2048', 'ed25519'] as const) {
    await requireIssued(order, body({ csr: pem(csr({ key: newKeyPair(kind) })) }), kind);
  }
});
