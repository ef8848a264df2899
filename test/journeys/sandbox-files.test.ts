// What a crash or a power loss may leave of the sandbox's files: mended by the next start, and not called a bug.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { replaceFile } from '../../src/kernel/durable-file.ts';
import type { LogLine } from '../../src/kernel/log.ts';
import { announcement, exposure } from '../../src/sandbox/announce.ts';
import { readSandboxFile } from '../../src/sandbox/folder.ts';
import { WORLD_FILE } from '../../src/sandbox/world.ts';
import { serveSandbox } from '../../src/wiring/sandbox.ts';
import { AcmeClient, problemOf } from '../support/acme.ts';
import { type AcmeOrderUrls, downloaded, finalized, keyAuthorization, placed, poll } from '../support/acme-orders.ts';
import { newFolder } from '../support/app.ts';
import { rule } from '../support/contract.ts';
import { reseal } from '../support/in-process.ts';

const FILE = 'sandbox.json';

async function start(folder: string, extra: Record<string, string> = {}) {
  const lines: LogLine[] = [];
  const { config } = readConfig({ RESEAL_DATA_DIR: folder, RESEAL_PORT: '0', ...extra });
  const { stop, sandbox } = await serveSandbox(
    { ...config, workers: 0 },
    { now: Date.now, log: (line) => lines.push(line) },
  );
  return { sandbox, lines, [Symbol.asyncDispose]: () => stop() };
}

const keysOf = ({ accounts }: { accounts: readonly { id: string; credentials: unknown }[] }) =>
  accounts.map(({ id, credentials }) => [id, credentials]);

/** Seeded once, and started again by the tests. */
const folder = newFolder();
const file = join(folder, FILE);
const { sandbox: first, lines: firstLines } = await (async () => {
  await using running = await start(folder);
  return running;
})();

rule('ops 46', 'the next start of the sandbox writes it anew, with the same accounts and keys', async () => {
  const whole = readFileSync(file);
  // Every length of the first and last bytes, and some in between; zeros are what some file systems leave.
  const lengths = [...Array(40).keys(), ...[0.2, 0.5, 0.8].map((part) => Math.floor(whole.length * part))];
  const remains = [
    ...[...lengths, whole.length - 3].map((length) => whole.subarray(0, length)),
    Buffer.alloc(whole.length),
    Buffer.from('null'),
    Buffer.from('{"receiver":{}}'),
  ];
  for (const bytes of remains) {
    writeFileSync(file, bytes);
    assert.equal(readSandboxFile(folder), undefined, JSON.stringify(bytes.subarray(0, 20).toString()));
    const { code, err } = await reseal(['sandbox', 'callbacks'], { RESEAL_DATA_DIR: folder });
    assert.deepEqual([code, /bug/.test(err)], [1, false], err);
  }
  writeFileSync(`${file}.draft`, whole.subarray(0, 100), { mode: 0o644 });
  writeFileSync(join(folder, 'root-p256.pem'), '');
  await using again = await start(folder);
  assert.deepEqual(keysOf(again.sandbox), keysOf(first));
  assert.deepEqual(keysOf(JSON.parse(readFileSync(file, 'utf8'))), keysOf(first));
  assert.match(readFileSync(join(folder, 'root-p256.pem'), 'utf8'), /-----END CERTIFICATE-----\n$/);
  assert.deepEqual([existsSync(`${file}.draft`), statSync(file).mode & 0o777], [false, 0o600]);
});

test('a part of the records is said, at every length, and not overwritten', async () => {
  const own = newFolder();
  const world = join(own, WORLD_FILE);
  const set = (name: string) => reseal(['sandbox', 'dns', 'set', name, 'A', '192.0.2.1'], { RESEAL_DATA_DIR: own });
  assert.equal((await set('a.example')).code, 0);
  const whole = readFileSync(world);
  for (let length = 0; length < whole.length - 1; length += 7) {
    writeFileSync(world, whole.subarray(0, length));
    const { code, err } = await set('b.example');
    assert.deepEqual([code, /cannot be used.*\nWhat to do: Correct it, or delete it/.test(err)], [3, true], err);
    assert.equal(readFileSync(world).length, length);
  }
});

