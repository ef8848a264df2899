import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import dgram from 'node:dgram';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import packet from 'dns-packet';
import type { Diagnostic } from '../../src/kernel/problem.ts';
import { newFolder, newUsedFolder } from '../support/app.ts';
import { caChain } from '../support/authority.ts';
import { rule } from '../support/contract.ts';
import { reseal } from '../support/in-process.ts';
import { lintersFile } from '../support/linters.ts';
import { OWN_PRODUCT, productsFile } from '../support/products.ts';
import { type Datagram, nameOf, response, ScriptedNameServer } from '../support/scripted-name-server.ts';
import { selfSigned } from '../support/self-signed.ts';

/** Answers every query with NXDOMAIN, which counts as an answer, and validates DNSSEC. */
const NXDOMAIN = packet.RECURSION_AVAILABLE | 3;
const unsigned = ({ query, send }: Datagram) => send(response(query, [], { flags: NXDOMAIN }));
const validating = (datagram: Datagram) => {
  const isBogus = nameOf(datagram.query).toLowerCase() === 'dnssec-failed.org';
  if (!isBogus) return unsigned(datagram);
  datagram.send(response(datagram.query, [], { flags: packet.RECURSION_AVAILABLE | 2 }));
};
const dns = await ScriptedNameServer.start({ udp: validating });
after(() => dns[Symbol.asyncDispose]());
const RESEAL_DNS_SERVERS = dns.address;

/** No dated rule changes within 60 days. */
const QUIET = Date.parse('2026-11-15T12:00:00Z');

async function diagnose(settings: Record<string, string>, now = Date.now) {
  const { code, out } = await reseal(['doctor', '--json'], { RESEAL_DNS_SERVERS, ...settings }, now);
  const findings: Diagnostic[] = JSON.parse(out).findings;
  return { code, finding: (check: string) => findings.find((one) => one.check === check), findings };
}

/** A data folder of a service that has run. */
async function usedFolder(now = Date.now): Promise<string> {
  const folder = newFolder();
  assert.equal((await reseal(['account', 'create', 'Acme'], { RESEAL_DATA_DIR: folder }, now)).code, 0);
  // A store that has been served has a probe.
  assert.equal((await diagnose({ RESEAL_DATA_DIR: folder }, now)).code, 0);
  return folder;
}

test('before the first start the doctor reports no problem and creates nothing', async () => {
  const folder = join(newFolder(), 'data');
  const { code, finding } = await diagnose({ RESEAL_DATA_DIR: folder });
  assert.equal(code, 0);
  for (const check of ['data folder', 'seal key', 'store'])
    assert.match(finding(check)?.text ?? '', /does not exist yet/);
  assert.equal(existsSync(folder), false);
});

test('a store of an older version is checked but not migrated', async () => {
  const folder = await usedFolder();
  const database = new DatabaseSync(join(folder, 'reseal.db'));
  database.exec('delete from migration where number = (select max(number) from migration)');
  const { finding } = await diagnose({ RESEAL_DATA_DIR: folder });
  assert.deepEqual(
    [finding('store')?.state, finding('store')?.text],
    ['warning', '1 migrations are pending; the next start applies them'],
  );
  database.close();
});

test('linters: a product without one is a problem, one that gives no answer too, and what answers is ok', async () => {
  const gated = { ...OWN_PRODUCT, id: 'gated', requires_lint: true };
  const stateWith = async (linters?: string) => {
    const settings = { RESEAL_DATA_DIR: newFolder(), RESEAL_PRODUCTS_FILE: productsFile(gated) };
    const { findings } = await diagnose({
      ...settings,
      ...(linters !== undefined && { RESEAL_LINTERS_FILE: linters }),
    });
    const { state, text } = findings.find(({ check }) => check === 'linters')!;
    return `${state}: ${text}`;
  };
  assert.equal(await stateWith(), 'problem: gated cannot be issued: no linter is configured');
  assert.equal(await stateWith(lintersFile()), 'ok: test-linter; required by gated');
  const mute = { name: 'mute', format: 'zlint', command: [process.execPath, '-e', '0'] };
  assert.equal(await stateWith(lintersFile(mute)), 'problem: mute: it printed nothing');
});

