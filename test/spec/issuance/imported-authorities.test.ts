// Authorities of one's own with limits, proven over HTTP and by openssl: extended key usage only, critical name
// constraints, and three tiers with policies. What they may not sign is refused before anything is validated.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { distinguishedName, extension } from '../../../src/adapters/ca/to-be-signed.ts';
import {
  explicit,
  ia5String,
  implicit,
  integer,
  octetString,
  oid,
  sequence,
} from '../../../src/adapters/der/writer.ts';
import { planPending } from '../../../src/domain/issuance/pending.ts';
import { newFolder, startApp } from '../../support/app.ts';
import {
  caChain,
  dnsConstraint,
  type ExternalCa,
  extendedKeyUsage,
  importExternal,
  nameConstraints,
  policies,
  readExternal,
  type Tier,
} from '../../support/authority.ts';
import { rule } from '../../support/contract.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';
import { certificate as requested, order as storedOrder } from '../../support/records.ts';
import { certIdOf, derOf, ocspRequest, pems, postOcsp } from '../../support/status.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
const CODE_SIGNING = '1.3.6.1.5.5.7.3.3';
const OWN_POLICY = '1.3.6.1.4.1.99999.1';
const OTHER_POLICY = '1.3.6.1.4.1.99999.2';
const DOMAIN_VALIDATED = '2.23.140.1.2.1';
const ORGANIZATION_VALIDATED = '2.23.140.1.2.2';
const ANY_POLICY = '2.5.29.32.0';

const ca = (...below: Tier[]): ExternalCa => caChain([{}, ...below], app.now());
const directory = (organization: string) => explicit(4, distinguishedName({ organization }));
/** Address and mask. */
const ip = (...bytes: number[]) => implicit(7, octetString(Uint8Array.from(bytes)));
const requireExplicitPolicy = extension({
  ...{ id: oid('2.5.29.36'), isCritical: true, value: sequence([implicit(0, integer(0))]) },
});

const folder = newFolder();
/** `openssl verify`, with the clock of the app. Returns what it prints; throws if it does not verify. */
function verify(leaf: string, chain: readonly string[], ...options: string[]): string {
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const files = [
    '-CAfile',
    write('root.pem', chain.at(-1)!),
    '-untrusted',
    write('chain.pem', chain.slice(0, -1).join('')),
  ];
  const at = ['-attime', String(Math.floor(app.now() / 1000))];
  const args = ['verify', '-x509_strict', ...at, ...options, ...files, write('leaf.pem', leaf)];
  return execFileSync('openssl', args, { encoding: 'utf8', stdio: 'pipe' });
}

const placeOverHttp = async (product: string, names: readonly string[], headers = {}) => {
  const [common_name, ...dns_names] = names;
  const json = { certificate: { csr: csrFor(), common_name, dns_names, sign_hash: 'sha256' }, dcv_method: 'dns' };
  const key = await app.newKey();
  return { key, ...(await app.call('POST', `/openapi/v3/orders/${product}`, { key, json, headers })) };
};

const shown = async (order: PlacedOrder, id = order.certificateId) => {
  const { pem, ica_pem, root_pem } = await certificate(app, order, id);
  return { pem, chain: [...pems(ica_pem), root_pem as string] };
};

rule('issuer 1', 'An issuer signs for the purposes it was imported for', async () => {
  const external = ca({ extensions: [extendedKeyUsage(SERVER_AUTH)] });
  for (const [purpose, words] of [
    ['code-signing', /does not allow code-signing; it allows public-tls, private-tls$/],
    ['client-auth', /does not allow client-auth/],
  ] as const) {
    assert.throws(() => readExternal(app, external, { purposes: ['public-tls', purpose] }), words);
  }
  const { id } = await importExternal(app, external, { purposes: ['public-tls', 'private-tls'] });
  for (const product of ['ssl-dv', 'tls-private']) {
    const order = await newOrder(app, { product });
    const { pem, chain } = await shown(order);
    assert.match(verify(pem, chain, '-purpose', 'sslserver'), /: OK/);
    assert.deepEqual(new X509Certificate(pem).keyUsage, [SERVER_AUTH], 'no usage that its authority lacks');
    assert.equal(new X509Certificate(chain[0]!).fingerprint256, new X509Certificate(external.chain[0]!).fingerprint256);
  }
  const code = await newOrder(app, { product: 'code-signing', commonName: 'Jane' });
  const found = await app.app.store.certificates.find(code.key.accountId, code.certificateId);
  assert.ok(found?.state === 'issued' && found.preparation.issuerId !== id);
});

