// The first start of a sandbox, with the real program.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { announcement } from '../../src/sandbox/announce.ts';
import type { SandboxFile } from '../../src/sandbox/folder.ts';
import { newFolder, newUsedFolder } from '../support/app.ts';
import { rule } from '../support/contract.ts';
import { reseal } from '../support/in-process.ts';
import { OLDER_NODE } from '../support/older-node.ts';
import { spawnReseal, startReseal } from '../support/process.ts';
import { RawConnection } from '../support/raw-http.ts';

const settingsFor = (folder: string) => ({ RESEAL_DATA_DIR: folder, RESEAL_PORT: '0' });
const sandboxFile = (folder: string) => JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8'));

/** With RESEAL_PORT=0 every start uses other free ports. */
const withoutPorts = (value: unknown) => JSON.parse(JSON.stringify(value).replace(/:\d+\//g, ':PORT/'));

/** Starts a sandbox. Resolves once sandbox.json exists and the greeting is printed. */
async function started(folder: string, extra: Record<string, string> = {}) {
  const running = startReseal(['sandbox'], { ...settingsFor(folder), ...extra });
  const url = await running.listening();
  await running.said(/Stop with Ctrl-C/);
  return { running, url, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}

/** The first start in an empty folder, shared by the tests that only read it. */
const folder = newFolder();
const sandbox = await started(folder);
after(() => sandbox[Symbol.asyncDispose]());

test('the greeting shows a request, which works when pasted', async () => {
  const greeting = sandbox.running.output;
  const [, url, keyId, authKey] =
    /curl -s (\S+) \\\n\s+-H 'X-CC-Key-ID: (\S+)' \\\n\s+-H 'X-CC-Auth-Key: (\S+)'/.exec(greeting) ?? [];
  const answer = await fetch(url ?? '', { headers: { 'X-CC-Key-ID': keyId ?? '', 'X-CC-Auth-Key': authKey ?? '' } });
  assert.equal(answer.status, 200);
  assert.match(greeting, /Only because this is a sandbox:/);
});

rule(
  'console 28',
  'its greeting has a sign-in link on a terminal, and the address and the command for a link elsewhere',
  async () => {
    const greeting = sandbox.running.output;
    assert.match(
      greeting,
      new RegExp(`^Console +${sandbox.url}/console/ +\\(a link to sign in: .* console login\\)$`, 'm'),
    );
    assert.doesNotMatch(greeting, /#login=/, 'this output is no terminal');
    const { out } = await reseal(['console', 'login', '--json'], settingsFor(folder), Date.now, true);
    const { url, operator } = JSON.parse(out);
    assert.deepEqual([operator, url.split('#')[0]], ['sandbox', `${sandbox.url}/console/`]);
    const text = announcement(sandboxFile(folder), 'sandbox.json', { p256: '', sm2: '' }, url);
    assert.ok(text.includes(`Console          ${url}\n`));
    const answer = await fetch(`${sandbox.url}/console/api/operator-session`, {
      method: 'POST',
      headers: { origin: sandbox.url, 'content-type': 'application/json' },
      body: JSON.stringify({ token: url.split('#login=')[1] }),
    });
    assert.equal(answer.status, 200);
  },
);

test('the doctor finds no problem in a new sandbox, and asks no resolver outside', async () => {
  const { code, out } = await spawnReseal(['doctor'], { ...settingsFor(folder), RESEAL_DNS_SERVERS: '' });
  assert.deepEqual([code, /resolver +127\.0\.0\.1:\d+, the name server of this sandbox/.test(out)], [0, true], out);
});

test('only the owner can read the files of the service', () => {
  for (const name of ['reseal.db', 'reseal.db-wal', 'seal.key', 'sandbox.json']) {
    assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name);
  }
});

test('sandbox.json, which scripts read, is private, complete and correct', async () => {
  assert.equal(statSync(join(folder, 'sandbox.json')).mode & 0o777, 0o600);
  const file = sandboxFile(folder);
  assert.deepEqual(Object.keys(file), [
    'base_url',
    'accounts',
    'orders',
    'receiver',
    'trust',
    'dns',
    'web',
    'challenges',
    'acme',
  ]);
  assert.equal(file.base_url, sandbox.url);
  assert.deepEqual(
    file.accounts.map(({ kind, credentials, callback }: SandboxFile['accounts'][number]) => [
      kind,
      credentials.map((one) => one.kind),
      callback && [callback.url, callback.disabled, callback.enabled_actions],
    ]),
    [
      [
        'standard',
        ['standard', 'cloud_manager_token', 'lite_client_oauth', 'integration_key'],
        [file.receiver.url, false, undefined],
      ],
      ['managed_pki', ['standard'], [file.receiver.url, false, undefined]],
      ['standard', ['standard'], null],
      ['standard', ['standard'], [file.receiver.url, true, ['order:revoked']]],
    ],
  );
  for (const { id, kind, credentials } of file.accounts) {
    for (const { kind: credentialKind, key_id, auth_key } of credentials) {
      const headers = { 'X-CC-Key-ID': key_id, 'X-CC-Auth-Key': auth_key };
      const { data } = (await (await fetch(`${sandbox.url}/openapi/v3/account`, { headers })).json()) as {
        data: { account: { id: string; kind: string }; credential: { kind: string } };
      };
      assert.deepEqual([data.account.id, data.account.kind, data.credential.kind], [id, kind, credentialKind]);
    }
  }
});

test('ids and keys stay the same over a restart, a kill and a lost sandbox.json; a reset makes new ones', async () => {
  const folder = newFolder();
  const { accounts } = await (async () => {
    await using sandbox = await started(folder);
    const file = sandboxFile(folder);
    assert.equal(await sandbox.running.end('SIGINT'), 0);
    return file;
  })();
  rmSync(join(folder, 'sandbox.json'));
  {
    await using sandbox = await started(folder);
    assert.deepEqual(withoutPorts(sandboxFile(folder).accounts), withoutPorts(accounts));
    await sandbox.running.end('SIGKILL');
  }
  {
    await using sandbox = await started(folder);
    assert.deepEqual(withoutPorts(sandboxFile(folder).accounts), withoutPorts(accounts));
    const refused = await reseal(['sandbox', 'reset'], settingsFor(folder));
    assert.equal(refused.code, 1);
    assert.match(refused.err, /already running.*Stop it first/s);
    await sandbox.running.end('SIGTERM');
  }
  const reset = await reseal(['sandbox', 'reset'], settingsFor(folder));
  assert.equal(reset.code, 0, reset.err);
  assert.equal(existsSync(join(folder, 'reseal.db')), false);
  assert.match((await reseal(['sandbox', 'reset'], settingsFor(folder))).out, /Nothing to delete/);
  await using sandbox = await started(folder);
  const fresh = sandboxFile(folder).accounts;
  assert.notEqual(fresh[0].id, accounts[0].id);
  assert.notEqual(fresh[0].credentials[0].auth_key, accounts[0].credentials[0].auth_key);
  await sandbox.running.end('SIGTERM');
});

test('a port in use is an error that says how to choose another', async () => {
  const blocker = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => blocker.once('listening', resolve));
  const { port } = blocker.address() as net.AddressInfo;
  const { code, err } = await spawnReseal(['sandbox'], { RESEAL_DATA_DIR: newFolder(), RESEAL_PORT: String(port) });
  blocker.close();
  assert.equal(code, 3);
  assert.match(err, new RegExp(`port ${port} on 127.0.0.1 is already in use\nWhat to do: .*RESEAL_PORT=${port + 1}`));
});

test('sandbox and production keep out of each other’s data', async () => {
  const folder = newFolder();
  {
    await using sandbox = await started(folder);
    const second = await spawnReseal(['sandbox'], settingsFor(folder));
    assert.deepEqual([second.code, /already running/.test(second.err)], [1, true]);
    await sandbox.running.end('SIGTERM');
  }
  const serving = await spawnReseal(['serve'], settingsFor(folder));
  assert.equal(serving.code, 1);
  assert.match(serving.err, /belongs to a sandbox/);

  const real = await newUsedFolder();
  {
    await using service = startReseal(['serve'], settingsFor(real));
    await service.listening();
    await service.end('SIGTERM');
  }
  const intruder = await spawnReseal(['sandbox'], settingsFor(real));
  assert.deepEqual([intruder.code, /belongs to a real service/.test(intruder.err)], [1, true]);
  const wipe = await reseal(['sandbox', 'reset'], settingsFor(real));
  assert.deepEqual([wipe.code, /was not made by a sandbox/.test(wipe.err)], [1, true]);
  assert.ok(existsSync(join(real, 'reseal.db')));
  const database = { ...settingsFor(newFolder()), RESEAL_DATABASE_URL: 'postgres://127.0.0.1:1/x' };
  assert.match((await spawnReseal(['sandbox'], database)).err, /RESEAL_DATABASE_URL is set/);
});

test('a missing database or an impossible folder is a readable error', async () => {
  const absent = await spawnReseal(['serve'], {
    ...settingsFor(newFolder()),
    RESEAL_DATABASE_URL: 'postgres://u:s3cr3t@127.0.0.1:1/x',
  });
  assert.equal(absent.code, 4);
  assert.match(absent.err, /PostgreSQL at 127\.0\.0\.1:1 cannot be used.*What to do: Check that it is running/s);
  assert.doesNotMatch(absent.err, /s3cr3t/);
  const nowhere = await spawnReseal(['serve'], { RESEAL_DATA_DIR: '/dev/null/data', RESEAL_PORT: '0' });
  assert.equal(nowhere.code, 3);
  assert.match(nowhere.err, /data folder \/dev\/null\/data cannot be created.*RESEAL_DATA_DIR/s);
});

test('a sandbox does not start on a store with an operator’s accounts', async () => {
  const folder = await newUsedFolder();
  assert.equal((await reseal(['account', 'create', 'Real Customer'], settingsFor(folder))).code, 0);
  const intruder = await spawnReseal(['sandbox'], settingsFor(folder));
  assert.deepEqual([intruder.code, /belongs to a real service/.test(intruder.err)], [1, true]);
  await using service = startReseal(['serve'], settingsFor(folder));
  await service.listening();
});

test('a start that fails late leaves nothing running', async () => {
  const folder = newFolder();
  mkdirSync(join(folder, 'sandbox.json'));
  // The process exits by itself; if the server still listened, this would never return.
  assert.notEqual((await spawnReseal(['sandbox'], settingsFor(folder))).code, 0);
});

const stopped = newFolder();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`${signal} to the whole group, as a terminal sends it, lets a request in flight finish`, async (context) => {
    context.diagnostic(
      OLDER_NODE ? 'with the launcher in between' : 'no older Node here: without the launcher in between',
    );
    await using service = startReseal(['sandbox'], settingsFor(stopped), OLDER_NODE);
    const url = await service.listening();
    await service.said(/Stop with Ctrl-C/);
    const begun = await RawConnection.to(url);
    begun.write('GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n');
    await fetch(`${url}/healthz`);
    const ended = service.end(signal, 'group');
    await service.said(/stopping/);
    begun.write('\r\n{}');
    await begun.until(/"alive"/);
    assert.equal(await ended, 0);
    assert.match(service.output, /stopped/);
  });
}