test('after a run of the service every check is ok', async () => {
  const now = () => QUIET;
  const folder = await usedFolder(now);
  const { code, findings } = await diagnose({ RESEAL_DATA_DIR: folder }, now);
  assert.equal(code, 0);
  assert.deepEqual(
    findings.map(({ check, state }) => [check, state]),
    [
      ...['configuration', 'products', 'public rules', 'runtime', 'sm2', 'data folder', 'seal key', 'TLS'],
      ...[
        'store',
        'integrity',
        'sealed values',
        'clock',
        'issuers',
        'callbacks',
        'revocation',
        'addresses',
        'tokens',
        'linters',
        'resolver',
      ],
    ].map((check) => [check, 'ok']),
  );
  const { out } = await reseal(['doctor'], { RESEAL_DATA_DIR: folder, RESEAL_DNS_SERVERS }, now);
  assert.match(out, /^ok {7}store +up to date, opened with our seal key, a write was made durable$/m);
  assert.match(out, /\n0 problems, 0 warnings\n$/);
});

rule('ops 51', '`reseal doctor` and the metrics tell of a dated rule that will limit products on offer', async () => {
  const told = async (moment: string, settings: Record<string, string> = {}) => {
    const now = () => Date.parse(moment);
    const { code, finding } = await diagnose({ RESEAL_DATA_DIR: join(newFolder(), 'data'), ...settings }, now);
    const { state, text, remedy } = finding('public rules')!;
    assert.equal(code, state === 'problem' ? 1 : 0);
    return `${state}: ${text} ${remedy ?? ''}`;
  };
  const ALL = 'ssl-dv, ssl-dv-add, ssl-dv-fixed, ssl-dv-replace';
  assert.match(await told('2027-01-13T22:00:00Z'), /^ok: certificates below 200 days, proofs for 200 days; 0 of 5/);
  const first = `warning: from 2027-03-15 certificates of at most 99 days (${ALL}); from 2027-03-15 proofs that serve for at most 100 days (${ALL}) Shortened`;
  for (const moment of ['2027-01-14T00:00:00Z', '2027-03-14T22:59:59Z']) {
    assert.ok((await told(moment)).startsWith(first), await told(moment));
  }
  assert.match(await told('2027-03-20T00:00:00Z'), /^ok: certificates below 100 days, proofs for 100 days/);
  assert.match(await told('2029-01-14T00:00:00Z'), /^warning: from 2029-03-15 .* 46 days .* 10 days/);
  assert.match(await told('2029-03-20T00:00:00Z'), /^ok: certificates below 47 days, proofs for 10 days/);

  // A stricter product is not affected. The number of perspectives matters where it is enforced.
  const own = { ...OWN_PRODUCT, trust: 'public', csr: 'required', max_validity_days: 99, reuse_days: 101 };
  const RESEAL_PRODUCTS_FILE = productsFile(own);
  assert.match(
    await told('2027-01-14T00:00:00Z', { RESEAL_PRODUCTS_FILE }),
    /99 days \([^)]*replace\).* 100 days \(.*, own\)/,
  );
  const four = ['1', '2', '3', '4'].map((one) => `192.0.2.${one}`).join();
  const enforced = { RESEAL_REQUIRE_PERSPECTIVES: 'true', RESEAL_DNS_PERSPECTIVES: four };
  assert.match(await told('2026-10-01T00:00:00Z', enforced), /^ok: .*; 4 of 4 remote perspectives $/);
  assert.match(await told('2026-11-15T00:00:00Z', enforced), /^warning: from 2026-12-15 no certificate without 5 /);
  assert.match(await told('2026-12-15T00:00:00Z', enforced), /^problem: 5 remote .* and 4 configured: ssl-dv, .* Add/);
  assert.match(await told('2026-12-15T00:00:00Z'), /^ok: .*; 0 of 5 remote perspectives, not enforced/);
});

