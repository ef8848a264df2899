// What DNS answers lead to: one forbidden address refuses them all, a failed lookup of either family is an error, and
// the connection goes to the checked address, however the answers change.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, mock } from 'node:test';
import type { DnsReply } from '../../../src/sandbox/dns-server.ts';
import type { Answer } from '../../support/app.ts';
import { resultOf, startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { isLocalAddress } from '../../support/outside.ts';

const dial = mock.method(net.Socket.prototype, 'connect');
const [FIRST, SECOND, THIRD, VICTIM] = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.1'];
const world = await startCallbackApp({
  RESEAL_CALLBACK_TEST_RATE: '1000/s',
  RESEAL_CALLBACK_TESTS_PER_ACCOUNT: '100',
  RESEAL_CALLBACK_ALLOW: [FIRST, SECOND, THIRD, '::1'].join(),
});
after(() => world[Symbol.asyncDispose]());
const { app, outside } = world;
const { dns } = outside;
const key = await app.newKey();
/** Linux has all of 127/8; other systems may have 127.0.0.1 only, and no second address to rebind to. */
const hasMany = (await Promise.all([FIRST, SECOND, THIRD].map(isLocalAddress))).every(Boolean);
const identity = outside.ca.identity(['*.example.test']);
const victim = await outside.receiver({ host: VICTIM, identity });
const { port } = victim;
const [first, second, third] = hasMany
  ? await Promise.all([FIRST, SECOND, THIRD].map((host) => outside.receiver({ host, port, identity })))
  : [];

/** Addresses this process connected to since, except the service itself. */
function dialled(from = 0): string[] {
  const own = new URL(app.url).port;
  const options = dial.mock.calls.map(
    ({ arguments: [one] }) => ([one] as unknown[]).flat(2)[0] as net.TcpNetConnectOpts,
  );
  const others = options.slice(from).filter((one) => String(one.port) !== own);
  return others.map((one) => `${one.host}:${one.port}`);
}

interface Answers {
  readonly a?: readonly DnsReply<'A'>[];
  readonly aaaa?: readonly DnsReply<'AAAA'>[];
  readonly alias?: string;
}
let names = 0;
function publish({ a, aaaa, alias }: Answers): string {
  names += 1;
  const name = `name-${names}.example.test`;
  if (a) dns.set(name, 'A', ...a);
  if (aaaa) dns.set(name, 'AAAA', ...aaaa);
  if (alias) dns.set(name, 'CNAME', [alias]);
  return name;
}
const ask = (name: string): Promise<Answer> => world.test(key, { url: `https://${name}:${port}/x`, access_key: 'k' });
const queriesOf = (name: string) => dns.queries.filter((query) => query.name === name).map(({ type }) => type);

const SUCCESS = '200 success';
const PRIVATE = '422 callback_private_domain';
const FAILED = '422 callback_send_error';
const PUBLIC = '93.184.215.14';
const PUBLIC_6 = '2606:2800:220:1::1';

rule('address 3', 'One address that is not public refuses the whole name.', async () => {
  const many = (count: number, address: string) => Array<string>(count).fill(address);
  dns.set('mixed.example.test', 'A', [PUBLIC, '10.0.0.1']);
  dns.set('half.example.test', 'A', [PUBLIC]);
  dns.set('half.example.test', 'AAAA', ['fd00::1']);
  dns.set('chain.example.test', 'CNAME', ['mixed.example.test']);
  const refused: readonly Answers[] = [
    { a: [[PUBLIC, '10.0.0.1']] },
    { a: [['10.0.0.1', PUBLIC]] },
    { a: [[PUBLIC, PUBLIC, '169.254.169.254']] },
    { a: [[PUBLIC, '0.0.0.0']] },
    { a: [[FIRST, VICTIM]] },
    { a: [[VICTIM, FIRST]] },
    { a: [[FIRST, SECOND, THIRD, '127.0.0.5']] },
    // More than are ever tried, and more than fit into a datagram.
    { a: [[...many(10, FIRST), VICTIM]] },
    { a: [[...many(200, FIRST), VICTIM, ...many(100, FIRST)]] },
    { a: [[PUBLIC]], aaaa: [['fe80::1']] },
    { a: [['10.0.0.1']], aaaa: [[PUBLIC_6]] },
    { aaaa: [[PUBLIC_6, '::ffff:127.0.0.1']] },
    { aaaa: [['::1', '64:ff9b::7f00:1']] },
    { a: [[FIRST]], aaaa: [['::']] },
    ...['mixed', 'half', 'chain'].map((name) => ({ alias: `${name}.example.test` })),
  ];
  for (const answers of refused) {
    const name = publish(answers);
    const answer = await ask(name);
    assert.equal(resultOf(answer), PRIVATE, `${JSON.stringify(answers).slice(0, 100)} ${answer.text}`);
    assert.ok(queriesOf(name).length > 0);
  }
  assert.deepEqual(dialled(), [], 'not even the allowed ones were connected to');
  for (const receiver of [victim, first, second, third]) assert.deepEqual(receiver?.connections ?? [], []);
});

/** Both families, and whether a private address or a failure is reported. */
const HALVES: readonly (readonly [a: DnsReply<'A'>, aaaa: DnsReply<'AAAA'>, expected: string])[] = [
  ['nxdomain', 'nxdomain', 'name_not_found'],
  ['nodata', 'nodata', 'name_not_found'],
  ['servfail', 'servfail', 'dns_failure'],
  ['servfail', 'nodata', 'dns_failure'],
  ['nodata', 'servfail', 'dns_failure'],
  ['refused', 'nodata', 'dns_failure'],
  [[PUBLIC], 'servfail', 'dns_failure'],
  [[PUBLIC], 'refused', 'dns_failure'],
  ['servfail', [PUBLIC_6], 'dns_failure'],
  ['refused', [PUBLIC_6], 'dns_failure'],
  [[FIRST], 'servfail', 'dns_failure'],
  ['servfail', ['::1'], 'dns_failure'],
  [[PUBLIC], 'silence', 'dns_timeout'],
  ['silence', [PUBLIC_6], 'dns_timeout'],
  [[FIRST], 'silence', 'dns_timeout'],
  ['silence', ['::1'], 'dns_timeout'],
  ['silence', 'nodata', 'dns_timeout'],
  ['silence', 'silence', 'dns_timeout'],
  ['silence', 'servfail', 'dns_(timeout|failure)'],
  [['10.0.0.1'], 'servfail', PRIVATE],
  [['10.0.0.1'], 'refused', PRIVATE],
  [['10.0.0.1'], 'silence', PRIVATE],
  [[PUBLIC, '10.0.0.1'], 'servfail', PRIVATE],
  [[PUBLIC, '10.0.0.1'], 'silence', PRIVATE],
  [[FIRST, VICTIM], 'silence', PRIVATE],
  ['servfail', ['fd00::1'], PRIVATE],
  ['refused', ['fe80::1'], PRIVATE],
  ['silence', ['fd00::1'], PRIVATE],
  ['silence', ['::ffff:8.8.8.8'], PRIVATE],
  ['nodata', ['::'], PRIVATE],
  [['10.0.0.1'], 'nodata', PRIVATE],
];

rule(
  'address 5',
  'A name without any address, or with a failed look-up for one address family, is `callback_send_error`, unless the other family gave an address that is not public.',
  async () => {
    const from = dial.mock.callCount();
    const missing = ['missing.example.test', 'a.b.c.example.test', publish({ alias: 'missing.example.test' })];
    // Cases that wait for a timeout run concurrently.
    await Promise.all([
      ...HALVES.map(async ([a, aaaa, expected]) => {
        const answer = await ask(publish({ a: [a], aaaa: [aaaa] }));
        const what = `${a} / ${aaaa} ${answer.text}`;
        assert.equal(resultOf(answer), expected === PRIVATE ? PRIVATE : FAILED, what);
        if (expected === PRIVATE) return assert.equal(answer.body.details, undefined, what);
        const { stage, reason } = answer.body.details;
        assert.match(`${stage} ${reason}`, new RegExp(`^resolve ${expected}$`), what);
      }),
      ...missing.map(async (name) => {
        const answer = await ask(name);
        assert.equal(resultOf(answer), FAILED, answer.text);
        assert.equal(answer.body.details.reason, 'name_not_found');
      }),
    ]);
    assert.deepEqual(dialled(from), [], 'one family is not enough to connect');
  },
);

rule('address 5', 'A name without any address, or with a failed look-up for one address family', async (t) => {
  if (!hasMany) return t.diagnostic('this machine has 127.0.0.1 only: nothing that is allowed can be called');
  // NODATA for a family, or NXDOMAIN, is not a failure: most hosts have no AAAA.
  for (const aaaa of ['nodata', 'nxdomain'] as const) {
    assert.equal(resultOf(await ask(publish({ a: [[FIRST]], aaaa: [aaaa] }))), SUCCESS, aaaa);
  }
});

rule(
  'address 6',
  'The name is resolved once, and no connection is opened to an address that was not checked.',
  async (t) => {
    if (!hasMany) return t.diagnostic('this machine has 127.0.0.1 only: there is nothing to rebind to');
    assert.ok(first && second && third);
    const counts = () => [victim, first, second, third].map((receiver) => receiver.connections.length);
    const [toVictim = 0, toFirst = 0, toSecond = 0, toThird = 0] = counts();
    const from = dial.mock.callCount();

    // The answer changes with every query, back and forth.
    const name = publish({ a: [[FIRST], [VICTIM], [FIRST]] });
    assert.equal(resultOf(await ask(name)), SUCCESS);
    assert.deepEqual(queriesOf(name).sort(), ['A', 'AAAA'], 'one query for each family, and no more');
    assert.deepEqual(counts(), [toVictim, toFirst + 1, toSecond, toThird]);
    assert.equal(first.connections.at(-1)?.localAddress, FIRST);
    assert.match(first.requests.at(-1) ?? '', new RegExp(`\r\nHost: ${name}:${port}\r\n`), 'but with its name as SNI');
    assert.equal(first.serverNames.at(-1), name);

    // Nothing is cached: the second answer refuses the second test.
    assert.equal(resultOf(await ask(name)), PRIVATE);
    assert.deepEqual(queriesOf(name).length, 4);
    assert.deepEqual(counts(), [toVictim, toFirst + 1, toSecond, toThird]);
    assert.equal(resultOf(await ask(name)), SUCCESS);
    assert.deepEqual(counts(), [toVictim, toFirst + 2, toSecond, toThird]);
    assert.deepEqual(dialled(from), [`${FIRST}:${port}`, `${FIRST}:${port}`]);
  },
);

rule('address 6', 'no connection is opened to an address that was not checked', async (t) => {
  if (!hasMany) return t.diagnostic('this machine has 127.0.0.1 only: there is nowhere else to go');
  assert.ok(first && second);
  const toVictim = victim.connections.length;

  // A failing receiver causes no second query: only addresses of the first answer are tried.
  first.script = (socket) => socket.destroy();
  const closing = publish({ a: [[FIRST], [VICTIM]] });
  assert.equal(resultOf(await ask(closing)), FAILED);
  assert.equal(queriesOf(closing).length, 2);
  await first[Symbol.asyncDispose]();
  const refusing = publish({ a: [[FIRST], [VICTIM]] });
  const from = dial.mock.callCount();
  const answer = await ask(refusing);
  assert.deepEqual([resultOf(answer), answer.body.details.reason], [FAILED, 'connection_refused']);
  assert.equal(queriesOf(refusing).length, 2);
  assert.deepEqual(dialled(from), [`${FIRST}:${port}`]);

  const several = publish({ a: [[FIRST, SECOND], [VICTIM]] });
  const toSecond = second.connections.length;
  assert.equal(resultOf(await ask(several)), SUCCESS, 'the next address of the same answer');
  assert.equal(queriesOf(several).length, 2);
  assert.equal(second.connections.length, toSecond + 1);
  assert.equal(second.connections.at(-1)?.localAddress, SECOND);
  assert.equal(victim.connections.length, toVictim);
});

rule('address 6', 'The name is resolved once, and no connection is opened to an address', async (t) => {
  if (!hasMany) return t.diagnostic('this machine has 127.0.0.1 only: there is nothing to rebind to');
  assert.ok(third);
  // Through aliases, for saved settings, and after a lost query was retried.
  const other = await app.newKey();
  const target = publish({ a: [[THIRD], [VICTIM]] });
  const alias = publish({ alias: target });
  await world.save(other, { url: `https://${alias}:${port}/saved`, access_key: 'k' });
  const before = [victim.connections.length, third.connections.length];
  assert.equal(resultOf(await world.test(other)), SUCCESS);
  assert.equal(resultOf(await world.test(other)), PRIVATE);
  assert.deepEqual([victim.connections.length, third.connections.length], [before[0], before[1]! + 1]);

  const lost = publish({ a: ['silence', [THIRD], [VICTIM]] });
  assert.equal(resultOf(await ask(lost)), SUCCESS);
  assert.deepEqual([victim.connections.length, third.connections.length], [before[0], before[1]! + 2]);
});
