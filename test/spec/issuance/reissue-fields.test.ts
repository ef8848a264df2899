// Every field of a reissue: its type and its effect.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { rule } from '../../support/contract.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';
import { requireError, startWatchedApp } from '../../support/watched-app.ts';

const { app, requireBad, requireAnswered, requireIssued } = await startWatchedApp();

const issued = async (order: PlacedOrder, json: unknown) => new X509Certificate((await requireIssued(order, json)).pem);

const without = (...names: string[]) =>
  Object.fromEntries(Object.entries(body().certificate).filter(([name]) => !names.includes(name)));

rule('reissue.field certificate', '`certificate` is a required object: what the new certificate shall be', async () => {
  const order = await newOrder(app);
  for (const json of [{}, { Certificate: body().certificate }, { ...body(), certificate: undefined }]) {
    await requireBad(order, json, 'certificate');
  }
  for (const value of [null, 7, true, 'text', [], [body().certificate]]) {
    await requireBad(order, { certificate: value }, 'certificate');
  }
  await requireAnswered(order, body());
});

/** Every field: its path, and a value that a reissue of this order accepts. */
const FIELDS: Readonly<Record<string, unknown>> = {
  'certificate.csr': csrFor(),
  'certificate.csr_from': '',
  'certificate.common_name': 'www.example.com',
  'certificate.dns_names': ['www.example.com'],
  'certificate.sign_hash': 'sha256',
  'certificate.un_modify_key': true,
  'certificate.validity_days': 30,
  'certificate.custom_expiration_date': '2027-01-31',
  i_know_remove_domain_will_revoke_before_cert: true,
  i_know_will_revoke_last_cert: true,
  dcv_method: 'dns',
  persist_until: 1_900_000_000,
  persist_policy: 'fqdn',
  dcv_scope: 'fqdn',
  sign_key_pin: '123456',
  sign_key_pin_tip: 'birthday',
};
const VALUES = [null, 7, 7.5, 'text', true, [], [7], {}, { a: 1 }];

function bodyWith(field: string, value: unknown) {
  const [, inCertificate] = /^certificate\.(.+)$/.exec(field) ?? [];
  return inCertificate ? body({ [inCertificate]: value }) : body({}, { [field]: value });
}

function isOfType(value: unknown, like: unknown): boolean {
  if (Array.isArray(like))
    return value === null || (Array.isArray(value) && value.every((one) => typeof one === 'string'));
  if (typeof like === 'number') return Number.isInteger(value);
  return typeof value === typeof like;
}

/** Its type is checked whatever the other fields are; a valid value is accepted. */
async function requireTyped(field: string): Promise<PlacedOrder> {
  const order = await newOrder(app);
  const right = FIELDS[field];
  for (const value of VALUES.filter((one) => !isOfType(one, right))) {
    const at = Array.isArray(value) && Array.isArray(right) ? `${field}.0` : field;
    await requireBad(order, bodyWith(field, value), at);
  }
  await requireAnswered(order, bodyWith(field, right));
  return order;
}

rule('reissue.field certificate.csr', 'is a string holding the certificate signing request', async () => {
  const order = await requireTyped('certificate.csr');
  const before = (await issued(order, body())).publicKey.export({ format: 'der', type: 'spki' });
  const changed = await issued(order, body({ csr: csrFor('p384') }));
  assert.notDeepEqual(changed.publicKey.export({ format: 'der', type: 'spki' }), before, 'its key is certified');
});

rule('reissue.field certificate.csr_from', 'left out or empty means that the caller holds it', async () => {
  const order = await requireTyped('certificate.csr_from');
  for (const json of [body(), body({ csr_from: '' })]) {
    const { csr } = await certificate(app, order, await requireAnswered(order, json));
    assert.equal(csr, json.certificate.csr);
  }
});

rule(
  'reissue.field certificate.common_name',
  'is a string, required for SSL products and optional for others',
  async () => {
    const order = await requireTyped('certificate.common_name');
    await requireBad(order, { certificate: without('common_name') }, 'certificate.common_name');
    for (const product of ['code-signing', 'document-signing']) {
      const signing = await newOrder(app, { product, commonName: 'Example Ltd' });
      const { subject } = await issued(signing, { certificate: without('common_name') });
      assert.equal(subject, 'CN=Example Ltd');
      await requireAnswered(signing, body({ common_name: 'Example Ltd' }));
    }
  },
);