test('configuration: a malformed variable is a problem, an unknown one a warning', async () => {
  const bad = await diagnose({ RESEAL_DATA_DIR: newFolder(), RESEAL_PORT: 'x' });
  assert.equal(bad.code, 1);
  assert.match(bad.finding('configuration')?.text ?? '', /RESEAL_PORT \(port to listen on\) must be a whole number/);
  const odd = await diagnose({ RESEAL_DATA_DIR: newFolder(), RESEAL_PROT: '1' });
  assert.equal(odd.code, 0);
  assert.deepEqual([odd.finding('configuration')?.state, odd.finding('store')?.state], ['warning', 'ok']);
});

test('permissions: a key that others can read is a problem, with the command that fixes it', async () => {
  const folder = await usedFolder();
  const key = join(folder, 'seal.key');
  chmodSync(key, 0o644);
  const { code, finding, findings } = await diagnose({ RESEAL_DATA_DIR: folder });
  assert.equal(code, 1);
  assert.deepEqual([finding('seal key')?.state, finding('seal key')?.remedy], ['problem', `chmod 600 ${key}`]);
  assert.equal(
    findings.some(({ check }) => check === 'store'),
    false,
  );
  chmodSync(key, 0o600);
  chmodSync(folder, 0o777);
  assert.match((await diagnose({ RESEAL_DATA_DIR: folder })).finding('data folder')?.remedy ?? '', /^chmod go-w /);
  chmodSync(folder, 0o755);
  chmodSync(join(folder, 'reseal.db'), 0o644);
  assert.match(
    (await diagnose({ RESEAL_DATA_DIR: folder })).finding('data folder')?.remedy ?? '',
    /^chmod go-rwx .*reseal\.db/,
  );
  chmodSync(join(folder, 'reseal.db'), 0o600);
  const listed = (await diagnose({ RESEAL_DATA_DIR: folder })).finding('data folder');
  assert.deepEqual([listed?.state, listed?.remedy], ['warning', `chmod 700 ${folder}`], '0755 is not private');
});

test('store: a newer or missing database is a problem', async () => {
  const folder = await usedFolder();
  const database = new DatabaseSync(join(folder, 'reseal.db'));
  database.exec("insert into migration values (9999, 'from-the-future', 'x', 0)");
  database.close();
  const newer = await diagnose({ RESEAL_DATA_DIR: folder });
  assert.match(newer.finding('store')?.text ?? '', /newer than this Reseal: it has migration 9999 \(from-the-future\)/);
  const absent = await diagnose({ RESEAL_DATA_DIR: newFolder(), RESEAL_DATABASE_URL: 'postgres://127.0.0.1:1/x' });
  assert.equal(absent.finding('store')?.state, 'problem');
  const moved = await usedFolder();
  rmSync(join(moved, 'seal.key'));
  assert.match((await diagnose({ RESEAL_DATA_DIR: moved })).finding('store')?.text ?? '', /seal key is missing/);
  const broken = newFolder();
  mkdirSync(join(broken, 'reseal.db'));
  assert.match((await diagnose({ RESEAL_DATA_DIR: broken })).finding('store')?.text ?? '', /cannot be used/);
  const garbage = newFolder();
  writeFileSync(join(garbage, 'reseal.db'), 'this is not a database, it only looks like a file of the right name');
  const { finding, code } = await diagnose({ RESEAL_DATA_DIR: garbage });
  assert.deepEqual([code, finding('store')?.state], [1, 'problem']);
});

