// Egress, names and addresses: which DNS answers lead to a connection, and to which address. A refused address leaves no
// trace: no connection, no reason, no timing.
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { Socket, type TcpSocketConnectOpts } from 'node:net';
import { after, before, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { DnsReply } from '../../../src/sandbox/dns-server.ts';
import { type CallOptions, HOST, isLocalAddress, Outside, verdict } from '../../support/outside.ts';
import { Receiver } from '../../support/receiver.ts';

let outside: Outside;
let receiver: Receiver;
before(async () => {
  outside = await Outside.open();
  receiver = await outside.receiver({ identity: outside.ca.identity(['*.example.test']) });
});
after(() => outside[Symbol.asyncDispose]());

/** A port that was just released. */
async function closedPort(): Promise<number> {
  await using gone = await Receiver.start();
  return gone.port;
}

interface Case {
  readonly a?: DnsReply<'A'>;
  readonly aaaa?: DnsReply<'AAAA'>;
  readonly alias?: string;
  readonly callOptions?: CallOptions;
  readonly expected: string;
}

const HERE = ['127.0.0.1'];
const PUBLIC = '93.184.215.14';
const PUBLIC_6 = '2606:2800:220:1::1';
const SOON: CallOptions = { limits: { resolveMs: 250 } };
const FAILED = 'failed resolve dns_failure';
const LATE = 'failed resolve dns_timeout';
const NOTHING = 'failed resolve name_not_found';

const CASES: Readonly<Record<string, Case>> = {
  'an allowed address': { a: HERE, expected: 'answered 200' },
  'no data for IPv6': { a: HERE, aaaa: 'nodata', expected: 'answered 200' },
  'no such name for IPv6': { a: HERE, aaaa: 'nxdomain', expected: 'answered 200' },
  'an alias of an allowed address': { alias: 'here.example.test', expected: 'answered 200' },
  'an alias of an alias': { alias: 'alias.example.test', expected: 'answered 200' },
  'so many addresses that the answer comes over TCP': { a: Array(300).fill('127.0.0.1'), expected: 'answered 200' },
  'no such name': { expected: NOTHING },
  'a name without addresses': { a: 'nodata', aaaa: 'nodata', expected: NOTHING },
  'an alias of nothing': { alias: 'nowhere.example.test', expected: NOTHING },
  'an alias of itself': { alias: 'circle.example.test', expected: NOTHING },
  'a failure for IPv4': { a: 'servfail', expected: FAILED },
  'a failure for IPv4, an address for IPv6': { a: 'servfail', aaaa: ['::1'], expected: FAILED },
  'an address for IPv4, a failure for IPv6': { a: HERE, aaaa: 'servfail', expected: FAILED },
  'a failure for both': { a: 'servfail', aaaa: 'servfail', expected: FAILED },
  'a refusal for IPv4': { a: 'refused', expected: FAILED },
  'an address for IPv4, a refusal for IPv6': { a: HERE, aaaa: 'refused', expected: FAILED },
  'a public address for IPv4, a failure for IPv6': { a: [PUBLIC], aaaa: 'servfail', expected: FAILED },
  'silence for IPv4': { a: 'silence', callOptions: SOON, expected: LATE },
  'an address for IPv4, silence for IPv6': { a: HERE, aaaa: 'silence', callOptions: SOON, expected: LATE },
  'silence for IPv4, a public address for IPv6': { a: 'silence', aaaa: [PUBLIC_6], callOptions: SOON, expected: LATE },
  'silence for both': { a: 'silence', aaaa: 'silence', callOptions: SOON, expected: LATE },
  'silence until the whole call is over': { a: 'silence', callOptions: { totalMs: 250 }, expected: LATE },
  'a private address': { a: ['10.0.0.1'], expected: 'private' },
  'a private address for IPv6': { aaaa: ['fd00::1'], expected: 'private' },
  'a private address for IPv4, a failure for IPv6': { a: ['10.0.0.1'], aaaa: 'servfail', expected: 'private' },
  'a failure for IPv4, a private address for IPv6': { a: 'servfail', aaaa: ['fd00::1'], expected: 'private' },
  'a private address for IPv4, silence for IPv6': {
    a: ['10.0.0.1'],
    aaaa: 'silence',
    callOptions: SOON,
    expected: 'private',
  },
  'silence for IPv4, a private address for IPv6': {
    a: 'silence',
    aaaa: ['fd00::1'],
    callOptions: SOON,
    expected: 'private',
  },
  'a public and a private address': { a: [PUBLIC, '10.0.0.1'], expected: 'private' },
  'an allowed and a private address': { a: ['127.0.0.1', '10.0.0.1'], expected: 'private' },
  'a private address behind 200 allowed ones': {
    a: [...Array(200).fill('127.0.0.1'), '10.0.0.1'],
    expected: 'private',
  },
  'a public address and a private one of the other family': { a: [PUBLIC], aaaa: ['fe80::1'], expected: 'private' },
  'an alias of a private address': { alias: 'private.example.test', expected: 'private' },
  'loopback that no rule allows': { a: HERE, callOptions: { allow: [] }, expected: 'private' },
  'loopback that another rule allows': { a: HERE, callOptions: { allow: ['127.0.0.2'] }, expected: 'private' },
  'loopback on a port that no rule allows': { a: HERE, callOptions: { allow: ['127.0.0.1:1'] }, expected: 'private' },
  'loopback that is also denied': {
    a: HERE,
    callOptions: { allow: ['127.0.0.0/8'], deny: ['127.0.0.1'] },
    expected: 'private',
  },
  'a public address that is denied': { a: [PUBLIC], callOptions: { deny: [`${PUBLIC}/32`] }, expected: 'private' },
  'IPv6 loopback that no rule allows': { aaaa: ['::1'], callOptions: { allow: ['127.0.0.0/8'] }, expected: 'private' },
  'an IPv4 address mapped to IPv6': { aaaa: ['::ffff:127.0.0.1'], expected: 'private' },
  'an IPv4 address in the compatible form': { aaaa: ['::127.0.0.1'], expected: 'private' },
  'an IPv4 address behind NAT64': { aaaa: ['64:ff9b::7f00:1'], expected: 'private' },
  'the unspecified address, allowed': { a: ['0.0.0.0'], callOptions: { allow: ['0.0.0.0/0'] }, expected: 'private' },
  'the unspecified IPv6 address, allowed': { aaaa: ['::'], callOptions: { allow: ['::/0'] }, expected: 'private' },
  'the metadata service, allowed': {
    a: ['169.254.169.254'],
    callOptions: { allow: ['169.254.0.0/16'] },
    expected: 'private',
  },
  'the broadcast address': { a: ['255.255.255.255'], expected: 'private' },
  'a multicast address': { a: ['224.0.0.1'], expected: 'private' },
};

for (const [index, [title, { a, aaaa, alias, callOptions, expected }]] of Object.entries(CASES).entries()) {
  test(`name: ${title}`, async () => {
    const { dns } = outside;
    const name = `case-${index}.example.test`;
    dns.set('here.example.test', 'A', HERE);
    dns.set('private.example.test', 'A', ['10.0.0.1']);
    dns.set('alias.example.test', 'CNAME', ['here.example.test']);
    dns.set('circle.example.test', 'CNAME', ['circle.example.test']);
    if (a) dns.set(name, 'A', a);
    if (aaaa) dns.set(name, 'AAAA', aaaa);
    if (alias) dns.set(name, 'CNAME', [alias]);
    const from = receiver.connections.length;
    const outcome = await outside.call(`https://${name}:${receiver.port}/`, callOptions);
    assert.equal(verdict(outcome), expected);
    assert.equal(receiver.connections.length - from, expected === 'answered 200' ? 1 : 0);
    if (expected === 'private') assert.deepEqual(outcome, { kind: 'private' });
    await receiver.deserted();
  });
}

test('names of the machine or the local network are refused without a query', async () => {
  const names = ['localhost', 'localhost.', 'a.localhost', 'printer.local', 'db.internal', 'a.b.home.arpa'];
  const asked = outside.dns.queries.length;
  for (const name of names) {
    outside.dns.set(name, 'A', HERE);
    assert.deepEqual(await outside.call(`https://${name}:${receiver.port}/`, { allow: [] }), { kind: 'private' }, name);
    outside.dns.clear(name);
  }
  assert.equal(outside.dns.queries.length, asked);
});

test('with an allow list they are resolved, and every address must be on it', async () => {
  const identity = outside.ca.identity(['hooks.internal']);
  const internal = await outside.receiver({ identity });
  const cases: readonly (readonly [DnsReply<'A'>, string])[] = [
    [['127.0.0.1'], 'answered 200'],
    [['127.0.0.1', PUBLIC], 'private'],
    [[PUBLIC], 'private'],
    [['10.0.0.1'], 'private'],
    ['nxdomain', 'private'],
    ['servfail', 'private'],
  ];
  for (const [answer, expected] of cases) {
    outside.dns.set('hooks.internal', 'A', answer);
    assert.equal(verdict(await outside.call(`https://hooks.internal:${internal.port}/`)), expected, String(answer));
  }
  assert.equal(internal.connections.length, 1);
});

test('an address in the URL needs no query, and is checked all the same', async () => {
  const asked = outside.dns.queries.length;
  const identity = outside.ca.identity(['127.0.0.1']);
  const numbered = await outside.receiver({ identity });
  const refused = [
    '127.0.0.1',
    '10.0.0.1',
    '169.254.169.254',
    '0.0.0.0',
    '[::1]',
    '[::]',
    '[::ffff:7f00:1]',
    '[fe80::1]',
  ];
  for (const host of refused) {
    assert.deepEqual(await outside.call(`https://${host}:${numbered.port}/`, { allow: [] }), { kind: 'private' }, host);
  }
  assert.deepEqual(numbered.connections, []);
  const outcome = await outside.call(`https://127.0.0.1:${numbered.port}/`);
  assert.equal(verdict(outcome), 'answered 200');
  assert.match(numbered.requests[0] ?? '', new RegExp(`\r\nHost: 127\\.0\\.0\\.1:${numbered.port}\r\n`));
  // An address is not a server name (RFC 6066, 3).
  assert.deepEqual(numbered.serverNames, [false]);
  assert.equal(outside.dns.queries.length, asked);
});

test('an IPv6 address is in brackets in the request', async (t) => {
  if (!(await isLocalAddress('::1'))) return t.diagnostic('this machine has no ::1: nothing to see here');
  const six = await outside.receiver({ host: '::1', identity: outside.ca.identity(['::1', 'six.example.test']) });
  assert.equal(verdict(await outside.call(`https://[::1]:${six.port}/`)), 'answered 200');
  assert.match(six.requests[0] ?? '', new RegExp(`\r\nHost: \\[::1\\]:${six.port}\r\n`));
  outside.dns.set('six.example.test', 'AAAA', ['::1']);
  assert.equal(verdict(await outside.call(`https://six.example.test:${six.port}/`)), 'answered 200');
});

test('the name is resolved once, so a second answer cannot redirect the connection (DNS rebinding)', async (t) => {
  if (!(await isLocalAddress('127.0.0.2')))
    return t.diagnostic('this machine has 127.0.0.1 only: nothing to rebind to');
  const identity = outside.ca.identity(['rebind.example.test']);
  const good = await outside.receiver({ host: '127.0.0.2', identity });
  const victim = await outside.receiver({ host: '127.0.0.1', port: good.port, identity });
  outside.dns.set('rebind.example.test', 'A', ['127.0.0.2'], ['127.0.0.1']);
  const asked = outside.dns.queries.length;
  const callOptions = { allow: ['127.0.0.2'] };
  assert.equal(verdict(await outside.call(`https://rebind.example.test:${good.port}/`, callOptions)), 'answered 200');
  assert.deepEqual(
    outside.dns.queries
      .slice(asked)
      .map(({ type }) => type)
      .sort(),
    ['A', 'AAAA'],
  );
  assert.equal(good.connections[0]?.localAddress, '127.0.0.2');
  // The next call sees the second answer, and refuses it.
  assert.deepEqual(await outside.call(`https://rebind.example.test:${good.port}/`, callOptions), { kind: 'private' });
  assert.equal(good.connections.length, 1);
  assert.deepEqual(victim.connections, []);
});

test('calls at the same time share a lookup, and a canceled one leaves it to the others', async () => {
  const receiver = await outside.receiver();
  const url = `https://${HOST}:${receiver.port}/`;
  const controller = new AbortController();
  const before = outside.dns.queries.length;
  const canceled = outside.call(url, { signal: controller.signal });
  const others = Array.from({ length: 10 }, () => outside.call(url));
  controller.abort();
  assert.equal(verdict(await canceled), 'failed resolve canceled');
  for (const outcome of await Promise.all(others)) assert.equal(verdict(outcome), 'answered 200');
  assert.equal(outside.dns.queries.length - before, 2);
  assert.equal(verdict(await outside.call(url)), 'answered 200');
  assert.equal(outside.dns.queries.length - before, 4, 'a later call asks again');
});

test('a call does not join a lookup that has an answer already: the answer would be older than the call', async (t) => {
  const name = 'half.example.test';
  const receiver = await outside.receiver({ identity: outside.ca.identity([name]) });
  const url = `https://${name}:${receiver.port}/`;
  const queries = () => outside.dns.queries.filter((query) => query.name === name);
  const resolve4 = t.mock.method(Resolver.prototype, 'resolve4');
  outside.dns.set(name, 'A', HERE);
  outside.dns.set(name, 'AAAA', 'silence');
  const controller = new AbortController();
  const first = outside.call(url, { signal: controller.signal });
  while (queries().length < 2) await setImmediate();
  await resolve4.mock.calls[0]?.result;
  outside.dns.set(name, 'A', ['10.0.0.1']);
  outside.dns.set(name, 'AAAA', 'nodata');
  assert.equal(verdict(await outside.call(url)), 'private');
  controller.abort();
  assert.equal(verdict(await first), 'failed resolve canceled');
  assert.deepEqual(receiver.connections, []);
});

test('a connection to another address than the checked one is not used', async (t) => {
  outside.dns.set('led-astray.example.test', 'A', ['127.0.0.2']);
  const { connect } = Socket.prototype;
  t.mock.method(Socket.prototype, 'connect', function (this: Socket, options: TcpSocketConnectOpts) {
    assert.equal(options.host, '127.0.0.2');
    return Reflect.apply(connect, this, [{ ...options, host: '127.0.0.1' }]);
  });
  const sent = receiver.requests.length;
  const outcome = await outside.call(`https://led-astray.example.test:${receiver.port}/`);
  assert.equal(verdict(outcome), 'failed connect connection_failed');
  assert.equal(receiver.requests.length, sent);
});

test('an address that refuses the connection is followed by the next', async (t) => {
  if (!(await isLocalAddress('127.0.0.3'))) return t.diagnostic('this machine has 127.0.0.1 only: there is no next');
  const identity = outside.ca.identity(['several.example.test']);
  const last = await outside.receiver({ host: '127.0.0.5', identity });
  const url = `https://several.example.test:${last.port}/`;
  const addresses = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'];
  outside.dns.set('several.example.test', 'A', addresses);
  const outcome = await outside.call(url);
  assert.equal(verdict(outcome), 'answered 200');
  assert.equal(last.requests.length, 1);
  // Four addresses are tried: with a fifth in front, the one that works is never reached.
  outside.dns.set('several.example.test', 'A', ['127.0.0.6', ...addresses]);
  assert.equal(verdict(await outside.call(url)), 'failed connect connection_refused');
});

test('a receiver that closes after the handshake is not retried at another address', async (t) => {
  if (!(await isLocalAddress('127.0.0.3')))
    return t.diagnostic('this machine has 127.0.0.1 only: there is no elsewhere');
  const identity = outside.ca.identity(['once.example.test']);
  const first = await outside.receiver({ host: '127.0.0.2', identity, script: (socket) => socket.destroy() });
  const second = await outside.receiver({ host: '127.0.0.3', port: first.port, identity });
  outside.dns.set('once.example.test', 'A', ['127.0.0.2', '127.0.0.3']);
  const outcome = await outside.call(`https://once.example.test:${first.port}/`);
  assert.equal(verdict(outcome), 'failed response connection_closed');
  assert.deepEqual([first.requests.length, second.connections.length], [1, 0]);
});

test('a closed port refuses the connection', async () => {
  const port = await closedPort();
  outside.dns.set('closed.example.test', 'A', HERE);
  const outcome = await outside.call(`https://closed.example.test:${port}/`);
  assert.equal(verdict(outcome), 'failed connect connection_refused');
  assert.ok(outcome.kind === 'failed');
  assert.deepEqual(Object.keys(outcome.seen.phases), ['resolve', 'connect']);
});

test('a name that cannot be encoded in a query has no address', async () => {
  for (const name of [`${'a'.repeat(64)}.example.test`, `${'a.'.repeat(130)}test`]) {
    assert.equal(verdict(await outside.call(`https://${name}:${receiver.port}/`)), NOTHING);
  }
});

test('an absent or malfunctioning name server is a DNS error', async (t) => {
  const babbler = dgram.createSocket('udp4').bind(0, '127.0.0.1');
  t.after(() => babbler.close());
  await once(babbler, 'listening');
  const answers: readonly ((query: Buffer) => Buffer)[] = [
    () => Buffer.from('nonsense'),
    (query) => Buffer.from([query[0]! ^ 1, query[1]!, 0x84, 0, ...query.subarray(4)]),
    (query) => Buffer.from([...query.subarray(0, 2), 0x84, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0, ...query.subarray(12)]),
    (query) => Buffer.from([...query.subarray(0, 2), 0x84, 0x0f, ...query.subarray(4)]),
  ];
  for (const answer of answers) {
    babbler.removeAllListeners('message');
    babbler.on('message', (query, from) => babbler.send(answer(query), from.port, from.address));
    const dnsServers = [`127.0.0.1:${babbler.address().port}`];
    const outcome = await outside.call('https://here.example.test/', { ...SOON, dnsServers });
    assert.match(verdict(outcome), /^failed resolve dns_(failure|timeout)$/);
  }
  const dnsServers = [`127.0.0.1:${await closedPort()}`];
  const outcome = await outside.call('https://here.example.test/', { ...SOON, dnsServers });
  assert.match(verdict(outcome), /^failed resolve dns_(failure|timeout)$/);
});

test('a second name server is used if the first fails', async () => {
  outside.dns.set('here.example.test', 'A', HERE);
  const dnsServers = [`127.0.0.1:${await closedPort()}`, `127.0.0.1:${outside.dns.port}`];
  const outcome = await outside.call(`https://here.example.test:${receiver.port}/`, { dnsServers });
  assert.equal(verdict(outcome), 'answered 200');
});
