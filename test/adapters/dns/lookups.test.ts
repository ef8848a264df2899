// The DNS client against servers and forgers on loopback: nothing forged is believed, nothing odd counts as an answer, and
// no server can hold a lookup beyond its limit. Forged and odd responses carry `forged`; the true one is `true`.
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { once } from 'node:events';
import type net from 'node:net';
import { test } from 'node:test';
import packet from 'dns-packet';
import { dnsLookups } from '../../../src/adapters/dns/lookups.ts';
import { DEFAULT_LIMITS } from '../../../src/adapters/dns/stub-resolver.ts';
import type { DnsAnswer } from '../../../src/domain/validation/dns.ts';
import {
  type Datagram,
  framed,
  nameOf,
  response,
  type Script,
  ScriptedNameServer,
  txt,
} from '../../support/scripted-name-server.ts';

const asking = (signal = new AbortController().signal) => ({ accountId: 'account', signal });
/** No answer comes in these cases, so nothing depends on how long they wait. */
const IMPATIENT = { ...DEFAULT_LIMITS, lookupMs: 120, attemptMs: 40 };
/** A machine under load must not make a server look silent. */
const PATIENT = { ...DEFAULT_LIMITS, lookupMs: 60_000, attemptMs: 60_000 };

const truth = (query: Buffer): Buffer => response(query, [txt(query, 'true')]);
const lie = (query: Buffer, changes: packet.Packet = {}): Buffer => response(query, [txt(query, 'forged')], changes);
const answerTruly = ({ query, send }: Datagram): void => send(truth(query));
const overTcp = (query: Buffer, client: net.Socket): void => void client.write(framed(truth(query)));
const TRUTHFUL: Script = { udp: answerTruly, tcp: overTcp };

const shown = (answer: DnsAnswer<unknown>): string =>
  answer.kind === 'found' ? answer.records.join() : answer.kind === 'failed' ? answer.reason : answer.kind;

async function ask(script: Script, limits = PATIENT) {
  await using server = await ScriptedNameServer.start(script);
  const answer = await dnsLookups([server.address], limits).txt('www.example.test', asking());
  return { answer: shown(answer), udp: server.over('udp'), tcp: server.over('tcp') };
}

const withId = (message: Buffer, id: number): Buffer => {
  const changed = Buffer.from(message);
  changed.writeUInt16BE(id, 0);
  return changed;
};
const swapCase = (text: string): string =>
  text.replace(/[a-z]/gi, (one) => (one === one.toLowerCase() ? one.toUpperCase() : one.toLowerCase()));

/** Sent before the true response over UDP, which must not be waited for: the socket is not trusted any more. */
const FORGERIES: Readonly<Record<string, (query: Buffer) => Uint8Array>> = {
  'another id': (query) => withId(lie(query), query.readUInt16BE(0) ^ 1),
  'another case': (query) => lie(query, { questions: [{ type: 'TXT', name: swapCase(nameOf(query)) }] }),
  'another name': (query) => lie(query, { questions: [{ type: 'TXT', name: 'www.example.tesu' }] }),
  'another type': (query) => lie(query, { questions: [{ type: 'CAA', name: nameOf(query) }] }),
  'no question': (query) => lie(query, { questions: [] }),
  'two questions': (query) =>
    lie(query, { questions: [0, 1].map(() => ({ type: 'TXT' as const, name: nameOf(query) })) }),
  'a query instead of a response': (query) => query,
  nothing: () => new Uint8Array(),
  'a single byte': (query) => query.subarray(0, 1),
  'a header alone': (query) => truth(query).subarray(0, 12),
  garbage: () => Buffer.alloc(600, 0xc0),
};

for (const [title, forge] of Object.entries(FORGERIES)) {
  test(`forged: ${title}; the question is repeated over TCP`, async () => {
    const udp = ({ query, send }: Datagram) => {
      send(forge(query));
      send(lie(query));
    };
    assert.deepEqual(await ask({ udp, tcp: overTcp }), { answer: 'true', udp: 1, tcp: 1 });
  });
}

/** Responses to the question itself that cannot be taken as they are. */
const ODD: Readonly<Record<string, (query: Buffer) => Uint8Array>> = {
  truncated: (query) => lie(query, { flags: packet.TRUNCATED_RESPONSE | packet.RECURSION_AVAILABLE }),
  'a record that is cut off': (query) => lie(query).subarray(0, -1),
  'a byte too many': (query) => Buffer.concat([lie(query), Uint8Array.of(0)]),
  'a pointer to itself': (query) => {
    const head = response(query);
    head.writeUInt16BE(1, 6);
    return Buffer.concat([head, Uint8Array.of(0xc0, head.length, 0, 16, 0, 1, 0, 0, 0, 0, 0, 2, 1, 0x61)]);
  },
  'a record of another name': (query) => response(query, [{ type: 'TXT', name: 'other.test', data: 'forged' }]),
  'a CNAME loop': (query) => response(query, [{ type: 'CNAME', name: nameOf(query), data: nameOf(query) }]),
  'more bytes than asked for': (query) =>
    response(
      query,
      Array.from({ length: 10 }, () => txt(query, 'x'.repeat(200))),
    ),
};