const CORP = ca({
  name: { organization: 'Corp', commonName: 'Corp Issuing' },
  extensions: [
    nameConstraints({
      permitted: [
        dnsConstraint('corp.example.com'),
        dnsConstraint('.example.net'),
        ip(10, 0, 0, 0, 255, 0, 0, 0),
        directory('Corp'),
      ],
      excluded: [dnsConstraint('secret.corp.example.com')],
    }),
  ],
});

rule('issuer 2', 'is refused before validation with `invalid_sans`, which names the constraint', async () => {
  await importExternal(app, CORP);
  const outside: [string[], string, string][] = [
    [['www.example.com'], 'certificate.common_name', 'permitted DNS:corp.example.com, DNS:.example.net'],
    [['a.corp.example.com', 'corp.example.com.evil.org'], 'certificate.dns_names', 'permitted DNS:'],
    [['example.net'], 'certificate.common_name', 'permitted DNS:'],
    [['xcorp.example.com'], 'certificate.common_name', 'permitted DNS:'],
    [['a.secret.corp.example.com'], 'certificate.common_name', 'excluded DNS:secret.corp.example.com'],
    [['*.corp.example.com'], 'certificate.common_name', 'excluded DNS:secret.corp.example.com'],
  ];
  for (const [names, field, constraint] of outside) {
    const refused = await placeOverHttp('ssl-dv', names);
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.field],
      [400, 'invalid_sans', field],
      refused.text,
    );
    assert.ok(refused.body.details.constraint.startsWith(constraint), refused.text);
    assert.equal(refused.body.details.name, names.at(-1));
    assert.ok(refused.body.message.includes(names.at(-1)!), refused.text);
    const listed = await app.call('GET', '/openapi/v3/orders', { key: refused.key });
    assert.deepEqual(listed.body.data.orders, [], 'nothing was written down that could be validated');
  }
  const elsewhere = await placeOverHttp('tls-private', ['a.corp.example.com', '192.168.0.1']);
  assert.deepEqual(elsewhere.body.details, { name: '192.168.0.1', constraint: 'permitted IP:10.0.0.0/8' });
  const addressed = await shown(await newOrder(app, { product: 'tls-private', commonName: '10.1.2.3' }));
  assert.match(verify(addressed.pem, addressed.chain, '-verify_ip', '10.1.2.3'), /: OK/);

  const chinese = await placeOverHttp('ssl-dv', ['www.example.com'], { 'accept-language': 'zh-CN' });
  assert.match(chinese.body.message, /名称约束仅允许 DNS:corp\.example\.com/);
  // Waits for validation.
  assert.equal((await placeOverHttp('ssl-dv', ['a.corp.example.com', 'b.example.net'])).status, 200);

  const order = await newOrder(app, { commonName: 'a.corp.example.com', dnsNames: ['*.b.corp.example.com'] });
  const { pem, chain } = await shown(order);
  assert.match(verify(pem, chain, '-purpose', 'sslserver'), /: OK/);
  assert.equal(new X509Certificate(pem).subject, undefined, 'its authority permits subjects of Corp only');
  const change = body({ common_name: 'a.corp.example.com', dns_names: ['www.example.org'] });
  for (const query of ['', '?dry_run=true']) {
    const refused = await reissue(app, order, { ...change, i_know_remove_domain_will_revoke_before_cert: true }, query);
    assert.deepEqual([refused.status, refused.body.code], [400, 'invalid_sans'], refused.text);
  }
  const again = await reissue(app, order, body({ common_name: 'a.corp.example.com' }));
  assert.equal(again.status, 200, again.text);
  await assert.rejects(
    newOrder(app, { product: 'code-signing', commonName: 'Jane' }),
    (error: Error & { facts?: { details?: object } }) => {
      assert.deepEqual(error.facts?.details, { name: 'Jane', constraint: 'permitted DirName:O=corp' });
      return true;
    },
  );
  // A certificate that waited while such an authority was imported goes on waiting.
  const { authority, products } = app.issuance;
  const waited = { ...requested('c'), names: ['www.example.org'], commonName: 'www.example.org' };
  const context = { now: app.now(), product: products.get('ssl-dv')!, isKeyBlocked: false, perspectives: Infinity };
  const issuers = { choose: authority.issuerFor, served: authority.served };
  const termed = storedOrder('o', { termEndsAt: app.now() + 86_400_000 });
  assert.equal(planPending(waited, { ...context, issuers, order: termed }).kind, 'later');
  const inside = { ...waited, names: ['a.corp.example.com'] };
  assert.equal(planPending(inside, { ...context, issuers, order: termed }).kind, 'ready');
  assert.throws(() => verify(pem, [ca({}).chain[0]!, chain[1]!]), 'the verifier is not one that accepts everything');
});

