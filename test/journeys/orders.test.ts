// Orders and imported authorities through the real command line, and the sandbox's reissue request.
import assert from 'node:assert/strict';
import { createHash, createPublicKey, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PRODUCTS } from '../../src/domain/catalog/products.ts';
import { newFolder } from '../support/app.ts';
import { caChain } from '../support/authority.ts';
import { rule } from '../support/contract.ts';
import { type KeyKind, keyPair } from '../support/csr.ts';
import { reseal } from '../support/in-process.ts';
import { nameServer } from '../support/name-server.ts';
import { csrFor } from '../support/orders.ts';
import { startReseal } from '../support/process.ts';

const folder = newFolder();
const settings = { RESEAL_DATA_DIR: folder, RESEAL_PORT: '0', RESEAL_PUBLIC_URL: 'http://certs.example.com' };
const csrFile = join(folder, 'www.csr');
writeFileSync(csrFile, csrFor());

async function json(args: string[], more: Record<string, string> = {}) {
  const { code, out, err } = await reseal([...args, '--json'], { ...settings, ...more });
  assert.equal(code, 0, out + err);
  return JSON.parse(out);
}
const { account } = await json(['account', 'create', 'Acme']);
const place = (...args: string[]) => ['order', 'place', account.id, ...args, '--csr', csrFile];

test('an order with --validated is issued; without it the order is pending', async () => {
  const { order } = await json(place('ssl-dv', 'www.example.com', '--names', 'example.com', '--validated'));
  assert.deepEqual([order.status, order.dns_names], ['issued', ['www.example.com', 'example.com']]);
  const { pem: text } = await json(['order', 'show', account.id, order.id]);
  assert.equal(new X509Certificate(text).checkHost('example.com'), 'example.com');
  const waiting = await json(place('101', 'shop.example.org'));
  assert.deepEqual([waiting.order.status, waiting.order.product], ['domain_verifing', 'ssl-dv'], 'by its number');
  const offline = { RESEAL_DNS_SERVERS: await nameServer() };
  const checked = await json(['order', 'validate', account.id, waiting.order.id], offline);
  assert.deepEqual([checked.order.status, checked.dcv_val[0].verified], ['domain_verifing', false]);
  const { orders } = await json(['order', 'list', account.id]);
  assert.deepEqual(orders.map(({ id }: { id: string }) => id).sort(), [order.id, waiting.order.id].sort());
  const signing = await json(place('code-signing', 'Acme Ltd', '--sign-hash', 'sha384'));
  assert.deepEqual(
    [signing.order.status, signing.order.common_name, signing.order.dns_names],
    ['issued', 'Acme Ltd', []],
  );
});

test('errors come with a remedy, and no order is placed', async () => {
  const before = (await json(['order', 'list', account.id])).orders.length;
  const table: [string[], number, RegExp][] = [
    [place('nothing', 'www.example.com'), 1, /no such product/],
    [place('ssl-dv', 'a_b.example.com', '--validated'), 1, /underscore/],
    [place('ssl-dv', 'com', '--validated'), 1, /without a dot/],
    [place('ssl-dv', 'www.example.com', '--sign-hash', 'md5'), 2, /sha256, sha384/],
    [['order', 'place', account.id, 'ssl-dv', 'www.example.com'], 2, /--csr www\.csr/],
    [['order', 'place', account.id, 'ssl-dv', 'www.example.com', '--csr', '/nowhere'], 2, /cannot be read/],
    // The digest is the product's, so that the key is what is wrong.
    [place('ssl-sm2-dual', 'www.example.com'), 1, /does not certify this key/],
    [['order', 'place', 'nobody', 'ssl-dv', 'www.example.com', '--csr', csrFile], 1, /no such account/],
    [['order', 'show', account.id, 'nothing'], 1, /no such order/],
    [['order', 'show', 'nobody', 'nothing'], 1, /no such order/],
    [['ca', 'import', '--for', 'public-tls', csrFile, csrFile], 1, /has no certificate in PEM/],
    [['ca', 'import', csrFile, csrFile], 2, /--for is missing/],
    [['ca', 'import', '--for', 'everything', csrFile, csrFile], 2, /--for everything is not known/],
    [['ca', 'import', '--for', 'public-tls', '--policy', 'DV', csrFile, csrFile], 2, /not an object identifier/],
    [['blocklist', 'import', csrFile], 2, /line 1 is no entry of a blocklist/],
  ];
  for (const [args, code, message] of table) {
    const result = await reseal(args, settings);
    assert.equal(result.code, code, `${args.join(' ')}: ${result.err}`);
    assert.match(result.err, message, args.join(' '));
  }
  assert.equal((await json(['order', 'list', account.id])).orders.length, before);
});

