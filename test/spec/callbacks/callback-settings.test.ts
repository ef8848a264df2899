// Saving callback settings. Verified through the account's GET, the database row, and the receiver that a test then
// calls.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import type { Call, Key } from '../../support/app.ts';
import { callbackIn, resultOf, SETTINGS, startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';

const world = await startCallbackApp({ RESEAL_CALLBACK_TEST_RATE: '1000/s' });
after(() => world[Symbol.asyncDispose]());
const { app, receiver, url } = world;
const db = new DatabaseSync(join(app.folder, 'reseal.db'), { readOnly: true });
after(() => db.close());

const BAD = '400 invalid_parameters';
const SAVED = { url: url('/saved'), access_key: 'saved-key' };
const row = ({ accountId }: Key) => db.prepare('select * from callback_settings where account_id = ?').get(accountId);
const saved = async (key: Key) => (await world.show(key)).body.data.callback;

async function configured(change: Record<string, unknown> = {}): Promise<Key> {
  const key = await app.newKey();
  assert.equal(resultOf(await world.save(key, { ...SAVED, ...change })), '200 success');
  return key;
}

/** The path and key that a test of the saved settings uses. */
async function called(key: Key): Promise<string> {
  assert.equal(resultOf(await world.test(key)), '200 success');
  const { line, headers } = callbackIn(receiver);
  return `${line.split(' ')[1]} ${headers['x-cc-callback-auth']}`;
}

/** Asserts a refusal that leaves the row unchanged. */
async function requireRefused(key: Key, json: unknown, expected: string, call: Call = { json }): Promise<void> {
  const before = row(key);
  app.advance(1_000);
  const answer = await app.call('PUT', SETTINGS, { key, ...call });
  assert.equal(resultOf(answer), expected, `${JSON.stringify(json)} ${answer.text}`);
  assert.deepEqual(row(key), before);
}

rule(
  'callback-settings url',
  'is a string, the address of the receiver, HTTPS only, of at most 256 characters',
  async () => {
    const key = await configured();
    const long = url('/').padEnd(256, 'x');
    for (const value of [long, url('/?q=%20'), `HTTPS://example.com`, 'https://[2606:4700::1]:8443/x']) {
      assert.equal((await world.save(key, { url: value, access_key: 'k' })).body.data.callback.url, value);
      assert.equal((await saved(key)).url, value, 'verbatim');
    }
    await requireRefused(key, { url: `${long}x`, access_key: 'k' }, '400 invalid_callback_url url');
    await requireRefused(key, { url: 'http://example.com/', access_key: 'k' }, '400 callback_url_not_https url');
    for (const value of [null, 5, true, [], {}, '', '  ']) {
      await requireRefused(key, { url: value, access_key: 'k' }, `${BAD} url`);
    }
  },
);

rule('callback-settings access_key', 'is a string of at most 256 characters, the key that authenticates', async () => {
  const key = await configured();
  for (const value of ['k', 'a b"\\%', 'k'.repeat(256)]) {
    assert.equal(resultOf(await world.save(key, { url: url('/x'), access_key: value })), '200 success');
    assert.equal(await called(key), `/x ${value}`);
  }
  await requireRefused(key, { url: url(), access_key: 'k'.repeat(257) }, '400 invalid_callback_url access_key');
  for (const value of [null, 5, true, [], {}, '', ' ', 'a\n', 'k\u00e9']) {
    await requireRefused(key, { url: url(), access_key: value }, `${BAD} access_key`);
  }
});

rule('callback-settings disabled', '`disabled` is a boolean that pauses business callbacks', async () => {
  const key = await configured();
  assert.equal((await saved(key)).disabled, false, 'not paused unless asked for');
  for (const change of [{}, SAVED]) {
    assert.equal((await world.save(key, { ...change, disabled: true })).body.data.callback.disabled, true);
    assert.equal((await saved(key)).disabled, true);
    assert.equal((await app.app.store.callbacks.find(key.accountId))?.isDisabled, true, 'where deliveries read it');
    assert.equal((await world.save(key, change)).body.data.callback.disabled, false, 'omitted, it is not paused');
    assert.equal((await saved(key)).disabled, false);
  }
  await world.save(key, { disabled: true });
  for (const value of [null, 'true', 'false', '', 0, 1, [], {}, [true]]) {
    await requireRefused(key, { disabled: value }, `${BAD} disabled`);
    await requireRefused(key, { ...SAVED, disabled: value }, `${BAD} disabled`);
  }
  assert.equal((await saved(key)).disabled, true);
});

rule('callback-settings 7', 'list of the action identifiers that are called back; when it is absent', async () => {
  const key = await configured();
  assert.ok(!('enabled_actions' in (await saved(key))), 'absent: the default');
  const lists = [
    [[], []],
    [['order:issued'], ['order:issued']],
    [
      ['order:rejected', 'order:issued', 'order:revoked'],
      ['order:rejected', 'order:issued', 'order:revoked'],
    ],
    [
      ['order:issued', 'order:issued', 'order:revoked', 'order:issued'],
      ['order:issued', 'order:revoked'],
    ],
  ];
  for (const [sent, kept] of lists) {
    const answer = await world.save(key, { ...SAVED, enabled_actions: sent });
    assert.deepEqual(answer.body.data.callback.enabled_actions, kept, JSON.stringify(sent));
    assert.deepEqual((await saved(key)).enabled_actions, kept);
    assert.deepEqual(
      (await app.app.store.callbacks.find(key.accountId))?.enabledActions,
      kept,
      'where deliveries read it',
    );
  }
  for (const value of [null, 'order:issued', 5, true, {}, { 0: 'order:issued' }]) {
    await requireRefused(key, { ...SAVED, enabled_actions: value }, `${BAD} enabled_actions`);
  }
  for (const action of ['order:unknown', 'ORDER:ISSUED', 'order:issued ', '', 'toString', '__proto__', null, 5, []]) {
    await requireRefused(key, { enabled_actions: [action] }, `${BAD} enabled_actions.0`);
    await requireRefused(key, { enabled_actions: ['order:issued', action] }, `${BAD} enabled_actions.1`);
  }
  assert.equal(resultOf(await world.save(key, {})), '200 success');
  assert.ok(!('enabled_actions' in (await saved(key))), 'omitted, it is the default again');
});

rule('callback-settings 1', 'show, save and delete the settings', async () => {
  const key = await app.newKey();
  const other = await configured({ url: url('/of-another') });
  assert.deepEqual((await world.show(key)).body, { code: 'success', data: { callback: null } });
  for (const json of [{}, { disabled: true }, { enabled_actions: [] }]) {
    await requireRefused(key, json, '400 callback_not_configured');
  }
  const first = await world.save(key, { ...SAVED, disabled: true, unknown: 1 });
  const { signing_secret: secret, ...settings } = first.body.data.callback;
  const suppressed = { count: 0, has_more: false, since: null, how_to_resend: null };
  const at = new Date(app.now()).toISOString();
  assert.deepEqual(settings, { url: SAVED.url, disabled: true, updated_at: at, suppressed });
  assert.match(secret, /^whsec_/);
  assert.deepEqual((await world.show(key)).body, { code: 'success', data: { callback: settings } });

  app.advance(60_000);
  const kept = await world.save(key, { enabled_actions: ['order:issued'] });
  const now = new Date(app.now()).toISOString();
  assert.deepEqual(kept.body.data.callback, {
    url: SAVED.url,
    disabled: false,
    enabled_actions: ['order:issued'],
    updated_at: now,
    suppressed,
  });
  assert.equal(await called(key), '/saved saved-key', 'both omitted, both are kept');
  await world.save(key, { url: url('/newer'), access_key: 'newer-key' });
  assert.equal(await called(key), '/newer newer-key');

  for (const round of ['first', 'again']) {
    const gone = await app.call('DELETE', SETTINGS, { key });
    assert.deepEqual([gone.status, gone.body], [200, { code: 'success', data: { callback: null } }], round);
    assert.equal(row(key), undefined, 'nothing of it is stored, not even sealed');
    assert.equal(await saved(key), null);
    assert.equal(resultOf(await world.test(key)), '400 callback_not_configured');
  }
  await requireRefused(key, {}, '400 callback_not_configured');
  assert.equal((await saved(other)).url, url('/of-another'), 'of this account only');
  const done = (await app.app.store.audit.listOf(key.accountId, { limit: 100 })).map(({ action }) => action);
  const settingsDone = done.filter((action) => /^callback:(saved|deleted)$/.test(action));
  assert.deepEqual(
    settingsDone,
    [...Array(3).fill('callback:saved'), 'callback:deleted'],
    'deleting nothing is not audited',
  );

  const asJson = (raw: string): Call => ({ raw, headers: { 'content-type': 'application/json' } });
  for (const raw of ['null', '[]', '"x"', '5', '{']) await requireRefused(other, raw, BAD, asJson(raw));
  const proto = asJson(`{"__proto__":{"url":"${url('/evil')}","access_key":"evil","disabled":true}}`);
  await requireRefused(key, 'a prototype', '400 callback_not_configured', proto);
});

rule('callback-settings 2', 'Settings cannot be saved with only one of `url` and `access_key`.', async () => {
  for (const key of [await app.newKey(), await configured()]) {
    for (const rest of [{}, { disabled: true }, { enabled_actions: [] }]) {
      await requireRefused(key, { url: url('/half'), ...rest }, `${BAD} access_key`);
      await requireRefused(key, { access_key: 'half', ...rest }, `${BAD} url`);
    }
  }
});

/** For each field, values that a test accepts, or refuses before any call. */
const VALUES: readonly (readonly [field: 'url' | 'access_key', values: readonly unknown[]])[] = [
  [
    'access_key',
    ['k', 'a b', 'k'.repeat(256), 'k'.repeat(257), '', ' ', ' k', 'k ', 'k\n', 'k\u00e9', 'k\x7f', null, 1, []],
  ],
  ['url', [url('/').padEnd(256, 'x'), url('/').padEnd(257, 'x'), 'HTTPS://'.concat(url('/').slice(8))]],
  [
    'url',
    ['', ' ', null, 5, [], {}, 'https://', 'https:///x', 'example.com:443/x', '//example.com/', 'https:example.com'],
  ],
  ['url', ['http://example.com/', 'ftp://example.com/', 'HTTP://a b/', 'https://a b/', ` ${url()}`, `${url()}\n`]],
  ['url', [url('/#f'), 'https://u:p@example.com/', 'https://exämple.com/', 'https://a\\b/', 'https://example.com:0/']],
];

rule(
  'callback-settings 3',
  '`url` and `access_key` are checked when they are saved as they are in a callback test',
  async () => {
    const codes = new Set<string>();
    for (const [field, values] of VALUES) {
      for (const value of values) {
        const json = { ...SAVED, [field]: value };
        const tested = await world.test(await app.newKey(), json);
        const stored = await world.save(await app.newKey(), json);
        assert.equal(resultOf(stored), resultOf(tested), JSON.stringify(json));
        assert.equal(stored.body.message, tested.body.message);
        codes.add(tested.body.code);
      }
    }
    const expected = ['callback_url_not_https', 'invalid_callback_url', 'invalid_parameters', 'success'];
    assert.deepEqual([...codes].sort(), expected, 'the table has accepted and refused values');
  },
);

rule('callback-settings 3', 'as they are in a callback test, with the same codes', async () => {
  for (const address of ['https://10.0.0.1/', 'https://169.254.169.254/latest/', 'https://[fd00::1]/']) {
    const json = { url: address, access_key: 'k' };
    assert.equal(resultOf(await world.test(await app.newKey(), json)), '422 callback_private_domain');
    assert.equal(resultOf(await world.save(await app.newKey(), json)), '422 callback_private_domain', address);
  }
});

rule('callback-settings 4', 'No answer shows a saved `access_key`.', async () => {
  const key = await app.newKey();
  const secret = 'Sup3r/Secret+Key';
  const answers = [
    await world.save(key, { url: url('/x'), access_key: secret }),
    await world.show(key),
    await world.save(key, { disabled: true }),
    await world.save(key, { url: 'http://x/', access_key: secret }),
    await world.save(key, { url: url('/x'), access_key: secret, disabled: secret }),
    await world.save(key, { url: url('/x'), access_key: secret, enabled_actions: [secret] }),
    await world.save(key, { access_key: secret }),
    await world.test(key),
    await world.test(key, { url: url('/y') }),
    await world.test(key, { url: 'https://missing.example.test/' }),
    await app.call('GET', '/openapi/v3/account', { key }),
    await app.call('DELETE', SETTINGS, { key }),
  ];
  assert.ok(new Set(answers.map(({ status }) => status)).size >= 3, 'of successes and errors alike');
  for (const { text, headers } of answers) {
    assert.ok(!`${text}${JSON.stringify([...headers])}`.includes(secret), text);
    assert.ok(!text.includes(JSON.stringify(secret).slice(1, -1)), text);
  }
});

rule('callback-settings 5', 'The signing secret of the account is shown once, when it is made.', async () => {
  const key = await app.newKey();
  const { signing_secret: secret } = (await world.save(key, SAVED)).body.data.callback;
  const [, base64 = ''] = /^whsec_([A-Za-z0-9+/]+=*)$/.exec(secret) ?? [];
  assert.equal(Buffer.from(base64, 'base64').length, 32);
  const later = [
    await world.show(key),
    await world.save(key, SAVED),
    await world.save(key, { url: url('/newer'), access_key: 'newer' }),
    await world.save(key, {}),
    await world.test(key),
    await app.call('DELETE', SETTINGS, { key }),
    await world.show(key),
  ];
  for (const { text } of later) assert.doesNotMatch(text, /signing_secret|whsec_/);
  const again = (await world.save(key, SAVED)).body.data.callback.signing_secret;
  assert.match(again, /^whsec_/, 'a new secret, shown again');
  assert.notEqual(again, secret);
  // A refused request creates none.
  const refused = await world.save(await app.newKey(), { url: url() });
  assert.doesNotMatch(refused.text, /whsec_/);
});
