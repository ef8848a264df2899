import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, test } from 'node:test';
import { CREDENTIAL_KINDS } from '../../../src/domain/access/credential.ts';
import { NOON, startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const PATH = '/openapi/v3/account';

rule('account 1', '`GET /openapi/v3/account` answers with `data.account` and `data.credential`', async () => {
  const { body } = await app.call('GET', PATH, { key: await app.newKey() });
  assert.deepEqual(Object.keys(body.data), ['account', 'credential', 'quotas']);
});

rule('account 2', '`data.account` has `id`, `name`, `kind`, `locale` and `created_at`', async () => {
  const key = await app.newKey({ name: 'Acme 有限公司', kind: 'managed_pki', locale: 'zh-CN' });
  const { body } = await app.call('GET', PATH, { key });
  assert.deepEqual(body.data.account, {
    id: key.accountId,
    name: 'Acme 有限公司',
    kind: 'managed_pki',
    locale: 'zh-CN',
    created_at: '2026-11-15T12:00:00.000Z',
  });
});

rule('account 3', 'the `key_id` and `kind` of the credential that was used, and its `expires_at`', async () => {
  const { accountId } = await app.newKey();
  const key = await app.anotherKey(accountId, 'integration_key', NOON + 1000);
  const { body } = await app.call('GET', PATH, { key });
  const { keyId: key_id } = key;
  assert.deepEqual(body.data.credential, { key_id, kind: 'integration_key', expires_at: '2026-11-15T12:00:01.000Z' });
  const forEver = await app.call('GET', PATH, { key: await app.anotherKey(accountId, 'standard') });
  assert.equal(forEver.body.data.credential.expires_at, null);
});

rule('account 4', 'No answer of the account operations contains a secret or its digest', async () => {
  const key = await app.newKey();
  const digest = createHash('sha256').update(key.authKey).digest('hex');
  const answers = [await app.call('GET', PATH, { key }), await app.call('PUT', PATH, { key, json: { name: 'x' } })];
  for (const { text, headers } of answers) {
    for (const needle of [key.authKey, digest]) assert.equal((text + [...headers]).includes(needle), false);
  }
});

rule('account 5', 'an optional `name` of 1 to 200 characters', async () => {
  const key = await app.newKey();
  const put = (name: string) => app.call('PUT', PATH, { key, json: { name } });
  for (const name of [
    'x',
    'y'.repeat(200),
    '证'.repeat(200),
    '🔒'.repeat(200),
    ' trimmed ',
    'می\u200cخواهم',
    '👨\u200d👩\u200d👧',
  ]) {
    const { status, body } = await put(name);
    assert.deepEqual([status, body.data?.account.name], [200, name.trim()]);
  }
  for (const name of [
    'a\u2028b',
    'a\u2029b',
    '',
    ' ',
    '\t\n',
    'y'.repeat(201),
    '🔒'.repeat(201),
    ` ${'y'.repeat(200)}`,
    'a\nb',
    'a\u0000b',
    'a\u202eb',
    '\u001b[31mred',
  ]) {
    const { status, body } = await put(name);
    assert.deepEqual([status, body.code, body.field], [400, 'invalid_parameters', 'name'], JSON.stringify(name));
  }
});

rule('account 6', 'an optional `locale`, either `en` or `zh-CN`', async () => {
  const key = await app.newKey();
  for (const locale of ['zh-CN', 'en']) {
    const { status, body } = await app.call('PUT', PATH, { key, json: { locale } });
    assert.deepEqual([status, body.data?.account.locale], [200, locale]);
  }
  for (const locale of ['', 'zh', 'EN', 'en-US', 'fr', 'zh-cn']) {
    const { status, body } = await app.call('PUT', PATH, { key, json: { locale } });
    assert.deepEqual([status, body.code, body.field], [400, 'invalid_parameters', 'locale'], locale);
  }
});

rule('account 7', 'with neither `name` nor `locale` is refused with `invalid_parameters`', async () => {
  const key = await app.newKey();
  for (const json of [{}, { other: 1 }]) {
    const { status, body } = await app.call('PUT', PATH, { key, json });
    assert.deepEqual([status, body.code], [400, 'invalid_parameters']);
  }
  for (const headers of [{}, { 'content-type': 'application/json' }]) {
    assert.equal((await app.call('PUT', PATH, { key, headers })).status, 400);
  }
});

rule('account 8', 'with what was sent changed and all else as it was', async () => {
  const key = await app.newKey({ name: 'Before', locale: 'en' });
  const before = (await app.call('GET', PATH, { key })).body.data;
  const renamed = (await app.call('PUT', PATH, { key, json: { name: 'After' } })).body.data;
  assert.deepEqual(renamed, { ...before, account: { ...before.account, name: 'After' } });
  const translated = (await app.call('PUT', PATH, { key, json: { locale: 'zh-CN' } })).body.data;
  assert.deepEqual(translated, { ...before, account: { ...before.account, name: 'After', locale: 'zh-CN' } });
  assert.deepEqual((await app.call('GET', PATH, { key })).body.data, translated);
});

rule('permission 5', "Only `standard` credentials may change the account's own name and locale", async () => {
  for (const kind of CREDENTIAL_KINDS) {
    const key = await app.newKey({ name: 'Before' }, kind);
    const { status, body } = await app.call('PUT', PATH, { key, json: { name: 'After' } });
    if (kind === 'standard') assert.equal(status, 200);
    else assert.deepEqual([status, body.code], [403, 'permission_denied'], kind);
    const { name } = (await app.call('GET', PATH, { key })).body.data.account;
    assert.equal(name, kind === 'standard' ? 'After' : 'Before');
  }
});

test('the permission is checked before the body is read', async () => {
  const key = await app.newKey({}, 'lite_client_oauth');
  const { status } = await app.call('PUT', PATH, { key, raw: '{', headers: { 'content-type': 'application/json' } });
  assert.equal(status, 403);
});

test('a change writes an audit row with the request id', async () => {
  const key = await app.newKey();
  const { headers } = await app.call('PUT', PATH, { key, json: { name: 'Audited' } });
  const entries = await app.app.store.audit.listOf(key.accountId, { limit: 10 });
  const { id, ...entry } = entries.find(({ action }) => action === 'account:changed') ?? { id: '' };
  assert.notEqual(id, '');
  assert.deepEqual(entry, {
    at: NOON,
    accountId: key.accountId,
    actor: key.keyId,
    action: 'account:changed',
    subject: key.accountId,
    requestId: headers.get('x-request-id'),
    details: { name: 'Audited' },
  });
});
