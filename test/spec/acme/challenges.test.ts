// The challenges of ACME, checked against real servers: what answers each of them, and what does not.
import assert from 'node:assert/strict';
import { after, beforeEach } from 'node:test';
import { challengesFor } from '../../../src/domain/acme/challenge.ts';
import { PRODUCTS, type Product } from '../../../src/domain/catalog/products.ts';
import { network } from '../../../src/domain/egress/addresses.ts';
import { provenMethods } from '../../../src/usecases/validation/proven-names.ts';
import { alpnCertificate } from '../../support/alpn-certificates.ts';
import { NOON } from '../../support/app.ts';
import {
  ACME_URL,
  DIGEST,
  ISSUER,
  KEY_AUTHORIZATION,
  PUBLIC,
  privateProduct,
  startChallengeWorld,
  TENANT_URI,
  TOKEN,
} from '../../support/challenge-world.ts';
import { rule } from '../../support/contract.ts';
import { DAY, page, redirect } from '../../support/domain-app.ts';

const world = await startChallengeWorld();
after(() => world[Symbol.asyncDispose]());
const { dns, web, alpn, newDomain, serve } = world;
const outcome = world.outcome.bind(world);
beforeEach(() => {
  serve(page(KEY_AUTHORIZATION));
  alpn.protocols = ['acme-tls/1'];
  alpn.certificate = (host) => alpnCertificate(host, KEY_AUTHORIZATION);
  alpn.onAccept = null;
  alpn.maxVersion = 'TLSv1.3';
});

const PATH = `/.well-known/acme-challenge/${TOKEN}`;

rule('acme 131', 'A wildcard has those of DNS only, an IP address those of the server at it', () => {
  const offered = (name: string, dcvMethods = PUBLIC.dcvMethods) => challengesFor(name, { dcvMethods }).join(' ');
  assert.equal(offered('example.com'), 'http-01 dns-01 tls-alpn-01 dns-persist-01');
  assert.equal(offered('*.example.com'), 'dns-01 dns-persist-01');
  assert.equal(offered('192.0.2.1'), 'http-01 tls-alpn-01');
  assert.equal(offered('2001:db8::1'), 'http-01 tls-alpn-01');
  assert.equal(offered('example.com', ['dns']), 'dns-01');
  assert.equal(offered('example.com', ['file']), 'http-01 tls-alpn-01');
  assert.equal(offered('example.com', ['dns-persist']), 'dns-persist-01');
  assert.equal(offered('*.example.com', ['file']), '');
  for (const product of PRODUCTS)
    if (product.dcvMethods.length === 0) assert.deepEqual(challengesFor('a.com', product), []);
});

rule('acme 132', 'and may have blanks after it and nothing else', async () => {
  const ask = async (answer: string) => {
    serve(answer);
    return await outcome({ name: newDomain(), type: 'http-01' });
  };
  web.requests.length = 0;
  assert.equal(await ask(page(KEY_AUTHORIZATION)), 'http-01');
  assert.match(web.requests[0] ?? '', new RegExp(`^GET ${PATH} HTTP/1.1\r\nHost: name\\d+\\.com:${web.port}\r\n`));
  for (const good of ['\n', '\r\n', ' \t\r\n\v\f', ' '.repeat(900)])
    assert.equal(await ask(page(KEY_AUTHORIZATION + good)), 'http-01');
  const bad = {
    'nothing in it': '',
    'the token alone': TOKEN,
    'a blank before it': ` ${KEY_AUTHORIZATION}`,
    'a line before it': `\n${KEY_AUTHORIZATION}`,
    'a byte order mark': `\xef\xbb\xbf${KEY_AUTHORIZATION}`,
    'a line after it': `${KEY_AUTHORIZATION}\nmore`,
    'a zero byte after it': `${KEY_AUTHORIZATION}\0`,
    'a no-break space after it': `${KEY_AUTHORIZATION}\xa0`,
    'another case of letters': KEY_AUTHORIZATION.toLowerCase(),
    'in quotes': `"${KEY_AUTHORIZATION}"`,
    'more blanks than are read': KEY_AUTHORIZATION + ' '.repeat(2_000),
    'a page of 1 MiB': 'x'.repeat(1 << 20),
  };
  for (const [what, body] of Object.entries(bad)) assert.match(await ask(page(body)), /^incorrectResponse: /, what);
  for (const status of [201, 204, 404, 500])
    assert.match(await ask(page(KEY_AUTHORIZATION, status)), new RegExp(`^incorrectResponse: .*answers ${status}`));
});

