// Authorizations and challenges as resources, and proofs that count in both interfaces.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type AcmeClient, newAcmeClient, problemOf } from '../../support/acme.ts';
import {
  finalized,
  issued,
  placed,
  poll,
  proven,
  publish,
  sameAccount,
  withLostAnswer,
} from '../../support/acme-orders.ts';
import { rule } from '../../support/contract.ts';
import { DAY, ISSUERS, startDomainApp } from '../../support/domain-app.ts';
import { show } from '../../support/orders.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, newDomain, dns } = world;

const idOf = (url: string): string => url.split('/').at(-1) ?? '';

/** The only authorization of a new order. */
async function newAuthorization(client: AcmeClient, name = newDomain()) {
  const order = await placed(client, [name]);
  const url: string = order.body.authorizations[0];
  const { body } = await client.post(url);
  const challenge = (type: string) => body.challenges.find((one: { type: string }) => one.type === type);
  return { name, order, url, body, challenge };
}

rule('acme 80', 'a `token` of 256 random bits', async () => {
  const client = await newAcmeClient(app);
  const { body, name } = await newAuthorization(client);
  assert.deepEqual([body.identifier, body.status], [{ type: 'dns', value: name }, 'pending']);
  assert.ok(Date.parse(body.expires) > app.now());
  const types = ['http-01', 'dns-01', 'tls-alpn-01', 'dns-persist-01'];
  assert.deepEqual(
    body.challenges.map(({ type, status }: never) => [type, status]),
    types.map((type) => [type, 'pending']),
  );
  for (const { type, token, url } of body.challenges) {
    assert.ok(url.endsWith(`/${type}`));
    assert.equal(typeof token === 'string' && Buffer.from(token, 'base64url').length, type !== types[3] && 32);
  }
  const { body: other } = await newAuthorization(client);
  assert.notEqual(other.challenges[0].token, body.challenges[0].token);
});

rule('acme 81', 'the answer is the challenge, which is `processing`, with a `Link` of `rel="up"`', async () => {
  const client = await newAcmeClient(app);
  const { url, challenge, name } = await newAuthorization(client);
  const { url: at } = challenge('dns-01');
  assert.equal((await client.post(at)).body.status, 'pending');
  dns.set(`_acme-challenge.${name}`, 'TXT', 'silence');
  const answer = await client.post(at, {});
  assert.deepEqual([answer.status, answer.body.status, answer.body.type], [200, 'processing', 'dns-01']);
  assert.match(answer.headers.get('link') ?? '', new RegExp(`<${url}>;rel="up"`));
  assert.ok(Number(answer.headers.get('retry-after')) > 0);
  assert.deepEqual((await client.post(at, {})).body, answer.body);
  const { body } = await client.post(url);
  const seen = body.challenges.map(({ type, status }: never) => `${type} ${status}`);
  assert.deepEqual(seen.slice(0, 2), ['http-01 pending', 'dns-01 processing']);
  const { status } = await client.post(`${url}/http-02`, {});
  assert.equal(status, 404);
});

rule('acme 82', 'the authorization is `valid` with that challenge alone, and when it was `validated`', async () => {
  const client = await newAcmeClient(app);
  const { order, url } = await newAuthorization(client);
  await proven(world, client, order, 'http-01');
  const { body } = await client.post(url);
  assert.equal(body.status, 'valid');
  assert.deepEqual(
    body.challenges.map(({ type, status, validated }: never) => [type, status, validated]),
    [['http-01', 'valid', new Date(app.now()).toISOString()]],
  );
});

rule('acme 83', 'challenge and authorization are `invalid`, with the problem as `error` of the challenge', async () => {
  const key = await app.newKey();
  const client = await newAcmeClient(app, { accountId: key.accountId });
  const { order, url, challenge, name } = await newAuthorization(client);
  dns.set(`_acme-challenge.${name}`, 'TXT', ['something else']);
  await client.post(challenge('dns-01').url, {});
  const { body } = await poll(client, url);
  const [{ status, error }] = body.challenges;
  assert.deepEqual([body.status, status, body.challenges.length], ['invalid', 'invalid', 1]);
  assert.equal(error.type, 'urn:ietf:params:acme:error:incorrectResponse');
  assert.deepEqual(error.identifier, { type: 'dns', value: name });
  const { body: failed } = await client.post(order.url);
  assert.deepEqual([failed.status, failed.error], ['invalid', error]);
  assert.equal((await show(app, { key, id: idOf(order.url), certificateId: '' })).status, 'canceled');
});

rule('acme 84', 'is authorized at once; a proof that ends within an hour is not counted on', async () => {
  const [name, other] = [newDomain(), newDomain()];
  const order = await world.place([name], { dcv_method: 'dns' });
  await world.publish(order);
  await world.complete(order);
  const client = await newAcmeClient(app, { accountId: order.key.accountId });
  const { body } = await placed(client, [name]);
  assert.equal(body.status, 'ready');
  const { body: authorization } = await client.post(body.authorizations[0]);
  assert.deepEqual([authorization.status, authorization.challenges[0].type], ['valid', 'dns-01']);
  assert.equal((await placed(client, [name, other])).body.status, 'pending');
  // The rules of public trust let a proof be reused for 200 days.
  app.advance(200 * DAY - 1_800_000);
  assert.equal((await placed(sameAccount(client), [name])).body.status, 'pending');
});

