// Orders and certificates as their account sees them.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import 'reflect-metadata';
import * as peculiar from '@peculiar/x509';
import { ORDER_STATUSES, type OrderStatus, requireTransition } from '../../src/domain/order.ts';
import { NOON, newFolder, startApp, TestApp } from '../support/app.ts';
import { CONTRACT, rule } from '../support/contract.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue, show } from '../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const db = new DatabaseSync(join(app.folder, 'reseal.db'), { readOnly: true });
after(() => db.close());

const HAN = /\p{Script=Han}/u;
const ID = /^[0-9a-hjkmnp-tv-z]{26}$/;
const NEW = 'new.example.com';

async function requireAnswered(order: PlacedOrder, json: unknown): Promise<string> {
  const answer = await reissue(app, order, json);
  assert.equal(answer.status, 200, answer.text);
  return answer.body.data.certificate.id;
}
const events = ({ id }: PlacedOrder) =>
  db.prepare('select order_id, certificate_id, action from outbox where order_id = ? order by id').all(id);
const list = (order: Pick<PlacedOrder, 'key'>, query = '') =>
  app.call('GET', `/openapi/v3/orders${query}`, { key: order.key });
/** Puts an order into a state that no operation leads to yet. */
async function put({ key, id }: PlacedOrder, status: OrderStatus): Promise<void> {
  const order = await app.app.store.orders.find(key.accountId, id);
  await app.app.store.orders.save({ ...order!, status });
}

rule('order 1', 'The identifier of an order is a string; it is the path parameter `id`', async () => {
  const order = await newOrder(app);
  const shown = await show(app, order);
  assert.equal(typeof shown.id, 'string');
  assert.equal(shown.id, order.id);
  await requireAnswered(order, body());
  const found = events(order);
  assert.equal(found.length, 2, 'an event to call back for each issuance');
  for (const { order_id, action } of found) assert.deepEqual([order_id, action], [order.id, 'order:issued']);
});

rule(
  'order 2',
  'The identifier of a certificate is a string; it is `id` in answers and `cert_id` in callbacks',
  async () => {
    const order = await newOrder(app);
    const id = await requireAnswered(order, body());
    assert.equal(typeof id, 'string');
    assert.equal((await show(app, order)).certificate.id, id);
    assert.equal((await certificate(app, order, id)).id, id);
    const called = events(order).map(({ certificate_id }) => certificate_id);
    assert.deepEqual(called, [order.certificateId, id]);
  },
);

rule('order 3', 'Identifiers are unguessable, and those made later sort after those made earlier', async () => {
  await using later = await startApp();
  const { key } = await newOrder(later);
  const ids: string[] = [];
  for (let made = 0; made < 20; made += 1) {
    const order = await newOrder(later, {}, key);
    ids.push(order.id, order.certificateId);
    // Sometimes within a millisecond, sometimes not.
    later.advance(made % 3);
  }
  for (const id of ids) assert.match(id, ID);
  assert.deepEqual([...ids].sort(), ids);
  assert.equal(new Set(ids).size, ids.length);
  // What follows the time is fresh randomness whenever the time is.
  const tails = new Map(ids.map((id) => [id.slice(0, 10), id.slice(10)]));
  assert.ok(tails.size > 10);
  assert.equal(new Set([...tails.values()].map((tail) => tail.slice(0, 6))).size, tails.size);
});

rule('order 4', 'A path identifier of any length or content is looked up', async () => {
  const { key } = await newOrder(app);
  const contents = [
    'x',
    '0',
    '%00',
    '%2F',
    'a%2Fb',
    '%20',
    '%0d%0a',
    "'%20or%20'1'='1",
    '%25',
    '*',
    ':id',
    '__proto__',
    'null',
  ];
  const ids = [
    ...contents,
    '%F0%9F%94%8F',
    '%E8%AF%81',
    'test-order',
    'x'.repeat(1000),
    'x'.repeat(15_000),
    '%2e%2e%2faccount',
  ];
  for (const id of ids) {
    const calls = [
      [await app.call('GET', `/openapi/v3/orders/${id}`, { key }), 'order_not_found'],
      [await app.call('POST', `/openapi/v3/orders/${id}/reissue`, { key, json: body() }), 'order_not_found'],
      [await app.call('GET', `/openapi/v3/certs/${id}`, { key }), 'cert_not_found'],
    ] as const;
    for (const [answer, code] of calls) {
      assert.deepEqual([answer.status, answer.body.code], [404, code], id.slice(0, 40));
      assert.ok(answer.text.length < 300, 'it is not repeated');
    }
  }
});

