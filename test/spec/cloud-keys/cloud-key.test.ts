// Cloud-held keys: generation, tenant isolation, change of the access code, destruction.
import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { after, test } from 'node:test';
import { CREDENTIAL_KINDS } from '../../../src/domain/access/credential.ts';
import { startApp } from '../../support/app.ts';
import { authorize, type CloudKey, CODE, HINT, newCloudKey, sign, withCode } from '../../support/cloud-keys.ts';
import { rule } from '../../support/contract.ts';
import { keyPair } from '../../support/csr.ts';
import { certificate, csrFor, newOrder, reissue, spkiIn } from '../../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

const PATH = '/openapi/v3/cloud-keys';
const hash = (text: string) => createHash('sha256').update(text).digest('base64');
const list = async (key: CloudKey['key'], query = '') => (await app.call('GET', PATH + query, { key })).body.data;
const body = (change: Record<string, unknown> = {}, top: Record<string, unknown> = {}) => ({
  certificate: { csr_from: 'sign-cloud-csc', sign_hash: 'sha256', ...change },
  sign_key_pin: CODE,
  ...top,
});

rule('cloud-key 1', 'makes the service generate and hold the private key of the certificate', async () => {
  for (const [options, type] of [
    [{ like: 'p256' }, ['p256', 256]],
    [{ like: 'rsa2048' }, ['rsa', 3072]],
    [{ signHash: 'sm3' }, ['sm2', 256]],
    [{ product: 'code-signing' }, ['p256', 256]],
  ] as const) {
    const held = await newCloudKey(app, options);
    const { cloud_keys, next_after } = await list(held.key);
    assert.deepEqual(
      [cloud_keys, next_after],
      [
        [
          {
            ...{ id: held.id, key_type: type[0], bits: type[1], hint: HINT, locked_until: null },
            ...{
              created_at: new Date(app.now()).toISOString(),
              destroyed_at: null,
              certificate_id: held.certificateId,
            },
          },
        ],
        null,
      ],
    );
  }
});

test('each reissue generates a new key; the list is paged', async () => {
  const order = await newOrder(app, { product: 'document-signing', commonName: 'Acme Ltd' });
  const ids: string[] = [];
  const keys = new Set<string>();
  for (let count = 0; count < 3; count += 1) {
    const answer = await reissue(app, order, body());
    assert.equal(answer.status, 200, answer.text);
    const made = await certificate(app, order, answer.body.data.certificate.id);
    ids.push(made.cloud_key_id);
    keys.add(Buffer.from(spkiIn(made)).toString('hex'));
  }
  assert.equal(keys.size, 3);
  const pages = [await list(order.key, '?limit=2'), await list(order.key, `?limit=2&after=${ids[1]}`)];
  assert.deepEqual(
    pages.map(({ cloud_keys, next_after }) => [cloud_keys.map(({ id }: { id: string }) => id), next_after]),
    [
      [ids.slice(0, 2), ids[1]],
      [ids.slice(2), null],
    ],
  );
});

rule('cloud-key 2', 'a missing or empty `sign_key_pin` is `invalid_parameters`', async () => {
  const order = await newOrder(app, { product: 'document-signing', commonName: 'Acme Ltd' });
  for (const sign_key_pin of [undefined, '', '12345', 'x'.repeat(129), 'abc\u0000def', 'abcdef\n']) {
    const answer = await reissue(app, order, body({}, { sign_key_pin }));
    const { code, field } = answer.body;
    assert.deepEqual([answer.status, code, field], [400, 'invalid_parameters', 'sign_key_pin'], sign_key_pin);
  }
  assert.deepEqual((await list(order.key)).cloud_keys, [], 'a refusal stores no key');
  for (const sign_key_pin of ['123456', 'x'.repeat(128), '一二三四五六']) {
    assert.equal((await reissue(app, order, body({}, { sign_key_pin }))).status, 200, sign_key_pin);
  }
});

rule('cloud-key 3', 'With `sign-cloud-csc` a `csr` that was sent is ignored', async () => {
  const order = await newOrder(app, { product: 'document-signing', commonName: 'Acme Ltd' });
  for (const csr of ['', 'no csr at all', csrFor('p384')]) {
    const answer = await reissue(app, order, body({ csr }));
    assert.equal(answer.status, 200, answer.text);
    const spki = spkiIn(await certificate(app, order, answer.body.data.certificate.id));
    assert.notDeepEqual(spki, keyPair('p384').spki);
    assert.notDeepEqual(spki, keyPair('p256').spki, 'nor is the last key certified again');
  }
});

