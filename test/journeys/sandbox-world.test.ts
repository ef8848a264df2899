// Two terminals: one runs the sandbox as a process; commands in the other change its DNS records and files. Checked with
// a real resolver and a real HTTP client.
import assert from 'node:assert/strict';
import { Resolver } from 'node:dns/promises';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { lockFolder } from '../../src/adapters/store/engine/folder-lock.ts';
import { newFolder } from '../support/app.ts';
import { reseal } from '../support/in-process.ts';
import { spawnReseal, startReseal } from '../support/process.ts';
import { sendRaw } from '../support/raw-http.ts';

const PERSIST = 'ca.example; accounturi=https://ca.example/accounts/42; policy=wildcard';
const FILE_URL = 'http://www.example.com/.well-known/pki-validation/fileauth.txt';
const settingsFor = (folder: string) => ({ RESEAL_DATA_DIR: folder, RESEAL_PORT: '0' });

/** Runs a command in the second terminal; `spawned` runs it as a process of its own. */
const terminal = (folder: string) => ({
  run: (...words: string[]) => reseal(['sandbox', ...words], settingsFor(folder)),
  spawned: (...words: string[]) => spawnReseal(['sandbox', ...words], settingsFor(folder)),
  async json(...words: string[]) {
    const { code, out, err } = await reseal(['sandbox', ...words, '--json'], settingsFor(folder));
    assert.deepEqual([code, err], [0, ''], out);
    return JSON.parse(out);
  },
});

