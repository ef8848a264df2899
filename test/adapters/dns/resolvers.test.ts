// Several resolvers as fallbacks of each other, and lookups that are answered without asking or given up.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import packet from 'dns-packet';
import { attempt } from '../../../src/adapters/dns/attempt.ts';
import { dnsLookups } from '../../../src/adapters/dns/lookups.ts';
import { DEFAULT_LIMITS } from '../../../src/adapters/dns/stub-resolver.ts';
import { isLocalAddress } from '../../support/outside.ts';
import {
  type Datagram,
  nameOf,
  response,
  type Script,
  ScriptedNameServer,
  txt,
} from '../../support/scripted-name-server.ts';

const asking = (signal = new AbortController().signal) => ({ accountId: 'account', signal });
/** A machine under load must not make a server look silent. */
const PATIENT = { ...DEFAULT_LIMITS, lookupMs: 60_000, attemptMs: 60_000 };
const saying =
  (text: string) =>
  ({ query, send }: Datagram): void =>
    send(response(query, [txt(query, text)]));
const failing =
  (rcode: number, flags = packet.RECURSION_AVAILABLE) =>
  ({ query, send }: Datagram): void =>
    send(response(query, [], { flags: flags | rcode }));
const silent = (): void => {};
const found = (text: string) => ({ kind: 'found', records: [text] });
const failed = (reason: string) => ({ kind: 'failed', reason });

test('the next server is asked where one is silent, unreachable, refuses or does not resolve', async () => {
  await using first = await ScriptedNameServer.start({});
  await using second = await ScriptedNameServer.start({ udp: saying('second') });
  const badVersion = ({ query, send }: Datagram) => {
    const opt = { type: 'OPT', name: '.', udpPayloadSize: 512, extendedRcode: 1, ednsVersion: 0, flags: 0 } as const;
    send(response(query, [], { additionals: [{ ...opt, flag_do: false, options: [] }] }));
  };
  const patient = [failing(5), failing(1), failing(4), failing(0, 0), badVersion];
  for (const [index, udp] of patient.entries()) {
    first.script = { udp };
    const lookups = dnsLookups([first.address, second.address], PATIENT);
    assert.deepEqual(await lookups.txt('a.test', asking()), found('second'), `script ${index}`);
    // Without another server, none of this is an answer.
    assert.deepEqual(await dnsLookups([first.address], PATIENT).txt('a.test', asking()), failed('dns_failure'));
    assert.deepEqual([first.heard.length, second.heard.length], [2 * (index + 1), index + 1]);
  }
  first.script = { udp: silent };
  const impatient = dnsLookups([first.address, second.address], { ...PATIENT, attemptMs: 50 });
  assert.deepEqual(await impatient.txt('a.test', asking()), found('second'));
  const gone = await ScriptedNameServer.start({});
  await gone[Symbol.asyncDispose]();
  const lookups = dnsLookups([gone.address, second.address], PATIENT);
  assert.deepEqual(await lookups.txt('a.test', asking()), found('second'));
});

test('a server that garbles over TCP as well is followed by the next', async () => {
  await using first = await ScriptedNameServer.start({ udp: ({ send }) => send(Buffer.from('garbage')) });
  await using second = await ScriptedNameServer.start({ udp: saying('second') });
  const { txt: ask } = dnsLookups([first.address, second.address], PATIENT);
  assert.deepEqual(await ask('a.test', asking()), found('second'));
  assert.deepEqual([first.over('udp'), first.over('tcp')], [1, 1]);
});

test('SERVFAIL and negative answers decide: no other server overrules them', async () => {
  await using first = await ScriptedNameServer.start({});
  await using second = await ScriptedNameServer.start({ udp: saying('second') });
  const { txt: ask } = dnsLookups([first.address, second.address], PATIENT);
  first.script = { udp: failing(2) };
  assert.deepEqual(await ask('a.test', asking()), failed('dns_servfail'));
  for (const rcode of [0, 3]) {
    first.script = { udp: failing(rcode) };
    assert.deepEqual(await ask('a.test', asking()), { kind: 'absent' });
  }
  assert.equal(second.heard.length, 0);
});

