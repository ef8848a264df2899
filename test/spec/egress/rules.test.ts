// Deny and allow rules of the operator, for all accounts or for one, and what stays forbidden regardless. An allowed
// address is recognised without calling it: together with a failed lookup, its name is a send error.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import type { Key } from '../../support/app.ts';
import { environmentFor, resultOf, startCallbackApp, startPublicCallbackApp } from '../../support/callback-app.ts';
import { rule } from '../../support/contract.ts';
import { isLocalAddress } from '../../support/outside.ts';
import { respond } from '../../support/receiver.ts';

const world = await startCallbackApp();
after(() => world[Symbol.asyncDispose]());
const { app, outside } = world;
const { dns } = outside;
const [mine, another, everywhere] = [await app.newKey(), await app.newKey(), await app.newKey()];
const identity = outside.ca.identity(['*.example.test', 'hooks.internal', '127.0.0.1', '::1']);
const receiver = await outside.receiver({ identity });
const neighbour = await outside.receiver({ identity });

const LINK_LOCAL = ['169.254.0.0', '169.254.169.254', '169.254.255.255', 'fe80::', 'fe80::1', 'febf:ffff::1'];
/** Metadata services of clouds. */
const METADATA = ['168.63.129.16', '100.100.100.200', '192.0.0.192', 'fd00:ec2::254', 'fd20:ce::254'];
/** The same addresses embedded in IPv6. */
const DISGUISED = [
  ...['64:ff9b::169.254.169.254', '::ffff:169.254.169.254', '2002:a9fe:a9fe::1', '64:ff9b::168.63.129.16'],
  ...['64:ff9b:1::169.254.169.254', '::ffff:168.63.129.16'],
];
const NEVER = [...LINK_LOCAL, ...METADATA, ...DISGUISED];
const WIDE = ['0.0.0.0/0', '::/0', '169.254.0.0/16', 'fe80::/10', 'fd00::/8', '64:ff9b::/96', '2002::/16', ...NEVER];
await app.stop();
await app.start({
  ...environmentFor(outside),
  RESEAL_CALLBACK_TEST_RATE: '1000/s',
  RESEAL_CALLBACK_ALLOW: [
    `${mine.accountId}=127.0.0.1:${receiver.port}`,
    `${mine.accountId}=::1`,
    `${mine.accountId}=10.1.0.0/16`,
    `${mine.accountId}=10.9.0.0/16`,
    ...WIDE.map((one) => `${everywhere.accountId}=${one}`),
  ].join(),
  RESEAL_CALLBACK_DENY: '93.184.215.0/24,[2606:2800::/32]:8443,10.9.9.0/24,127.0.0.9,198.41.0.4:443',
});

const SUCCESS = '200 success';
const PRIVATE = '422 callback_private_domain';
/** Allowed, so that the failed lookup is reported. */
const PASSED = '422 callback_send_error';

async function ofName(key: Key, addresses: string, port = 443): Promise<string> {
  const list = addresses.split(' ');
  const isIPv6 = addresses.includes(':');
  dns.set('rules.example.test', 'A', isIPv6 ? 'servfail' : list);
  dns.set('rules.example.test', 'AAAA', isIPv6 ? list : 'servfail');
  return resultOf(await world.test(key, { url: `https://rules.example.test:${port}/`, access_key: 'k' }));
}
const ofLiteral = async (key: Key, address: string, port = 443): Promise<string> => {
  const host = address.includes(':') ? `[${address}]` : address;
  return resultOf(await world.test(key, { url: `https://${host}:${port}/`, access_key: 'k' }));
};