rule('reissue.field certificate.dns_names', 'changing them takes a product that allows it', async () => {
  await requireTyped('certificate.dns_names');
  for (const wrong of [[null], ['www.example.com', 7], [['www.example.com']], [{}], [true]]) {
    const at = `certificate.dns_names.${wrong.length - 1}`;
    await requireBad(await newOrder(app), body({ dns_names: wrong }), at);
  }
  const names = ['www.example.com', 'new.example.com'];
  await requireBad(
    await newOrder(app, { product: 'ssl-dv-fixed' }),
    body({ dns_names: names }),
    'certificate.dns_names',
    'invalid_sans',
  );
  const free = await newOrder(app);
  const pending = await certificate(app, free, await requireAnswered(free, body({ dns_names: names })));
  assert.deepEqual(pending.dns_names, names);
});

rule(
  'reissue.field certificate.sign_hash',
  'a required string naming the digest algorithm of the signature',
  async () => {
    const order = await requireTyped('certificate.sign_hash');
    await requireBad(order, { certificate: without('sign_hash') }, 'certificate.sign_hash');
  },
);

rule('reissue.field certificate.un_modify_key', 'leaves all others unaffected', async () => {
  const order = await requireTyped('certificate.un_modify_key');
  const facts = async (json: unknown) => {
    const { subject, subjectAltName, validTo, publicKey, issuer } = await issued(order, json);
    return { subject, subjectAltName, validTo, issuer, key: publicKey.export({ format: 'pem', type: 'spki' }) };
  };
  const plain = await facts(body());
  for (const value of [true, false]) assert.deepEqual(await facts(body({ un_modify_key: value })), plain);
});

rule('reissue.field certificate.validity_days', 'is an optional integer, the wanted validity in days', async () => {
  const order = await requireTyped('certificate.validity_days');
  const { validFromDate, validToDate } = await issued(order, body({ validity_days: 7 }));
  assert.equal(validToDate.getTime() + 1000 - validFromDate.getTime(), 7 * 86_400_000);
  await requireAnswered(
    order,
    JSON.parse(JSON.stringify(body()).replace('"sign_hash"', '"validity_days":7.0,"sign_hash"')),
  );
});

rule(
  'reissue.field certificate.custom_expiration_date',
  'is an optional string, the wanted date of expiry',
  async () => {
    const order = await requireTyped('certificate.custom_expiration_date');
    const { validToDate } = await issued(order, body({ custom_expiration_date: '2027-01-31' }));
    assert.equal(validToDate.toISOString(), '2027-01-31T23:59:59.000Z');
  },
);

rule(
  'reissue.field i_know_remove_domain_will_revoke_before_cert',
  'is an optional boolean, and `false` or leaving it out gives no consent',
  async () => {
    await requireTyped('i_know_remove_domain_will_revoke_before_cert');
    const order = await newOrder(app, { dnsNames: ['example.com'] });
    const field = 'i_know_remove_domain_will_revoke_before_cert';
    for (const top of [{}, { [field]: false }]) {
      const answer = await reissue(app, order, body({ dns_names: [] }, top));
      requireError(answer, [409, 'remove_domain_not_confirmed', field]);
    }
    await requireAnswered(order, body({ dns_names: [] }, { [field]: true }));
  },
);

rule(
  'reissue.field i_know_will_revoke_last_cert',
  'is an optional boolean, and `false` or leaving it out gives no consent',
  async () => {
    await requireTyped('i_know_will_revoke_last_cert');
    const order = await newOrder(app, { product: 'ssl-dv-replace' });
    const field = 'i_know_will_revoke_last_cert';
    for (const top of [{}, { [field]: false }, { i_know_remove_domain_will_revoke_before_cert: true }]) {
      const answer = await reissue(app, order, body({}, top));
      requireError(answer, [409, 'revoke_last_cert_not_confirmed', field]);
    }
    await requireAnswered(order, body({}, { [field]: true }));
  },
);

rule('reissue.field dcv_method', 'the method by which control of the names is proven', async () => {
  const order = await requireTyped('dcv_method');
  assert.equal((await show(app, order)).dcv_method, 'dns');
  await requireAnswered(order, body({}, { dcv_method: 'file' }));
  assert.equal((await show(app, order)).dcv_method, 'file');
});

