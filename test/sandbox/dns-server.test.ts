// The sandbox's name server: its messages byte by byte, and its answers through a real resolver.
import assert from 'node:assert/strict';
import dgram from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import net from 'node:net';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { encodeName, encodeValue, type Question, readQuery, writeAnswer } from '../../src/sandbox/dns-message.ts';
import { type DnsServer, startDnsServer } from '../../src/sandbox/dns-server.ts';

let server: DnsServer;
const resolver = new Resolver({ timeout: 500, tries: 1 });
before(async () => {
  server = await startDnsServer({ host: '127.0.0.1', port: 0 });
  resolver.setServers([`127.0.0.1:${server.port}`]);
});
after(() => server.close());

/** One question for `www.Example.test`, type A, recursion desired. */
const QUERY = Buffer.from('abcd0100000100000000000003777777074578616d706c650474657374000001' + '0001', 'hex');
const OPT = Buffer.from('00' + '0029' + '1000' + '00000000' + '0000', 'hex');
const withCounts = (...counts: readonly number[]) => {
  const bytes = Buffer.from(QUERY);
  for (const [index, count] of counts.entries()) bytes.writeUInt16BE(count, 4 + 2 * index);
  return bytes;
};

test('a query is read', () => {
  assert.deepEqual(readQuery(QUERY), {
    id: 0xabcd,
    recursionDesired: true,
    name: 'www.example.test',
    type: 'A',
    bytes: QUERY.subarray(12),
    udpBytes: undefined,
  } satisfies Question);
  const extended = Buffer.concat([withCounts(1, 0, 0, 1), OPT]);
  assert.equal(readQuery(extended)?.udpBytes, 1_232);
  const other = Buffer.from(QUERY);
  other.writeUInt16BE(15, QUERY.length - 4);
  assert.equal(readQuery(other)?.type, 'TYPE15');
});

const REFUSED: Readonly<Record<string, Buffer>> = {
  nothing: Buffer.alloc(0),
  'a header alone': QUERY.subarray(0, 12),
  'a query that is cut off': QUERY.subarray(0, -1),
  'a byte too many': Buffer.concat([QUERY, Buffer.alloc(1)]),
  'an answer': Buffer.concat([QUERY.subarray(0, 2), Buffer.from('8100', 'hex'), QUERY.subarray(4)]),
  'another operation': Buffer.concat([QUERY.subarray(0, 2), Buffer.from('2800', 'hex'), QUERY.subarray(4)]),
  'no question': withCounts(0),
  'two questions': withCounts(2),
  'an answer that is not there': withCounts(1, 1),
  'an OPT record that is not there': withCounts(1, 0, 0, 1),
  'something else than OPT': Buffer.concat([withCounts(1, 0, 0, 1), Buffer.from('00001000010000000000' + '00', 'hex')]),
  'options longer than the message': Buffer.concat([
    withCounts(1, 0, 0, 1),
    OPT.subarray(0, 9),
    Buffer.from('00ff', 'hex'),
  ]),
  'another class': Buffer.concat([QUERY.subarray(0, -2), Buffer.from('0003', 'hex')]),
  'a name that points to itself': Buffer.concat([QUERY.subarray(0, 12), Buffer.from('c00c00010001', 'hex')]),
  'a label with a dot': Buffer.concat([QUERY.subarray(0, 12), Buffer.from('03612e6200' + '00010001', 'hex')]),
  'a label with a blank': Buffer.concat([QUERY.subarray(0, 12), Buffer.from('03612062' + '00' + '00010001', 'hex')]),
  'a name that is too long': Buffer.concat([
    QUERY.subarray(0, 12),
    Buffer.from(`${'3f'.padEnd(128, '61')}`.repeat(4), 'hex'),
    Buffer.from('0000010001', 'hex'),
  ]),
};

for (const [title, bytes] of Object.entries(REFUSED)) {
  test(`not a query: ${title}`, () => assert.equal(readQuery(bytes), undefined));
}

test('no input makes the parser throw', () => {
  const mutated = fc
    .tuple(
      fc.array(fc.tuple(fc.nat(QUERY.length - 1), fc.nat(255)), { maxLength: 6 }),
      fc.uint8Array({ maxLength: 20 }),
    )
    .map(([changes, rest]) => {
      const bytes = Buffer.concat([QUERY, rest]);
      for (const [at, value] of changes) bytes[at] = value;
      return bytes;
    });
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 600 }), mutated), (bytes) => {
      const question = readQuery(bytes);
      if (question) assert.ok(question.name.length <= 253 && question.bytes.length <= 259);
    }),
    { numRuns: 2_000 },
  );
});

