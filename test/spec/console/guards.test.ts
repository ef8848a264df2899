// What guards the console: requests of other sites, networks that try to sign in too often, and operators' addresses and roles.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { type Answer, startApp } from '../../support/app.ts';
import { fromPage, listening, post, signedIn, signIn, signInOperator, withSession } from '../../support/console.ts';
import { rule } from '../../support/contract.ts';
import { sendRaw } from '../../support/raw-http.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const behindProxy = await startApp({
  RESEAL_PUBLIC_URL: 'http://certs.example.com',
  RESEAL_TRUSTED_PROXIES: '127.0.0.1',
  RESEAL_CONSOLE_NETWORKS: '10.1.0.0/16,2001:db8:1::/48',
});
after(() => behindProxy[Symbol.asyncDispose]());

const outcome = ({ status, body }: Answer) => [status, body?.code];
const REFUSED = [403, 'permission_denied'];

rule('console 17', 'must be sent with `Content-Type: application/json`', async () => {
  const key = await app.newKey();
  const { cookie } = await signIn(app, key);
  const call = withSession(app, { cookie });
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/jsonp']) {
    const headers = { 'Content-Type': type };
    assert.deepEqual(outcome(await call('PUT', 'account/account', { headers, raw: '{"name":"x"}' })), [
      415,
      'invalid_parameters',
    ]);
    assert.equal((await call('DELETE', 'session', { headers })).status, 415);
  }
  assert.equal((await call('PUT', 'account/account', { json: { name: 'x' } })).status, 200);
});

rule('console 18', 'is refused with 403 if `Sec-Fetch-Site` says that another site sent it', async () => {
  const key = await app.newKey();
  const { cookie } = await signIn(app, key);
  const { host, origin } = new URL(app.url);
  const send = async (method: string, headers: Record<string, string>) => {
    const lines = Object.entries({
      host,
      cookie,
      'content-type': 'application/json',
      'content-length': '12',
      connection: 'close',
      ...headers,
    });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const { status } = await sendRaw(
      app.url,
      `${method} /console/api/account/account HTTP/1.1\r\n${head}\r\n{"name":"x"}`,
    );
    return status;
  };
  const cases: readonly (readonly [number, number, Record<string, string>])[] = [
    // PUT, GET, headers
    [200, 200, { 'sec-fetch-site': 'same-origin' }],
    [200, 200, { 'sec-fetch-site': 'same-origin', origin }],
    [200, 200, { origin }],
    [403, 200, {}],
    [403, 200, { 'sec-fetch-site': 'none' }],
    [403, 403, { 'sec-fetch-site': 'cross-site' }],
    [403, 403, { 'sec-fetch-site': 'same-site', origin }],
    [403, 403, { origin: 'https://evil.example' }],
    [403, 403, { origin: 'null' }],
    [403, 403, { 'sec-fetch-site': 'same-origin', origin: 'https://evil.example' }],
    [403, 403, { origin: `${origin}.evil.example` }],
  ];
  for (const [put, get, headers] of cases) {
    assert.deepEqual([await send('PUT', headers), await send('GET', headers)], [put, get], JSON.stringify(headers));
  }
  // Signing in is guarded as well: another site must not sign a browser in to an account of its choice.
  const foreign = await post(
    app,
    'session',
    { key_id: key.keyId, secret: key.authKey },
    { origin: 'https://evil.example' },
  );
  assert.deepEqual([...outcome(foreign), foreign.headers.get('set-cookie')], [...REFUSED, null]);
  assert.match(foreign.body.message, /RESEAL_PUBLIC_URL/);
  const behind = await behindProxy.newKey();
  const json = { key_id: behind.keyId, secret: behind.authKey };
  assert.equal((await post(behindProxy, 'session', json)).status, 200);
});

const attempt = (network: string, secret: string, keyId = 'unknown') =>
  post(behindProxy, 'session', { key_id: keyId, secret }, { 'x-forwarded-for': network });