rule('acme 132', 'A redirect is followed as far as dcv 19 says', async () => {
  const name = newDomain();
  const there = newDomain();
  const answers = new Map([
    [`${name}${PATH}`, redirect(`http://${there}/elsewhere`)],
    [`${there}/elsewhere`, page(KEY_AUTHORIZATION)],
  ]);
  serve((socket, request) => {
    const [, path = '', host = ''] = /^GET (\S+) HTTP[\s\S]*?\r\nHost: ([^:\r]*)/.exec(request) ?? [];
    socket.end(answers.get(host + path) ?? page('', 404), 'latin1');
  });
  assert.equal(await outcome({ name, type: 'http-01' }), 'http-01');
  for (const location of [
    `http://${there}:8080/elsewhere`,
    'http://127.0.0.1/elsewhere',
    `ftp://${there}/elsewhere`,
    PATH,
  ]) {
    answers.set(`${name}${PATH}`, redirect(location));
    assert.match(await outcome({ name, type: 'http-01' }), /^incorrectResponse: The redirects/, location);
  }
});

rule('acme 133', 'One of the TXT records at `_acme-challenge` of the name', async () => {
  const ask = async (set: (owner: string) => void, name = newDomain()) => {
    set(`_acme-challenge.${name.replace('*.', '')}`);
    return await outcome({ name, type: 'dns-01' });
  };
  const records =
    (...values: string[]) =>
    (owner: string) =>
      dns.set(
        owner,
        'TXT',
        values.map((one) => [one]),
      );
  assert.equal(await ask(records(DIGEST)), 'dns-01');
  assert.equal(await ask(records('another', DIGEST, '')), 'dns-01');
  assert.equal(await ask(records(DIGEST), `*.${newDomain()}`), 'dns-01');
  assert.equal(await ask((owner) => dns.set(owner, 'TXT', [[DIGEST.slice(0, 20), DIGEST.slice(20)]])), 'dns-01');
  const delegated = (owner: string) => {
    dns.set(owner, 'CNAME', ['_acme-challenge.validation.example.org']);
    dns.set('_acme-challenge.validation.example.org', 'TXT', [[DIGEST]]);
  };
  assert.equal(await ask(delegated), 'dns-01');
  const standard = Buffer.from(DIGEST, 'base64url').toString('base64');
  const bad: Record<string, (owner: string) => void> = {
    'padded base64': records(standard),
    'the key authorization': records(KEY_AUTHORIZATION),
    'in quotes': records(`"${DIGEST}"`),
    'in capitals': records(DIGEST.toUpperCase()),
    'two records that would be one together': records(DIGEST.slice(0, 20), DIGEST.slice(20)),
    'no record': () => {},
    'a CNAME to itself': (owner) => dns.set(owner, 'CNAME', [owner]),
  };
  for (const [what, set] of Object.entries(bad)) assert.match(await ask(set), /^(incorrectResponse|dns): /, what);
  assert.match(await ask((owner) => dns.set(owner, 'TXT', 'servfail')), /^dns: .*name servers fail/);
});