interface ListedIssuer {
  readonly id: string;
  readonly role: string;
  readonly state: string;
  readonly subject: string;
  readonly key_type: string;
  readonly has_key: boolean;
  readonly purposes: readonly string[];
  readonly issued: number;
}

test('an imported authority takes over without its root’s key; the previous one is retired', async () => {
  const ca = caChain([{}, {}]);
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const files = [write('chain.pem', ca.chain.join('')), write('issuing.key', ca.key)];
  const { issuer } = await json(['ca', 'import', '--for', 'public-tls,client-auth', ...files]);
  const { audit } = await json(['audit', '--limit', '1']);
  assert.deepEqual([audit[0].action, audit[0].subject, audit[0].account_id], ['authority:imported', issuer.id, null]);
  const { issuers }: { issuers: ListedIssuer[] } = await json(['ca', 'list']);
  const p256 = issuers.filter(({ key_type }) => key_type === 'p256');
  const own = p256.find((one) => one.has_key && one.role === 'root');
  const root = p256.find((one) => !one.has_key);
  const issuing = p256.find(({ id }) => id === issuer.id);
  assert.deepEqual([own?.state, own?.subject], ['active', 'C=XX, O=Reseal, CN=Reseal Root P-256']);
  assert.deepEqual([root?.role, root?.state, root?.has_key], ['root', 'active', false]);
  const read = new X509Certificate(ca.chain[0]!);
  assert.deepEqual(issuing, {
    ...{ id: issuer.id, role: 'issuing', state: 'active', subject: 'O=Elsewhere, CN=Elsewhere Issuing 1' },
    ...{ purposes: ['client-auth', 'public-tls'], policy: null, key_type: 'p256', has_key: true, key_place: 'store' },
    ...{ not_after: read.validToDate.toISOString(), fingerprint: read.fingerprint256, issued: 0, revoked: 0 },
  });
  const retired = p256.filter(({ role, state }) => role === 'issuing' && state === 'retired');
  assert.ok(retired.every(({ purposes, issued }) => purposes.length === 0 && issued > 0));
  const { order } = await json(place('ssl-dv', 'www.example.com', '--validated'));
  const leaf = new X509Certificate((await json(['order', 'show', account.id, order.id])).pem);
  const middle = read;
  assert.ok(leaf.checkIssued(middle) && leaf.verify(middle.publicKey));
  const after = await json(['ca', 'list']);
  assert.equal(after.issuers.find(({ id }: ListedIssuer) => id === issuer.id).issued, 1);
  const told = await reseal(['ca', 'import', '--for', 'public-tls,client-auth', ...files], settings);
  assert.match(told.out, /signs keys on curves, with sha256\. For others import one on RSA too/);
  const alone = write('alone.pem', ca.chain[0]!);
  const wrong = await reseal(['ca', 'import', '--for', 'public-tls', alone, files[1]!], settings);
  assert.deepEqual([wrong.code, /lacks the certificate that signed O=Elsewhere/.test(wrong.err)], [1, true], wrong.err);
});