rule('acme 85', 'is proven for the account, by the name of the challenge', async () => {
  const key = await app.newKey();
  const client = await newAcmeClient(app, { accountId: key.accountId });
  const name = newDomain();
  await proven(world, client, await placed(client, [name]), 'http-01');
  const proofs = await app.app.store.proofs.proven(key.accountId, [name], 0);
  assert.deepEqual(
    proofs.get(name)?.map(({ method }) => method),
    ['http-01'],
  );
  const order = await world.place([name], {}, { key });
  assert.equal((await show(app, order)).status, 'issued');
});

rule('acme 86', 'the record is looked up again when the order is finalized', async () => {
  const key = await app.newKey();
  const client = await newAcmeClient(app, { accountId: key.accountId });
  const outcomes: string[] = [];
  for (const stays of [true, false]) {
    const { order, url, challenge, name } = await newAuthorization(client);
    const { accounturi } = challenge('dns-persist-01');
    dns.set(`_validation-persist.${name}`, 'TXT', [`${ISSUERS[0]}; accounturi=${accounturi}`]);
    await client.post(challenge('dns-persist-01').url, {});
    assert.equal((await poll(client, url)).body.status, 'valid');
    assert.equal((await app.app.store.proofs.proven(key.accountId, [name], 0)).size, 0);
    if (!stays) dns.set(`_validation-persist.${name}`, 'TXT', ['gone']);
    const ready = { ...order, body: (await client.post(order.url)).body };
    outcomes.push(await finalized(client, ready).then(({ body }) => body.status, String));
  }
  assert.equal(outcomes[0], 'valid');
  assert.match(outcomes[1] ?? '', /error:/);
});

rule('acme 87', 'covers no wildcard of it, and the proof of a wildcard not the name', async () => {
  const client = await newAcmeClient(app);
  for (const [first, second] of [
    ['', '*.'],
    ['*.', ''],
  ]) {
    const name = newDomain();
    await proven(world, client, await placed(client, [first + name]));
    assert.equal((await placed(client, [first + name])).body.status, 'ready');
    assert.equal((await placed(client, [second + name])).body.status, 'pending');
  }
});

rule('acme 88', 'proofs of the name by challenges are forgotten, and an order without a CSR is `invalid`', async () => {
  const client = await newAcmeClient(app);
  const name = newDomain();
  const done = await issued(world, client, [name]);
  const ready = await placed(client, [name]);
  const [url] = ready.body.authorizations;
  assert.equal(problemOf(await client.post(url, { status: 'valid' })), 'malformed');
  const { body } = await client.post(url, { status: 'deactivated' });
  assert.deepEqual([body.status, body.challenges], ['deactivated', []]);
  assert.equal((await client.post(url, { status: 'deactivated' })).body.status, 'deactivated');
  assert.equal((await client.post(ready.url)).body.status, 'invalid');
  assert.equal((await client.post(done.url)).body.status, 'valid');
  assert.equal((await placed(client, [name])).body.status, 'pending');
});

test('an order that ends before its CSR counts in the quota of its account: its rows stay', async () => {
  const { accountId } = await app.newKey();
  const client = await newAcmeClient(app, { accountId });
  const stored = async () => (await app.app.quotaUse((await app.app.store.accounts.find(accountId))!)).storedBytes;
  const before = await stored();
  const { body } = await placed(client, [newDomain()]);
  assert.deepEqual(await stored(), before, 'an open order counts as such');
  await client.post(body.authorizations[0], { status: 'deactivated' });
  assert.notDeepEqual(await stored(), before);
});

rule('acme 88', 'proofs of the name by challenges are forgotten', async () => {
  const { accountId } = await app.newKey();
  const client = await newAcmeClient(app, { accountId });
  const name = newDomain();
  const { proofs } = app.app.store;
  // Seen on a private network, for another product than that of the order.
  for (const method of ['http-01/tls-private', 'dns-01', 'file'])
    await proofs.record(accountId, name, method, app.now());
  const { body } = await placed(client, [name], { profile: 'ssl-dv' });
  await client.post(body.authorizations[0], { status: 'deactivated' });
  const left = (await proofs.proven(accountId, [name], 0)).get(name) ?? [];
  assert.deepEqual(
    left.map(({ method }) => method),
    ['file'],
  );
});

rule('acme 89', 'is validated although the process that took the answer dies', async () => {
  const client = await newAcmeClient(app);
  const { url, token, name } = await withLostAnswer(app, client, newDomain());
  publish(world, client, name, { type: 'dns-01', token });
  await app.issuance.acmeAuthorizations.validateDue();
  assert.equal((await client.post(url)).body.status, 'pending');
  app.advance(120_000);
  await app.issuance.acmeAuthorizations.validateDue();
  assert.equal((await poll(client, url)).body.status, 'valid');
});

rule('acme 90', 'twenty times at once, and then every thirty seconds; beyond that `rateLimited`', async () => {
  const client = await newAcmeClient(app);
  const { url, challenge, name } = await newAuthorization(client);
  const { rateLimits, sharedNow } = app.app.store;
  const rate = { burst: 20, everyMs: 30_000 };
  for (let answers = 0; answers < 20; answers += 1)
    assert.equal(await rateLimits.take(`acme-answer ${idOf(client.kid)} ${name}`, rate, sharedNow()), 0);
  const refused = await client.post(challenge('dns-01').url, {});
  assert.equal(problemOf(refused), 'rateLimited');
  assert.ok(Number(refused.headers.get('retry-after')) > 0);
  assert.equal((await client.post(url)).body.status, 'pending');
});
