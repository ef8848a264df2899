// The sandbox's servers for clients of ACME: what they publish is what the service's own checks find.
import assert from 'node:assert/strict';
import { Resolver } from 'node:dns/promises';
import http from 'node:http';
import { after, test } from 'node:test';
import { newAlpnCertificate } from '../../src/adapters/ca/alpn-certificate-writer.ts';
import { startAlpnServer, startChallengeServer } from '../../src/sandbox/challenge-server.ts';
import { ChallengeWorld } from '../../src/sandbox/challenge-world.ts';
import { startDnsServer } from '../../src/sandbox/dns-server.ts';
import { startWebServer } from '../../src/sandbox/web-server.ts';
import { DIGEST, KEY_AUTHORIZATION, startChallengeWorld, TOKEN } from '../support/challenge-world.ts';
import { rule } from '../support/contract.ts';

const HERE = { host: '127.0.0.1', port: 0 };
const published = new ChallengeWorld();
const server = await startChallengeServer(HERE, published);
const web = await startWebServer({ ...HERE, textAt: published.textAt });
const alpn = await startAlpnServer(HERE, published, (host, digest) => newAlpnCertificate(host, digest, Date.now()));
const dns = await startDnsServer({ ...HERE, replies: published.replies, fallback: published.fallback });
const world = await startChallengeWorld(0, undefined, { dns: dns.port, http: web.port, tls: alpn.port });
for (const one of [world, dns, alpn, web, server]) after(() => one[Symbol.asyncDispose]());

const resolver = new Resolver({ tries: 1 });
resolver.setServers([`127.0.0.1:${dns.port}`]);
const url = `http://127.0.0.1:${server.port}`;
async function send(operation: string, body: unknown, headers: Record<string, string> = {}): Promise<number> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return (await fetch(`${url}/${operation}`, { method: 'POST', body: text, headers })).status;
}
const code = (failing: Promise<unknown>) =>
  failing.then(
    () => 'answered',
    (error: NodeJS.ErrnoException) => error.code,
  );

rule('acme 151', 'as `pebble-challtestsrv` takes them', async () => {
  const name = 'client.example.com';
  assert.equal(await send('set-txt', { host: `_acme-challenge.${name}.`, value: 'of another client' }), 200);
  assert.match(await world.outcome({ name, type: 'dns-01' }), /^incorrectResponse: /);
  assert.equal(await send('set-txt', { host: `_acme-challenge.${name}.`, value: DIGEST }), 200);
  assert.equal(await world.outcome({ name, type: 'dns-01' }), 'dns-01');
  assert.equal(await send('clear-txt', { host: `_acme-challenge.${name}.` }), 200);
  assert.match(await world.outcome({ name, type: 'dns-01' }), /^incorrectResponse: There is no TXT record/);

  await send('set-cname', { host: `_acme-challenge.${name}`, target: 'elsewhere.example.org.' });
  await send('set-txt', { host: 'elsewhere.example.org', value: DIGEST });
  assert.equal(await world.outcome({ name, type: 'dns-01' }), 'dns-01');

  assert.match(await world.outcome({ name, type: 'http-01' }), /^incorrectResponse: .*answers 404/);
  assert.equal(await send('add-http01', { token: TOKEN, content: KEY_AUTHORIZATION }), 200);
  assert.equal(await world.outcome({ name, type: 'http-01' }), 'http-01');
  assert.equal(await send('del-http01', { token: TOKEN }), 200);
  assert.match(await world.outcome({ name, type: 'http-01' }), /answers 404/);

  assert.match(await world.outcome({ name, type: 'tls-alpn-01' }), /^(tls|connection): /);
  assert.equal(await send('add-tlsalpn01', { host: name, content: KEY_AUTHORIZATION }), 200);
  assert.equal(await world.outcome({ name, type: 'tls-alpn-01' }), 'tls-alpn-01');
  assert.match(await world.outcome({ name: 'other.example.com', type: 'tls-alpn-01' }), /^(tls|connection): /);
  assert.equal(await send('del-tlsalpn01', { host: name }), 200);
  assert.match(await world.outcome({ name, type: 'tls-alpn-01' }), /^(tls|connection): /);

  await send('add-caa', { host: name, policies: [{ tag: 'issue', value: ';' }] });
  await send('add-http01', { token: TOKEN, content: KEY_AUTHORIZATION });
  assert.match(await world.outcome({ name, type: 'http-01' }), /^caa: /);
  await send('clear-caa', { host: name });
  assert.equal(await world.outcome({ name, type: 'http-01' }), 'http-01');
  await send('set-servfail', { host: name });
  assert.match(await world.outcome({ name, type: 'http-01' }), /^dns: /);
  await send('clear-servfail', { host: name });
  assert.equal(await world.outcome({ name, type: 'http-01' }), 'http-01');
});

