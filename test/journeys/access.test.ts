// Accounts and keys through the real CLI, next to a running service on the same store.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { AcmeClient, problemOf } from '../support/acme.ts';
import { newUsedFolder } from '../support/app.ts';
import { rule } from '../support/contract.ts';
import { reseal } from '../support/in-process.ts';
import { spawnReseal, startReseal } from '../support/process.ts';

const folder = await newUsedFolder();
const settings = { RESEAL_DATA_DIR: folder, RESEAL_PORT: '0' };
const service = startReseal(['serve'], settings);
after(() => service[Symbol.asyncDispose]());
const url = await service.listening();

async function json(...args: string[]) {
  const { code, out, err } = await reseal([...args, '--json'], settings);
  assert.equal(code, 0, out + err);
  return JSON.parse(out);
}

interface Key {
  readonly key: { readonly key_id: string };
  readonly auth_key: string;
}
const statusWith = async ({ key, auth_key }: Key): Promise<number> => {
  const headers = { 'X-CC-Key-ID': key.key_id, 'X-CC-Auth-Key': auth_key };
  return (await fetch(`${url}/openapi/v3/account`, { headers })).status;
};

const { account } = await json('account', 'create', 'Acme 有限公司', '--locale', 'zh-CN');

rule('auth 14', 'The secret of a key is shown once, when the key is issued, and never again', async () => {
  const { code, out } = await reseal(['key', 'create', account.id], settings);
  assert.equal(code, 0);
  const [, secret = ''] = /^X-CC-Auth-Key: (\S{43})$/m.exec(out) ?? [];
  const [, keyId = ''] = /^X-CC-Key-ID: (\S{26})$/m.exec(out) ?? [];
  assert.equal(await statusWith({ key: { key_id: keyId }, auth_key: secret }), 200);
  for (const args of [
    ['key', 'list', account.id],
    ['account', 'show', account.id],
    ['account', 'list'],
    ['key', 'disable', keyId],
  ]) {
    for (const form of [[], ['--json']]) {
      const shown = await reseal([...args, ...form], settings);
      assert.equal(shown.code, 0, args.join(' '));
      assert.doesNotMatch(shown.out + shown.err, new RegExp(secret), args.join(' '));
    }
  }
  assert.doesNotMatch(service.output, new RegExp(secret));
  for (const file of ['reseal.db', 'reseal.db-wal'])
    assert.equal(readFileSync(join(folder, file)).includes(secret), false);
});

rule('auth 15', 'the old key keeps working beside it until it is disabled or expires', async () => {
  const old: Key = await json('key', 'create', account.id, '--kind', 'integration_key');
  const successor = await json('key', 'rotate', old.key.key_id, '--overlap', '1h');
  assert.equal(successor.key.kind, 'integration_key');
  assert.deepEqual([await statusWith(old), await statusWith(successor)], [200, 200]);
  const next = await json('key', 'rotate', successor.key.key_id, '--overlap', '0s');
  assert.deepEqual([await statusWith(successor), await statusWith(next)], [403, 200]);
  await json('key', 'disable', old.key.key_id);
  assert.equal(await statusWith(old), 403);
});

rule('auth 18', 'The time of the last successful use of a key is kept and shown by the command line', async () => {
  const key: Key = await json('key', 'create', account.id);
  const lastUse = async () => {
    const { keys } = await json('key', 'list', account.id);
    return keys.find(({ key_id }: { key_id: string }) => key_id === key.key.key_id).last_used_at;
  };
  assert.equal(await lastUse(), null);
  assert.equal(await statusWith({ ...key, auth_key: 'wrong' }), 401);
  assert.equal(await lastUse(), null, 'a failed authentication is not recorded as a use');
  const before = Date.now();
  assert.equal(await statusWith(key), 200);
  // The request does not wait for this write; a durable write that starts later is ordered after it.
  assert.equal((await fetch(`${url}/readyz`)).status, 200);
  const used = Date.parse(await lastUse());
  assert.ok(used >= before && used <= Date.now());
});

test('a successor has the lifetime of the key it replaces; a disabled key cannot be rotated', async () => {
  const old = await json('key', 'create', account.id, '--expires-in', '90d');
  const { key } = await json('key', 'rotate', old.key.key_id);
  const lifetime = (one: { expires_at: string; created_at: string }) =>
    Math.round((Date.parse(one.expires_at) - Date.parse(one.created_at)) / 60_000);
  assert.equal(lifetime(key), lifetime(old.key));
  await json('key', 'disable', key.key_id);
  const refused = await reseal(['key', 'rotate', key.key_id], settings);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /disabled or has expired/);
});

test('an expired key is refused', async () => {
  const key: Key = await json('key', 'create', account.id, '--expires-in', '0s');
  assert.equal(await statusWith(key), 403);
  const { out } = await reseal(['key', 'list', account.id], settings);
  assert.match(out, new RegExp(`${key.key.key_id}  standard +expired`));
});

