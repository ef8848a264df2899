// ACME accounts over HTTP: changes, deactivation, new keys, and what ends or limits the requests of an account.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import acme from 'acme-client';
import { requireRights } from '../../../src/domain/acme/binding.ts';
import { AcmeProblem } from '../../../src/domain/acme/problem.ts';
import { DAY_MS } from '../../../src/kernel/durations.ts';
import { limitNewOrders } from '../../../src/usecases/acme/limits.ts';
import {
  AcmeClient,
  type AcmeKey,
  type Json,
  jws,
  newAcmeKey,
  newEab,
  problemOf,
  type SentJws,
} from '../../support/acme.ts';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';

const TERMS = 'https://ca.example.com/terms';
const app = await startApp({ RESEAL_ACME_TERMS_URL: TERMS });
after(() => app.stop());
const { store, access, acmeAccess } = app.app;

type Client = AcmeClient & { kid: string };
const idOf = ({ kid }: Client): string => kid.slice(kid.lastIndexOf('/') + 1);
const agreed = { termsOfServiceAgreed: true };
async function newClient(accountId: string, rights = {}): Promise<Client & { eab: { kid: string; macKey: string } }> {
  const client = new AcmeClient(app.url);
  const eab = await newEab(app, accountId, rights);
  assert.equal((await client.register(eab, agreed)).status, 201);
  return Object.assign(client as Client, { eab });
}

const { accountId: TENANT } = await app.newKey();
const shared = await newClient(TENANT);
const { keyChange: KEY_CHANGE, meta: META } = await shared.directory();

rule('acme 34', 'and a `status` other than `deactivated` in a change', async () => {
  const before = (await shared.post(shared.kid)).body;
  const changes = [{}, { status: 'valid' }, { status: 'revoked' }, { orders: 'x' }, { termsOfServiceAgreed: false }];
  for (const change of [...changes, { unknown: 1 }, { externalAccountBinding: {} }, { status: 1 }]) {
    const { status, body } = await shared.post(shared.kid, change);
    assert.deepEqual([status, body], [200, before], JSON.stringify(change));
  }
  const client = new AcmeClient(app.url);
  const fields = { ...agreed, unknown: { x: 1 }, status: 'deactivated', orders: 'x' };
  assert.equal((await client.register(await newEab(app, TENANT), fields)).body.status, 'valid');
});

rule('acme 35', 'is refused with `userActionRequired` and a `Link` to the terms', async () => {
  assert.equal(META.termsOfService, TERMS);
  for (const payload of [{}, { termsOfServiceAgreed: false }, { termsOfServiceAgreed: 'true' }]) {
    const answer = await new AcmeClient(app.url).register(await newEab(app, TENANT), payload);
    assert.equal(problemOf(answer), 'userActionRequired');
    assert.ok(answer.headers.get('link')?.includes(`<${TERMS}>;rel="terms-of-service"`));
  }
  assert.equal((await shared.post(shared.kid)).body.termsOfServiceAgreed, true);
});

rule('acme 36', "A POST to the account's URL changes its contacts", async () => {
  for (const contact of [['mailto:a@example.com', 'mailto:b@example.com'], ['mailto:c@example.com'], []]) {
    assert.deepEqual((await shared.post(shared.kid, { contact })).body.contact, contact);
    assert.deepEqual((await shared.post(shared.kid)).body.contact, contact);
  }
});

rule('acme 37', 'every later request with its key is answered 401 `unauthorized`', async () => {
  const client = await newClient(TENANT);
  const { status, body } = await client.post(client.kid, { status: 'deactivated' });
  assert.deepEqual([status, body.status], [200, 'deactivated']);
  const requests = [
    await client.post(client.kid),
    await client.post(client.kid, { status: 'valid' }),
    await client.post(KEY_CHANGE, {}),
    await client.register(client.eab, agreed),
  ];
  for (const answer of requests) assert.deepEqual([answer.status, problemOf(answer)], [401, 'unauthorized']);
});