rule('key 3', 'one per line; a listed modulus stands for every key on it', async () => {
  const list = join(folder, 'blocked.txt');
  const modulusOf = (kind: 'rsa2048' | 'rsa3072') => {
    const { n = '' } = createPublicKey(keyPair(kind).privateKey).export({ format: 'jwk' });
    return Buffer.from(n, 'base64url').toString('hex').toUpperCase();
  };
  const fingerprint = createHash('sha256').update(keyPair('p384').spki).digest('hex');
  const debian = createHash('sha1')
    .update(`Modulus=${modulusOf('rsa2048')}\n`)
    .digest('hex')
    .slice(20);
  const lines = [
    '# found in a repository',
    fingerprint.toUpperCase(),
    '',
    `${debian} # weak`,
    `Modulus=${modulusOf('rsa3072')}`,
  ];
  writeFileSync(list, lines.join('\n'));
  const place = async (kind: KeyKind) => {
    const file = join(folder, `${kind}.csr`);
    writeFileSync(file, csrFor(kind));
    const names = ['www.example.com', '--validated', '--csr', file];
    return await reseal(['order', 'place', account.id, 'ssl-dv', ...names], settings);
  };
  const listed = ['p384', 'rsa2048', 'rsa3072'] as const;
  for (const kind of listed) assert.equal((await place(kind)).code, 0);
  const forms = { spki_sha256: 1, debian: 1, modulus: 1 };
  assert.deepEqual(await json(['blocklist', 'import', list]), { blocked: 3, forms });
  for (const kind of listed) {
    const { code, err } = await place(kind);
    assert.deepEqual([code, /listed as compromised/.test(err)], [1, true], kind);
  }
  assert.equal((await place('p256')).code, 0);
});

test('an invalid products file is refused with all of its errors', async () => {
  const file = join(folder, 'products.json');
  writeFileSync(file, JSON.stringify({ products: [{ id: 'x' }, { id: 'ssl-dv' }] }));
  const refused = await reseal(place('x', 'www.example.com'), { ...settings, RESEAL_PRODUCTS_FILE: file });
  assert.equal(refused.code, 3);
  assert.ok(refused.err.split('\n').length > 5, refused.err);
});

test('the sandbox has an issued order of each product, and its printed reissue request works', async () => {
  const data = newFolder();
  await using sandbox = startReseal(['sandbox'], { RESEAL_DATA_DIR: data, RESEAL_PORT: '0' });
  await sandbox.said(/Stop with Ctrl-C/);
  const file = JSON.parse(readFileSync(join(data, 'sandbox.json'), 'utf8'));
  assert.deepEqual(
    file.orders.map(({ product }: { product: string }) => product).sort(),
    PRODUCTS.map(({ id }) => id).sort(),
  );
  assert.ok(
    file.orders.every(
      ({ status, certificate_id }: { status: string; certificate_id: string }) => status === 'issued' && certificate_id,
    ),
  );
  assert.equal(file.trust.roots.length, 4);
  const pasted = [...sandbox.output.matchAll(/curl -s (\S+\/reissue) [\s\S]*? -d '(.*)'/g)];
  const [{ key_id, auth_key }] = file.accounts[0].credentials;
  const headers = { 'X-CC-Key-ID': key_id, 'X-CC-Auth-Key': auth_key };
  const paste = ([, url = '', body = '']: readonly string[]) =>
    fetch(url, { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body });
  // A plain order, one with a cloud-held key, and one of dual certificates.
  const [answer, ...others] = await Promise.all(pasted.map(paste));
  assert.deepEqual(
    others.map(({ status }) => status),
    [200, 200],
  );
  assert.ok(answer);
  const { data: result } = (await answer.json()) as { data: { certificate: { id: string } } };
  assert.equal(answer.status, 200);
  const shown = await (await fetch(`${file.base_url}/openapi/v3/certs/${result.certificate.id}`, { headers })).json();
  const {
    pem: leaf,
    root_pem: root = '',
    replaces,
  } = (shown as { data: { Certificate: Record<string, string> } }).data.Certificate;
  assert.equal(replaces, file.orders[0].certificate_id);
  const roots = file.trust.roots.map((path: string) => new X509Certificate(readFileSync(path)).fingerprint256);
  assert.ok(roots.includes(new X509Certificate(root).fingerprint256));
  assert.ok(leaf);
});