rule('acme 152', 'A name without an address is on this machine', async () => {
  assert.deepEqual(await resolver.resolve4('never-set.example.com'), ['127.0.0.1']);
  assert.equal(await code(resolver.resolve6('never-set.example.com')), 'ENOTFOUND');
  assert.equal(await code(resolver.resolve4('missing.sandbox.test')), 'ENOTFOUND');
  await send('add-aaaa', { host: 'six.example.com', addresses: ['::1'] });
  assert.equal(await code(resolver.resolve4('six.example.com')), 'ENODATA');
  assert.deepEqual(await resolver.resolve6('six.example.com'), ['::1']);
  await send('add-a', { host: 'four.example.com', addresses: ['127.0.0.2', '127.0.0.3'] });
  assert.deepEqual((await resolver.resolve4('four.example.com')).sort(), ['127.0.0.2', '127.0.0.3']);
  await send('clear-a', { host: 'four.example.com' });
  await send('set-default-ipv4', { ip: '127.0.0.9' });
  assert.deepEqual(await resolver.resolve4('four.example.com'), ['127.0.0.9']);
  await send('set-default-ipv4', { ip: '' });
  assert.equal(await code(resolver.resolve4('four.example.com')), 'ENOTFOUND');
  await send('set-default-ipv4', { ip: '127.0.0.1' });
});

test('web pages of others, unknown operations and unusable bodies are refused', async () => {
  const good = { host: 'a.example.com', value: 'x' };
  assert.equal(await send('set-txt', good, { Origin: 'http://evil.example' }), 403);
  const rebound = await new Promise<number | undefined>((resolve) => {
    const request = http.request({
      port: server.port,
      host: '127.0.0.1',
      method: 'POST',
      path: '/set-txt',
      headers: { Host: 'evil.example' },
    });
    request.on('response', (response) => resolve(response.resume().statusCode));
    request.end(JSON.stringify(good));
  });
  assert.equal(rebound, 403);
  for (const operation of ['', 'unknown', 'constructor', '__proto__', 'toString'])
    assert.equal(await send(operation, good), 404, operation);
  assert.equal((await fetch(`${url}/set-txt`)).status, 405);
  const bad: readonly (readonly [string, unknown])[] = [
    ['set-txt', ''],
    ['set-txt', 'null'],
    ['set-txt', '[]'],
    ['set-txt', '{'],
    ['set-txt', {}],
    ['set-txt', { host: 'a.example.com', value: 7 }],
    ['set-txt', { host: 'a.example.com', value: 'x'.repeat(5_000) }],
    ['set-txt', { host: `${'x'.repeat(64)}.example.com`, value: 'x' }],
    ['add-a', { host: 'a.example.com', addresses: ['not an address'] }],
    ['add-a', { host: 'a.example.com', addresses: [] }],
    ['add-caa', { host: 'a.example.com', policies: [null] }],
    ['set-default-ipv4', { ip: '::1' }],
    ['set-txt', ' '.repeat(70_000)],
  ];
  for (const [operation, body] of bad)
    assert.equal(await send(operation, body), 400, `${operation} ${JSON.stringify(body).slice(0, 60)}`);
  assert.equal(await code(resolver.resolveTxt('a.example.com')), 'ENOTFOUND');
});

test('what clients publish is bounded', () => {
  const small = new ChallengeWorld();
  const add = (index: number) => small.operations['add-http01']?.({ token: `t${index}`, content: 'x' });
  for (let index = 0; index < 1_000; index += 1) add(index);
  assert.throws(() => add(1_000), RangeError);
  add(5);
  const txt = () => small.operations['set-txt']?.({ host: 'a.com', value: 'x' });
  for (let index = 0; index < 100; index += 1) txt();
  assert.throws(txt, RangeError);
});