rule('console 19', 'twenty times at once, and then once in three seconds', async () => {
  const key = await behindProxy.newKey();
  // A thousand wrong ones, from all addresses of one /64.
  const statuses: number[] = [];
  for (let batch = 0; batch < 20; batch += 1) {
    const answers = Array.from({ length: 50 }, (_, index) =>
      attempt(`2001:db8:0:7::${batch}:${index}`, 'wrong', key.keyId),
    );
    for (const { status, headers } of await Promise.all(answers)) {
      statuses.push(status);
      if (status === 429) assert.equal(headers.get('retry-after'), '3');
    }
  }
  assert.deepEqual(
    [statuses.filter((one) => one === 401).length, statuses.filter((one) => one === 429).length],
    [20, 980],
  );
  assert.deepEqual(
    outcome(await attempt('2001:db8:0:7::1', key.authKey, key.keyId)),
    [429, 'request_too_fast'],
    'whatever it sends',
  );
  behindProxy.advance(3_000);
  assert.equal((await attempt('2001:db8:0:7::1', key.authKey, key.keyId)).status, 200);
  assert.equal((await attempt('2001:db8:0:7::1', key.authKey, key.keyId)).status, 429);
  // Links are guessed at no faster.
  const link = await post(behindProxy, 'operator-session', { token: 'x' }, { 'x-forwarded-for': '10.1.0.1' });
  assert.deepEqual(outcome(link), [401, 'unauthenticated_request']);
});

rule('console 20', 'neither slow down nor lock a key elsewhere', async () => {
  const key = await behindProxy.newKey();
  const wrong = await Promise.all(Array.from({ length: 40 }, () => attempt('192.0.2.1', 'wrong', key.keyId)));
  assert.equal(wrong.filter(({ status }) => status === 429).length, 20);
  assert.equal((await attempt('192.0.2.2', key.authKey, key.keyId)).status, 200);
  const direct = await behindProxy.call('GET', '/openapi/v3/account', {
    base: listening(behindProxy),
    key,
    headers: { 'x-forwarded-for': '192.0.2.1' },
  });
  assert.equal(direct.status, 200);
});

rule('console 21', 'with the `token` of a link signs an operator in, once, within five minutes', async () => {
  const { operators } = app.app;
  await operators.create('linked', 'act');
  const redeem = (token: string) => post(app, 'operator-session', { token });
  const { token } = await operators.makeLink('linked');
  assert.equal(signedIn(await redeem(token.reveal())).session.operator.name, 'linked');
  const again = await redeem(token.reveal());
  assert.deepEqual([...outcome(again), again.headers.get('set-cookie')], [401, 'unauthenticated_request', null]);
  assert.match(again.body.message, /reseal console login/);
  // Two browsers at once: one of them.
  const raced = await operators.makeLink('linked');
  const both = await Promise.all([redeem(raced.token.reveal()), redeem(raced.token.reveal())]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 401]);
  const late = await operators.makeLink('linked');
  app.advance(5 * 60_000);
  assert.equal((await redeem(late.token.reveal())).status, 401);
});

rule('console 22', 'at most five links that were not used: a further one voids the oldest', async () => {
  const { operators } = app.app;
  await operators.create('many-links', 'view');
  const links: string[] = [];
  for (let count = 0; count < 6; count += 1) {
    links.push((await operators.makeLink('many-links')).token.reveal());
    app.advance(1);
  }
  const statuses: number[] = [];
  for (const token of links) statuses.push((await post(app, 'operator-session', { token })).status);
  assert.deepEqual(statuses, [401, 200, 200, 200, 200, 200]);
});