test('a response that does not fit is empty and truncated (TC)', () => {
  const question = readQuery(QUERY)!;
  const record = { name: 'www.example.test', type: 'A', data: Uint8Array.of(192, 0, 2, 1) } as const;
  const answer = Buffer.from(writeAnswer(question, 'ok', [record], 512)).toString('hex');
  const owner = '03777777076578616d706c65047465737400';
  assert.equal(
    answer,
    `abcd85000001000100000000${QUERY.subarray(12).toString('hex')}${owner}00010001000000000004c0000201`,
  );
  const cut = Buffer.from(writeAnswer(question, 'ok', Array(20).fill(record), 512));
  assert.equal(cut.subarray(0, 12).toString('hex'), 'abcd87000001000000000000');
});

test('impossible values are refused when they are set', () => {
  assert.throws(() => encodeValue.A('::1'), RangeError);
  assert.throws(() => encodeValue.AAAA('127.0.0.1'), RangeError);
  assert.throws(() => encodeName('a..b'), RangeError);
  assert.throws(() => encodeName(`${'a'.repeat(64)}.test`), RangeError);
  assert.throws(() => encodeName('a.'.repeat(130)), RangeError);
  assert.throws(() => encodeValue.TXT(['x'.repeat(256)]), RangeError);
  assert.throws(() => encodeValue.CAA({ flags: 256, tag: 'issue', value: 'ca.test' }), RangeError);
  assert.throws(() => server.set('a.test', 'A'), RangeError);
  assert.throws(() => server.set('a.test', 'TXT', ['x'.repeat(65_000)]), RangeError);
  assert.throws(() => server.set('a.test', 'A', Array(5_000).fill('192.0.2.1')), RangeError);
  assert.throws(() => server.set('a..test', 'A', ['192.0.2.1']), RangeError);
});

test('a resolver reads every type', async () => {
  const long = 'ü'.repeat(300);
  server.set('Types.Test.', 'A', ['192.0.2.1', '192.0.2.2']);
  server.set('types.test', 'AAAA', ['2001:db8::1']);
  server.set('types.test', 'TXT', ['short', ['two', 'strings'], long, '']);
  server.set('types.test', 'CAA', [{ flags: 128, tag: 'issue', value: 'ca.test; a=b' }]);
  server.set('www.types.test', 'CNAME', ['types.test']);
  assert.deepEqual(await resolver.resolve4('types.test'), ['192.0.2.1', '192.0.2.2']);
  assert.deepEqual(await resolver.resolve6('TYPES.test'), ['2001:db8::1']);
  const texts = await resolver.resolveTxt('types.test');
  assert.deepEqual(
    texts.map((parts) => parts.length),
    [1, 2, 3, 1],
  );
  // Node reads the bytes as Latin-1; the text was written as UTF-8.
  assert.equal(Buffer.from(texts[2]!.join(''), 'latin1').toString(), long);
  assert.deepEqual(await resolver.resolveCaa('types.test'), [{ critical: 128, issue: 'ca.test; a=b', type: 'CAA' }]);
  assert.deepEqual(await resolver.resolveCname('www.types.test'), ['types.test']);
  assert.deepEqual(await resolver.resolve6('www.types.test'), ['2001:db8::1']);
});

test('a resolver sees every kind of failure', async () => {
  const code = (name: string) => resolver.resolve4(name).then(String, (error) => error.code);
  server.set('some.test', 'AAAA', ['::1']);
  for (const kind of ['nodata', 'nxdomain', 'servfail', 'refused'] as const) server.set(`${kind}.test`, 'A', kind);
  server.set('silence.test', 'A', 'silence');
  assert.equal(await code('unset.test'), 'ENOTFOUND');
  assert.equal(await code('some.test'), 'ENODATA');
  assert.equal(await code('nodata.test'), 'ENODATA');
  assert.equal(await code('nxdomain.test'), 'ENOTFOUND');
  assert.equal(await code('servfail.test'), 'ESERVFAIL');
  assert.equal(await code('refused.test'), 'EREFUSED');
  assert.equal(await code('silence.test'), 'ETIMEOUT');
});

test('scripted answers are given in order, and the last one repeats', async () => {
  server.set('moves.test', 'A', ['192.0.2.1'], 'nodata', ['192.0.2.2', '192.0.2.3']);
  assert.deepEqual(await resolver.resolve4('moves.test'), ['192.0.2.1']);
  await assert.rejects(resolver.resolve4('moves.test'), { code: 'ENODATA' });
  for (let times = 0; times < 2; times += 1) {
    assert.deepEqual(await resolver.resolve4('moves.test'), ['192.0.2.2', '192.0.2.3']);
  }
});