/** What openssl says about the signer of the OCSP response for a certificate. */
async function responderOf(pem: string, chain: readonly string[], ...options: string[]): Promise<string> {
  const serial = new X509Certificate(pem).serialNumber.toLowerCase();
  const { der } = await postOcsp(app, ocspRequest([certIdOf(serial, derOf(chain[0]!))]));
  const [response, root, issuing] = ['ocsp.der', 'ocsp-root.pem', 'ocsp-issuing.pem'].map((name) => join(folder, name));
  writeFileSync(response!, der);
  writeFileSync(root!, chain.at(-1)!);
  writeFileSync(issuing!, chain.slice(0, -1).join(''));
  const at = ['-attime', String(Math.floor(app.now() / 1000))];
  const args = ['ocsp', '-respin', response!, '-CAfile', root!, '-verify_other', issuing!, ...at, ...options];
  const { stdout, stderr } = spawnSync('openssl', args, { encoding: 'utf8' });
  return /Response verify OK/.test(stdout + stderr) ? 'OK' : stderr;
}

rule('issuer 6', 'of an authority with name constraints have no subject outside of them', async () => {
  const limited = (organization: string, permitted: Uint8Array[], excluded: Uint8Array[] = []) =>
    ca({
      name: { organization, commonName: 'Issuing' },
      extensions: [nameConstraints({ permitted: [dnsConstraint('example.com'), ...permitted], excluded })],
    });
  const table: [string, ExternalCa, string, string | undefined][] = [
    // OpenSSL compares the common name 10.1.2.3 with the DNS names that are permitted.
    ['an address', limited('Corp', [ip(10, 0, 0, 0, 255, 0, 0, 0)]), '10.1.2.3', undefined],
    ['a name', limited('Corp', [ip(10, 0, 0, 0, 255, 0, 0, 0)]), 'a.example.com', 'CN=a.example.com'],
    ['an excluded subject', limited('Corp', [], [directory('Rival')]), 'a.example.com', undefined],
    ['subjects of another', limited('Trust Services', [directory('Corp')]), 'a.example.com', undefined],
  ];
  for (const [what, external, commonName, subject] of table) {
    await importExternal(app, external, { purposes: ['private-tls'] });
    const { pem, chain } = await shown(await newOrder(app, { product: 'tls-private', commonName }));
    assert.match(verify(pem, chain, '-purpose', 'sslserver'), /: OK/, what);
    assert.equal(new X509Certificate(pem).subject, subject, what);
    assert.equal(await responderOf(pem, chain), 'OK', what);
  }
  assert.notEqual(await responderOf(CORP.chain[0]!, table[3]![1].chain.toReversed()), 'OK', 'it can fail');
});

rule('issuer 3', 'carry a policy that its chain allows', async () => {
  const tiers = (...own: string[]) =>
    ca(
      { extensions: [policies(OWN_POLICY, OTHER_POLICY, ORGANIZATION_VALIDATED), requireExplicitPolicy] },
      { extensions: [policies(...own)] },
    );
  const one = tiers(OWN_POLICY, ORGANIZATION_VALIDATED);
  await importExternal(app, one);
  for (const product of ['ssl-dv', 'tls-private']) {
    const order = await newOrder(app, { product });
    const { pem, chain } = await shown(order);
    assert.equal(chain.length, 3);
    const options = ['-policy_check', '-explicit_policy', '-policy', OWN_POLICY];
    assert.match(verify(pem, chain, ...options, '-purpose', 'sslserver'), /: OK/);
    assert.equal(await responderOf(pem, chain, ...options), 'OK');
    assert.throws(() => verify(pem, chain, '-policy_check', '-explicit_policy', '-policy', ORGANIZATION_VALIDATED));
  }
  const both = tiers(OWN_POLICY, OTHER_POLICY);
  assert.throws(
    () => readExternal(app, both),
    new RegExp(`several policies, ${OWN_POLICY}, ${OTHER_POLICY}: choose with --policy`),
  );
  assert.throws(() => readExternal(app, both, { policy: '1.2.3' }), /does not allow the policy 1\.2\.3/);
  // What was validated is not the operator's choice, nor is everything at once.
  const free = ca({ extensions: [policies(ANY_POLICY), requireExplicitPolicy] });
  for (const policy of [ORGANIZATION_VALIDATED, DOMAIN_VALIDATED, '2.23.140.1.4.1', ANY_POLICY]) {
    assert.throws(
      () => readExternal(app, free, { policy, purposes: ['private-tls'] }),
      /cannot claim the policy/,
      policy,
    );
  }
  assert.throws(
    () => readExternal(app, free, { policy: ORGANIZATION_VALIDATED, purposes: ['public-tls'] }),
    /cannot claim/,
  );
  assert.throws(() => readExternal(app, free, { purposes: ['private-tls'] }), /allows any: choose one of your own/);
  assert.equal(readExternal(app, free, { policy: OWN_POLICY }).length, 2);
  assert.equal(readExternal(app, free, { policy: DOMAIN_VALIDATED, purposes: ['public-tls'] }).length, 2);
  await importExternal(app, both, { policy: OTHER_POLICY });
  const { pem, chain } = await shown(await newOrder(app));
  assert.match(verify(pem, chain, '-policy_check', '-explicit_policy', '-policy', OTHER_POLICY), /: OK/);
  assert.throws(
    () => readExternal(app, tiers(ORGANIZATION_VALIDATED)),
    /none is valid that certificates for public-tls/,
  );
});