rule('acme 134', 'A handshake on port 443 with the protocol `acme-tls/1`', async () => {
  const ask = () => outcome({ name: newDomain(), type: 'tls-alpn-01' });
  alpn.serverNames.length = 0;
  assert.equal(await ask(), 'tls-alpn-01');
  assert.match(alpn.serverNames.join(), /^name\d+\.com$/);
  alpn.maxVersion = 'TLSv1.2';
  assert.equal(await ask(), 'tls-alpn-01');
  alpn.certificate = (host) => alpnCertificate(host, `${TOKEN}.other`);
  assert.match(await ask(), /^incorrectResponse: .*not the digest/);
  alpn.certificate = () => alpnCertificate('example.com', KEY_AUTHORIZATION);
  assert.match(await ask(), /^incorrectResponse: .*only subjectAltName/);
  alpn.certificate = (host) => alpnCertificate(host, KEY_AUTHORIZATION);
  alpn.protocols = [];
  assert.match(await ask(), /^incorrectResponse: .*did not choose acme-tls\/1/);
  alpn.protocols = ['http/1.1'];
  assert.match(await ask(), /^(tls|incorrectResponse): /);
  alpn.onAccept = (socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
  assert.match(await ask(), /^tls: /);
  alpn.onAccept = (socket) => void socket.destroy();
  assert.match(await ask(), /^connection: /);
});

rule('acme 135', 'by `iPAddress` and its reverse name as the server name', async () => {
  const inside = privateProduct(['127.0.0.0/8']);
  alpn.serverNames.length = 0;
  alpn.certificate = () => alpnCertificate('127.0.0.1', KEY_AUTHORIZATION);
  assert.equal(await outcome({ name: '127.0.0.1', type: 'tls-alpn-01', product: inside }), 'tls-alpn-01/inside');
  assert.equal(alpn.serverNames.join(), '1.0.0.127.in-addr.arpa');
  web.requests.length = 0;
  assert.equal(await outcome({ name: '127.0.0.1', type: 'http-01', product: inside }), 'http-01/inside');
  assert.match(web.requests[0] ?? '', /\r\nHost: 127\.0\.0\.1:\d+\r\n/);
});

rule('acme 136', 'or the URL of the ACME account', async () => {
  const ask = async (record: string, name = newDomain(), asked = {}) => {
    dns.set(`_validation-persist.${name.replace('*.', '')}`, 'TXT', [[record]]);
    return await outcome({ name, type: 'dns-persist-01', token: '', ...asked });
  };
  assert.equal(await ask(`${ISSUER}; accounturi=${TENANT_URI}`), 'nothing to record');
  assert.equal(await ask(`${ISSUER}; accounturi=${ACME_URL}`), 'nothing to record');
  assert.match(await ask(`${ISSUER}; accounturi=${ACME_URL}0`), /^unauthorized: .*another account/);
  assert.match(
    await ask(`${ISSUER}; accounturi=${ACME_URL}`, newDomain(), { acmeAccount: `${ACME_URL}2` }),
    /^unauthorized: /,
  );
  assert.match(await ask(`${ISSUER}`), /^malformed: /);
  assert.match(await ask(`other.example; accounturi=${ACME_URL}`), /^incorrectResponse: There is no TXT record/);
});

rule('acme 136', 'A wildcard needs `policy=wildcard`', async () => {
  const domain = newDomain();
  const publish = (record: string) => dns.set(`_validation-persist.${domain}`, 'TXT', [[record]]);
  publish(`${ISSUER}; accounturi=${TENANT_URI}`);
  assert.match(await outcome({ name: `*.${domain}`, type: 'dns-persist-01' }), /^unauthorized: .*policy=wildcard/);
  assert.match(await outcome({ name: `sub.${domain}`, type: 'dns-persist-01' }), /^unauthorized: .*policy=wildcard/);
  publish(`${ISSUER}; accounturi=${TENANT_URI}; policy=wildcard`);
  for (const name of [domain, `*.${domain}`, `sub.${domain}`])
    assert.equal(await outcome({ name, type: 'dns-persist-01' }), 'nothing to record', name);
});

rule('acme 137', '`accounturi` may name the account or the URL of the ACME account that asks', async () => {
  const ask = async (value: string, asked = {}) => {
    const name = newDomain();
    dns.set(name, 'CAA', [{ flags: 0, tag: 'issue', value }]);
    return await outcome({ name, type: 'http-01', ...asked });
  };
  assert.equal(await ask(ISSUER), 'http-01');
  assert.equal(await ask(`${ISSUER}; accounturi=${TENANT_URI}`), 'http-01');
  assert.equal(await ask(`${ISSUER}; accounturi=${ACME_URL}`), 'http-01');
  assert.match(
    await ask(`${ISSUER}; accounturi=${ACME_URL}`, { acmeAccount: `${ACME_URL}2` }),
    /^caa: .*only this account/,
  );
  assert.match(await ask(`${ISSUER}; accounturi=${ACME_URL}; accounturi=${TENANT_URI}`), /^caa: /);
  assert.match(await ask('other.example'), /^caa: .*not among those permitted/);
  assert.match(await ask(';'), /^caa: /);
});

rule('acme 137', '`validationmethods` names challenges as ACME does', async () => {
  const methods = ['http-01', 'dns-01', 'tls-alpn-01', 'dns-persist-01'] as const;
  const published = (allowed: string) => {
    const name = newDomain();
    dns.set(name, 'CAA', [{ flags: 0, tag: 'issue', value: `${ISSUER}; validationmethods=${allowed}` }]);
    dns.set(`_acme-challenge.${name}`, 'TXT', [[DIGEST]]);
    dns.set(`_validation-persist.${name}`, 'TXT', [[`${ISSUER}; accounturi=${TENANT_URI}`]]);
    return name;
  };
  for (const type of methods) {
    for (const allowed of methods) {
      const seen = await outcome({ name: published(`ca-x,${allowed}`), type });
      assert.equal(seen.startsWith('caa: '), allowed !== type, `${type} where ${allowed} is allowed: ${seen}`);
    }
    assert.match(await outcome({ name: published('ca-dns,ca-file,ca-dns-persist'), type }), /^caa: /);
    assert.match(await outcome({ name: published(`ca-${type}`), type }), new RegExp(`^caa: .*list ${type} in`));
  }
});

rule('acme 138', 'Several resolvers must agree as in dcv 11', async () => {
  await using two = await startChallengeWorld(1);
  const name = two.newDomain();
  const owner = `_acme-challenge.${name}`;
  two.dns.set(owner, 'TXT', [[DIGEST]]);
  assert.match(await two.outcome({ name, type: 'dns-01' }), /^unauthorized: 1 of 1 other resolvers/);
  two.resolvers[1]?.set(owner, 'TXT', [[DIGEST]]);
  assert.equal(await two.outcome({ name, type: 'dns-01' }), 'dns-01');
  assert.equal(await two.outcome({ name, type: 'tls-alpn-01' }), 'tls-alpn-01');
  two.resolvers[1]?.set(name, 'A', 'servfail');
  assert.match(await two.outcome({ name, type: 'tls-alpn-01' }), /^unauthorized: 1 of 1 other resolvers/);
});

rule('acme 138', 'No server on a private network is asked unless the product allows it', async () => {
  await using real = await startChallengeWorld(0, []);
  real.serve(page(KEY_AUTHORIZATION));
  for (const type of ['http-01', 'tls-alpn-01'] as const) {
    const name = real.newDomain();
    assert.match(await real.outcome({ name, type }), /^connection: .*private address, which is not asked/);
    assert.match(
      await real.outcome({
        name,
        type,
        product: { ...PUBLIC, validationNetworks: [{ ...network('127.0.0.0/8'), port: null }] },
      }),
      /^connection: /,
    );
    assert.equal(await real.outcome({ name, type, product: privateProduct(['127.0.0.0/8']) }), `${type}/inside`);
    assert.match(await real.outcome({ name, type, product: privateProduct(['10.0.0.0/8']) }), /^connection: /);
  }
  assert.deepEqual([real.web.requests.length, real.alpn.serverNames.length], [1, 1]);
});

rule('acme 139', 'The certificate of a server to which `http-01` is redirected is not verified', async () => {
  const name = newDomain();
  serve(redirect(`https://${name}/there`));
  alpn.protocols = ['http/1.1'];
  alpn.certificate = () => alpnCertificate('expired.example', KEY_AUTHORIZATION);
  alpn.answer = page(KEY_AUTHORIZATION);
  assert.equal(await outcome({ name, type: 'http-01' }), 'http-01');
  alpn.answer = page('another');
  assert.match(await outcome({ name, type: 'http-01' }), /^incorrectResponse: /);
});

rule('acme 140', 'A challenge that fails has a problem of type', async () => {
  const name = newDomain();
  assert.match(await outcome({ name: 'no-such-name.com', type: 'http-01' }), /^dns: .*name_not_found/);
  assert.match(await outcome({ name: 'no-such-name.com', type: 'tls-alpn-01' }), /^dns: .*name_not_found/);
  serve((socket) => void socket.destroy());
  assert.match(await outcome({ name, type: 'http-01' }), /^connection: .*connection_closed/);
  alpn.onAccept = () => {};
  assert.match(await outcome({ name, type: 'tls-alpn-01', limitMs: 300 }), /^connection: The answer took too long/);
  dns.set(`_acme-challenge.${name}`, 'TXT', 'silence');
  assert.match(await outcome({ name, type: 'dns-01', limitMs: 300 }), /^dns: /);
});

rule('acme 140', 'where no resolver of the service can be reached, `serverInternal`', async () => {
  const gone = await startChallengeWorld();
  const name = gone.newDomain();
  await gone.dns.close();
  for (const type of ['http-01', 'dns-01'] as const)
    assert.match(await gone.outcome({ name, type }), /^serverInternal: The resolver of this service/);
  await assert.rejects(gone[Symbol.asyncDispose]());
});

rule('acme 141', 'serves a product that offers `file`, one by `dns-01` a product that offers `dns`', async () => {
  const at = NOON - DAY;
  const proofs = {
    proven: async () =>
      new Map([
        ['a.com', [{ method: 'http-01', validatedAt: at }]],
        ['b.com', [{ method: 'dns-01', validatedAt: at }]],
        ['c.com', [{ method: 'tls-alpn-01/inside', validatedAt: at }]],
      ]),
  };
  const methodsFor = async (product: Product, now = NOON) => {
    const query = { accountId: 'tenant', names: ['a.com', 'b.com', 'c.com'], product, now };
    const found = await provenMethods({ registrableDomain: (name) => name }, { proofs }, query);
    return [...found].map(([name, methods]) => `${name} ${methods.join()}`).join(' ');
  };
  assert.equal(await methodsFor(PUBLIC), 'a.com http-01 b.com dns-01');
  assert.equal(await methodsFor({ ...PUBLIC, dcvMethods: ['file'] }), 'a.com http-01');
  assert.equal(await methodsFor({ ...PUBLIC, dcvMethods: ['dns', 'dns-persist'] }), 'b.com dns-01');
  assert.equal(await methodsFor(privateProduct([])), 'a.com http-01 b.com dns-01 c.com tls-alpn-01');
});