test('ACME clients register with what acme key create prints, until the binding is disabled', async () => {
  const rights = ['--product', 'ssl-dv', '--names-below', 'Example.COM', '--expires-in', '90d', '--name', 'web'];
  const { key, hmac_key: macKey } = await json('acme', 'key', 'create', account.id, ...rights);
  const { state, products, names_below, reusable, revokes_replaced } = key;
  assert.deepEqual(
    { state, products, names_below },
    { state: 'unused', products: ['ssl-dv'], names_below: ['example.com'] },
  );
  assert.deepEqual([reusable, revokes_replaced], [false, false]);
  const client = new AcmeClient(url);
  const { status, headers, text } = await client.register({ kid: key.kid, macKey });
  assert.equal(status, 201, text);
  // Each may be answered by another worker.
  for (let count = 0; count < 5; count += 1) assert.equal((await client.post(client.kid ?? '')).status, 200);
  const { accounts } = await json('acme', 'account', 'list', account.id);
  assert.deepEqual(
    accounts.map(({ id, kid }: Record<string, string>) => [id, kid]),
    [[headers.get('location')?.split('/').at(-1), key.kid]],
  );
  const { out } = await reseal(['acme', 'key', 'list', account.id], settings);
  assert.match(out, new RegExp(`^${key.kid}  used +ssl-dv +example.com +\\d{4}-\\S+Z  web$`, 'm'));
  assert.equal(out.includes(macKey), false);
  await json('acme', 'key', 'disable', key.kid);
  assert.equal(problemOf(await client.post(client.kid ?? '')), 'unauthorized');
  assert.equal((await json('acme', 'account', 'disable', accounts[0].id)).account.status, 'revoked');
});

test('output of the commands', async () => {
  const { out } = await reseal(['account', 'list'], settings);
  assert.match(out, /^ID +KIND +LOCALE +CREATED +STATE +NAME$/m);
  assert.match(out, new RegExp(`^${account.id}  standard  zh-CN   \\d{4}-\\S+Z  active  Acme 有限公司$`, 'm'));
  const page = await json('account', 'list', '--limit', '1');
  assert.deepEqual(await json('account', 'list', '--after', page.accounts[0].id), { accounts: [] });
});

test('errors come with a remedy and a distinct exit code', async () => {
  const table: [string[], number, RegExp][] = [
    [['account', 'show', 'nobody'], 1, /no such account.*reseal account list/],
    [['key', 'create', 'nobody'], 1, /no such account/],
    [['key', 'disable', 'nothing'], 1, /no such key/],
    [['key', 'rotate', 'nothing'], 1, /no such key/],
    [['account', 'create', ''], 1, /1 to 200 printable characters/],
    [['account', 'create', 'a\u001b[2Jb'], 1, /printable/],
    [['account', 'create'], 2, /takes NAME, given: none.*account create --help/s],
    [['account', 'create', 'a', 'b'], 2, /given: 2/],
    [['account', 'create', 'a', '--kind', 'other'], 2, /standard, managed_pki/],
    [['account', 'list', '--limit', '0'], 2, /from 1 to 1000/],
    [['key', 'create', account.id, '--expires-in', 'soon'], 2, /90s, 15m, 24h or 30d/],
    [['key', 'list', account.id, '--colour'], 2, /--colour/],
    [['acme', 'key', 'create', 'nothing'], 1, /no such account/],
    [['acme', 'key', 'create', account.id, '--product', 'code-signing'], 2, /no product that ACME can order.*ssl-dv/s],
    [['acme', 'key', 'create', account.id, '--names-below', '*.example.com'], 1, /without an asterisk/],
    [['acme', 'key', 'create', account.id, '--names-below', 'http://x'], 1, /http/],
    [['acme', 'key', 'disable', 'nothing'], 1, /acme key list ACCOUNT/],
    [['acme', 'account', 'disable', 'nothing'], 1, /acme account list ACCOUNT/],
    [['acount'], 2, /no command "acount".*reseal --help/s],
    [['__proto__'], 2, /no command/],
    [['key', 'constructor'], 2, /no command/],
  ];
  for (const [args, code, message] of table) {
    const result = await reseal(args, settings);
    assert.equal(result.code, code, `${args.join(' ')}: ${result.err}`);
    assert.match(result.err, message, args.join(' '));
    assert.equal(result.out, '');
    const machine = await reseal([...args, '--json'], settings);
    assert.equal(machine.code, code);
    assert.equal(typeof JSON.parse(machine.out).error.code, 'string');
  }
});

test('the same error in Chinese', async () => {
  const { err } = await spawnReseal(['account', 'show', 'nobody'], { ...settings, LANG: 'zh_CN.UTF-8' });
  assert.match(err, /没有此账户/);
});

test('help lists the commands, and works without a configuration', async () => {
  const broken = { RESEAL_PORT: 'x' };
  for (const args of [[], ['--help'], ['help'], ['-h']]) {
    const { code, out } = await reseal(args, broken);
    assert.equal(code, 0);
    for (const line of ['  sandbox ', '  serve ', '  account create NAME ', '  key rotate KEY_ID ', '  doctor ']) {
      assert.ok(out.includes(`\n${line}`), line);
    }
    assert.match(out, /Exit codes: 0 .* 70/s);
  }
  const { out } = await reseal(['key', 'rotate', '--help'], broken);
  assert.match(out, /reseal key rotate KEY_ID --overlap 7d/);
  assert.match((await spawnReseal(['--version'])).out, /^\d+\.\d+\.\d+\n$/);
  assert.equal((await reseal(['account', 'list'], broken)).code, 3);
});

test('SIGTERM shuts the service down gracefully', async () => {
  assert.equal(await service.end('SIGTERM'), 0);
  assert.match(service.output, /"event":"stopped"/);
});
