// Who may test callbacks and change settings. A refusal makes no call and changes nothing.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { CREDENTIAL_KINDS } from '../../../src/domain/access/credential.ts';
import type { Answer, Call, Key } from '../../support/app.ts';
import { callbackIn, resultOf, SETTINGS, startCallbackApp, TEST } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';

const world = await startCallbackApp({ RESEAL_CALLBACK_TEST_RATE: '1000/s' });
after(() => world[Symbol.asyncDispose]());
const { app, receiver, outside, url } = world;

const SAVED = { url: url('/saved'), access_key: 'saved-key' };
const TEMPORARY = { url: url('/temporary'), access_key: 'temporary-key' };
const DENIED = '403 permission_denied';
const OTHER_KINDS = CREDENTIAL_KINDS.filter((kind) => kind !== 'standard');

/** A key of a managed-PKI account with settings that the operator saved. */
async function managed(): Promise<Key> {
  const key = await app.newKey({ kind: 'managed_pki' });
  await world.saveAsOperator(key.accountId, SAVED);
  return key;
}

const requestsSeen = () => [receiver.connections.length, outside.dns.queries.length];
const auditOf = ({ accountId }: Key) => app.app.store.audit.listOf(accountId, { limit: 1_000 });
/** With secrets in plain text, because Secret instances always compare equal. */
async function stateOf(key: Key) {
  const saved = await app.app.store.callbacks.find(key.accountId);
  const secrets = [saved?.accessKey.reveal(), saved?.signingSecret.reveal()];
  return [{ ...saved }, secrets, await auditOf(key), requestsSeen()];
}

/** Asserts a refusal: settings unchanged, no query and no call made. */
async function requireDenied(key: Key, ask: () => Promise<Answer>, what: string): Promise<Answer> {
  const before = await stateOf(key);
  const answer = await ask();
  assert.equal(resultOf(answer), DENIED, `${what} ${answer.text}`);
  assert.equal(answer.body.details, undefined);
  assert.deepEqual(await stateOf(key), before, what);
  return answer;
}

const asJson = (raw: string): Call => ({ raw, headers: { 'content-type': 'application/json' } });

rule('permission 3', 'Only `standard` credentials may call the callback test; the other three kinds get', async () => {
  assert.equal(OTHER_KINDS.length, 3);
  for (const account of ['standard', 'managed_pki'] as const) {
    const owner = await app.newKey({ kind: account });
    await world.saveAsOperator(owner.accountId, SAVED);
    for (const kind of OTHER_KINDS) {
      const key = await app.anotherKey(owner.accountId, kind);
      const bodies: readonly Call[] = [{}, { json: {} }, { json: TEMPORARY }, asJson('{'), asJson('null')];
      for (const call of bodies) {
        await requireDenied(key, () => world.test(key, undefined, call), `${kind} of ${account}`);
      }
      const chinese = await app.call('PUT', TEST, { key, headers: { 'accept-language': 'zh-CN' } });
      assert.match(chinese.body.message, /\p{Script=Han}/u);
    }
    assert.equal(resultOf(await world.test(owner)), '200 success', `a standard key of ${account}`);
  }
});

rule('permission 4', 'Only `standard` credentials may see, change or delete the callback settings.', async () => {
  const owner = await app.newKey();
  assert.equal(resultOf(await world.save(owner, SAVED)), '200 success');
  for (const kind of OTHER_KINDS) {
    const key = await app.anotherKey(owner.accountId, kind);
    const asks: readonly (readonly [string, Call?])[] = [
      ['GET'],
      ['PUT', { json: TEMPORARY }],
      ['PUT', { json: {} }],
      ['PUT', asJson('{')],
      ['DELETE'],
    ];
    for (const [method, call] of asks) {
      const { text } = await requireDenied(
        key,
        () => app.call(method, SETTINGS, { key, ...call }),
        `${kind} ${method}`,
      );
      assert.ok(!text.includes(SAVED.url), 'and no setting is shown');
    }
  }
  assert.equal((await world.show(owner)).body.data.callback.url, SAVED.url);
  assert.equal(resultOf(await world.save(owner, TEMPORARY)), '200 success');
  assert.equal(resultOf(await app.call('DELETE', SETTINGS, { key: owner })), '200 success');
});

