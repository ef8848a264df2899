// Operators and sessions of the console through the commands, next to a running service on the same store.
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { newFolder, startApp, TestApp } from '../support/app.ts';
import { post, signedIn, signIn, withSession } from '../support/console.ts';
import { rule } from '../support/contract.ts';
import { reseal } from '../support/in-process.ts';

const app = await startApp();
// Commands use the real clock.
app.advance(Date.now() - app.now());
after(() => app[Symbol.asyncDispose]());
const settings = { RESEAL_DATA_DIR: app.folder, RESEAL_PORT: new URL(app.url).port };

const run = (...args: string[]) => reseal(args, settings, Date.now, true);
async function json(...args: string[]) {
  const { code, out, err } = await run(...args, '--json');
  assert.equal(code, 0, out + err);
  return JSON.parse(out);
}
const login = async (...args: string[]) => {
  const { url } = await json('console', 'login', ...args);
  const [address, token = ''] = url.split('#login=');
  assert.equal(address, `${app.url}/console/`);
  return signedIn(await post(app, 'operator-session', { token }));
};

rule('console 26', 'prints a link to a terminal only; elsewhere it is refused', async () => {
  const none = await run('console', 'login');
  assert.deepEqual([none.code, /operator create/.test(none.err)], [1, true], none.err);
  await json('operator', 'create', 'only', '--role', 'view');
  const { session } = await login();
  assert.deepEqual(session.operator, { name: 'only', role: 'view' });
  for (const form of [[], ['--json']]) {
    const piped = await reseal(['console', 'login', ...form], settings);
    assert.equal(piped.code, 1);
    assert.match(piped.out + piped.err, /terminal only/);
    assert.doesNotMatch(piped.out + piped.err, /#login=/);
  }
});

rule('console 25', 'disabling ends their sessions and links, and their name is not given again', async () => {
  for (const args of [
    ['operator', 'create', 'bob'],
    ['operator', 'create', 'bob', '--role', 'root'],
  ]) {
    assert.equal((await run(...args)).code, 2, args.join(' '));
  }
  for (const name of ['', 'Bob', 'b b', '-b', 'b'.repeat(65)]) {
    const { code, out } = await run('operator', 'create', '--role', 'act', '--json', '--', name);
    assert.deepEqual([code, JSON.parse(out).error.code], [1, 'invalid_parameters'], name);
  }
  await json('operator', 'create', 'bob', '--role', 'act');
  const [own, link] = [await login('--operator', 'bob'), await json('console', 'login', '--operator', 'bob')];
  const several = await run('console', 'login');
  assert.deepEqual([several.code, /--operator bob \| only/.test(several.err)], [2, true], several.err);
  await json('operator', 'disable', 'bob');
  assert.equal((await withSession(app, own)('GET', 'session')).body.data.kind, 'none');
  assert.equal((await post(app, 'operator-session', { token: link.url.split('=')[1] })).status, 401);
  assert.equal((await run('console', 'login', '--operator', 'bob')).code, 1);
  assert.equal((await run('operator', 'create', 'bob', '--role', 'act')).code, 1);
  const { operators } = await json('operator', 'list');
  assert.deepEqual(
    operators.map(({ name, role, disabled_at }: Record<string, unknown>) => [name, role, disabled_at !== null]),
    [
      ['bob', 'act', true],
      ['only', 'view', false],
    ],
  );
  assert.match((await run('operator', 'list')).out, /bob +act .* disabled/);
});

rule('errors operator_not_found', 'the console has no operator of that name', async () => {
  for (const args of [
    ['operator', 'disable', 'unknown'],
    ['console', 'login', '--operator', 'unknown'],
  ]) {
    const { code, out } = await run(...args, '--json');
    assert.deepEqual([code, JSON.parse(out).error.code], [1, 'operator_not_found'], args.join(' '));
  }
});

rule('console 27', 'lists who is signed in, and `reseal console end` ends a session', async () => {
  const key = await app.newKey();
  const own = await signIn(app, key);
  const { sessions } = await json('console', 'sessions');
  const shown = sessions.find(({ id }: { id: string }) => id === own.session.id);
  assert.deepEqual([shown.of, shown.network], [`key ${key.keyId}`, '127.0.0.1']);
  assert.ok(sessions.some(({ of }: { of: string }) => of === 'operator only'));
  assert.match((await run('console', 'end', own.session.id)).out, /Ended session/);
  assert.equal((await withSession(app, own)('GET', 'account/orders')).status, 401);
  assert.equal((await run('console', 'end', own.session.id)).code, 1);
  const { entries } = await app.app.store.audit.search({ accountId: key.accountId }, { limit: 9 });
  const ended = entries.find(({ action }) => action === 'console:session_ended');
  assert.deepEqual([ended?.subject, ended?.details.of], [own.session.id, key.keyId]);
});

rule('console 30', 'A restored store has no sessions and no links', async () => {
  const own = await signIn(app, await app.newKey());
  const file = join(newFolder(), 'backup.db');
  assert.equal((await run('backup', file)).code, 0);
  const folder = newFolder();
  cpSync(join(app.folder, 'seal.key'), join(folder, 'seal.key'));
  const restored = await reseal(['restore', file, '--without-crl'], { RESEAL_DATA_DIR: folder });
  assert.equal(restored.code, 0, restored.err);
  const other = new TestApp(folder);
  other.advance(app.now() - other.now());
  await other.start({});
  try {
    assert.equal((await withSession(other, own)('GET', 'session')).body.data.kind, 'none');
    assert.equal((await withSession(app, own)('GET', 'session')).body.data.kind, 'account');
    assert.deepEqual(await other.app.operators.listSessions(), []);
    assert.equal((await other.app.operators.list()).length, 2, 'operators stay');
  } finally {
    await other.stop();
  }
});
