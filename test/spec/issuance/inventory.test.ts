// Inventory and catalogue on the wire: filters, pages, CSV, products, and the commands about products. That every combination
// of filters finds what it should is proven on both engines in test/conformance/inventory.test.ts.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import Schema from 'typebox/schema';
import { PRODUCTS } from '../../../src/domain/catalog/products.ts';
import { parseProducts } from '../../../src/domain/catalog/products-file.ts';
import { type Key, startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import type { Json } from '../../support/document.ts';
import { reseal } from '../../support/in-process.ts';
import { body, csrFor, newOrder, reissue } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';
import { HAN, requireError } from '../../support/watched-app.ts';

const RESEAL_PRODUCTS_FILE = productsFile(OWN_PRODUCT);
const app = await startApp({ RESEAL_PRODUCTS_FILE });
after(() => app[Symbol.asyncDispose]());

const get = (key: Key, path: string, headers = {}) => app.call('GET', `/openapi/v3/${path}`, { key, headers });
const data = async (key: Key, path: string): Promise<Json> => {
  const { status, body: answer, text } = await get(key, path);
  assert.equal(status, 200, text);
  return answer.data;
};
const idsOf = async (key: Key, path: string): Promise<string[]> => {
  const { orders, certificates = orders } = await data(key, path);
  return certificates.map(({ id }: Json) => id);
};

const key = await app.newKey();
/** Reissued once, and its first certificate revoked. */
const shop = await newOrder(app, { commonName: 'shop.example.com', dnsNames: ['*.shop.example.com'] }, key);
const renewed = (await reissue(app, shop, body({ common_name: 'shop.example.com', validity_days: 30 }))).body.data;
await app.call('POST', `/openapi/v3/certs/${shop.certificateId}/revoke`, { key, json: { reason: 'superseded' } });
const own = await newOrder(app, { product: 'own', commonName: 'shop.example.com' }, key);
const waiting = await newOrder(app, { commonName: 'new.example.org', vouches: false }, key);
const holder = await newOrder(app, { product: 'document-signing', commonName: '=cmd|"x"!A1, Ltd' }, key);
const other = await newOrder(app, { commonName: 'shop.example.com' });
const issuedFirst = [renewed.certificate.id, own.certificateId].sort();

rule('inventory 1', 'lists the certificates of the account that were issued, the first to end first', async () => {
  const { certificates, next_after } = await data(key, 'certs');
  assert.equal(next_after, null);
  const ends = certificates.map(({ not_after }: Json) => not_after);
  assert.deepEqual(ends, [...ends].sort());
  assert.deepEqual(
    certificates.map(({ id }: Json) => id).sort(),
    [shop.certificateId, ...issuedFirst, holder.certificateId].sort(),
  );
  const [first] = (await data(key, `certs?status=revoked`)).certificates;
  const { serial_number, not_after, revoked_at, ...rest } = first;
  assert.match(serial_number, /^[0-9a-f]{16,}$/);
  assert.ok(not_after > revoked_at);
  assert.deepEqual(
    { ...rest, not_before: null },
    {
      ...{ id: shop.certificateId, order_id: shop.id, product: 'ssl-dv', status: 'revoked', is_current: false },
      ...{ common_name: 'shop.example.com', dns_names: ['shop.example.com', '*.shop.example.com'], not_before: null },
      ...{ version: 1, revocation_reason: 'superseded' },
    },
  );
  assert.deepEqual(await idsOf(key, 'certs?status=pending'), [waiting.certificateId]);
});

rule('inventory 2', 'in any combination; what is listed meets all of them', async () => {
  const [{ serial_number, not_after }] = (await data(key, 'certs?product=own')).certificates;
  const spelled = serial_number.toUpperCase().replace(/..(?=.)/g, '$&:');
  assert.deepEqual(await idsOf(key, `certs?serial_number=${spelled}`), [own.certificateId]);
  assert.deepEqual(await idsOf(key, `orders?serial_number=${serial_number}`), [own.id]);
  assert.deepEqual(await idsOf(key, 'orders?product=own&status=issued'), [own.id]);
  // By a number, as it may be ordered.
  assert.deepEqual(await idsOf(key, 'orders?product=108'), [holder.id]);
  assert.deepEqual(await idsOf(key, 'certs?product=108'), [holder.certificateId]);
  assert.deepEqual(await idsOf(key, 'orders?status=domain_verifing'), [waiting.id]);
  assert.deepEqual(await idsOf(key, 'orders?revoked=true'), []);
  assert.deepEqual(await idsOf(key, 'certs?revoked=true&name=shop.example.com'), [shop.certificateId]);
  assert.deepEqual(await idsOf(key, `certs?expires_after=${not_after}&product=own`), [own.certificateId]);
  assert.deepEqual(await idsOf(key, `certs?expires_before=${not_after}&product=own`), []);
  assert.ok(
    (await idsOf(key, `orders?expires_before=${new Date(app.now() + 40 * 86_400_000).toISOString()}`)).includes(
      shop.id,
    ),
  );
});

rule('inventory 3', '`name_suffix` is met by a certificate with that domain or a name below it', async () => {
  const all = [shop.id, own.id].sort();
  assert.deepEqual((await idsOf(key, 'orders?name_suffix=Example.COM.')).sort(), all);
  assert.deepEqual((await idsOf(key, 'orders?name=SHOP.example.com')).sort(), all);
  assert.deepEqual(await idsOf(key, `orders?name=${encodeURIComponent('*.shop.example.com')}`), [shop.id]);
  for (const suffix of ['hop.example.com', 'com.example', 'w.shop.example.com']) {
    assert.deepEqual(await idsOf(key, `orders?name_suffix=${suffix}`), [], suffix);
  }
  assert.deepEqual(await idsOf(key, `certs?name=${encodeURIComponent('=cmd|"x"!A1, Ltd')}`), [holder.certificateId]);
  requireError(await get(key, 'certs?name_suffix=a%20b'), [400, 'invalid_parameters', 'name_suffix']);
});

rule(
  'inventory 4',
  'A query parameter that a list does not have is `invalid_parameters`, and named in `field`',
  async () => {
    for (const list of ['orders', 'certs', 'products', 'account/audit', 'cloud-keys', 'account/callback/deliveries']) {
      const answer = await get(key, `${list}?common-name=x`);
      requireError(answer, [400, 'invalid_parameters', 'common-name'], list);
      const chinese = await get(key, `${list}?common-name=x`, { 'Accept-Language': 'zh-CN' });
      assert.match(chinese.body.message, HAN);
    }
    for (const [field, value] of Object.entries({
      status: 'voided',
      revoked: 'yes',
      expires_before: '2026',
      limit: '0',
    })) {
      requireError(await get(key, `certs?${field}=${value}`), [400, 'invalid_parameters', field]);
    }
    for (const path of [
      'certs?after=x',
      'certs?after=.',
      'certs?after=1e3.x',
      'certs?after=1.%00',
      'orders?after=%00',
      'account/audit?after=%00',
      'account/callback/deliveries?after=%06',
      'cloud-keys?after=%00',
    ]) {
      requireError(await get(key, path), [400, 'invalid_parameters', 'after']);
    }
    requireError(await get(key, 'certs?name=a&name=b'), [400, 'invalid_parameters', 'name']);
  },
);

rule('inventory 5', 'With the `next_after` of a page and the same filters, the next page follows', async () => {
  for (const list of [
    'certs',
    'certs?name_suffix=example.com',
    'certs?product=ssl-dv',
    'orders?expires_after=2020-01-01T00:00:00Z',
  ]) {
    const expected = await idsOf(key, list);
    const found: string[] = [];
    const join = list.includes('?') ? '&' : '?';
    for (let next = ''; ; ) {
      const page = await data(key, `${list}${join}limit=1${next}`);
      found.push(...(page.certificates ?? page.orders).map(({ id }: Json) => id));
      if (page.next_after === null) break;
      next = `&after=${page.next_after}`;
    }
    assert.ok(expected.length > 0);
    assert.deepEqual(found, expected, list);
  }
});

rule('inventory 6', 'With `Accept: text/csv` the same page is CSV (RFC 4180) with a header line', async () => {
  const accept = { Accept: 'text/csv, */*;q=0.1' };
  const first = await get(key, 'certs?limit=1&name_suffix=example.com', accept);
  assert.equal(first.headers.get('content-type'), 'text/csv; charset=utf-8; header=present');
  const [, query = ''] = /^<(\?[^>]+)>; rel="next"$/.exec(first.headers.get('link') ?? '') ?? [];
  const [header = '', line = '', end, ...more] = first.text.split('\r\n');
  assert.deepEqual([end, more], ['', []]);
  assert.equal(header.split(',').join(), Object.keys((await data(key, 'certs')).certificates[0]).join());
  const second = await get(key, `certs${query}`, accept);
  assert.notEqual(second.text.split('\r\n')[1], line);
  assert.ok(
    second.text.includes('shop.example.com *.shop.example.com') || line.includes('shop.example.com *.shop.example.com'),
  );
  const all = await get(key, 'orders', accept);
  assert.equal(all.headers.get('link'), null);
  assert.equal(all.text.trimEnd().split('\r\n').length, 1 + 4);
  for (const json of [
    'application/json',
    '*/*',
    'text/*',
    'application/json, text/csv;q=0.9',
    'text/csv;q=0',
    '*/*, text/csv;q=0.5',
  ]) {
    assert.equal((await get(key, 'orders', { Accept: json })).body.code, 'success', json);
  }
  requireError(await get(key, 'orders?limit=0', accept), [400, 'invalid_parameters', 'limit']);
});

rule('inventory 7', 'A cell that a spreadsheet would calculate begins with an apostrophe', async () => {
  const { text } = await get(key, 'certs?product=document-signing', { Accept: 'text/csv' });
  assert.ok(text.includes(`,"'=cmd|""x""!A1, Ltd",`), text);
  // Where a semicolon separates cells, each part of this one is a cell.
  const strange = await newOrder(app, { product: 'document-signing', commonName: 'a-b@c;=1+1; @x;"-1' });
  const { text: parted } = await get(strange.key, 'certs', { Accept: 'text/csv' });
  assert.ok(parted.includes(`,"a-b@c;'=1+1;' @x;'""-1",`), parted);
});

rule('inventory 8', 'No filter finds an order or a certificate of another account', async () => {
  const theirs = await data(other.key, 'certs');
  const [{ serial_number, not_after }] = theirs.certificates;
  assert.deepEqual(await idsOf(other.key, 'orders'), [other.id]);
  for (const filter of [
    ...['', '?name=shop.example.com', '?name_suffix=com', '?product=ssl-dv', `?serial_number=${serial_number}`],
    ...[`?expires_after=${not_after}`, '?expires_before=2099-01-01T00:00:00Z', '?status=issued', '?revoked=false'],
  ]) {
    for (const list of ['orders', 'certs']) {
      const found = await idsOf(key, list + filter);
      assert.ok(![other.id, other.certificateId].some((id) => found.includes(id)), list + filter);
    }
  }
});

rule(
  'catalog 1',
  '`GET /openapi/v3/products` lists the products that can be ordered, with what each allows',
  async () => {
    const { products } = await data(key, 'products');
    assert.deepEqual(
      products.map(({ id }: Json) => id),
      [...PRODUCTS.map(({ id }) => id), 'own'],
    );
    const { name, keys, ...rest } = products.at(-1);
    const { name: _, keys: __, ...row } = OWN_PRODUCT;
    assert.deepEqual([name, keys], ['Own', [{ type: 'p256', min_bits: 256, max_bits: 256 }]]);
    assert.deepEqual(rest, {
      ...row,
      aliases: [],
      form: 'single',
      requires_lint: false,
      revocation_grace_hours: 0,
      private_names: [],
      short_lived: false,
    });
  },
);

rule(
  'catalog 2',
  '`product_not_found` names the products there are, in `message` and in `details.products`',
  async () => {
    const certificate = { csr: csrFor(), common_name: 'www.example.com', sign_hash: 'sha256' };
    const answer = await app.call('POST', '/openapi/v3/orders/ssl-unknown', { key, json: { certificate } });
    requireError(answer, [404, 'product_not_found']);
    const { products } = answer.body.details;
    assert.deepEqual(products, [...PRODUCTS.map(({ id }) => id), 'own']);
    for (const id of products) assert.ok(answer.body.message.includes(id), id);
  },
);

rule('catalog 3', '`reseal product list` and `product show` show the products without a store', async () => {
  const run = (...args: string[]) => reseal(['product', ...args], { RESEAL_PRODUCTS_FILE });
  const listed = await run('list', '--json');
  assert.equal(listed.code, 0, listed.err);
  assert.equal(JSON.parse(listed.out).products.at(-1).id, 'own');
  const shown = await run('show', 'ssl-dv');
  assert.equal((await run('show', '101')).out, shown.out);
  // What is shown is a row of a products file: under another id it is one.
  assert.equal(
    parseProducts({ products: [{ ...JSON.parse(shown.out), id: 'copy', aliases: [] }] })[0]?.maxValidityDays,
    199,
  );
  const missing = await run('show', 'none');
  assert.equal(missing.code, 1);
  assert.match(missing.err, /ssl-dv, .*own/);
});

rule('private 8', '`reseal product schema` prints the JSON Schema of a products file', async () => {
  const { out } = await reseal(['product', 'schema']);
  const schema = Schema.Compile(JSON.parse(out));
  assert.ok(schema.Check({ $schema: './products.schema.json', products: [OWN_PRODUCT] }));
  assert.ok(!schema.Check({ products: [{ ...OWN_PRODUCT, csr: 'sometimes' }] }));
});
