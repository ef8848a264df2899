// One truth for commands and services: the addresses in certificates are those that the store records, settings come from
// the same file, and commands that need a store never create one.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { COMMANDS } from '../../src/cli/commands.ts';
import { newFolder, newUsedFolder, startApp } from '../support/app.ts';
import { rule } from '../support/contract.ts';
import { bothEngines } from '../support/engines.ts';
import { reseal } from '../support/in-process.ts';
import { nameServer } from '../support/name-server.ts';
import { csrFor } from '../support/orders.ts';
import { type Settings, spawnReseal, startReseal } from '../support/process.ts';

const PUBLIC = 'https://certs.example.com/pki';
const csrFile = join(newFolder(), 'www.csr');
writeFileSync(csrFile, csrFor());

/** Starts a service, waits until it listens, and stops it. */
async function serveOnce(settings: Settings): Promise<string> {
  await using service = startReseal(['serve'], { RESEAL_PORT: '0', ...settings });
  await service.listening();
  await service.end('SIGTERM');
  return service.output;
}

async function json(args: readonly string[], settings: Settings) {
  const { code, out, err } = await reseal([...args, '--json'], settings);
  assert.equal(code, 0, out + err);
  return JSON.parse(out);
}

async function issue(settings: Settings) {
  const { account } = await json(['account', 'create', 'Acme'], settings);
  const place = ['order', 'place', account.id, 'ssl-dv', 'www.example.com', '--csr', csrFile, '--validated'];
  const { order } = await json(place, settings);
  const { pem } = await json(['order', 'show', account.id, order.id], settings);
  return { account, certificate: new X509Certificate(pem) };
}

for (const engine of await bothEngines()) {
  const newStore = async (): Promise<Settings> => {
    const location = await engine.newEmptyLocation();
    return location.kind === 'postgresql'
      ? { RESEAL_DATA_DIR: newFolder(), RESEAL_DATABASE_URL: location.url }
      : { RESEAL_DATA_DIR: await newUsedFolder() };
  };

  rule(
    'command 1',
    'A command uses the addresses that the service recorded in the store; one whose own settings name others stops',
    async () => {
      const store = await newStore();
      const configured = { ...store, RESEAL_PUBLIC_URL: PUBLIC, RESEAL_PKI_URL: 'http://pki.example.com' };
      await serveOnce(configured);
      // A shell without the service's variables.
      const { account, certificate } = await issue(store);
      assert.match(certificate.infoAccess ?? '', /OCSP - URI:http:\/\/pki\.example\.com\/ocsp\n/);
      const waiting = await json(['order', 'place', account.id, 'ssl-dv', 'new.example.org', '--csr', csrFile], store);
      assert.equal(waiting.order.status, 'domain_verifing');
      const other = { ...store, RESEAL_PUBLIC_URL: 'http://127.0.0.1:8080' };
      for (const args of [
        ['cert', 'revoke', account.id, 'nothing'],
        ['order', 'show', account.id, waiting.order.id],
      ]) {
        const { code, err } = await reseal(args, other);
        assert.equal(code, 3, err);
        assert.match(
          err,
          /RESEAL_PUBLIC_URL is http:\/\/127\.0\.0\.1:8080 here, and https:\/\/certs\.example\.com\/pki in the store/,
        );
        assert.match(err, /What to do: .*reseal address set/);
      }
      const { code, out } = await reseal(['doctor'], other);
      assert.deepEqual([code, /PROBLEM +addresses .*other addresses/.test(out)], [1, true], out);
    },
  );
}

rule(
  'command 2',
  'A second instance whose settings name other addresses does not start, and says which differ',
  async () => {
    const store = { RESEAL_DATA_DIR: await newUsedFolder() };
    await serveOnce({ ...store, RESEAL_PUBLIC_URL: PUBLIC, RESEAL_ISSUER_NAMES: 'ca.example.com' });
    const { code, err } = await spawnReseal(['serve'], {
      ...{ ...store, RESEAL_PORT: '0', RESEAL_PUBLIC_URL: 'https://other.example.com' },
      RESEAL_ISSUER_NAMES: 'ca.example.net',
    });
    assert.equal(code, 3);
    assert.match(
      err,
      /RESEAL_PUBLIC_URL is https:\/\/other\.example\.com here, and https:\/\/certs\.example\.com\/pki/,
    );
    assert.match(err, /RESEAL_ISSUER_NAMES is ca\.example\.net here, and ca\.example\.com in the store/);
    // One that names none uses what is recorded.
    assert.match(await serveOnce(store), new RegExp(`listening.* as ${PUBLIC}`));
  },
);

