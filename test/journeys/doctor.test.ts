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
import { newFolder } from '../support/app.ts';
import { caPair } from '../support/authority.ts';
import { rule } from '../support/contract.ts';
import { reseal } from '../support/in-process.ts';
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

async function diagnose(settings: Record<string, string>) {
  const { code, out } = await reseal(['doctor', '--json'], { RESEAL_DNS_SERVERS, ...settings });
  const findings: Diagnostic[] = JSON.parse(out).findings;
  return { code, finding: (check: string) => findings.find((one) => one.check === check), findings };
}

/** A data folder of a service that has run. */
async function usedFolder(): Promise<string> {
  const folder = newFolder();
  assert.equal((await reseal(['account', 'create', 'Acme'], { RESEAL_DATA_DIR: folder })).code, 0);
  // A store that has been served has a probe.
  assert.equal((await diagnose({ RESEAL_DATA_DIR: folder })).code, 0);
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

test('after a run of the service every check is ok', async () => {
  const folder = await usedFolder();
  const { code, findings } = await diagnose({ RESEAL_DATA_DIR: folder });
  assert.equal(code, 0);
  assert.deepEqual(
    findings.map(({ check, state }) => [check, state]),
    [
      ...['configuration', 'products', 'runtime', 'sm2', 'data folder', 'seal key', 'TLS'],
      ...[
        'store',
        'integrity',
        'sealed values',
        'clock',
        'issuers',
        'callbacks',
        'revocation',
        'addresses',
        'resolver',
      ],
    ].map((check) => [check, 'ok']),
  );
  const { out } = await reseal(['doctor'], { RESEAL_DATA_DIR: folder, RESEAL_DNS_SERVERS });
  assert.match(out, /^ok {7}store +up to date, opened with our seal key, a write was made durable$/m);
  assert.match(out, /\n0 problems, 0 warnings\n$/);
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
  const folder = await usedFolder();
  const settings = { RESEAL_DATA_DIR: folder };
  const issuers = async (more = {}) => {
    const { code, finding } = await diagnose({ ...settings, ...more });
    const { state, text, remedy } = finding('issuers') ?? assert.fail();
    return { code, state, text, remedy };
  };
  assert.deepEqual([(await issuers()).state, (await issuers()).text], ['ok', 'none yet; the first start creates them']);
  // The first command that needs issuers creates them.
  const issuing = { ...settings, RESEAL_PUBLIC_URL: 'https://certs.example.com' };
  assert.equal((await reseal(['order', 'validate', 'nobody', 'nothing'], issuing)).code, 1);
  const database = new DatabaseSync(join(folder, 'reseal.db'));
  const now = Date.now();
  const replace = (keyType: string, issuingDays: number) => {
    const certificate = new X509Certificate(caPair('p256', { now, issuingDays }).issuing.pem).raw.toString('base64');
    const update = "update issuer set certificate = ? where role = 'issuing' and key_type = ?";
    database.prepare(update).run(certificate, keyType);
  };
  const dayOf = (moment: Date) => moment.toISOString().slice(0, 10);
  const well = await issuers();
  assert.deepEqual([well.code, well.state], [0, 'ok']);
  const made = database.prepare("select certificate from issuer where role = 'issuing'").all();
  const ends = made.map((row) => new X509Certificate(Buffer.from(String(row.certificate), 'base64')).validToDate);
  assert.equal(well.text, `4 can sign; the first expires on ${ends.map(dayOf).sort()[0]}`);
  const long = productsFile({ ...OWN_PRODUCT, max_validity_days: 3650, term_days: 3650 });
  const short = await issuers({ RESEAL_PRODUCTS_FILE: long });
  assert.deepEqual([short.code, short.state], [0, 'warning'], 'a product wants more than the issuers have');

  replace('p256', 399);
  const soon = await issuers();
  assert.deepEqual([soon.code, soon.state], [0, 'warning']);
  assert.match(
    soon.text,
    new RegExp(
      `^expiring, which shortens the certificates it signs: p256 issuer [0-9a-z]{26} on ${dayOf(new Date(now + 399 * 86_400_000))}$`,
    ),
  );
  assert.match(soon.remedy ?? '', /reseal ca import --certificate /);
  replace('p256', 401);
  assert.equal((await issuers()).state, 'ok');
  replace('p256', 0.9);
  assert.deepEqual([(await issuers()).code, (await issuers()).state], [0, 'warning'], 'RSA stands in');
  replace('rsa', 0.9);
  const none = await issuers();
  assert.deepEqual([none.code, none.state], [1, 'problem']);
  assert.match(none.text, /^no issuer can sign rsa\+sha256, .*p521\+sha512$/);
  assert.match(none.remedy ?? '', /reseal ca import --certificate /);
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