rule('errors cert_not_found', 'is 404: the account has no certificate with that identifier', async () => {
  const [order, other] = [await newOrder(app), await newOrder(app)];
  for (const id of ['nothing', order.id, other.certificateId, order.certificateId.toUpperCase()]) {
    for (const language of ['en', 'zh-CN']) {
      const headers = { 'accept-language': language };
      const answer = await app.call('GET', `/openapi/v3/certs/${id}`, { key: order.key, headers });
      assert.deepEqual([answer.status, answer.body.code], [404, 'cert_not_found'], id);
      assert.equal(HAN.test(answer.body.message), language === 'zh-CN');
    }
  }
});

rule('order 5', 'whose certificate has been issued, with nothing pending, is `issued`', async () => {
  const order = await newOrder(app);
  const facts = async () => {
    const { status, pending_certificate_id, certificate_id } = await show(app, order);
    return [status, pending_certificate_id, certificate_id];
  };
  assert.deepEqual(await facts(), ['issued', null, order.certificateId]);
  const second = await requireAnswered(order, body());
  assert.deepEqual(await facts(), ['issued', null, second]);
  const pending = await requireAnswered(order, body({ dns_names: [NEW] }));
  assert.deepEqual(await facts(), ['reissuing', pending, second], 'something is pending');
  const waiting = await newOrder(app, { vouches: false });
  assert.notEqual((await show(app, waiting)).status, 'issued');
});

rule(
  'order 6',
  '`domain_verifing` (the spelling existing clients know), `issuing`, `issued`, `reissuing`, `revoked`, `canceled`, `expired` and `rejected`',
  async () => {
    const named = [...(CONTRACT.get('order 6') ?? '').matchAll(/`([a-z_]+)`/g)].map(([, status]) => status);
    assert.deepEqual([...ORDER_STATUSES], named);
    assert.equal((await show(app, await newOrder(app, { vouches: false }))).status, 'domain_verifing');
    const order = await newOrder(app);
    for (const status of ORDER_STATUSES) {
      await put(order, status);
      assert.equal((await show(app, order)).status, status);
      const [row] = (await list(order)).body.data.orders;
      assert.equal(row.status, status);
    }
    // Neither can anything else be kept.
    await assert.rejects(put(order, 'active' as OrderStatus));
    assert.equal((await show(app, order)).status, 'rejected');
  },
);