rule('cloud-key 4', 'A `sign_key_pin_tip` that contains the access code is `invalid_parameters`', async () => {
  const order = await newOrder(app, { product: 'document-signing', commonName: 'Acme Ltd' });
  for (const tip of [CODE, `it is ${CODE}!`, CODE.toUpperCase(), 'b l u e h a r b o u r 7 3', 'ｂｌｕｅharbour73']) {
    const { status, text, body: said } = await reissue(app, order, body({}, { sign_key_pin_tip: tip }));
    assert.deepEqual([status, said.code, said.field], [400, 'invalid_parameters', 'sign_key_pin_tip'], tip);
    assert.ok(!text.includes(tip), 'the input is not repeated');
  }
  assert.equal((await reissue(app, order, body({}, { sign_key_pin_tip: 'blue' }))).status, 200);
});

rule('errors cloud_key_not_found', 'is 404: the account has no cloud-held key with that identifier', async () => {
  const held = await newCloudKey(app);
  const stranger = await app.newKey();
  for (const [key, id] of [
    [held.key, 'nothing'],
    [stranger, held.id],
  ] as const) {
    const pins = { pin: CODE, new_pin: 'another code' };
    for (const answer of [
      await app.call('PUT', `${PATH}/${id}/pin`, { key, json: pins }),
      await app.call('DELETE', `${PATH}/${id}`, { key, json: pins }),
    ]) {
      assert.deepEqual([answer.status, answer.body.code], [404, 'cloud_key_not_found']);
    }
  }
  assert.deepEqual((await list(stranger)).cloud_keys, []);
  assert.equal((await sign(app, held, [hash('still there')])).status, 200);
});

rule('cloud-key 8', '`PUT /openapi/v3/cloud-keys/{id}/pin` gives a key another access code', async () => {
  const held = await newCloudKey(app);
  const change = (json: object) => app.call('PUT', `${PATH}/${held.id}/pin`, { key: held.key, json });
  const next = 'Green-Valley-41';
  for (const [json, field] of [
    [{ new_pin: next }, 'pin'],
    [{ pin: CODE }, 'new_pin'],
    [{ pin: CODE, new_pin: '12345' }, 'new_pin'],
    [{ pin: CODE, new_pin: next, new_pin_tip: `not ${next}` }, 'new_pin_tip'],
    [{ pin: CODE, new_pin: next, new_pin_tip: null }, 'new_pin_tip'],
  ] as const) {
    const { status, body: said } = await change(json);
    assert.deepEqual([status, said.code, said.field], [400, 'invalid_parameters', field], JSON.stringify(json));
  }
  assert.equal((await change({ pin: next, new_pin: next })).body.code, 'sign_key_pin_wrong');
  const changed = await change({ pin: CODE, new_pin: next, new_pin_tip: 'a colour' });
  assert.deepEqual([changed.status, changed.body.data.cloud_key.hint], [200, 'a colour'], changed.text);
  assert.equal((await authorize(app, held, [hash('x')])).body.error, 'invalid_authentication_data');
  assert.equal((await sign(app, held, [hash('x')], withCode(next))).status, 200, 'it is the same key');
  const again = await change({ pin: next, new_pin: CODE });
  assert.equal(again.body.data.cloud_key.hint, null, 'the hint belonged to the previous code');
});

rule('cloud-key 9', '`DELETE /openapi/v3/cloud-keys/{id}` destroys a key for good', async () => {
  const held = await newCloudKey(app);
  const destroy = (json: object) => app.call('DELETE', `${PATH}/${held.id}`, { key: held.key, json });
  const authorized = await authorize(app, held, [hash('x')]);
  assert.equal((await destroy({})).body.field, 'pin');
  assert.equal((await destroy({ pin: 'not the code' })).body.code, 'sign_key_pin_wrong');
  const destroyed = await destroy({ pin: CODE });
  assert.equal(destroyed.status, 200, destroyed.text);
  const [shown] = (await list(held.key)).cloud_keys;
  assert.deepEqual(destroyed.body.data.cloud_key, shown);
  assert.deepEqual([shown.destroyed_at, shown.hint], [new Date(app.now()).toISOString(), null]);
  assert.equal((await destroy({ pin: CODE })).status, 404);
  assert.equal((await authorize(app, held, [hash('x')])).status, 400);
  const late = {
    credentialID: held.id,
    SAD: authorized.body.SAD,
    hashes: [hash('x')],
    signAlgo: '1.2.840.10045.4.3.2',
  };
  const signed = await app.call('POST', '/csc/v2/signatures/signHash', { key: held.key, json: late });
  assert.equal(signed.status, 400, 'earlier authorizations are void');
  assert.ok(new X509Certificate(held.pem).validToDate.getTime() > app.now(), 'its certificate is not affected');
});