rule('address 7', 'The operator can deny further addresses', async () => {
  for (const key of [mine, another, everywhere]) {
    for (const denied of ['93.184.215.0', '93.184.215.14', '93.184.215.255', '8.8.8.8 93.184.215.14', '198.41.0.4']) {
      assert.equal(await ofName(key, denied), PRIVATE, denied);
    }
    for (const other of ['93.184.214.255', '93.184.216.0', '8.8.8.8', '198.41.0.3', '2606:2800::1']) {
      assert.equal(await ofName(key, other), PASSED, other);
    }
    assert.equal(await ofName(key, '2606:2800::1', 8443), PRIVATE, 'on the port of the rule');
    assert.equal(await ofName(key, '198.41.0.4', 8443), PASSED, 'on another port than that of the rule');
    assert.equal(await ofName(key, '64:ff9b::93.184.215.14'), PRIVATE, 'through NAT64');
  }
  const asked = dns.queries.length;
  assert.equal(await ofLiteral(mine, '93.184.215.14'), PRIVATE);
  assert.equal(await ofLiteral(mine, '2606:2800::1', 8443), PRIVATE);
  assert.equal(dns.queries.length, asked, 'and written in the URL, without a query');
});

rule('address 7', 'The operator can deny further addresses, and allow chosen ones', async () => {
  // Deny takes precedence over allow for the same address.
  const rows: readonly (readonly [Key, string, string])[] = [
    [mine, '10.9.8.255', PASSED],
    [mine, '10.9.9.0', PRIVATE],
    [mine, '10.9.9.255', PRIVATE],
    [mine, '10.9.10.0', PASSED],
    [mine, '10.9.8.1 10.9.9.1', PRIVATE],
    [everywhere, '10.9.9.1', PRIVATE],
    [everywhere, '127.0.0.9', PRIVATE],
    [everywhere, '127.0.0.8', PASSED],
    [everywhere, '64:ff9b::10.9.9.1', PRIVATE],
  ];
  for (const [key, addresses, expected] of rows) assert.equal(await ofName(key, addresses), expected, addresses);
  for (const address of ['10.9.9.1', '127.0.0.9']) assert.equal(await ofLiteral(everywhere, address), PRIVATE, address);
});

rule('address 7', 'allow chosen ones that are then let through although they are not public', async (t) => {
  dns.set('allowed.example.test', 'A', ['127.0.0.1']);
  dns.set('hooks.internal', 'A', ['127.0.0.1']);
  const hosts = ['allowed.example.test', '127.0.0.1', 'hooks.internal'];
  const test = async (key: Key, host: string, port: number) =>
    resultOf(await world.test(key, { url: `https://${host}:${port}/`, access_key: 'k' }));
  for (const host of hosts) {
    const before = receiver.requests.length;
    assert.equal(await test(mine, host, receiver.port), SUCCESS, host);
    assert.equal(receiver.requests.length, before + 1);
  }

  // For that account and port: nothing else was connected to.
  const before = [receiver.connections.length, neighbour.connections.length];
  const asked = dns.queries.length;
  for (const host of hosts.slice(1)) assert.equal(await test(another, host, receiver.port), PRIVATE, host);
  assert.equal(dns.queries.length, asked, 'without a rule there is no query for a local name either');
  assert.equal(await test(another, 'allowed.example.test', receiver.port), PRIVATE);
  for (const host of hosts) assert.equal(await test(mine, host, neighbour.port), PRIVATE, `${host}, another port`);
  assert.deepEqual([receiver.connections.length, neighbour.connections.length], before);

  const rows: readonly (readonly [Key, string, string])[] = [
    [mine, '10.1.0.0', PASSED],
    [mine, '10.1.255.255', PASSED],
    [mine, '10.0.255.255', PRIVATE],
    [mine, '10.2.0.0', PRIVATE],
    [mine, '10.1.0.1 10.2.0.1', PRIVATE],
    [mine, '10.1.0.1 8.8.8.8', PASSED],
    [mine, '127.0.0.1', PRIVATE],
    [mine, '127.0.0.2', PRIVATE],
    [mine, '64:ff9b::10.1.0.1', PRIVATE],
    [mine, '::ffff:10.1.0.1', PRIVATE],
    [another, '10.1.0.1', PRIVATE],
    [another, '::1', PRIVATE],
    [everywhere, '10.2.0.0', PASSED],
    [everywhere, '192.168.1.1', PASSED],
    [everywhere, 'fd12::1', PASSED],
  ];
  for (const [key, addresses, expected] of rows) {
    assert.equal(await ofName(key, addresses), expected, `${addresses} ${key === mine ? 'mine' : ''}`);
  }
  if (!(await isLocalAddress('::1'))) return t.diagnostic('this machine has no ::1: nothing to call there');
  const six = await outside.receiver({ host: '::1', identity });
  assert.equal(await test(mine, '[::1]', six.port), SUCCESS);
  assert.equal(await test(another, '[::1]', six.port), PRIVATE);
  assert.equal(six.connections.length, 1);
});