test('a silent server is asked again after the others', async () => {
  const udp = (datagram: Datagram): void => (first.heard.length > 1 ? saying('first')(datagram) : undefined);
  await using first = await ScriptedNameServer.start({ udp });
  await using second = await ScriptedNameServer.start({ udp: failing(5) });
  const { txt: ask } = dnsLookups([first.address, second.address], { ...PATIENT, attemptMs: 50 });
  assert.deepEqual(await ask('a.test', asking()), found('first'));
  assert.ok(second.heard.length > 0);
});

test('a server that is down is asked last, delays no further lookup, and is taken up again', async () => {
  const changes: string[] = [];
  await using first = await ScriptedNameServer.start({ udp: silent, tcp: silent, isDown: true });
  await using second = await ScriptedNameServer.start({ udp: saying('second') });
  const limits = { ...PATIENT, attemptMs: 100 };
  const { txt: ask } = dnsLookups([first.address, second.address], limits, (address, isReachable) => {
    changes.push(`${address === first.address ? 'first' : 'second'} ${isReachable ? 'up' : 'down'}`);
  });
  const asked = () => first.heard.filter(({ query }) => nameOf(query) !== '.').length;
  assert.deepEqual(await ask('a.test', asking()), found('second'));
  while (changes.length === 0) await setImmediate();
  assert.deepEqual([changes, asked()], [['first down'], 1]);
  for (let times = 0; times < 3; times += 1) assert.deepEqual(await ask('a.test', asking()), found('second'));
  assert.equal(asked(), 1, 'the silent one was not waited for');
  // It is still there when the other one fails, and one answer restores it.
  first.script = { udp: saying('first') };
  second.script = { udp: failing(5) };
  assert.deepEqual(await ask('a.test', asking()), found('first'));
  second.script = { udp: saying('second') };
  assert.deepEqual(await ask('a.test', asking()), found('first'));
  assert.deepEqual(changes, ['first down', 'first up']);
});

test('names that fail are told from a resolver that does', async () => {
  const impatient = { ...PATIENT, lookupMs: 120, attemptMs: 40 };
  await using server = await ScriptedNameServer.start({});
  const reasonOf = async (script: Script, limits = PATIENT) => {
    server.script = script;
    const answer = await dnsLookups([server.address], limits).txt('a.test', asking());
    return answer.kind === 'failed' ? answer.reason : answer.kind;
  };
  const refusing = failing(5);
  const garbling = ({ send }: Datagram) => send(Buffer.from('garbage'));
  // The resolver answers other questions.
  assert.equal(await reasonOf({ udp: silent }, impatient), 'dns_timeout');
  for (const udp of [refusing, garbling]) assert.equal(await reasonOf({ udp }), 'dns_failure');
  // It answers nothing.
  assert.equal(await reasonOf({ udp: silent, tcp: silent, isDown: true }, impatient), 'resolver_unreachable');
  for (const udp of [refusing, garbling]) assert.equal(await reasonOf({ udp, isDown: true }), 'resolver_unreachable');
  // A resolver without the root, in an inner network, still speaks for its names.
  assert.equal(await reasonOf({ udp: failing(2), isDown: true }), 'dns_servfail');
  const other = await ScriptedNameServer.start({});
  await other[Symbol.asyncDispose]();
  const gone = dnsLookups([other.address], PATIENT);
  assert.deepEqual(await gone.txt('a.test', asking()), failed('resolver_unreachable'));
  assert.equal(await gone.isReachable(), false);
  // With one that works beside it, the silence is the name's.
  server.script = { udp: silent };
  const beside = await dnsLookups([other.address, server.address], impatient).txt('a.test', asking());
  assert.deepEqual(beside, failed('dns_timeout'));
});