rule('csc 10', 'without a body takes the access code from the header `X-CC-Sign-Key-Pin`', async () => {
  const held = await newCloudKey(app, { pin: '蓝色港湾七十三' });
  const destroy = (headers: Record<string, string>, query = '', more = {}) =>
    app.call('DELETE', `${PATH}/${held.id}${query}`, { key: held.key, headers, ...more });
  // As it goes over the wire: fetch takes a byte per character.
  const header = (pin: string) => ({ 'X-CC-Sign-Key-Pin': Buffer.from(pin).toString('latin1') });
  const right = header('蓝色港湾七十三');
  for (const [what, answer] of [
    ['nothing', await destroy({})],
    ['an empty header', await destroy(header(''))],
    ['in the URL', await destroy({}, `?pin=${encodeURIComponent('蓝色港湾七十三')}`)],
    ['twice', await destroy(right, '', { json: { pin: '蓝色港湾七十三' } })],
    ['not in UTF-8', await destroy({ 'X-CC-Sign-Key-Pin': 'caf\xe9 caf\xe9' })],
  ] as const) {
    const { code, field } = answer.body;
    assert.deepEqual([answer.status, code, field], [400, 'invalid_parameters', 'pin'], what);
  }
  const type = { 'content-type': 'application/json' };
  assert.equal((await destroy({ ...right, ...type }, '', { raw: 'null' })).body.code, 'invalid_parameters');
  assert.equal((await destroy({ ...right, ...type }, '', { raw: '{"pin":7}' })).body.field, 'pin');
  const { wrongCodes } = (await app.app.store.cloudKeys.find(held.key.accountId, held.id))!;
  assert.equal(wrongCodes, 0, 'none of these was an attempt');
  assert.equal((await destroy(header('not the code'))).body.code, 'sign_key_pin_wrong');
  const destroyed = await destroy(right);
  assert.deepEqual([destroyed.status, destroyed.body.data?.cloud_key.id], [200, held.id], destroyed.text);
  assert.ok(!app.output.includes('蓝色港湾七十三') && !app.output.includes(right['X-CC-Sign-Key-Pin']));
});

rule('csc 9', 'is shown only to credentials that may sign with the key', async () => {
  const held = await newCloudKey(app);
  for (const kind of CREDENTIAL_KINDS) {
    const key = await app.anotherKey(held.key.accountId, kind);
    const json = { credentialID: held.id, credentialInfo: true, authInfo: true };
    const shown = [JSON.stringify(await list(key))];
    for (const method of ['credentials/info', 'credentials/list']) {
      for (const version of ['v1', 'v2']) {
        const answer = await app.call('POST', `/csc/${version}/${method}`, { key, json });
        assert.equal(answer.status, 200, answer.text);
        shown.push(answer.text);
      }
    }
    const hinted = shown.map((text) => text.includes(HINT));
    assert.deepEqual(hinted, Array(5).fill(kind === 'standard'), kind);
  }
});

rule('permission 9', 'Only `standard` credentials may sign with a cloud-held key', async () => {
  const held = await newCloudKey(app);
  for (const kind of CREDENTIAL_KINDS.filter((one) => one !== 'standard')) {
    const key = await app.anotherKey(held.key.accountId, kind);
    for (const [method, path] of [
      ['PUT', `/${held.id}/pin`],
      ['DELETE', `/${held.id}`],
    ] as const) {
      const answer = await app.call(method, PATH + path, { key, json: { pin: CODE, new_pin: 'another code' } });
      assert.deepEqual([answer.status, answer.body.code], [403, 'permission_denied'], `${kind} ${method}`);
    }
    for (const method of ['credentials/authorize', 'signatures/signHash']) {
      const { status, body: said } = await app.call('POST', `/csc/v2/${method}`, { key, json: {} });
      assert.deepEqual([status, said.error], [403, 'unauthorized_client'], `${kind} ${method}`);
    }
    assert.equal((await list(key)).cloud_keys.length, 1, 'reading is for all kinds');
    const info = await app.call('POST', '/csc/v2/credentials/info', { key, json: { credentialID: held.id } });
    assert.equal(info.status, 200);
  }
});

test('each operation on a key is audited with actor and request id', async () => {
  const held = await newCloudKey(app);
  const { accountId, keyId } = held.key;
  const answers = [
    await authorize(app, held, [hash('x')], withCode('wrong one')),
    await authorize(app, held, [hash('x'), hash('y')]),
    await app.call('PUT', `${PATH}/${held.id}/pin`, { key: held.key, json: { pin: CODE, new_pin: CODE } }),
    await app.call('DELETE', `${PATH}/${held.id}`, { key: held.key, json: { pin: CODE } }),
  ];
  const entries = await app.app.store.audit.listOf(accountId, { limit: 100 });
  const ours = entries.filter(({ action }) => action.startsWith('cloud-key:'));
  assert.deepEqual(
    ours.map(({ id: _, ...entry }) => entry),
    [
      ['cloud-key:refused', { reason: 'wrong code', wrong_codes: 1 }],
      ['cloud-key:authorized', { hashes: 2, sign_hash: 'sha256' }],
      ['cloud-key:changed', {}],
      ['cloud-key:destroyed', {}],
    ].map(([action, details], index) => ({
      ...{ at: app.now(), accountId, actor: keyId, subject: held.id, action, details },
      requestId: answers[index]!.headers.get('x-request-id'),
    })),
  );
});