rule('console 23', 'what a proxy forwarded that is not trusted is refused', async () => {
  const operator = await signInOperator(app, 'local', 'act');
  const call = withSession(app, operator);
  assert.equal((await call('GET', 'operator/nothing')).status, 404);
  // The proxy is on this machine, and the caller is not.
  for (const headers of [
    { 'x-forwarded-for': '192.0.2.1' },
    { forwarded: 'for=192.0.2.1' },
    { via: '1.1 proxy' },
    { 'x-real-ip': '127.0.0.1' },
  ] as Record<string, string>[]) {
    assert.deepEqual(outcome(await call('GET', 'operator/nothing', { headers })), REFUSED);
  }
  const { operators } = behindProxy.app;
  await operators.create('remote', 'view');
  const from = async (network: string) => {
    const { token } = await operators.makeLink('remote');
    const headers = { 'x-forwarded-for': network };
    return await post(behindProxy, 'operator-session', { token: token.reveal() }, headers);
  };
  const inside = signedIn(await from('10.1.2.3'));
  assert.equal((await from('2001:db8:1:2::3')).status, 200);
  for (const network of ['10.2.0.1', '192.0.2.1', '2001:db8:2::1']) {
    assert.deepEqual(outcome(await from(network)), REFUSED, network);
    const headers = { 'x-forwarded-for': network };
    const moved = await withSession(behindProxy, inside)('GET', 'operator/nothing', { headers });
    assert.deepEqual(outcome(moved), REFUSED, 'a session that moves out of the network');
  }
  assert.equal((await from('::1')).status, 200, 'a browser on this machine, by its proxy');
});

rule('console 23', 'only to callers on loopback', async () => {
  const own = await startApp({ RESEAL_TRUSTED_PROXIES: '127.0.0.1,10.9.0.0/16' });
  try {
    // Whoever is in the network of a trusted proxy can claim to be on loopback.
    for (const chain of ['127.0.0.2, 10.9.0.4', '::1, 10.9.0.4', '::ffff:127.0.0.1, 10.9.0.4']) {
      const claimed = await post(own, 'operator-session', { token: 'x' }, { 'x-forwarded-for': chain });
      assert.deepEqual(outcome(claimed), REFUSED, chain);
    }
  } finally {
    await own[Symbol.asyncDispose]();
  }
});

rule(
  'console 24',
  'an operator with the role `view` may not change anything; one with the role `act` may',
  async () => {
    const [viewer, actor] = [await signInOperator(app, 'viewer', 'view'), await signInOperator(app, 'actor', 'act')];
    const methods = async (own: { cookie: string }) => {
      const answers: number[] = [];
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
        answers.push((await withSession(app, own)(method, 'operator/nothing')).status);
      }
      return answers;
    };
    assert.deepEqual(await methods(viewer), [404, 403, 403, 403, 403]);
    assert.deepEqual(await methods(actor), [404, 404, 404, 404, 404]);
    // Sessions of one kind are worth nothing in the part of the other.
    const account = withSession(app, await signIn(app, await app.newKey()));
    assert.deepEqual(outcome(await account('GET', 'operator/nothing')), [401, 'unauthenticated_request']);
    assert.deepEqual(outcome(await withSession(app, actor)('GET', 'account/orders')), [401, 'unauthenticated_request']);
    assert.deepEqual(outcome(await app.call('GET', '/console/api/operator/nothing', { headers: fromPage(app) })), [
      401,
      'unauthenticated_request',
    ]);
  },
);

rule('console 7', 'afterwards the token is worth nothing', async () => {
  const key = await app.newKey();
  const operator = await signInOperator(app, 'became-a-key', 'act');
  // The browser has one cookie: what it had before, no one could sign out any more.
  const first = await signIn(app, key, { cookie: operator.cookie });
  const second = await signIn(app, key, { cookie: first.cookie });
  const kinds: string[] = [];
  for (const one of [operator, first, second]) {
    kinds.push((await withSession(app, one)('GET', 'session')).body.data.kind);
  }
  assert.deepEqual(kinds, ['none', 'none', 'account']);
});