for (const [title, odd] of Object.entries(ODD)) {
  test(`odd: ${title}; over UDP it is repeated over TCP, and over TCP it is a failure`, async () => {
    const udp = ({ query, send }: Datagram) => send(odd(query));
    assert.deepEqual(await ask({ udp, tcp: overTcp }), { answer: 'true', udp: 1, tcp: 1 });
    if (title === 'more bytes than asked for') return;
    const tcp = (query: Buffer, client: net.Socket) => void client.write(framed(odd(query)));
    assert.deepEqual(await ask({ udp, tcp }), { answer: 'dns_failure', udp: 1, tcp: 1 });
  });
}

const OVER_TCP: Readonly<Record<string, readonly [expected: string, tcp: NonNullable<Script['tcp']>]>> = {
  'byte by byte': [
    'true',
    (query, client) => {
      const bytes = framed(truth(query));
      const next = (index: number) => {
        if (index < bytes.length) client.write(bytes.subarray(index, index + 1), () => setImmediate(next, index + 1));
      };
      next(0);
    },
  ],
  'the case is not kept': [
    'true',
    (query, client) =>
      client.write(
        framed(response(query, [txt(query, 'true')], { questions: [{ type: 'TXT', name: 'WWW.example.TEST' }] })),
      ),
  ],
  'a large response': [
    Array(90).fill('x'.repeat(255)).join(),
    (query, client) => client.write(framed(response(query, Array(90).fill(txt(query, 'x'.repeat(255)))))),
  ],
  'more records than any name needs': [
    'dns_failure',
    (query, client) => client.write(framed(response(query, Array(101).fill(txt(query, 'x'))))),
  ],
  'another id': [
    'dns_failure',
    (query, client) => client.write(framed(withId(truth(query), query.readUInt16BE(0) ^ 1))),
  ],
  'another name': [
    'dns_failure',
    (query, client) => client.write(framed(lie(query, { questions: [{ type: 'TXT', name: 'a.test' }] }))),
  ],
  'an empty message': ['dns_failure', (_, client) => client.write(Uint8Array.of(0, 0))],
  'a message of one byte': ['dns_failure', (_, client) => client.write(Uint8Array.of(0, 1, 0))],
  'closed at once': ['dns_failure', (_, client) => client.end()],
  reset: ['dns_failure', (_, client) => client.resetAndDestroy()],
  'closed within the length': ['dns_failure', (_, client) => client.end(Uint8Array.of(0))],
  'closed within the message': ['dns_failure', (query, client) => client.end(framed(truth(query)).subarray(0, -1))],
  garbage: ['dns_failure', (_, client) => client.write(Buffer.alloc(70_000, 0xff))],
};

const TRUNCATE: Script['udp'] = ({ query, send }) => send(response(query, [], { flags: packet.TRUNCATED_RESPONSE }));

for (const [title, [expected, tcp]] of Object.entries(OVER_TCP)) {
  test(`over TCP: ${title}`, async () => {
    assert.deepEqual(await ask({ udp: TRUNCATE, tcp }), { answer: expected, udp: 1, tcp: 1 });
  });
}

test('silence is a failure in the end, over UDP and over TCP, and where a message never ends', async () => {
  assert.equal((await ask({ udp: () => {} }, IMPATIENT)).answer, 'dns_timeout');
  assert.equal((await ask({ udp: TRUNCATE, tcp: () => {} }, IMPATIENT)).answer, 'dns_timeout');
  const tcp = (query: Buffer, client: net.Socket) => void client.write(framed(truth(query)).subarray(0, -1));
  assert.equal((await ask({ udp: TRUNCATE, tcp }, IMPATIENT)).answer, 'dns_timeout');
});

test('a truncated response of a server without TCP is a failure', async () => {
  await using server = await ScriptedNameServer.start({ udp: TRUNCATE });
  await server.stopTcp();
  assert.equal(shown(await dnsLookups([server.address]).txt('a.test', asking())), 'dns_failure');
});

test('what comes from another port is not even heard', async () => {
  using other = Object.assign(dgram.createSocket('udp4'), { [Symbol.dispose]: () => other.close() });
  other.bind(0, '127.0.0.1');
  await once(other, 'listening');
  const udp = ({ query, send }: Datagram) => {
    send(lie(query), other);
    send(truth(query));
  };
  assert.deepEqual(await ask({ udp, tcp: overTcp }), { answer: 'true', udp: 1, tcp: 0 });
});

/** As many as the pool has sockets, so that each is used once. */
const SOCKETS = 8;
const round = async (ask: (index: number) => Promise<DnsAnswer<unknown>>) =>
  (await Promise.all(Array.from({ length: SOCKETS }, (_, index) => ask(index)))).map(shown);