async function started(folder: string) {
  const running = startReseal(['sandbox'], settingsFor(folder));
  await running.listening();
  await running.said(/Stop with Ctrl-C/);
  const { dns, web } = JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8'));
  const resolver = new Resolver();
  resolver.setServers([dns.address]);
  const get = (host: string, path: string) =>
    sendRaw(`http://${web.address}`, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  return { running, resolver, get, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}

test('records and files are set before and while it runs, replaced, cleared, kept over a restart, deleted by a reset', async () => {
  const folder = newFolder();
  const { run, json } = terminal(folder);
  const path = new URL(FILE_URL).pathname;
  const before = await run('dns', 'set', '_validation-persist.Example.com.', 'txt', PERSIST);
  assert.deepEqual([before.code, before.err], [0, '']);
  assert.equal(before.out, `_validation-persist.example.com  TXT  ${PERSIST}\n`);
  {
    await using sandbox = await started(folder);
    const { resolver, get } = sandbox;
    assert.deepEqual(await resolver.resolveTxt('_validation-persist.example.com'), [[PERSIST]]);

    assert.deepEqual(await json('dns', 'set', 'example.com', 'CAA', '0 issue "ca.example"', '128 tbs "x"'), {
      dns: { name: 'example.com', type: 'CAA', values: ['0 issue "ca.example"', '128 tbs "x"'] },
    });
    assert.deepEqual(await resolver.resolveCaa('example.com'), [
      { critical: 0, issue: 'ca.example', type: 'CAA' },
      { critical: 128, tbs: 'x', type: 'CAA' },
    ]);
    await assert.rejects(resolver.resolveCaa('www.example.com'), { code: 'ENOTFOUND' });
    await json('dns', 'set', 'example.com', 'CAA', 'servfail');
    await assert.rejects(resolver.resolveCaa('example.com'), { code: 'ESERVFAIL' });
    assert.deepEqual(await json('dns', 'clear', 'example.com', 'CAA'), { cleared: 1 });
    assert.deepEqual(await json('dns', 'clear', 'example.com'), { cleared: 0 });
    await assert.rejects(resolver.resolveCaa('example.com'), { code: 'ENOTFOUND' });

    assert.equal((await get('www.example.com', path)).status, 404);
    const set = await run('http', 'set', FILE_URL, 'line one\nline two');
    assert.match(set.out, /fileauth\.txt {2}line one\?line two\nwww\.example\.com is on this machine/);
    assert.equal((await get('www.example.com', path)).body, 'line one\nline two');
    assert.deepEqual(await resolver.resolve4('www.example.com'), ['127.0.0.1']);
    await assert.rejects(resolver.resolve6('www.example.com'), { code: 'ENODATA' });
    // The sandbox's own names are unchanged.
    assert.deepEqual(await resolver.resolve4('receiver.sandbox.test'), ['127.0.0.1']);
    assert.equal(await sandbox.running.end('SIGTERM'), 0);
  }
  {
    await using sandbox = await started(folder);
    assert.deepEqual(await sandbox.resolver.resolveTxt('_validation-persist.example.com'), [[PERSIST]]);
    assert.equal((await sandbox.get('www.example.com', path)).status, 200);
    assert.deepEqual(await json('http', 'list'), { http: [{ url: FILE_URL, text: 'line one\nline two' }] });
    assert.deepEqual(await json('http', 'clear', FILE_URL), { cleared: 1 });
    assert.equal((await sandbox.get('www.example.com', path)).status, 404);
    assert.match((await run('dns', 'list')).out, /^NAME +TYPE +VALUE\n_validation-persist\.example\.com +TXT +ca\.ex/);
    assert.equal((await run('http', 'list')).out, 'No files are set.\n');
    assert.equal((await run('reset')).code, 1, 'not while it runs');
    assert.equal(await sandbox.running.end('SIGTERM'), 0);
  }
  assert.match((await run('reset')).out, /sandbox-world\.json/);
  assert.deepEqual(await json('dns', 'list'), { dns: [] });
  assert.deepEqual(
    readdirSync(folder).filter((name) => !name.startsWith('.')),
    [],
  );
});

test('twenty concurrent commands lose no update, and only the owner can read the file', async () => {
  const folder = newFolder();
  const { spawned, json } = terminal(folder);
  const names = Array.from({ length: 20 }, (_, n) => `n${String(n).padStart(2, '0')}.test`);
  const ran = await Promise.all(names.map((name) => spawned('dns', 'set', name, 'TXT', `text of ${name}`)));
  assert.deepEqual(
    ran.map(({ code }) => code),
    names.map(() => 0),
    ran.map(({ err }) => err).join(''),
  );
  const { dns } = await json('dns', 'list');
  assert.deepEqual(
    dns,
    names.map((name) => ({ name, type: 'TXT', values: [`text of ${name}`] })),
  );
  assert.equal(statSync(join(folder, 'sandbox-world.json')).mode & 0o777, 0o600);
  assert.equal(existsSync(join(folder, 'sandbox-world.json.draft')), false);
});

test('a command that cannot get the lock fails after a timeout and changes nothing; a reset waits for it too', async () => {
  const folder = newFolder();
  const { run, spawned, json } = terminal(folder);
  await run('dns', 'set', 'a.test', 'A', '192.0.2.1');
  const lock = lockFolder(join(folder, '.sandbox-world'));
  assert.ok(lock);
  for (const { code, err } of await Promise.all([spawned('dns', 'clear', 'a.test'), spawned('reset')])) {
    assert.equal(code, 1);
    assert.match(err, /other commands keep changing .*What to do: Try again/s);
  }
  assert.equal((await json('dns', 'list')).dns.length, 1);
  lock.release();
  assert.deepEqual(await json('dns', 'clear', 'a.test'), { cleared: 1 });
});

test('a corrupt file is a warning of the running sandbox, and an error of the next command', async () => {
  const folder = newFolder();
  const { run } = terminal(folder);
  await run('dns', 'set', 'a.test', 'A', '192.0.2.1');
  await using sandbox = await started(folder);
  assert.deepEqual(await sandbox.resolver.resolve4('a.test'), ['192.0.2.1']);
  writeFileSync(join(folder, 'sandbox-world.json'), '{"dns":');
  assert.deepEqual(await sandbox.resolver.resolve4('a.test'), ['192.0.2.1']);
  await sandbox.running.said(/warning .*sandbox-world\.json cannot be used: .*; the records before it stay/);
  const { code, err } = await run('dns', 'set', 'b.test', 'A', '192.0.2.2');
  assert.equal(code, 3);
  assert.match(err, /cannot be used.*What to do: Correct it, or delete it and set the records again/s);
});

const MISTAKES: readonly (readonly [words: readonly string[], message: RegExp])[] = [
  [
    ['dns', 'set', 'a.test', 'TXT'],
    /sandbox dns set takes NAME TYPE VALUE…, given: 2\nWhat to do: See: reseal sandbox/,
  ],
  [['dns', 'clear'], /sandbox dns clear takes NAME \[TYPE\], given: none/],
  [['dns', 'clear', 'a.test', 'A', 'AAAA'], /takes NAME \[TYPE\], given: 3/],
  [['dns', 'list', 'x'], /takes no arguments, given: 1/],
  [['http', 'set', 'http://a.test/'], /takes URL TEXT, given: 1/],
  [['dns', 'set', '*.a.test', 'TXT', 'x'], /What to do: Leave out the \*\./],
  [['dns', 'set', 'a.test', 'MX', 'x'], /What to do: Use one of: A, CNAME, TXT, AAAA, CAA/],
  [['dns', 'set', 'a.test', 'CAA', '0', 'issue', 'ca.test'], /What to do: .*'0 issue "ca\.example"', in quotes/],
  [['dns', 'clear', 'a..b'], /What to do: Write it like www\.example\.com/],
  [['http', 'set', 'https://a.test/', 'x'], /What to do: Write it like http:/],
  [['http', 'clear', 'a.test'], /What to do: Write it like http:/],
  [['http', 'set', 'http://a.test/', 'x'.repeat(65_537)], /more than 65536 bytes/],
];

test('errors come with a remedy, and change nothing', async () => {
  const folder = newFolder();
  const { run } = terminal(folder);
  for (const [words, message] of MISTAKES) {
    const { code, out, err } = await run(...words);
    assert.deepEqual([code, out], [2, ''], words.join(' ').slice(0, 80));
    assert.match(err, message);
  }
  const machine = await run('dns', 'set', 'a.test', 'A', 'x', '--json');
  assert.deepEqual([machine.code, JSON.parse(machine.out).error.code], [2, 'usage']);
  assert.deepEqual(readdirSync(folder), []);
  assert.match((await run('dns', 'set', '--help')).out, /reseal sandbox dns set example\.com CAA '0 issue/);
  const elsewhere = await reseal(['sandbox', 'dns', 'set', 'a.test', 'A', '192.0.2.1'], settingsFor('/dev/null/x'));
  assert.deepEqual([elsewhere.code, /RESEAL_DATA_DIR/.test(elsewhere.err)], [3, true], elsewhere.err);
});

test('a reset deletes records that were set before any sandbox was started, and leaves a real service alone', async () => {
  const folder = newFolder();
  const { run } = terminal(folder);
  await run('dns', 'set', 'a.test', 'A', '192.0.2.1');
  assert.match((await run('reset')).out, /: sandbox-world\.json\n/);
  assert.equal((await reseal(['account', 'create', 'Real Customer'], settingsFor(folder))).code, 0);
  await run('dns', 'set', 'a.test', 'A', '192.0.2.1');
  const refused = await run('reset');
  assert.deepEqual([refused.code, /was not made by a sandbox/.test(refused.err)], [1, true]);
  assert.ok(existsSync(join(folder, 'reseal.db')));
});
