// Names inside a network: addresses and internal names, validated on private networks, and never under public trust.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, test } from 'node:test';
import { readCatalog } from '../../../src/adapters/catalog/products-file.ts';
import { fileTarget } from '../../../src/domain/validation/file-target.ts';
import type { Key } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { FILE, page, startDomainApp } from '../../support/domain-app.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';

const FILES = { ...OWN_PRODUCT, csr: 'optional', dcv_methods: ['file', 'dns'] };
const INSIDE = { ...FILES, id: 'inside', private_names: ['internal', 'ip'], validation_networks: ['127.0.0.0/8'] };
const OTHER = { ...INSIDE, id: 'other' };
/** Of private trust, but for names of the public DNS. */
const PLAIN = { ...FILES, id: 'plain' };
const PORTS = { filePort: 80, tlsPort: 443 };
const METADATA = [
  ...['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '168.63.129.16'],
  // As translators and tunnels write them.
  ...[
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::a9fe:a9fe',
    '::ffff:0:169.254.169.254',
    '2002:a9fe:a9fe::1',
    '64:ff9b::a83f:8110',
  ],
];
const WIDE = { ...INSIDE, id: 'wide', validation_networks: ['0.0.0.0/0', '::/0'] };

// Nothing here stands for the internet: the web server has a private address.
const world = await startDomainApp({ RESEAL_PRODUCTS_FILE: productsFile(INSIDE, OTHER, PLAIN, WIDE) }, 0, []);
after(() => world[Symbol.asyncDispose]());
const { app, dns, web, files, entries, complete, outcome, newDomain } = world;

const place = (names: readonly string[], product: string, key?: Key, method = 'file') =>
  world.place(names, { dcv_method: method }, { product, ...(key && { key }) });

/** Publishes the file of every name, and has it fetched. */
async function prove(order: PlacedOrder): Promise<string> {
  for (const { domain, auth_val } of await entries(order)) {
    files.set(domain + FILE, page(auth_val));
    if (/[a-z]/.test(domain)) dns.set(domain, 'A', ['127.0.0.1']);
  }
  const { status, text } = await complete(order);
  assert.equal(status, 200, text);
  return await outcome(order);
}

async function refused(product: string, names: readonly string[], top: object = { dcv_method: 'file' }) {
  const [common_name, ...dns_names] = names;
  const json = { certificate: { csr: csrFor(), common_name, dns_names }, ...top };
  const {
    status,
    body: answer,
    text,
  } = await app.call('POST', `/openapi/v3/orders/${product}`, {
    key: await app.newKey(),
    json,
  });
  assert.equal(status, 400, text);
  return `${answer.code} ${answer.field}`;
}

const leafOf = async (order: PlacedOrder, id = order.certificateId) =>
  new X509Certificate((await certificate(app, order, id)).pem);

rule(
  'private 1',
  'as iPAddress names: each once, in canonical spelling (RFC 5952), the common name first',
  async () => {
    const order = await place(['127.0.0.1', 'db.internal', '127.0.0.1', 'host'], 'inside');
    web.requests.length = 0;
    assert.equal(await prove(order), 'issued');
    assert.ok(
      web.requests.some((request) => request.startsWith(`GET ${FILE} HTTP/1.1\r\nHost: 127.0.0.1:${web.port}\r\n`)),
    );
    const leaf = await leafOf(order);
    assert.equal(leaf.subjectAltName, 'IP Address:127.0.0.1, DNS:db.internal, DNS:host');
    assert.equal(leaf.subject, 'CN=127.0.0.1');
    assert.equal(leaf.checkIP('127.0.0.1'), '127.0.0.1');
    assert.equal(leaf.checkHost('127.0.0.1'), undefined);
    assert.deepEqual((await show(app, order)).dns_names, ['127.0.0.1', 'db.internal', 'host']);

    const six = { product: 'tls-private', commonName: 'FD12:0:0::0001', dnsNames: ['10.0.0.7', 'fd12:0:0:0::1'] };
    const vouched = await newOrder(app, six);
    assert.equal((await leafOf(vouched)).subjectAltName, 'IP Address:FD12:0:0:0:0:0:0:1, IP Address:10.0.0.7');
    assert.deepEqual((await show(app, vouched)).dns_names, ['fd12::1', '10.0.0.7']);
    // A reissue keeps them, and another spelling is the same name.
    const { status, body: answer, text } = await reissue(app, vouched, body({ common_name: 'fd12::1' }));
    assert.equal(status, 200, text);
    const again = await leafOf(vouched, answer.data.certificate.id);
    assert.equal(again.subjectAltName, 'IP Address:FD12:0:0:0:0:0:0:1, IP Address:10.0.0.7');
  },
);

rule('private 2', 'a DNS method for it is `invalid_dcv_method`, naming `dcv_method`. CAA does not apply', async () => {
  for (const dcv_method of ['dns', 'dns-persist']) {
    assert.equal(await refused('tls-private', ['a.com', '10.0.0.1'], { dcv_method }), 'invalid_dcv_method dcv_method');
  }
  // The first method of the product is the default, and a wildcard needs what an address cannot have.
  assert.equal(await refused('tls-private', ['10.0.0.1'], {}), 'invalid_dcv_method dcv_method');
  assert.equal(await refused('tls-private', ['10.0.0.1', '*.a.com']), 'invalid_dcv_method dcv_method');
  const order = await place(['127.0.0.2'], 'inside');
  const changed = await world.changeMethod(order, { dcv_method: 'dns' });
  assert.deepEqual([changed.status, changed.body.code, changed.body.field], [400, 'invalid_dcv_method', 'dcv_method']);

  dns.queries.length = 0;
  const key = await app.newKey();
  await newOrder(app, { product: 'tls-private', commonName: '10.0.0.9' }, key);
  const checked = await world.check(await place(['127.0.0.1'], 'inside', key));
  assert.equal(checked['127.0.0.1']?.caa.result, 'ok');
  assert.deepEqual(dns.queries, []);
});

test('an IPv6 address is asked as a literal, in brackets', () => {
  const { url, shown } = fileTarget('fd12::1', FILE, PORTS);
  assert.deepEqual([url.literal?.length, shown], [16, `http://[fd12::1]${FILE}`]);
  assert.equal(fileTarget('db.internal', FILE, PORTS).url.literal, null);
});

rule('private 3', 'A wildcard over an IP address, one that is link-local, multicast', async () => {
  const bad = [
    '*.10.0.0.1',
    '*.::1',
    '10.0.0.1.',
    '[::1]',
    '010.0.0.1',
    '::ffff:10.0.0.1',
    '224.0.0.1',
    '0.0.0.0',
    '::',
  ];
  for (const name of [...bad, 'fe80::1', 'fe80::1%eth0', ...METADATA]) {
    assert.equal(await refused('wide', [name]), 'invalid_domain certificate.common_name', name);
    assert.equal(await refused('wide', ['a.com', name]), 'invalid_domain certificate.dns_names.0', name);
  }
});

const NAMES = ['host', 'db.internal', 'nas.local', 'a.test', 'router.home.arpa', '*.db.internal'];

rule('private 4', 'for every other product it is `invalid_domain`', async () => {
  for (const name of NAMES) {
    assert.equal(await refused('plain', [name], {}), 'invalid_domain certificate.common_name', name);
    assert.equal((await newOrder(app, { product: 'inside', commonName: name })).id.length > 0, true, name);
  }
});

rule('private 5', 'Neither is ever certified under public trust', async () => {
  for (const name of [...NAMES, '127.0.0.1', '8.8.8.8', '2606:4700::1111']) {
    assert.equal(await refused('ssl-dv', [name]), 'invalid_domain certificate.common_name', name);
    assert.equal(await refused('ssl-dv', ['a.com', name], {}), 'invalid_domain certificate.dns_names.0', name);
    // The operator's word does not help either.
    await assert.rejects(newOrder(app, { product: 'ssl-dv', commonName: name }), { code: 'invalid_domain' });
    const order = await newOrder(app);
    const { status, body: answer } = await reissue(app, order, body({ dns_names: [name] }));
    assert.deepEqual([status, answer.code, answer.field], [400, 'invalid_domain', 'certificate.dns_names.0'], name);
  }
  for (const change of [{ private_names: ['ip'] }, { validation_networks: ['10.0.0.0/8'] }]) {
    const file = productsFile({ ...FILES, csr: 'required', trust: 'public', ...change });
    assert.throws(() => readCatalog(file), new RegExp(`products\\[0\\]\\.${Object.keys(change)[0]}: `));
  }
});

rule(
  'private 6',
  'for products of private trust only, within `RESEAL_DCV_ALLOW` or the `validation_networks`',
  async () => {
    const provenBy = async (product: string) => await prove(await place([newDomain()], product));
    assert.equal(await provenBy('inside'), 'issued');
    for (const product of ['plain', 'tls-private', 'ssl-dv']) {
      assert.equal(await provenBy(product), 'domain_verifing private_address', product);
    }
    // The setting of the service opens networks for private trust, and none for public trust.
    await using open = await startDomainApp({ RESEAL_DCV_ALLOW: '127.0.0.0/8,169.254.0.0/16,fd00::/8' }, 0, []);
    for (const [product, expected] of [
      ['tls-private', 'issued'],
      ['ssl-dv', 'domain_verifing private_address'],
    ] as const) {
      const order = await open.place([newDomain()], { dcv_method: 'file' }, { product });
      await open.publish(order);
      await open.complete(order);
      assert.equal(await open.outcome(order), expected, product);
    }
    const ip = await open.place(['127.0.0.1'], { dcv_method: 'file' }, { product: 'tls-private' });
    await open.publish(ip);
    await open.complete(ip);
    assert.equal(await open.outcome(ip), 'issued');
    // However wide the rule is.
    for (const address of METADATA) {
      const domain = newDomain();
      dns.set(domain, address.includes(':') ? 'AAAA' : 'A', [address]);
      const order = await place([domain], 'wide');
      await complete(order);
      assert.equal(await outcome(order), 'domain_verifing private_address', address);
    }
  },
);

rule('private 7', 'What was proven on such a network is proven for the same product only', async () => {
  const domain = newDomain();
  const key = await app.newKey();
  assert.equal(await prove(await place([domain], 'inside', key)), 'issued');
  assert.equal(await outcome(await place([domain], 'inside', key)), 'issued');
  for (const product of ['other', 'plain', 'tls-private', 'ssl-dv']) {
    assert.equal(await outcome(await place([domain], product, key)), 'domain_verifing', product);
  }
});

rule('private 9', 'The filter `name` finds an IP address however it is spelled; `name_suffix` finds none', async () => {
  const names = { commonName: 'db.internal', dnsNames: ['fd12::1', '10.0.0.7'] };
  const { key, id } = await newOrder(app, { product: 'tls-private', ...names });
  const found = async (query: string) => {
    const { status, body: answer, text } = await app.call('GET', `/openapi/v3/orders?${query}`, { key });
    assert.equal(status, 200, text);
    return answer.data.orders.map((order: { id: string }) => order.id);
  };
  for (const name of ['fd12::1', 'FD12:0::0001', '10.0.0.7', 'db.internal']) {
    assert.deepEqual(await found(`name=${name}`), [id], name);
  }
  for (const query of ['name=fd12::2', 'name=10.0.0.70', 'name_suffix=0.7']) assert.deepEqual(await found(query), []);
  const { status, body: answer } = await app.call('GET', '/openapi/v3/orders?name_suffix=10.0.0.7', { key });
  assert.deepEqual([status, answer.field], [400, 'name_suffix']);
});