test('an authority whose certificates verifiers would reject is not imported', () => {
  const critical = (id: string, value: Uint8Array) => extension({ id: oid(id), isCritical: true, value });
  const registeredId = implicit(8, octetString(Uint8Array.of(42, 3)));
  const now = app.now();
  const table: [string, ExternalCa, RegExp][] = [
    ['unknown extension', ca({ extensions: [critical('1.2.3.4', sequence([]))] }), /not known here \(1\.2\.3\.4\)/],
    ['pathlen', caChain([{ pathLength: 0 }, {}], now), /allows fewer authorities below it/],
    ['pathlen of the second', caChain([{}, { pathLength: 0 }, {}], now), /allows fewer authorities below it/],
    ['keyUsage', ca({ usage: [0] }), /must be those of authorities/],
    ['keyUsage without CRLs', ca({ usage: [5] }), /cRLSign/],
    [
      'a form of names',
      ca({ extensions: [nameConstraints({ permitted: [registeredId] })] }),
      /form that is not known here \(\[8\]\)/,
    ],
    [
      'a mask with holes',
      ca({ extensions: [nameConstraints({ permitted: [ip(10, 0, 0, 0, 255, 0, 255, 0)] })] }),
      /no prefix/,
    ],
    [
      'mapped policies',
      ca({ extensions: [extension({ id: oid('2.5.29.33'), isCritical: false, value: sequence([]) })] }),
      /maps policies/,
    ],
    [
      'a subject outside',
      ca({ extensions: [nameConstraints({ permitted: [directory('Corp')] })] }, {}),
      /subject of an authority is outside/,
    ],
    ['policy required, none given', ca({ extensions: [requireExplicitPolicy] }), /requires a policy/],
    ['expires', ca({ days: 0.9 }), /ends within a day/],
    ['root expires', caChain([{ days: 0.9 }, {}], now), /ends within a day/],
    ['not valid yet', caChain([{}, {}], now + 2 * 86_400_000), /not valid yet/],
    [
      'too deep',
      caChain(
        Array.from({ length: 9 }, () => ({})),
        now,
      ),
      /more than 8 certificates/,
    ],
    ['a root', caChain([{}], now), /is a root itself/],
    [
      'a chain without root',
      { ...CORP, chain: CORP.chain.slice(0, 1) },
      /lacks the certificate that signed O=Corp, CN=Corp Issuing/,
    ],
    [
      'no subject for a responder',
      ca({ extensions: [nameConstraints({ excluded: [explicit(4, sequence([]))] })] }),
      /no subject for its OCSP responder/,
    ],
    ['no PEM', { ...CORP, chain: ['0\x82'] }, /has no certificate in PEM/],
    ['an encrypted key', { ...CORP, key: CORP.key.replaceAll('PRIVATE', 'ENCRYPTED PRIVATE') }, /the key is encrypted/],
    ['another key', { ...CORP, key: ca({}).key }, /not that of a certificate in the chain/],
  ];
  for (const [what, external, words] of table) assert.throws(() => readExternal(app, external), words, what);
  const harmless = [
    extension({ id: oid('1.2.3.4'), isCritical: false, value: sequence([]) }),
    nameConstraints({ permitted: [registeredId] }, false),
  ];
  assert.equal(readExternal(app, ca({ extensions: harmless })).length, 2);
  const unused = [implicit(6, ia5String('.example.com')), implicit(1, ia5String('example.com'))];
  assert.equal(readExternal(app, ca({ extensions: [nameConstraints({ permitted: unused })] })).length, 2);
  const shuffled = caChain([{}, {}, {}, {}], now);
  assert.equal(readExternal(app, { ...shuffled, chain: shuffled.chain.toReversed() }).length, 4, 'in any order');
  assert.equal(
    readExternal(app, ca({ extensions: [extendedKeyUsage(CLIENT_AUTH, CODE_SIGNING)] }), {
      purposes: ['client-auth', 'code-signing'],
    }).length,
    2,
  );
});