test('a closed stdout pipe is not reported as a bug', async () => {
  const folder = newFolder();
  const launcher = new URL('../../bin/reseal.mjs', import.meta.url).pathname;
  const script = `"${process.execPath}" "${launcher}" --help | head -1`;
  const env = { PATH: process.env.PATH ?? '', RESEAL_DATA_DIR: folder };
  const { stderr } = spawnSync('/bin/sh', ['-c', script], { env, encoding: 'utf8' });
  assert.equal(stderr, '');
});

test('errors of the environment are readable, and not reported as bugs', async () => {
  const garbage = join(newFolder(), 'garbage.pem');
  writeFileSync(garbage, 'this is not PEM');
  const table: [Record<string, string>, RegExp][] = [
    [{ RESEAL_SEAL_KEY_FILE: '/nodir/seal.key' }, /seal key file \/nodir\/seal\.key cannot be created/],
    [{ RESEAL_TLS_CERT_FILE: garbage, RESEAL_TLS_KEY_FILE: garbage }, /cannot be used for TLS/],
    [{ RESEAL_HOST: 'fe80::1' }, /RESEAL_HOST/],
    [{ RESEAL_HOST: 'a'.repeat(300) }, /RESEAL_HOST/],
    [{ RESEAL_DATA_DIR: '/proc' }, /RESEAL_DATA_DIR|RESEAL_SEAL_KEY_FILE/],
  ];
  for (const [settings, message] of table) {
    for (const command of ['serve', 'sandbox']) {
      const { code, err } = await spawnReseal([command], { ...settingsFor(newFolder()), ...settings });
      assert.ok(code === 3, `${command} ${JSON.stringify(settings)}: ${code} ${err}`);
      assert.match(err, message);
      assert.doesNotMatch(err, /bug/);
    }
  }
});
