// A newcomer's first minutes, with the real program.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { newFolder } from '../support/app.ts';
import { reseal, startReseal } from '../support/process.ts';

const settingsFor = (folder: string) => ({ RESEAL_DATA_DIR: folder, RESEAL_PORT: '0' });
const sandboxFile = (folder: string) => JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8'));

/** Starts, waits until sandbox.json is there and the greeting is printed. */
async function started(folder: string, extra: Record<string, string> = {}) {
  const running = startReseal(['sandbox'], { ...settingsFor(folder), ...extra });
  const url = await running.listening();
  await running.said(/Stop with Ctrl-C/);
  return { running, url, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}

test('the greeting is a request to paste, and the request works', async () => {
  const folder = newFolder();
  await using sandbox = await started(folder);
  const greeting = sandbox.running.output;
  const [, url, keyId, authKey] =
    /curl -s (\S+) \\\n\s+-H 'X-CC-Key-ID: (\S+)' \\\n\s+-H 'X-CC-Auth-Key: (\S+)'/.exec(greeting) ?? [];
  const answer = await fetch(url ?? '', { headers: { 'X-CC-Key-ID': keyId ?? '', 'X-CC-Auth-Key': authKey ?? '' } });
  assert.equal(answer.status, 200);
  assert.match(greeting, /Only because this is a sandbox:/);
});

test('sandbox.json is for scripts: private, complete, and true', async () => {
  const folder = newFolder();
  await using sandbox = await started(folder);
  assert.equal(statSync(join(folder, 'sandbox.json')).mode & 0o777, 0o600);
  const file = sandboxFile(folder);
  assert.deepEqual(Object.keys(file), ['base_url', 'accounts', 'orders', 'receiver', 'trust', 'dns']);
  assert.equal(file.base_url, sandbox.url);
  assert.deepEqual(
    file.accounts.map(
      ({ kind, credentials, callback }: { kind: string; credentials: { kind: string }[]; callback: null }) => [
        kind,
        credentials.map((one) => one.kind),
        callback,
      ],
    ),
    [
      ['standard', ['standard', 'cloud_manager_token', 'lite_client_oauth', 'integration_key'], null],
      ['managed_pki', ['standard'], null],
      ['standard', ['standard'], null],
      ['standard', ['standard'], null],
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
    assert.deepEqual(sandboxFile(folder).accounts, accounts);
    await sandbox.running.end('SIGKILL');
  }
  {
    await using sandbox = await started(folder);
    assert.deepEqual(sandboxFile(folder).accounts, accounts);
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

test('a port that is taken is an error that says how to choose another', async () => {
  const blocker = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => blocker.once('listening', resolve));
  const { port } = blocker.address() as net.AddressInfo;
  const { code, err } = await reseal(['sandbox'], { RESEAL_DATA_DIR: newFolder(), RESEAL_PORT: String(port) });
  blocker.close();
  assert.equal(code, 3);
  assert.match(
    err,
    new RegExp(`port ${port} on 127.0.0.1 is already in use\nWhat to do: .*RESEAL_PORT=${port + 1} npm start`),
  );
});

test('sandbox and production keep out of each other’s data', async () => {
  const folder = newFolder();
  {
    await using sandbox = await started(folder);
    const second = await reseal(['sandbox'], settingsFor(folder));
    assert.deepEqual([second.code, /already running/.test(second.err)], [1, true]);
    await sandbox.running.end('SIGTERM');
  }
  const serving = await reseal(['serve'], settingsFor(folder));
  assert.equal(serving.code, 1);
  assert.match(serving.err, /belongs to a sandbox/);

  const real = newFolder();
  {
    await using service = startReseal(['serve'], settingsFor(real));
    await service.listening();
    await service.end('SIGTERM');
  }
  const intruder = await reseal(['sandbox'], settingsFor(real));
  assert.deepEqual([intruder.code, /belongs to a real service/.test(intruder.err)], [1, true]);
  const wipe = await reseal(['sandbox', 'reset'], settingsFor(real));
  assert.deepEqual([wipe.code, /was not made by a sandbox/.test(wipe.err)], [1, true]);
  assert.ok(existsSync(join(real, 'reseal.db')));
  const database = { ...settingsFor(newFolder()), RESEAL_DATABASE_URL: 'postgres://127.0.0.1:1/x' };
  assert.match((await reseal(['sandbox'], database)).err, /RESEAL_DATABASE_URL is set/);
});

test('a database that is not there, or a folder that cannot be, is said in words', async () => {
  const absent = await reseal(['serve'], {
    ...settingsFor(newFolder()),
    RESEAL_DATABASE_URL: 'postgres://u:s3cr3t@127.0.0.1:1/x',
  });
  assert.equal(absent.code, 4);
  assert.match(absent.err, /PostgreSQL at 127\.0\.0\.1:1 cannot be used.*What to do: Check that it is running/s);
  assert.doesNotMatch(absent.err, /s3cr3t/);
  const nowhere = await reseal(['serve'], { RESEAL_DATA_DIR: '/dev/null/data', RESEAL_PORT: '0' });
  assert.equal(nowhere.code, 3);
  assert.match(nowhere.err, /data folder \/dev\/null\/data cannot be created.*RESEAL_DATA_DIR/s);
});

test('the launcher hands over from an older Node to the pinned one', async (context) => {
  const older = ['/usr/bin/node', '/usr/local/bin/node'].find((path) => {
    try {
      return Number.parseInt(execFileSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8' }), 10) < 24;
    } catch {
      return false;
    }
  });
  if (older === undefined) {
    context.diagnostic('no older Node on this machine: the hand-over itself was not seen');
    return;
  }
  await using service = startReseal(['serve'], settingsFor(newFolder()), older);
  await service.listening();
  assert.equal(await service.end('SIGTERM'), 0, 'the signal reaches the service, and its exit code comes back');
});