rule('acme 38', 'The URL of another account is `unauthorized`, whether or not', async () => {
  const other = await newClient((await app.newKey()).accountId);
  const answers = [];
  for (const url of [other.kid, shared.kid.slice(0, -1)]) {
    for (const payload of [undefined, { status: 'deactivated' }]) answers.push(await shared.post(url, payload));
  }
  for (const answer of answers) {
    assert.deepEqual([answer.status, problemOf(answer)], [403, 'unauthorized']);
    assert.deepEqual(answer.body, answers[0]?.body);
  }
  assert.equal((await other.post(other.kid)).body.status, 'valid');
});

/** The inner JWS of a key change, as an honest client makes it. */
const innerOf = (client: Client, key: AcmeKey, { header = {}, payload = {} }: { header?: Json; payload?: Json } = {}) =>
  jws(
    key,
    { alg: key.alg, jwk: key.jwk, url: KEY_CHANGE, ...header },
    { account: client.kid, oldKey: client.key.jwk, ...payload },
  );

rule('acme 39', 'After `keyChange` requests are signed with the new key', async () => {
  const client = await newClient(TENANT);
  const [old, key] = [client.key, newAcmeKey('ed25519')];
  const { status, body } = await client.post(KEY_CHANGE, innerOf(client, key));
  assert.deepEqual([status, body.status], [200, 'valid']);
  assert.equal(problemOf(await client.post(client.kid)), 'badSignatureAlgorithm');
  client.key = newAcmeKey('ed25519');
  assert.equal(problemOf(await client.post(client.kid)), 'malformed');
  client.key = key;
  assert.equal((await client.post(client.kid)).status, 200);
  const again = await client.postAs({ jwk: key.jwk }, (await client.directory()).newAccount, {});
  assert.deepEqual([again.status, again.headers.get('location')], [200, client.kid]);
  client.key = old;
  assert.equal(problemOf(await client.register(undefined, { onlyReturnExisting: true })), 'accountDoesNotExist');
});

rule('acme 40', "the account's URL as `account` and its present key as `oldKey`; else `malformed`", async () => {
  const client = await newClient(TENANT);
  const key = newAcmeKey();
  const other = newAcmeKey();
  const bent = (change: (jws: SentJws) => object) => change(innerOf(client, key));
  const inner: Readonly<Record<string, object>> = {
    'a nonce': innerOf(client, key, { header: { nonce: await client.nonce() } }),
    'another url': innerOf(client, key, { header: { url: client.kid } }),
    'kid instead of jwk': innerOf(client, key, { header: { jwk: undefined, kid: client.kid } }),
    'both jwk and kid': innerOf(client, key, { header: { kid: client.kid } }),
    'another account': innerOf(client, key, { payload: { account: shared.kid } }),
    'no account': innerOf(client, key, { payload: { account: undefined } }),
    'another old key': innerOf(client, key, { payload: { oldKey: other.jwk } }),
    'no old key': innerOf(client, key, { payload: { oldKey: undefined } }),
    'signed by another key': innerOf(client, other, { header: { jwk: key.jwk } }),
    'signed by the old key': innerOf(client, client.key, { header: { jwk: key.jwk } }),
    'an unprotected header': bent((sent) => ({ ...sent, header: {} })),
    'an empty payload': bent((sent) => jws(key, JSON.parse(atobUrl(sent.protected)))),
    'no JWS': {},
  };
  for (const [name, payload] of Object.entries(inner)) {
    assert.equal(problemOf(await client.post(KEY_CHANGE, payload)), 'malformed', name);
  }
  assert.equal(problemOf(await client.post(KEY_CHANGE)), 'malformed');
  assert.equal((await client.post(client.kid)).status, 200, 'the key is as before');
});
const atobUrl = (text: string): string => Buffer.from(text, 'base64url').toString();

rule('acme 41', "is answered 409, with that account's URL in `Location`", async () => {
  const client = await newClient(TENANT);
  for (const { key, kid } of [shared, client]) {
    const answer = await client.post(KEY_CHANGE, innerOf(client, key));
    assert.deepEqual([answer.status, answer.headers.get('location')], [409, kid], answer.text);
  }
});