test('of two responses the first counts, and the second discredits no other question', async () => {
  const udp = ({ query, send }: Datagram) => {
    send(truth(query));
    send(lie(query));
  };
  await using server = await ScriptedNameServer.start({ udp, tcp: overTcp });
  const { txt } = dnsLookups([server.address], PATIENT);
  for (const turn of [1, 2, 3]) {
    assert.deepEqual(await round((index) => txt(`a${index}.test`, asking())), Array(SOCKETS).fill('true'), `${turn}`);
  }
  assert.deepEqual([server.over('udp'), server.over('tcp')], [3 * SOCKETS, 0]);
});

test('a late response is ignored, and discredits no other question', async () => {
  const first: Datagram[] = [];
  const udp = (datagram: Datagram) => {
    // Withheld until the question comes again, from another socket.
    if (first.length === 0) return void first.push(datagram);
    first[0]?.send(lie(first[0].query));
    answerTruly(datagram);
  };
  await using server = await ScriptedNameServer.start({ udp, tcp: overTcp });
  const { txt } = dnsLookups([server.address], { ...PATIENT, attemptMs: 50 });
  assert.equal(shown(await txt('a.test', asking())), 'true');
  assert.deepEqual(await round((index) => txt(`b${index}.test`, asking())), Array(SOCKETS).fill('true'));
  assert.equal(server.over('tcp'), 0);
});

test('a forgery discredits its socket alone, with all of its questions, and the socket is not used again', async () => {
  const held: Datagram[] = [];
  await using server = await ScriptedNameServer.start({ udp: (datagram) => void held.push(datagram), tcp: overTcp });
  const { txt } = dnsLookups([server.address], PATIENT);
  const answers = [
    round((index) => txt(`a${index}.test`, asking())),
    round((index) => txt(`b${index}.test`, asking())),
  ];
  await server.hasHeard(2 * SOCKETS);
  const ports = new Set(held.map(({ port }) => port));
  assert.equal(ports.size, SOCKETS);
  const [victim] = held;
  victim?.send(Buffer.from('guess'));
  await server.hasHeard(2 * SOCKETS + 2);
  assert.equal(server.over('tcp'), 2, 'both of its questions, and no other');
  server.script = TRUTHFUL;
  for (const datagram of held) answerTruly(datagram);
  for (const answer of answers) assert.deepEqual(await answer, Array(SOCKETS).fill('true'));
  assert.deepEqual(await round((index) => txt(`c${index}.test`, asking())), Array(SOCKETS).fill('true'));
  const after = new Set(
    server.heard
      .filter(({ over }) => over === 'udp')
      .slice(-SOCKETS)
      .map(({ port }) => port),
  );
  assert.ok(!after.has(victim?.port ?? 0));
  assert.equal([...after].filter((port) => ports.has(port)).length, SOCKETS - 1);
});

test('ids, cases and ports vary, and no port is asked from for long', async () => {
  await using server = await ScriptedNameServer.start(TRUTHFUL);
  const { txt } = dnsLookups([server.address], PATIENT);
  const rounds = 130;
  for (let index = 0; index < rounds; index += 1) await round(() => txt('a-name-with-letters.example.test', asking()));
  const count = rounds * SOCKETS;
  assert.deepEqual([server.over('udp'), server.over('tcp')], [count, 0]);
  const perPort = Map.groupBy(server.heard, ({ port }) => port);
  // 64 a socket. The kernel may give a port again, but hardly twice.
  assert.ok(perPort.size >= count / 64 - 1, `${perPort.size} ports`);
  for (const questions of perPort.values()) assert.ok(questions.length <= 2 * 64, `${questions.length} questions`);
  const distinct = (read: (query: Buffer) => unknown) => new Set(server.heard.map(({ query }) => read(query))).size;
  assert.ok(distinct((query) => query.readUInt16BE(0)) > 0.9 * count);
  assert.ok(distinct(nameOf) > 0.9 * count);
});

test('no port is open for long: an old socket takes no more questions, but still its responses', async (context) => {
  const held: Datagram[] = [];
  await using server = await ScriptedNameServer.start(TRUTHFUL);
  // The clock alone: sockets are real.
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { txt } = dnsLookups([server.address], PATIENT);
  const portsOf = async (answer: string) => {
    const [answers, before] = [round(() => txt('a.test', asking())), server.heard.length];
    await server.hasHeard(before + SOCKETS);
    if (answer === 'late') context.mock.timers.tick(10_000);
    for (const datagram of held.splice(0)) answerTruly(datagram);
    assert.deepEqual(await answers, Array(SOCKETS).fill('true'));
    return new Set(server.heard.slice(before).map(({ port }) => port));
  };
  const first = await portsOf('at once');
  assert.deepEqual(await portsOf('at once'), first);
  server.script = { udp: (datagram) => void held.push(datagram), tcp: overTcp };
  assert.deepEqual(await portsOf('late'), first);
  server.script = TRUTHFUL;
  const next = await portsOf('at once');
  // The kernel may give a port again, but hardly two of them.
  assert.ok([...next].filter((port) => first.has(port)).length <= 1);
  assert.equal(server.over('tcp'), 0);
});