rule('permission 6', 'that sends a temporary `url` or `access_key` to the callback test', async () => {
  const key = await managed();
  for (const json of [{ url: TEMPORARY.url }, { access_key: 'k' }, TEMPORARY, SAVED]) {
    await requireDenied(key, () => world.test(key, json), JSON.stringify(json));
  }
  // It may test saved settings; other accounts may send fields that this one may not.
  assert.equal(resultOf(await world.test(key)), '200 success');
  const { line, headers } = callbackIn(receiver);
  assert.deepEqual([line, headers['x-cc-callback-auth']], ['POST /saved HTTP/1.1', 'saved-key']);
  assert.equal(resultOf(await world.test(await app.newKey(), TEMPORARY)), '200 success');
  const bare = await app.newKey({ kind: 'managed_pki' });
  await requireDenied(bare, () => world.test(bare, TEMPORARY), 'also with nothing saved');
  assert.equal(resultOf(await world.test(bare)), '400 callback_not_configured');
});

rule('permission 7', 'that changes or deletes the saved callback settings gets `permission_denied`', async () => {
  for (const key of [await managed(), await app.newKey({ kind: 'managed_pki' })]) {
    const bodies = [SAVED, TEMPORARY, {}, { disabled: true }, { enabled_actions: [] }, { url: 5 }];
    for (const json of bodies) {
      await requireDenied(key, () => world.save(key, json), JSON.stringify(json));
    }
    await requireDenied(key, () => app.call('DELETE', SETTINGS, { key }), 'DELETE');
  }
  const key = await managed();
  // It may read them, without the secrets.
  const { body, text } = await world.show(key);
  assert.deepEqual([body.data.callback.url, body.data.callback.disabled], [SAVED.url, false]);
  assert.doesNotMatch(text, /saved-key|whsec_|signing_secret/);
});

rule('callback-test 11', 'as soon as `url` or `access_key` is present, whatever its value', async () => {
  const key = await managed();
  const values = [
    null,
    '',
    ' ',
    0,
    5,
    true,
    false,
    [],
    {},
    'x'.repeat(300),
    'a\nb',
    'http://example.com/',
    'https://10.0.0.1/',
  ];
  for (const value of values) {
    for (const json of [{ url: value }, { access_key: value }, { url: value, access_key: value }]) {
      await requireDenied(key, () => world.test(key, json), JSON.stringify(json).slice(0, 100));
    }
  }
  // The response does not depend on the value.
  const messages = await Promise.all(values.map(async (value) => (await world.test(key, { url: value })).body.message));
  assert.equal(new Set(messages).size, 1);
  const absent = [
    '',
    ' ',
    '{}',
    '{"Url":1}',
    '{"URL":1,"accessKey":2}',
    '{"__proto__":{"url":1}}',
    '{"data":{"url":1}}',
  ];
  for (const raw of absent) assert.equal(resultOf(await world.test(key, undefined, asJson(raw))), '200 success', raw);
});

rule('errors permission_denied', '`permission_denied` is 403: the kind of the credential may not do this', async () => {
  const key = await managed();
  const token = await app.anotherKey(key.accountId, 'cloud_manager_token');
  const answers = [
    await world.test(token),
    await world.test(key, { url: null }),
    await app.call('PUT', '/openapi/v3/account', { key: token, json: { name: 'x' } }),
  ];
  for (const answer of answers) {
    assert.equal(resultOf(answer), DENIED);
    assert.deepEqual(Object.keys(answer.body).sort(), ['code', 'message', 'request_id']);
  }
  assert.equal(new Set(answers.map(({ body }) => body.message)).size, 2, 'the two reasons have distinct messages');
});