/** The table of the decision record, row by row. */
function recordedTransitions(): Map<string, string[]> {
  const record = readFileSync(new URL('../../docs/adr/0007-orders-certificates-and-ids.md', import.meta.url), 'utf8');
  const words = (cell = '') => [...cell.matchAll(/`([a-z_]+)`|\((placed)\)/g)].map(([, a, b]) => a ?? b ?? '');
  const cells = record.split('\n').flatMap((line) => (/^\| [`(]/.test(line) ? [line.split('|')] : []));
  return new Map(cells.flatMap(([, from, to]) => words(from).map((word) => [word, words(to)] as const)));
}

rule('order 7', 'changes only along the transitions that the table of its decision record lists', async () => {
  const recorded = recordedTransitions();
  assert.deepEqual([...recorded.keys()].sort(), ['placed', ...ORDER_STATUSES].sort());
  for (const from of ORDER_STATUSES) {
    for (const to of ORDER_STATUSES) {
      const isListed = recorded.get(from)?.includes(to);
      if (isListed) assert.doesNotThrow(() => requireTransition(from, to));
      else assert.throws(() => requireTransition(from, to), { code: 'order_state_conflict' }, `${from} → ${to}`);
    }
  }
  // What the operations do, they do along it: in every status, each kind of reissue.
  const consents = { i_know_remove_domain_will_revoke_before_cert: true };
  for (const from of ORDER_STATUSES) {
    for (const change of [{}, { dns_names: [NEW] }, { dns_names: [] }, { sign_hash: 'md5' }]) {
      const order = await newOrder(app, { dnsNames: ['example.com'] });
      await put(order, from);
      const before = await show(app, order);
      const answer = await reissue(app, order, body(change, consents));
      const now = await show(app, order);
      assert.ok(now.status === from || recorded.get(from)?.includes(now.status), `${from} → ${now.status}`);
      if (from === 'issued') continue;
      assert.ok([400, 409].includes(answer.status), answer.text);
      assert.deepEqual(now, before);
    }
  }
  for (const [vouches, status] of [
    [true, 'issued'],
    [false, 'domain_verifing'],
  ] as const) {
    assert.equal((await show(app, await newOrder(app, { vouches }))).status, status);
  }
});

rule(
  'errors order_state_conflict',
  'the status of the order does not allow the operation; a reissue takes an order that is `issued`',
  async () => {
    for (const status of ORDER_STATUSES) {
      if (status === 'issued' || status === 'reissuing') continue;
      const order = await newOrder(app);
      await put(order, status);
      const before = await show(app, order);
      for (const query of ['', '?dry_run=true']) {
        for (const language of ['en', 'zh-CN']) {
          const answer = await reissue(app, order, body(), query, { 'accept-language': language });
          assert.deepEqual([answer.status, answer.body.code], [409, 'order_state_conflict'], status);
          assert.deepEqual(answer.body.details, { status });
          assert.ok(answer.body.message.includes(status));
          assert.equal(HAN.test(answer.body.message), language === 'zh-CN');
        }
      }
      assert.deepEqual(await show(app, order), before);
      assert.equal((await app.app.store.certificates.listOf(order.key.accountId, order.id, { limit: 9 })).length, 1);
    }
    // As a lost signer, a cancellation or a rejection leaves it: without any certificate.
    for (const status of ['issuing', 'canceled', 'rejected'] as const) {
      const order = await newOrder(app);
      const stored = await app.app.store.orders.find(order.key.accountId, order.id);
      await app.app.store.orders.save({ ...stored!, status, currentCertificateId: null, pendingCertificateId: null });
      for (const query of ['', '?dry_run=true']) {
        const answer = await reissue(app, order, body(), query);
        assert.deepEqual(
          [answer.status, answer.body.code, answer.body.details],
          [409, 'order_state_conflict', { status }],
        );
      }
    }
    const waiting = await newOrder(app, { vouches: false });
    const { status, body: answer } = await reissue(app, waiting, body());
    assert.deepEqual(
      [status, answer.code, answer.details],
      [409, 'order_state_conflict', { status: 'domain_verifing' }],
    );
  },
);

rule(
  'order 8',
  'shows the `status` of the order and its current `certificate` with `id`, `common_name`, `dns_names`, `csr` and `pem`',
  async () => {
    const order = await newOrder(app, { dnsNames: ['example.com'] });
    const csr = csrFor('p384');
    const id = await requireAnswered(order, body({ csr, common_name: 'example.com' }));
    const names = ['example.com', 'www.example.com'];
    const shown = await show(app, order);
    const { pem, ...rest } = shown.certificate;
    assert.deepEqual(rest, { id, common_name: 'example.com', dns_names: names, csr });
    assert.deepEqual([shown.status, shown.common_name, shown.dns_names], ['issued', 'example.com', names]);
    const parsed = new X509Certificate(pem);
    assert.equal(parsed.subjectAltName, 'DNS:example.com, DNS:www.example.com');
    assert.equal(parsed.publicKey.asymmetricKeyDetails?.namedCurve, 'secp384r1');
    // Before the first one is issued, the one that waits.
    const waiting = await newOrder(app, { vouches: false });
    const { certificate: pending, certificate_id } = await show(app, waiting);
    assert.deepEqual([pending.id, pending.pem, certificate_id], [waiting.certificateId, null, null]);
    // Without a CSR there is none to show.
    const own = await newOrder(app, { product: 'tls-private' });
    await requireAnswered(own, body({ csr: '' }));
    assert.equal((await show(app, own)).certificate.csr, null);
  },
);

rule('order 9', 'shows the `dcv_method`, the `dcv_scope` and the persist binding that the order keeps', async () => {
  const order = await newOrder(app);
  const facts = async () => {
    const { dcv_method, dcv_scope, persist_until, persist_policy } = await show(app, order);
    return { dcv_method, dcv_scope, persist_until, persist_policy };
  };
  const first = { dcv_method: 'dns', dcv_scope: 'fqdn', persist_until: null, persist_policy: 'fqdn' };
  assert.deepEqual(await facts(), first);
  const wish = {
    dcv_method: 'dns-persist',
    dcv_scope: 'base_domain',
    persist_until: 1_900_000_000,
    persist_policy: 'wildcard',
  };
  await requireAnswered(order, body({}, wish));
  assert.deepEqual(await facts(), wish);
  await requireAnswered(order, body());
  assert.deepEqual(await facts(), wish, 'and keeps them');
  const signing = await newOrder(app, { product: 'code-signing' });
  assert.equal((await show(app, signing)).dcv_method, null);
});

rule('order 10', '`GET /openapi/v3/orders` lists the orders of the account', async () => {
  const { key } = await newOrder(app);
  const theirs = await newOrder(app);
  const more = [];
  for (let made = 0; made < 6; made += 1) more.push((await newOrder(app, {}, key)).id);
  const first = (await list({ key })).body.data;
  assert.equal(first.orders.length, 7);
  assert.equal(first.next_after, null);
  const ids = first.orders.map(({ id }: { id: string }) => id);
  assert.deepEqual(ids.slice(1), more);
  assert.ok(!ids.includes(theirs.id));
  for (const row of first.orders) {
    const { certificate: _, ...shown } = await show(app, { key, id: row.id, certificateId: '' });
    assert.deepEqual(row, shown, 'as the order itself shows it');
  }
  const paged: string[] = [];
  for (let after = ''; ; ) {
    const { orders, next_after } = (await list({ key }, `?limit=3&after=${after}`)).body.data;
    paged.push(...orders.map(({ id }: { id: string }) => id));
    if (next_after === null) break;
    after = next_after;
  }
  assert.deepEqual(paged, ids);
  for (const limit of ['0', '201', '-1', 'x', '', '1.5', '1e2']) {
    const { status, body: answer } = await list({ key }, `?limit=${limit}`);
    assert.deepEqual([status, answer.code, answer.field], [400, 'invalid_parameters', 'limit'], limit);
  }
  assert.deepEqual((await list({ key: await app.newKey() })).body.data.orders, []);
});

rule(
  'certificate 1',
  'shows, under `data.Certificate`, the certificate as `pem` and its chain as `ica_pem`',
  async () => {
    const order = await newOrder(app, { key: 'rsa2048' });
    const answer = await app.call('GET', `/openapi/v3/certs/${order.certificateId}`, { key: order.key });
    assert.deepEqual(Object.keys(answer.body.data), ['Certificate']);
    const { pem, ica_pem, serial_number, not_before, not_after } = answer.body.data.Certificate;
    const PEM = /^(-----BEGIN CERTIFICATE-----\n([A-Za-z0-9+/=]{1,64}\n)+-----END CERTIFICATE-----\n)+$/;
    assert.match(pem, PEM);
    assert.match(ica_pem, PEM);
    const leaf = new X509Certificate(pem);
    assert.equal(leaf.serialNumber.toLowerCase(), serial_number);
    assert.deepEqual([leaf.validFromDate.toISOString(), leaf.validToDate.toISOString()], [not_before, not_after]);
    const chain = ica_pem.split(/(?<=END CERTIFICATE-----\n)/).map((one: string) => new X509Certificate(one));
    const all: X509Certificate[] = [leaf, ...chain];
    for (const [index, one] of all.entries()) {
      const issuer = all[index + 1] ?? one;
      assert.ok(
        one.checkIssued(issuer) && one.verify(issuer.publicKey),
        'each is signed by the next, the last by itself',
      );
    }
  },
);

rule(
  'certificate 2',
  'tells whether the certificate is pending or issued, which one it replaces and which one replaced it',
  async () => {
    const order = await newOrder(app);
    const [first, second] = [order.certificateId, await requireAnswered(order, body())];
    const third = await requireAnswered(order, body());
    const pending = await requireAnswered(order, body({ dns_names: [NEW] }));
    const facts = async (id: string) => {
      const { status, replaces, replaced_by } = await certificate(app, order, id);
      return [status, replaces, replaced_by];
    };
    assert.deepEqual(await facts(first), ['issued', null, second]);
    assert.deepEqual(await facts(second), ['issued', first, third]);
    assert.deepEqual(await facts(third), ['issued', second, null]);
    assert.deepEqual(await facts(pending), ['pending', null, null], 'it has not replaced anything yet');
  },
);

rule(
  'certificate 3',
  'the addresses of its issuer certificate, its CRL and its OCSP responder, built on `RESEAL_PUBLIC_URL`',
  async () => {
    const base = 'http://certs.example.com/pki';
    // Issuers carry addresses too: they are made here, and not copied.
    await using own = new NearbyApp(newFolder());
    await own.start({ RESEAL_PUBLIC_URL: base });
    for (const product of ['ssl-dv', 'tls-private', 'code-signing', 'document-signing']) {
      const order = await newOrder(own, { product });
      const answer = await reissue(own, order, body({ csr: csrFor('rsa2048'), sign_hash: 'sha384' }));
      assert.equal(answer.status, 200, answer.text);
      for (const id of [order.certificateId, answer.body.data.certificate.id]) {
        const { pem, ica_pem } = await certificate(own, order, id);
        const { caIssuers, ocsp, crl } = addressesIn(pem);
        assert.deepEqual(ocsp, [`${base}/ocsp`]);
        assert.equal(crl.length, 1);
        assert.match(crl[0]!, /^http:\/\/certs\.example\.com\/pki\/crl\/[0-9a-z]+\/\d+\.crl$/);
        assert.match(caIssuers[0] ?? '', /^http:\/\/certs\.example\.com\/pki\/ca\/[0-9a-z]+\.crt$/);
        // The second opinion is Node's own reading.
        const node = new X509Certificate(pem).infoAccess ?? '';
        for (const url of [...ocsp, ...caIssuers]) assert.ok(node.includes(`URI:${url}`), node);
        // What stands there is there, and it is the issuer.
        const response = await fetch(own.url + new URL(caIssuers[0]!).pathname);
        assert.equal(response.status, 200);
        const issuer = new X509Certificate(Buffer.from(await response.arrayBuffer()));
        assert.ok(new X509Certificate(pem).verify(issuer.publicKey));
        assert.ok(ica_pem.startsWith(issuer.toString()));
        assert.match(addressesIn(issuer.toString()).crl[0] ?? '', /^http:\/\/certs\.example\.com\/pki\/crl\//);
      }
    }
    // Whoever fetches these has no certificate to trust yet: they are never behind TLS.
    await using secure = new NearbyApp(newFolder());
    await secure.start({ RESEAL_PUBLIC_URL: 'https://certs.example.com' });
    const order = await newOrder(secure);
    const { pem } = await certificate(secure, order, order.certificateId);
    assert.deepEqual(addressesIn(pem).ocsp, ['http://certs.example.com/ocsp']);
  },
);

/** Its public address is somewhere else; it is called where it listens. */
class NearbyApp extends TestApp {
  override get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }
}

function addressesIn(pem: string) {
  const parsed = new peculiar.X509Certificate(pem);
  const access = parsed.getExtension(peculiar.AuthorityInfoAccessExtension);
  const points = parsed.getExtension(peculiar.CRLDistributionPointsExtension);
  const urls = (names: readonly { value: string }[] = []) => names.map(({ value }) => value);
  const crl = (points?.distributionPoints ?? []).flatMap(
    ({ distributionPoint }) => distributionPoint?.fullName?.map((one) => one.uniformResourceIdentifier ?? '') ?? [],
  );
  return { caIssuers: urls(access?.caIssuers), ocsp: urls(access?.ocsp), crl };
}

test('an order and its certificates begin when the clock says', async () => {
  const order = await newOrder(app);
  const { created_at, term_ends_at } = await show(app, order);
  assert.deepEqual(
    [created_at, term_ends_at],
    [NOON, NOON + 365 * 86_400_000].map((at) => new Date(at).toISOString()),
  );
});