test('names that DNS cannot have are not asked for: too long is absent, anything else a failure', async () => {
  await using server = await ScriptedNameServer.start({ udp: saying('any') });
  const { txt: ask, caa } = dnsLookups([server.address], PATIENT);
  const long = `${'a'.repeat(49)}.`.repeat(6).slice(0, -1);
  assert.equal(long.length, 299);
  assert.deepEqual(await ask(`_${long}`, asking()), { kind: 'absent' });
  for (const name of ['', 'a..b', 'a b.test', 'é.test', 'a\0.test', `${'a'.repeat(64)}.test`]) {
    assert.deepEqual(await caa([name], asking()), [failed('dns_failure')], name);
  }
  assert.equal(server.heard.length, 0);
  const longest = long.slice(-253).replace(/^\./, 'a');
  assert.deepEqual(await ask(longest, asking()), found('any'));
});

test('a lookup ends with its signal, over UDP and over TCP, and its answer is ignored', async () => {
  const held: Datagram[] = [];
  await using server = await ScriptedNameServer.start({ udp: (datagram) => void held.push(datagram) });
  const { txt: ask } = dnsLookups([server.address], PATIENT);
  assert.deepEqual(await ask('a.test', asking(AbortSignal.abort())), failed('dns_timeout'));
  assert.equal(server.heard.length, 0);
  const gone = new AbortController();
  const answers = ['a.test', 'b.test'].map((name) => ask(name, asking(gone.signal)));
  await server.hasHeard(2);
  gone.abort();
  for (const answer of answers) assert.deepEqual(await answer, failed('dns_timeout'));
  server.script = {
    udp: ({ query, send }) => send(response(query, [], { flags: packet.TRUNCATED_RESPONSE })),
    tcp: () => overTcp.abort(),
  };
  const overTcp = new AbortController();
  assert.deepEqual(await ask('c.test', asking(overTcp.signal)), failed('dns_timeout'));
  server.script = { udp: saying('later') };
  for (const datagram of held) saying('late')(datagram);
  assert.deepEqual(await ask('d.test', asking()), found('later'));
});

test('CAA values are taken as they are: a NUL does not end them, and an empty one is a record', async () => {
  await using server = await ScriptedNameServer.start({});
  const { caa } = dnsLookups([server.address], PATIENT);
  const records = [
    { flags: 0, tag: 'issue', value: 'us\0; accounturi=other' },
    { flags: 128, tag: 'issue', value: '' },
    { flags: 0, tag: 'iodef', value: '' },
  ] as const;
  for (const record of records) {
    const data = { ...record, issuerCritical: record.flags === 128 };
    const udp = ({ query, send }: Datagram) => send(response(query, [{ type: 'CAA', name: nameOf(query), data }]));
    server.script = { udp };
    assert.deepEqual(await caa(['a.test'], asking()), [{ kind: 'found', records: [record] }]);
  }
  // A record that cannot be read is a failure of the whole set.
  const broken = Buffer.from('c00c' + '0101' + '0001' + '00000000' + '0002' + '0005', 'hex');
  server.script = {
    udp: ({ query, send }) => {
      const head = response(query);
      head.writeUInt16BE(1, 6);
      send(Buffer.concat([head, broken]));
    },
  };
  assert.deepEqual(await caa(['a.test'], asking()), [failed('dns_failure')]);
});

test('a transport that throws is unreachable, and the attempt ends', async () => {
  const throwing = () => {
    throw new Error('no descriptors');
  };
  const limits = { limitMs: 60_000, signal: new AbortController().signal };
  const outcome = await new Promise((settle) => attempt(throwing, { name: 'a.test', type: 'TXT' }, limits, settle));
  assert.deepEqual(outcome, { kind: 'unreachable' });
});

test('a resolver may have an IPv6 address', async () => {
  if (!(await isLocalAddress('::1'))) return;
  await using server = await ScriptedNameServer.start({ udp: saying('six') }, '::1');
  assert.deepEqual(await dnsLookups([server.address], PATIENT).txt('a.test', asking()), found('six'));
});