rule(
  'command 3',
  '`address set` says what an address change breaks, and changes nothing before it is confirmed',
  async () => {
    const store = { RESEAL_DATA_DIR: await newUsedFolder() };
    const configured = { ...store, RESEAL_PUBLIC_URL: PUBLIC };
    await serveOnce(configured);
    const set = ['address', 'set', '--public-url', 'https://new.example.com'];
    const asked = await reseal(set, store);
    assert.equal(asked.code, 2);
    assert.match(asked.out, /Persistent DNS records name account URIs/);
    assert.match(
      asked.out,
      /RESEAL_PKI_URL\n {2}from http:\/\/certs\.example\.com\/pki\n {2}to {3}http:\/\/new\.example\.com\n/,
    );
    const { addresses } = await json(['address', 'show'], store);
    assert.deepEqual(addresses[0], {
      ...{ name: 'public_url', variable: 'RESEAL_PUBLIC_URL', value: PUBLIC, configured: true },
    });
    assert.equal((await reseal([...set, '--yes'], store)).code, 0);
    const { audit } = await json(['audit', '--limit', '10'], store);
    assert.ok(
      JSON.stringify(audit).includes('address:changed') && JSON.stringify(audit).includes('https://new.example.com'),
      JSON.stringify(audit),
    );
    assert.equal((await spawnReseal(['serve'], { ...configured, RESEAL_PORT: '0' })).code, 3, 'the old address');
    const { certificate } = await issue(store);
    assert.match(certificate.infoAccess ?? '', /OCSP - URI:http:\/\/new\.example\.com\/ocsp\n/);
    await serveOnce({ ...store, RESEAL_PUBLIC_URL: 'https://new.example.com' });
  },
);

test('derived addresses are used by commands, and bind no later start', async () => {
  const settings = { RESEAL_DATA_DIR: await newUsedFolder() };
  const said = await serveOnce({ ...settings, RESEAL_HOST: '127.0.0.2' });
  assert.match(said, /"event":"warning".*RESEAL_PUBLIC_URL is not set/);
  const { certificate } = await issue(settings);
  assert.match(certificate.infoAccess ?? '', /OCSP - URI:http:\/\/127\.0\.0\.2:0\/ocsp\n/);
  await serveOnce({ ...settings, RESEAL_HOST: '127.0.0.3' });
  const { addresses } = await json(['address', 'show'], settings);
  assert.deepEqual([addresses[0].value, addresses[0].configured], ['http://127.0.0.3:0', false]);
  const doctor = await reseal(['doctor'], { ...settings, RESEAL_DNS_SERVERS: await nameServer() });
  assert.match(doctor.out, /WARNING {2}addresses +derived/);
  // The first configured address takes over, and binds.
  await serveOnce({ ...settings, RESEAL_PUBLIC_URL: PUBLIC });
  assert.equal((await spawnReseal(['serve'], { ...settings, RESEAL_PUBLIC_URL: 'http://x.example' })).code, 3);
});

test('before the first start, a command that issues needs the public URL, and records it', async () => {
  const settings = { RESEAL_DATA_DIR: newFolder() };
  const { account } = await json(['account', 'create', 'Acme'], settings);
  const place = ['order', 'place', account.id, 'ssl-dv', 'www.example.com', '--csr', csrFile, '--validated'];
  const { code, err } = await reseal(place, settings);
  assert.equal(code, 3);
  assert.match(err, /no service has run on this store yet, and RESEAL_PUBLIC_URL is not set/);
  assert.deepEqual((await json(['ca', 'list'], settings)).issuers, [], 'no issuer was created');
  await json(place, { ...settings, RESEAL_PUBLIC_URL: PUBLIC });
  assert.equal((await spawnReseal(['serve'], { ...settings, RESEAL_PUBLIC_URL: 'http://x.example' })).code, 3);
});