test('a file is replaced as a whole, and privately', () => {
  const file = join(newFolder(), 'file');
  writeFileSync(`${file}.draft`, 'left over', { mode: 0o666 });
  replaceFile(file, 'one');
  replaceFile(file, 'two');
  assert.deepEqual([readFileSync(file, 'utf8'), statSync(file).mode & 0o777], ['two', 0o600]);
});

rule('acme 153', 'the same after every start', async () => {
  const faults = { RESEAL_SANDBOX_NO_REUSE: 'true', RESEAL_SANDBOX_SHUFFLE: 'true' };
  await using running = await start(folder, faults);
  const { acme, challenges, base_url } = running.sandbox;
  assert.deepEqual([acme?.kid, acme?.hmac_key], [first.acme?.kid, first.acme?.hmac_key]);
  const line = /^ {2}certbot certonly (?:.*\\\n)*.*$/m.exec(
    announcement(running.sandbox, file, { p256: '', sm2: '' }),
  )?.[0];
  for (const part of [acme?.directory, acme?.kid, acme?.hmac_key, `${challenges?.url}/set-txt`])
    assert.ok(part && line?.includes(part), `${part} in ${line}`);

  const client = new AcmeClient(base_url);
  assert.equal((await client.register({ kid: acme?.kid ?? '', macKey: acme?.hmac_key ?? '' })).status, 201);
  const publish = async (host: string, token: string) => {
    const value = createHash('sha256').update(keyAuthorization(client, token)).digest('base64url');
    const body = JSON.stringify({ host: `_acme-challenge.${host}`, value });
    assert.equal((await fetch(`${challenges?.url}/set-txt`, { method: 'POST', body })).status, 200);
  };
  /** Answers the challenges of the order. Returns what its authorizations were before. */
  const prove = async ({ body }: AcmeOrderUrls): Promise<string[]> => {
    const before: string[] = [];
    for (const url of body.authorizations) {
      const { status, identifier, challenges } = (await client.post(url)).body;
      const { token, url: answer } = challenges.find(({ type }: { type: string }) => type === 'dns-01');
      await publish(identifier.value, token);
      await client.post(answer, {});
      assert.equal((await poll(client, url)).body.status, 'valid');
      before.push(status);
    }
    return before;
  };
  const names = ['acme.example.com', '*.acme.example.com'];
  const order = await placed(client, names);
  assert.deepEqual(await prove(order), ['pending', 'pending']);
  const { body } = await finalized(client, { ...order, body: (await client.post(order.url)).body });
  assert.equal(body.status, 'valid');
  assert.match((await downloaded(client, { url: order.url, body }))[0] ?? '', /^-----BEGIN CERTIFICATE/);
  // Proven a moment ago, and asked for again.
  assert.deepEqual(await prove(await placed(client, names)), ['pending', 'pending']);
});

rule('acme 154', 'refuses so many of 100 good nonces', async () => {
  await using running = await start(folder, { RESEAL_SANDBOX_BAD_NONCES: '100' });
  const { acme, base_url } = running.sandbox;
  const client = new AcmeClient(base_url);
  const answer = await client.register({ kid: acme?.kid ?? '', macKey: acme?.hmac_key ?? '' });
  assert.equal(problemOf(answer), 'badNonce');
});

rule('ops 45', 'on an address other than loopback warns, in the log', async () => {
  const warning = /^WARNING This sandbox listens on 0\.0\.0\.0, where other machines may reach it/;
  const isWarned = (lines: readonly LogLine[]) => lines.some((line) => 'text' in line && warning.test(line.text));
  await using exposed = await start(folder, { RESEAL_HOST: '0.0.0.0' });
  assert.deepEqual([isWarned(exposed.lines), isWarned(firstLines)], [true, false]);
  for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) assert.equal(exposure(host), undefined, host);
  for (const host of ['::', '192.0.2.1', 'host.example']) assert.match(exposure(host) ?? '', /plain text/, host);
});