rule('acme 42', 'are `unauthorized`, with a detail that says what to do', async () => {
  const { accountId } = await app.newKey();
  const expiring = await newClient(accountId, { expiresAt: app.now() + DAY_MS });
  const disabled = await newClient(accountId);
  const reusable = await newClient(accountId, { isReusable: true });
  const refused = async (client: Client, remedy: RegExp) => {
    client.forgetNonce();
    const answer = await client.post(client.kid);
    assert.deepEqual([answer.status, problemOf(answer)], [403, 'unauthorized']);
    assert.match(answer.body.detail, remedy);
  };
  await acmeAccess.disableBinding(disabled.eab.kid);
  await refused(disabled, /disabled.*Ask the operator/);
  app.advance(DAY_MS);
  await refused(expiring, /expired.*Ask the operator/);
  await access.suspendAccount(accountId, null);
  await refused(reusable, /suspended.*Ask the operator/);
  assert.match((await new AcmeClient(app.url).register(reusable.eab, agreed)).body.detail, /suspended/);
  await access.resumeAccount(accountId);
  assert.equal((await reusable.post(reusable.kid)).status, 200);
  await acmeAccess.disableBinding(reusable.eab.kid);
  assert.match((await new AcmeClient(app.url).register(reusable.eab, agreed)).body.detail, /disabled/);
});

rule('acme 43', 'an account that the operator has disabled are answered 401', async () => {
  const client = await newClient(TENANT);
  assert.equal((await acmeAccess.disableAccount(idOf(client))).status, 'revoked');
  const answer = await client.post(client.kid);
  assert.deepEqual([answer.status, problemOf(answer)], [401, 'unauthorized']);
  assert.match(answer.body.detail, /operator/);
});

rule('acme 44', 'wildcards among them; an IP address must be given itself', () => {
  const rights = { products: ['ssl-dv'], nameSuffixes: ['example.com', '192.0.2.1'], revokesReplaced: false };
  const allowed = ['example.com', 'a.b.example.com', '*.example.com', '*.a.example.com', '192.0.2.1'];
  requireRights(rights, 'ssl-dv', allowed);
  requireRights({ products: null, nameSuffixes: null, revokesReplaced: false }, 'any', ['any.test']);
  const refused = (product: string, names: string[]): AcmeProblem => {
    try {
      requireRights(rights, product, names);
    } catch (error) {
      if (error instanceof AcmeProblem) return error;
    }
    assert.fail(names.join());
  };
  assert.equal(refused('tls-private', allowed).acmeCode, 'unauthorized');
  const names = ['badexample.com', 'example.com.evil.test', 'com', '*.com', '192.0.2.11'];
  const { acmeCode, problem } = refused('ssl-dv', [...allowed, ...names]);
  assert.equal(acmeCode, 'rejectedIdentifier');
  assert.deepEqual(
    problem.subproblems?.map(({ identifier }) => identifier?.value),
    names,
  );
});

rule('acme 45', 'beyond it `rateLimited` with `Retry-After`', async () => {
  const eab = await newEab(app, TENANT, { isReusable: true });
  const take = (bindingId: string, id: string) => store.transaction((tx) => limitNewOrders(tx, { id, bindingId }));
  const refusal = async (work: () => Promise<unknown>, most: number): Promise<AcmeProblem> => {
    for (let count = 0; count < most; count += 1) await work();
    const error = await work().catch((thrown) => thrown);
    assert.ok(error instanceof AcmeProblem, `more than ${most}`);
    return error;
  };
  const { acmeCode, problem } = await refusal(() => take('b', 'one'), 300);
  assert.deepEqual([acmeCode, problem.retryAfterSeconds], ['rateLimited', 10]);
  await take('b', 'other');
  const register = () => new AcmeClient(app.url).register(eab, agreed);
  for (let count = 0; count < 50; count += 1) assert.equal((await register()).status, 201);
  const answer = await register();
  assert.deepEqual([answer.status, problemOf(answer)], [429, 'rateLimited']);
  assert.equal(answer.headers.get('retry-after'), '60');
});