rule('reissue.field persist_until', 'replaces the value of the order when rule 6 lets it take effect', async () => {
  const order = await requireTyped('persist_until');
  assert.equal((await show(app, order)).persist_until, null, 'it had no effect');
  await requireAnswered(order, body({}, { dcv_method: 'dns-persist', persist_until: 1_900_000_000 }));
  assert.equal((await show(app, order)).persist_until, 1_900_000_000);
  await requireAnswered(order, body({}, { dcv_method: 'dns-persist', persist_until: 1_900_000_001 }));
  assert.equal((await show(app, order)).persist_until, 1_900_000_001);
});

rule(
  'reissue.field persist_policy',
  '`fqdn` or `wildcard`, the scope that the persistent record authorizes',
  async () => {
    const order = await requireTyped('persist_policy');
    for (const policy of ['wildcard', 'fqdn']) {
      await requireAnswered(order, body({}, { dcv_method: 'dns-persist', persist_policy: policy }));
      assert.equal((await show(app, order)).persist_policy, policy);
    }
  },
);

rule('reissue.field dcv_scope', 'which ones are supported is for the product to say', async () => {
  const order = await requireTyped('dcv_scope');
  await requireAnswered(order, body({}, { dcv_scope: 'base_domain' }));
  assert.equal((await show(app, order)).dcv_scope, 'base_domain');
  const signing = await newOrder(app, { product: 'code-signing', commonName: 'Example Ltd' });
  await requireBad(signing, { certificate: without('common_name'), dcv_scope: 'fqdn' }, 'dcv_scope');
});

rule('reissue.field sign_key_pin', 'needed only with `csr_from` `sign-cloud-csc`', async () => {
  const order = await requireTyped('sign_key_pin');
  for (const pin of [{}, { sign_key_pin: '' }, { sign_key_pin: '0000' }]) await requireAnswered(order, body({}, pin));
});

rule('reissue.field sign_key_pin_tip', 'is an optional string, a hint that reminds of the access code', async () => {
  const order = await requireTyped('sign_key_pin_tip');
  for (const tip of [{}, { sign_key_pin_tip: '' }, { sign_key_pin_tip: '提示' }])
    await requireAnswered(order, body({}, tip));
});

rule('reissue 9', '`"true"`, `1` and `null` are no booleans, and `"7"`, `7.5` and `null` are no integers', async () => {
  const order = await newOrder(app);
  const booleans = Object.entries(FIELDS).filter(([, value]) => typeof value === 'boolean');
  const integers = Object.entries(FIELDS).filter(([, value]) => typeof value === 'number');
  assert.deepEqual([booleans.length, integers.length], [3, 2]);
  for (const [field] of booleans) {
    for (const value of ['true', 'false', '', 1, 0, null, [true]])
      await requireBad(order, bodyWith(field, value), field);
  }
  for (const [field] of integers) {
    for (const value of ['7', '', 7.5, null, true, [7]]) await requireBad(order, bodyWith(field, value), field);
    const raw = JSON.stringify(bodyWith(field, 7)).replace(/("\w+":)7(?=[,}])/, '$11e999');
    const headers = { 'content-type': 'application/json' };
    const answer = await app.call('POST', `/openapi/v3/orders/${order.id}/reissue`, { key: order.key, raw, headers });
    requireError(answer, [400, 'invalid_parameters', field], 'infinity is no integer');
  }
});

rule('envelope 18', 'and `dns_names` `null`, count as left out', async () => {
  const zero = { dns_names: null, custom_expiration_date: '' };
  const order = await newOrder(app, { dnsNames: ['example.com'] });
  const id = await requireAnswered(order, body(zero, { dcv_method: '', dcv_scope: '', sign_key_pin_tip: '' }));
  const { dns_names, status } = await certificate(app, order, id);
  assert.deepEqual([dns_names, status], [['www.example.com', 'example.com'], 'issued']);
  const json = body({ ...zero, csr: csrFor('p256') }, { dcv_method: '', dcv_scope: '', alternative_order_id: '' });
  for (const attempt of [1, 2]) {
    const placed = await app.call('POST', '/openapi/v3/orders/ssl-dv', { key: order.key, json });
    assert.equal(placed.status, 200, `${attempt} ${placed.text}`);
  }
  // An empty string means something else, or nothing, in these.
  for (const [field, value] of [
    ['persist_policy', ''],
    ['certificate.common_name', ''],
    ['certificate.sign_hash', ''],
    ['certificate.validity_days', 0],
    ['dcv_method', null],
    ['certificate.un_modify_key', null],
  ] as const) {
    const sent = bodyWith(field, value);
    await requireBad(order, field === 'persist_policy' ? { ...sent, dcv_method: 'dns-persist' } : sent, field);
  }
});