rule(
  'command 4',
  'A command creates no folder, database, table or key unless it is one that sets up a service',
  async () => {
    const setsUp = Object.keys(COMMANDS).filter((name) => COMMANDS[name]?.store === 'creates');
    assert.deepEqual(setsUp, [
      ...['sandbox', 'serve', 'account create', 'operator create', 'ca import', 'blocklist import', 'restore'],
    ]);
    for (const engine of await bothEngines()) {
      const location = await engine.newEmptyLocation();
      const database = location.kind === 'postgresql' ? { RESEAL_DATABASE_URL: location.url } : {};
      for (const [name, { positionals, store, options }] of Object.entries(COMMANDS)) {
        const isWorld = /^sandbox (dns|http) set$/.test(name);
        if (store === 'creates' || isWorld) continue;
        const parent = newFolder();
        const settings = { RESEAL_DATA_DIR: join(parent, 'data'), ...database };
        const args = [...name.split(' '), ...positionals, ...('yes' in options ? ['--yes'] : [])];
        const { code, out, err } = await reseal(args, { ...settings, RESEAL_PUBLIC_URL: PUBLIC });
        assert.deepEqual(readdirSync(parent), [], `${name} created something`);
        assert.notEqual(code, 70, `${name}: ${out}${err}`);
        if (store === 'existing') assert.notEqual(code, 0, `${name} found a store where there is none`);
      }
    }
  },
);

test('a command names the store it uses, beside its output and without credentials', async () => {
  await using app = await startApp();
  const settings = { RESEAL_DATA_DIR: app.folder };
  const { out, err } = await reseal(['account', 'list', '--json'], settings);
  assert.equal(err, `reseal: store ${join(app.folder, 'reseal.db')}\n`);
  assert.deepEqual(JSON.parse(out), { accounts: [] });
  const remote = { ...settings, RESEAL_DATABASE_URL: 'postgres://user:s3cr3t@127.0.0.1:1/reseal?password=s3cr3t' };
  const refused = await reseal(['account', 'list'], remote);
  assert.equal(refused.code, 4);
  assert.match(refused.err, /^reseal: store postgres:\/\/127\.0\.0\.1:1\/reseal\n/);
  assert.doesNotMatch(refused.err, /s3cr3t/);
});

test('a store of an older version is not migrated by a command', async () => {
  const settings = { RESEAL_DATA_DIR: newFolder() };
  await json(['account', 'create', 'Acme'], settings);
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(join(settings.RESEAL_DATA_DIR, 'reseal.db'));
  database.exec('delete from migration where number = (select max(number) from migration)');
  database.close();
  const { code, err } = await reseal(['account', 'list'], settings);
  assert.equal(code, 4);
  assert.match(err, /1 migrations are pending, and only a start applies them\nWhat to do: Back up the store/);
});

const envFile = (text: string): string => {
  const file = join(newFolder(), 'reseal.env');
  writeFileSync(file, text);
  return file;
};

rule('command 5', 'Every command takes its settings from a file as well, and says from which', async () => {
  await using app = await startApp();
  const file = envFile(`# the service\n; of systemd\n\nRESEAL_DATA_DIR='${app.folder}'\nRESEAL_CA_NAME="Acme Ltd"\n`);
  const line = `reseal: settings from ${file}\n`;
  for (const [args, settings] of [
    [['account', 'list', '--env-file', file], {}],
    [['account', 'list'], { RESEAL_ENV_FILE: file }],
    [['account', 'list', '--env-file', file], { RESEAL_DATA_DIR: app.folder }],
  ] as const) {
    const { code, err } = await reseal(args, settings);
    assert.deepEqual([code, err.startsWith(line)], [0, true], err);
    assert.ok(err.includes(`reseal: store ${app.folder}`), err);
  }
  const differs = await reseal(['account', 'list', '--env-file', file], { RESEAL_DATA_DIR: '/elsewhere' });
  assert.deepEqual([differs.code, existsSync('/elsewhere')], [3, false]);
  assert.match(differs.err, /RESEAL_DATA_DIR in the environment differs from /);
});

test('a settings file that systemd and a shell would read differently is refused, with the line', async () => {
  for (const bad of [
    'export RESEAL_PORT=1',
    'RESEAL_CA_NAME=Acme Ltd',
    'RESEAL_CA_NAME=$HOME',
    'RESEAL_PORT',
    "RESEAL_CA_NAME='a",
  ]) {
    const { code, err } = await reseal(['account', 'list', '--env-file', envFile(`RESEAL_HOST=x\n${bad}\n`)]);
    assert.deepEqual([code, /line 2 of .* is not NAME=value/.test(err)], [3, true], `${bad}: ${err}`);
  }
  const nowhere = '/nowhere/reseal.env';
  const { code, err } = await reseal(['account', 'list', '--env-file', nowhere]);
  assert.deepEqual([code, err.includes(`settings file ${nowhere} cannot be read (ENOENT)`)], [3, true], err);
  const doctor = await reseal(['doctor', '--env-file', nowhere]);
  assert.deepEqual([doctor.code, /PROBLEM +configuration +the settings file/.test(doctor.out)], [1, true], doctor.out);
});