rule('acme 46', 'is sealed at rest, and appears in no log line', async () => {
  const { eab } = await newClient(TENANT);
  const [one] = (await acmeAccess.listBindings(TENANT, { limit: 1 })) ?? [];
  assert.ok(one && !('key' in one));
  for (const file of ['reseal.db', 'reseal.db-wal']) {
    assert.equal(readFileSync(join(app.folder, file)).includes(eab.macKey), false, file);
  }
  assert.equal(app.output.includes(eab.macKey), false);
  assert.equal((await store.acmeBindings.findWithKey(eab.kid))?.key.reveal(), eab.macKey);
});

rule('acme 47', 'and for an account created, changed, deactivated or disabled, or given a new key', async () => {
  const { accountId } = await app.newKey();
  const client = await newClient(accountId);
  await client.post(client.kid, { contact: [] });
  const key = newAcmeKey();
  await client.post(KEY_CHANGE, innerOf(client, key));
  client.key = key;
  await client.post(client.kid, { status: 'deactivated' });
  await acmeAccess.disableAccount(idOf(client));
  await acmeAccess.disableBinding(client.eab.kid);
  const entries = (await store.audit.listOf(accountId, { limit: 100 })).filter(({ action }) => /^acme/.test(action));
  const by = `acme:${idOf(client)}`;
  assert.deepEqual(
    entries.map(({ action, subject, actor }) => [action, subject, actor.replace(/^cli:.*/, 'cli')]),
    [
      ['acme-binding:created', client.eab.kid, 'cli'],
      ['acme-account:created', idOf(client), by],
      ['acme-account:changed', idOf(client), by],
      ['acme-account:key_changed', idOf(client), by],
      ['acme-account:deactivated', idOf(client), by],
      ['acme-account:disabled', idOf(client), 'cli'],
      ['acme-binding:disabled', client.eab.kid, 'cli'],
    ],
  );
  assert.equal(JSON.stringify(entries).includes(client.eab.macKey), false);
});

test('acme-client registers with a binding, changes its contacts and its key, and deactivates', async () => {
  const { kid, macKey: hmacKey } = await newEab(app, TENANT);
  const directoryUrl = `${app.url}/acme/ssl-dv/directory`;
  const external = { directoryUrl, externalAccountBinding: { kid, hmacKey } };
  const accountKey = await acme.crypto.createPrivateEcdsaKey();
  const client = new acme.Client({ ...external, accountKey });
  assert.equal(await client.getTermsOfServiceUrl(), TERMS);
  const contact = ['mailto:admin@example.com'];
  const { status } = await client.createAccount({ ...agreed, contact });
  assert.equal(status, 'valid');
  const again = new acme.Client({ directoryUrl, accountKey });
  assert.equal((await again.createAccount({ onlyReturnExisting: true })).status, 'valid');
  assert.equal(again.getAccountUrl(), client.getAccountUrl());
  assert.deepEqual((await client.updateAccount({ contact: [] })).contact, []);
  await client.updateAccountKey(await acme.crypto.createPrivateEcdsaKey('P-384'));
  assert.equal((await client.updateAccount({ status: 'deactivated' })).status, 'deactivated');
});

test('account ids and payloads of another tenant lead nowhere', async () => {
  const [one, two] = [await newAcmeClientOf(), await newAcmeClientOf()];
  assert.equal(problemOf(await one.postAs({ kid: two.kid }, two.kid, undefined)), 'malformed');
  const stolen = { header: { kid: two.kid } };
  assert.equal(problemOf(await one.post(two.kid, { status: 'deactivated' }, stolen)), 'malformed');
  assert.equal((await two.post(two.kid)).body.status, 'valid');
});
const newAcmeClientOf = async () => await newClient((await app.newKey()).accountId);