test('clock: a clock that went back is a problem', async () => {
  const folder = await usedFolder();
  const database = new DatabaseSync(join(folder, 'reseal.db'));
  database.exec(`update setting set value = '${Date.now() + 3_600_000}' where name = 'last_write_probe'`);
  database.close();
  const { finding } = await diagnose({ RESEAL_DATA_DIR: folder });
  assert.deepEqual([finding('clock')?.state, /went back/.test(finding('clock')?.text ?? '')], ['problem', true]);
});

test('issuers: an expiring issuer is a warning, and a problem if no other can replace it', async () => {
  const folder = await newUsedFolder();
  const issuers = async (more = {}) => {
    const { code, finding } = await diagnose({ RESEAL_DATA_DIR: folder, ...more });
    const { state, text, remedy } = finding('issuers') ?? assert.fail();
    return { code, state, text, remedy };
  };
  const unused = await issuers({ RESEAL_DATA_DIR: await usedFolder() });
  assert.deepEqual([unused.state, unused.text], ['ok', 'none yet; each is made when it is first needed']);
  const database = new DatabaseSync(join(folder, 'reseal.db'));
  const now = Date.now();
  const replace = (keyType: string, issuingDays: number) => {
    const certificate = new X509Certificate(caChain([{}, { days: issuingDays }], now).chain[0]!).raw.toString('base64');
    const update = "update issuer set certificate = ? where role = 'issuing' and key_type = ?";
    database.prepare(update).run(certificate, keyType);
  };
  const dayOf = (moment: Date) => moment.toISOString().slice(0, 10);
  const well = await issuers();
  assert.deepEqual([well.code, well.state], [0, 'ok']);
  const made = database.prepare("select certificate from issuer where role = 'issuing'").all();
  const ends = made.map((row) => new X509Certificate(Buffer.from(String(row.certificate), 'base64')).validToDate);
  assert.equal(well.text, `${made.length} can sign; the first expires on ${ends.map(dayOf).sort()[0]}`);
  const long = productsFile({ ...OWN_PRODUCT, max_validity_days: 3650, term_days: 3650 });
  const short = await issuers({ RESEAL_PRODUCTS_FILE: long });
  assert.deepEqual([short.code, short.state], [0, 'warning'], 'a product wants more than the issuers have');

  replace('p256', 399);
  const soon = await issuers();
  assert.deepEqual([soon.code, soon.state], [0, 'warning']);
  assert.match(
    soon.text,
    new RegExp(
      `^expiring, which shortens the certificates it signs: p256 issuer [0-9a-z]{26} for public-tls on ${dayOf(new Date(now + 399 * 86_400_000))}; .* for document-signing on `,
    ),
  );
  assert.match(soon.remedy ?? '', /reseal ca import --for PURPOSE /);
  replace('p256', 401);
  assert.equal((await issuers()).state, 'ok');
  replace('p256', 0.9);
  assert.deepEqual([(await issuers()).code, (await issuers()).state], [0, 'warning'], 'RSA stands in');
  replace('rsa', 0.9);
  const none = await issuers();
  assert.deepEqual([none.code, none.state], [1, 'problem']);
  assert.match(none.text, /^no issuer can sign rsa\+sha256 for public-tls, .*p521\+sha512 for document-signing/);
  assert.match(none.remedy ?? '', /reseal ca import --for PURPOSE /);
  database.close();
});

test('products: an unusable file is a problem, and the other checks still run', async () => {
  const folder = await usedFolder();
  const RESEAL_PRODUCTS_FILE = productsFile({ ...OWN_PRODUCT, term_days: 0 });
  const { code, finding } = await diagnose({ RESEAL_DATA_DIR: folder, RESEAL_PRODUCTS_FILE });
  assert.deepEqual([code, finding('products')?.state, finding('issuers')?.state], [1, 'problem', 'ok']);
  assert.match(finding('products')?.text ?? '', /products\[0\]\.term_days/);
});