rule('address 7', 'link-local and metadata addresses can never be allowed', async () => {
  const asked = dns.queries.length;
  for (const address of NEVER) assert.equal(await ofLiteral(everywhere, address), PRIVATE, address);
  assert.equal(dns.queries.length, asked);
  for (const address of NEVER) assert.equal(await ofName(everywhere, address), PRIVATE, address);
  for (const beside of ['10.0.0.1 169.254.169.254', 'fd12::1 fe80::1']) {
    assert.equal(await ofName(everywhere, beside), PRIVATE, beside);
  }
});

/** All parts of it that a caller could be shown. */
const SAYS = ['Secret: in-a-header', 'Location: https://in-a-header.example/', 'Set-Cookie: in-a-header=1'];
const answering = (status: string) =>
  respond(`HTTP/1.1 ${status} in-the-phrase\r\n${SAYS.join('\r\n')}\r\n\r\n`, 'in-the-body '.repeat(50));

rule('address 8', 'No excerpt of the answer of an allowed private receiver is shown.', async (t) => {
  const url = (host: string) => `https://${host}:${receiver.port}/`;
  t.after(() => (receiver.script = respond('HTTP/1.1 200 OK\r\n\r\n')));
  for (const host of ['allowed.example.test', '127.0.0.1', 'hooks.internal']) {
    dns.set(host, 'A', ['127.0.0.1']);
    for (const status of ['200', '201', '302', '404', '500']) {
      receiver.script = answering(status);
      const { text, body, headers } = await world.test(mine, { url: url(host), access_key: 'k' });
      const report = status === '200' ? body.data.callback : body.details;
      assert.deepEqual([report.http_status, report.excerpt], [Number(status), null], host);
      assert.doesNotMatch(text + JSON.stringify([...headers]), /in-a-header|in-the-(body|phrase)/);
    }
  }
  assert.doesNotMatch(app.output, /in-a-header|in-the-(body|phrase)/);

  // For a public receiver it is shown.
  await using open = await startPublicCallbackApp();
  const key = await open.app.newKey();
  for (const status of ['200', '500']) {
    open.receiver.script = answering(status);
    const { text, body } = await open.test(key, { url: open.url(), access_key: 'k' });
    assert.match((body.data?.callback ?? body.details).excerpt, /^(in-the-body ){49}in-the-body$/);
    assert.doesNotMatch(text, /in-a-header|in-the-phrase/);
  }
});

rule('address 4', 'are `callback_private_domain` without a DNS query', async () => {
  // Settings saved while a rule allowed them are no bypass: the current rules apply.
  for (const host of ['127.0.0.1', 'hooks.internal']) {
    dns.set('hooks.internal', 'A', ['127.0.0.1']);
    await app.stop();
    await app.start({ ...environmentFor(outside), RESEAL_CALLBACK_ALLOW: `${mine.accountId}=127.0.0.1` });
    const settings = { url: `https://${host}:${receiver.port}/saved`, access_key: 'k' };
    assert.equal(resultOf(await world.save(mine, settings)), SUCCESS);
    assert.equal(resultOf(await world.test(mine)), SUCCESS);
    await app.stop();
    await app.start({ ...environmentFor(outside), RESEAL_CALLBACK_ALLOW: `${another.accountId}=127.0.0.1` });
    const before = [receiver.connections.length, dns.queries.length];
    assert.equal(resultOf(await world.test(mine)), PRIVATE);
    assert.deepEqual([receiver.connections.length, dns.queries.length], before);
  }
});