test('entries are listed, and cleared by type or all at once', () => {
  server.set('list.test', 'A', ['192.0.2.1']);
  server.set('list.test', 'AAAA', 'servfail');
  const listed = () => server.list().filter(({ name }) => name === 'list.test');
  assert.deepEqual(listed(), [
    { name: 'list.test', type: 'A', answers: [['192.0.2.1']] },
    { name: 'list.test', type: 'AAAA', answers: ['servfail'] },
  ]);
  server.clear('LIST.test', 'A');
  assert.equal(listed().length, 1);
  server.clear('list.test.');
  assert.deepEqual(listed(), []);
});

test('a large response is sent over TCP', async () => {
  const many = Array.from({ length: 500 }, (_, index) => `192.0.${index >> 8}.${index & 255}`);
  server.set('large.test', 'A', many);
  assert.deepEqual((await resolver.resolve4('large.test')).toSorted(), many.toSorted());
});

test('the longest chain of aliases and the largest answer still fit into a message, or are truncated', async () => {
  for (let hop = 0; hop < 9; hop += 1) server.set(`hop${hop}.test`, 'CNAME', [`hop${hop + 1}.test.`]);
  server.set('hop7.test', 'A', Array(2_000).fill('192.0.2.1'));
  server.clear('hop7.test', 'CNAME');
  assert.equal((await resolver.resolve4('hop0.test')).length, 2_000);
  const long = Array(270).fill(`${'a'.repeat(60)}.${'b'.repeat(60)}.${'c'.repeat(60)}.test`);
  for (let hop = 0; hop < 7; hop += 1) server.set(`hop${hop}.test`, 'CNAME', [`hop${hop + 1}.test`, ...long.slice(1)]);
  await assert.rejects(resolver.resolve4('hop0.test'));
});

test('queries over one connection are answered in order, whole or in pieces; an oversized one closes it', async () => {
  const client = net.connect(server.port, '127.0.0.1');
  const framed = Buffer.concat([Uint8Array.of(0, QUERY.length), QUERY]);
  client.write(Buffer.concat([framed, framed.subarray(0, 7)]));
  await once(client, 'data');
  client.write(framed.subarray(7));
  const [second] = (await once(client, 'data')) as [Buffer];
  assert.equal(second.readUInt16BE(0), second.length - 2);
  client.write(Uint8Array.of(0xff, 0xff));
  await once(client, 'close');
});

test('a client that sends queries and never reads is disconnected', async () => {
  server.set('www.example.test', 'A', Array(1_500).fill('192.0.2.1'));
  const client = net.connect(server.port, '127.0.0.1').on('error', () => {});
  const framed = Buffer.concat([Uint8Array.of(0, QUERY.length), QUERY]);
  client.pause();
  const many = Buffer.concat(Array(1_000).fill(framed));
  const ask = () => client.write(many, (error) => error || setImmediate(ask));
  ask();
  // Not once(), which would reject on the reset.
  await new Promise((resolve) => client.on('close', resolve));
  server.clear('www.example.test');
});

test('malformed input is ignored, and the next query is answered', async () => {
  const client = dgram.createSocket('udp4');
  for (const bytes of Object.values(REFUSED)) client.send(bytes, server.port, '127.0.0.1');
  client.send(QUERY, server.port, '127.0.0.1');
  const [answer] = (await once(client, 'message')) as [Buffer];
  assert.equal(answer.readUInt16BE(0), 0xabcd);
  client.close();
});

test('queries are recorded, up to a limit', async () => {
  server.queries.length = 0;
  await resolver.resolveMx('asked.test').catch(() => {});
  assert.deepEqual(server.queries, [{ name: 'asked.test', type: 'TYPE15' }]);
  const client = dgram.createSocket('udp4');
  for (let times = 0; times < 1_200; times += 1) {
    client.send(QUERY, server.port, '127.0.0.1');
    await once(client, 'message');
  }
  assert.equal(server.queries.length, 1_000);
  client.close();
});

test('two servers run side by side, also on IPv6, and a port in use is an error', async (t) => {
  await using other = await startDnsServer({ host: '127.0.0.1', port: 0 });
  assert.notEqual(other.port, server.port);
  await assert.rejects(startDnsServer({ host: '127.0.0.1', port: server.port }), { code: 'EADDRINUSE' });
  const six = await startDnsServer({ host: '::1', port: 0 }).catch(() => undefined);
  if (!six) return t.diagnostic('this machine has no ::1');
  six.set('six.test', 'A', ['192.0.2.6']);
  const asker = new Resolver();
  asker.setServers([`[::1]:${six.port}`]);
  assert.deepEqual(await asker.resolve4('six.test'), ['192.0.2.6']);
  await six.close();
});
