// Which addresses are public, checked over HTTP at both ends of every range, as literals in the URL and in DNS answers.
// No address is connected to: a public literal gets as far as the rate limit, and a name with a public address and a
// failed lookup is a send error.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, mock } from 'node:test';
import { resultOf, startCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';

const dial = mock.method(net.Socket.prototype, 'connect');
const NO_ALLOWANCE = { RESEAL_CALLBACK_ALLOW: '' };
const world = await startCallbackApp({ ...NO_ALLOWANCE, RESEAL_CALLBACK_TEST_RATE: '1000/s' });
after(() => world[Symbol.asyncDispose]());
const narrow = await startCallbackApp({ ...NO_ALLOWANCE, RESEAL_CALLBACK_TEST_RATE: '1/h' });
after(() => narrow[Symbol.asyncDispose]());
const { dns } = world.outside;
const key = await world.app.newKey();
const spent = await narrow.app.newKey();
const nowhere = { url: 'https://missing.example.test/', access_key: 'k' };
assert.equal(resultOf(await narrow.test(spent, nowhere)), '422 callback_send_error', 'its only token is used');

const PRIVATE = '422 callback_private_domain';
const PUBLIC_LITERAL = '429 request_too_fast';
const PUBLIC_NAME = '422 callback_send_error';

/** Addresses this process connected to, except the service itself. */
function dialled(): string[] {
  const ports = [world.app.url, narrow.app.url].map((url) => new URL(url).port);
  const options = dial.mock.calls.map(
    ({ arguments: [first] }) => ([first] as unknown[]).flat(2)[0] as net.TcpNetConnectOpts,
  );
  return options.filter(({ port }) => !ports.includes(String(port))).map(({ host, port }) => `${host}:${port}`);
}

/** Also for names that contain the address. */
const ofLiteral = async (host: string): Promise<string> =>
  resultOf(await narrow.test(spent, { url: `https://${host}/`, access_key: 'k' }));

async function ofName(type: 'A' | 'AAAA', address: string): Promise<string> {
  const name = 'edge.example.test';
  dns.set(name, type, [address]);
  dns.set(name, type === 'A' ? 'AAAA' : 'A', 'servfail');
  return resultOf(await world.test(key, { url: `https://${name}/`, access_key: 'k' }));
}

async function requireIPv4(address: string, isPublic: boolean): Promise<void> {
  assert.equal(await ofLiteral(address), isPublic ? PUBLIC_LITERAL : PRIVATE, `https://${address}/`);
  assert.equal(await ofName('A', address), isPublic ? PUBLIC_NAME : PRIVATE, `A ${address}`);
}
async function requireIPv6(address: string, isPublic: boolean): Promise<void> {
  assert.equal(await ofLiteral(`[${address}]`), isPublic ? PUBLIC_LITERAL : PRIVATE, `https://[${address}]/`);
  assert.equal(await ofName('AAAA', address), isPublic ? PUBLIC_NAME : PRIVATE, `AAAA ${address}`);
}

/**
 * The address before a range, its first, its last, and the one after; - where there is none or another range begins.
 */
const RANGES_4: readonly string[] = [
  '-               0.0.0.0       0.255.255.255   1.0.0.0',
  '9.255.255.255   10.0.0.0      10.255.255.255  11.0.0.0',
  '100.63.255.255  100.64.0.0    100.127.255.255 100.128.0.0',
  '126.255.255.255 127.0.0.0     127.255.255.255 128.0.0.0',
  '169.253.255.255 169.254.0.0   169.254.255.255 169.255.0.0',
  '172.15.255.255  172.16.0.0    172.31.255.255  172.32.0.0',
  '191.255.255.255 192.0.0.0     192.0.0.255     192.0.1.0',
  '192.0.1.255     192.0.2.0     192.0.2.255     192.0.3.0',
  '192.31.195.255  192.31.196.0  192.31.196.255  192.31.197.0',
  '192.52.192.255  192.52.193.0  192.52.193.255  192.52.194.0',
  '192.88.98.255   192.88.99.0   192.88.99.255   192.88.100.0',
  '192.167.255.255 192.168.0.0   192.168.255.255 192.169.0.0',
  '192.175.47.255  192.175.48.0  192.175.48.255  192.175.49.0',
  '198.17.255.255  198.18.0.0    198.19.255.255  198.20.0.0',
  '198.51.99.255   198.51.100.0  198.51.100.255  198.51.101.0',
  '203.0.112.255   203.0.113.0   203.0.113.255   203.0.114.0',
  '223.255.255.255 224.0.0.0     255.255.255.255 -',
  '168.63.129.15   168.63.129.16 168.63.129.16   168.63.129.17',
];

rule(
  'address 1',
  '0/8, 10/8, 100.64/10, 127/8, 169.254/16, 172.16/12, 192.0.0/24, 192.0.2/24, 192.31.196/24, 192.52.193/24, 192.88.99/24, 192.168/16, 192.175.48/24, 198.18/15, 198.51.100/24, 203.0.113/24 or 224/3, nor is 168.63.129.16',
  async () => {
    for (const range of RANGES_4) {
      const [before, first = '', last = '', next] = range.split(/ +/);
      for (const address of [first, last]) await requireIPv4(address, false);
      for (const address of [before, next]) if (address && address !== '-') await requireIPv4(address, true);
    }
    for (const address of [
      '127.0.0.1',
      '169.254.169.254',
      '192.0.0.192',
      '100.100.100.200',
      '239.1.2.3',
      '240.0.0.1',
    ]) {
      await requireIPv4(address, false);
    }
    assert.deepEqual(dialled(), []);
  },
);

rule('address 1', 'An IPv4 address is not public inside 0/8, 10/8, 100.64/10, 127/8', async () => {
  // In any notation: the URL parser reads each of these as a number.
  const loopback = [
    '127.1',
    '127.0.1',
    '2130706433',
    '0x7f000001',
    '0X7F.1',
    '0177.0.0.1',
    '017700000001',
    '127.0.0.0x1',
  ];
  const others = ['0', '0x', '0.0', '0xa9fea9fe', '2852039166', '0251.0376.0251.0376', '012.1', '10.1', '3232235777'];
  for (const host of [...loopback, ...others]) assert.equal(await ofLiteral(host), PRIVATE, host);
  assert.equal(await ofLiteral('010.0.0.1'), PUBLIC_LITERAL, 'which the parser reads as 8.0.0.1');
  assert.deepEqual(dialled(), []);
});

const RANGES_6: readonly string[] = [
  '- 2001:: 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff 2001:200::',
  '2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9::',
  '2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2002:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2003::',
  '2620:4f:7fff:ffff:ffff:ffff:ffff:ffff 2620:4f:8000:: 2620:4f:8000:ffff:ffff:ffff:ffff:ffff 2620:4f:8001::',
  '3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:1000::',
  // Outside of 2000::/3.
  '- :: 1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2000::',
  '3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 4000:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff -',
];

rule(
  'address 2',
  'An IPv6 address is public only inside 2000::/3 and outside 2001::/23, 2001:db8::/32, 2002::/16, 2620:4f:8000::/48 and 3fff::/20',
  async () => {
    for (const range of RANGES_6) {
      const [before, first = '', last = '', next] = range.split(' ');
      for (const address of [first, last]) await requireIPv6(address, false);
      for (const address of [before, next]) if (address && address !== '-') await requireIPv6(address, true);
    }
    const special = [
      '::1',
      '100::1',
      'fc00::1',
      'fd00::1',
      'fd00:ec2::254',
      'fe80::1',
      'fec0::1',
      'ff02::1',
      '5f00::1',
    ];
    // A public embedded IPv4 address does not make the IPv6 address public.
    const around = ['::ffff:8.8.8.8', '::8.8.8.8', '::ffff:0:8.8.8.8', '2002:808:808::1', '64:ff9b:1::8.8.8.8'];
    for (const address of [...special, ...around]) await requireIPv6(address, false);
    for (const address of ['::ffff:127.0.0.1', '::127.0.0.1', '::ffff:169.254.169.254', '2002:7f00:1::1']) {
      await requireIPv6(address, false);
    }
    for (const address of ['2606:4700::1111', '2a00:1450:4001::200e']) await requireIPv6(address, true);
    assert.deepEqual(dialled(), []);
  },
);

rule('address 2', 'one in 64:ff9b::/96 is judged by the IPv4 address it carries', async () => {
  for (const range of RANGES_4) {
    const [before, first, last, next] = range.split(/ +/);
    for (const address of [first, last]) await requireIPv6(`64:ff9b::${address}`, false);
    for (const address of [before, next]) if (address !== '-') await requireIPv6(`64:ff9b::${address}`, true);
  }
  for (const beside of ['64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff', '64:ff9b::1:808:808', '64:ff9b:0:0:0:1:808:808']) {
    await requireIPv6(beside, false);
  }
  assert.deepEqual(dialled(), []);
});

/** Published with public addresses, so that a DNS query would change the response. */
async function ofPublished(name: string): Promise<readonly [answer: string, queries: number]> {
  dns.set(name, 'A', ['93.184.215.14']);
  dns.set(name, 'AAAA', 'servfail');
  const before = dns.queries.length;
  const answer = resultOf(await world.test(key, { url: `https://${name}:8443/x?y`, access_key: 'k' }));
  return [answer, dns.queries.length - before];
}

rule('address 4', '`localhost`, names under `localhost`, `local`, `internal` and `home.arpa`', async () => {
  const names = [
    ...['localhost', 'LOCALHOST', 'LocalHost', 'a.localhost', 'a.b.localhost', 'x.LOCALHOST', '_x.localhost'],
    ...['printer.local', 'a.b.local', 'x.LOCAL', 'db.internal', 'metadata.google.internal', 'a.Internal'],
    ...['nas.home.arpa', 'a.b.home.arpa', 'NAS.Home.Arpa', '127.0.0.1.local', 'example.com.internal'],
  ];
  for (const name of names) {
    assert.deepEqual(await ofPublished(name), [PRIVATE, 0], name);
    assert.equal(await ofLiteral(name), PRIVATE, `${name}, before the rate limit`);
  }
  const alike = [
    ...[
      'localhost.example.test',
      'notlocalhost',
      'xlocal',
      'local.example.test',
      'myinternal',
      'internal.example.test',
    ],
    ...['xhome.arpa', 'home.arpa.example.test', 'homexarpa', 'arpa', 'a.arpa', 'localhost1', 'local-host'],
  ];
  for (const name of alike) {
    const [answer, queries] = await ofPublished(name);
    assert.equal(answer, PUBLIC_NAME, name);
    assert.ok(queries > 0, `${name} is an ordinary name`);
  }
  assert.deepEqual(dialled(), []);
});

rule(
  'address 4',
  'addresses written in the URL that are not public are `callback_private_domain` without a DNS query',
  async () => {
    const { port } = world.receiver;
    const hosts = [
      '127.0.0.1',
      '127.1',
      '0x7f000001',
      '0',
      '10.0.0.1',
      '169.254.169.254',
      '192.168.1.1',
      '255.255.255.255',
    ];
    const bracketed = [
      '[::1]',
      '[::]',
      '[::ffff:127.0.0.1]',
      '[::127.0.0.1]',
      '[fe80::1]',
      '[fd00::1]',
      '[64:ff9b::a00:1]',
    ];
    const before = [dns.queries.length, narrow.outside.dns.queries.length];
    for (const host of [...hosts, ...bracketed]) {
      for (const authority of [host, `${host}:${port}`, `${host}:1`]) {
        const answer = await world.test(key, { url: `https://${authority}/`, access_key: 'k' });
        assert.equal(resultOf(answer), PRIVATE, authority);
        assert.equal(await ofLiteral(authority), PRIVATE, `${authority}, before the rate limit`);
      }
    }
    assert.deepEqual([dns.queries.length, narrow.outside.dns.queries.length], before);
    assert.deepEqual(world.receiver.connections, [], 'although the port is open');
    assert.deepEqual(dialled(), []);
  },
);