rule('ops 50', 'reports a resolver that answers as a problem', async () => {
  await using other = await ScriptedNameServer.start({ udp: unsigned });
  const RESEAL_DATA_DIR = newFolder();
  const stateOf = async (settings: Record<string, string>) => {
    const { code, findings } = await diagnose({ RESEAL_DATA_DIR, ...settings });
    return [code, ...findings.flatMap(({ check, state, text }) => (check === 'resolver' ? [`${state} ${text}`] : []))];
  };
  const ok = `ok ${dns.address} answers and validates DNSSEC`;
  const bad = `problem ${other.address} does not validate DNSSEC: it answers for dnssec-failed.org, whose signatures are wrong`;
  assert.deepEqual(await stateOf({}), [0, ok]);
  assert.deepEqual(await stateOf({ RESEAL_DNS_SERVERS: `${dns.address},${other.address}` }), [1, ok, bad]);
  assert.deepEqual(await stateOf({ RESEAL_DNS_PERSPECTIVES: other.address }), [1, ok, bad]);
  // The name is a setting: this resolver answers for it, as it does for every other.
  const [code, told] = await stateOf({ RESEAL_DNSSEC_TEST_NAME: 'broken.example' });
  assert.deepEqual([code, /does not validate DNSSEC: it answers for broken\.example/.test(String(told))], [1, true]);
  // A failure of the resolver proves nothing.
  other.script = { udp: ({ query, send }) => send(response(query, [], { flags: packet.RECURSION_AVAILABLE | 2 })) };
  const broken = `warning ${other.address} cannot resolve example.com (dns_servfail)`;
  assert.deepEqual(await stateOf({ RESEAL_DNS_SERVERS: other.address }), [0, broken]);
  // What is cached for long goes on authorizing.
  const lasting = { type: 'TXT', ttl: 3_600, data: 'x' } as const;
  other.script = {
    udp: (datagram) =>
      nameOf(datagram.query).toLowerCase() === 'example.com'
        ? datagram.send(response(datagram.query, [{ ...lasting, name: nameOf(datagram.query) }]))
        : validating(datagram),
  };
  assert.match(String((await stateOf({ RESEAL_DNS_SERVERS: other.address }))[1]), /^warning .* caches for 3600 s/);
});

test('resolver: a timeout is a warning', async () => {
  const silent = dgram.createSocket('udp4').bind(0, '127.0.0.1');
  await once(silent, 'listening');
  const { code, finding } = await diagnose({
    RESEAL_DATA_DIR: newFolder(),
    RESEAL_DNS_SERVERS: `127.0.0.1:${(silent.address() as AddressInfo).port}`,
  });
  silent.close();
  assert.deepEqual([code, finding('resolver')?.state], [0, 'warning']);
  assert.match(finding('resolver')?.remedy ?? '', /RESEAL_DNS_SERVERS/);
});

test('TLS: a mismatched, expired or missing pair is a problem', async () => {
  const day = 86_400_000;
  const [good, other] = [selfSigned('a.example'), selfSigned('b.example')];
  const past = selfSigned('c.example', Date.now() - 10 * day, day);
  const soon = selfSigned('d.example', Date.now(), 3 * day);
  const state = async (cert: string, key: string) =>
    (await diagnose({ RESEAL_DATA_DIR: newFolder(), RESEAL_TLS_CERT_FILE: cert, RESEAL_TLS_KEY_FILE: key })).finding(
      'TLS',
    )?.state;
  assert.equal(await state(good.certFile, good.keyFile), 'ok');
  assert.equal(await state(good.certFile, other.keyFile), 'problem');
  assert.equal(await state(past.certFile, past.keyFile), 'problem');
  assert.equal(await state(soon.certFile, soon.keyFile), 'warning');
  assert.equal(await state('/nowhere.pem', good.keyFile), 'problem');
  assert.equal(existsSync('/nowhere.pem'), false);
});
