// Validation by file: accepted responses, followed redirects, and addresses that are never contacted.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { rule } from '../../support/contract.ts';
import { FILE, page, redirect, startDomainApp } from '../../support/domain-app.ts';
import type { PlacedOrder } from '../../support/orders.ts';
import type { Script } from '../../support/receiver.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { dns, web, files, place, complete, entries, outcome, newDomain } = world;

interface Fetch {
  readonly domain: string;
  readonly value: string;
}
/** Places an order for a name with this web server. Returns the outcome of dcv-completed. */
async function outcomeOf(answer: (fetch: Fetch) => string | Script): Promise<string> {
  const domain = newDomain();
  const order = await place([domain], { dcv_method: 'file' });
  const value = (await entries(order))[0]?.auth_val ?? '';
  assert.match(value, /^[0-9a-f]{64}$/);
  dns.set(domain, 'A', ['127.0.0.1']);
  files.set(domain + FILE, answer({ domain, value }));
  return await outcomeAfter(order);
}
async function outcomeAfter(order: PlacedOrder): Promise<string> {
  const { status, text } = await complete(order);
  assert.equal(status, 200, text);
  return (await outcome(order)).replace('domain_verifing ', '');
}

rule('dcv 4', '`file` by a file under `/.well-known/pki-validation/` on port 80 of the name', async () => {
  web.requests.length = 0;
  assert.equal(await outcomeOf(({ value }) => page(value)), 'issued');
  const [request = ''] = web.requests;
  assert.match(request, new RegExp(`^GET ${FILE} HTTP/1.1\r\nHost: name\\d+\\.com:${web.port}\r\n`));
  // A server that echoes the request proves nothing: the value is not in the request.
  assert.doesNotMatch(request, /[0-9a-f]{64}/);
  assert.equal(await outcomeOf(() => (socket, asked) => void socket.end(page(asked))), 'wrong_value');
});

rule('dcv 19', 'the answer counts with status 200 only, and one line of it must be the value', async () => {
  const good: Record<string, (fetch: Fetch) => string> = {
    'a line of several': ({ value }) => page(`# orders\n${'0'.repeat(64)}\r\n  ${value} \r\nmore\n`),
    'with a byte that is no text': ({ value }) => page(`\xff\xfe\n${value}\n`),
    'garbage after it': ({ value }) => page(`${value}\n${'x'.repeat(20 * 1024)}`),
    'in pieces': ({ value }) => `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n${value}\r\n0\r\n\r\n`,
    'until the connection closes': ({ value }) => `HTTP/1.1 200 OK\r\n\r\n${value}`,
  };
  for (const [what, answer] of Object.entries(good)) assert.equal(await outcomeOf(answer), 'issued', what);

  const bad: Record<string, [(fetch: Fetch) => string, string]> = {
    'nothing in it': [() => page(''), 'wrong_value'],
    'part of the value': [({ value }) => page(value.slice(0, 63)), 'wrong_value'],
    'in capitals': [({ value }) => page(value.toUpperCase()), 'wrong_value'],
    'within a line': [({ value }) => page(`<p>${value}</p>`), 'wrong_value'],
    'over two lines': [({ value }) => page(`${value.slice(0, 32)}\n${value.slice(32)}`), 'wrong_value'],
    '20 KiB before it': [({ value }) => page(`${'x'.repeat(20 * 1024)}\n${value}`), 'wrong_value'],
    '204': [() => 'HTTP/1.1 204 No Content\r\n\r\n', 'http_failure'],
    ...Object.fromEntries(
      [201, 206, 300, 303, 304, 401, 403, 404, 410, 500, 503].map((status) => [
        `${status}`,
        [({ value }: Fetch) => page(value, status), 'http_failure'],
      ]),
    ),
    'no HTTP': [({ value }) => value, 'http_failure'],
    'half an answer': [() => 'HTTP/1.1 2', 'http_failure'],
  };
  for (const [what, [answer, problem]] of Object.entries(bad)) assert.equal(await outcomeOf(answer), problem, what);
});

test('a file at another path, or of another order, proves nothing', async () => {
  const domain = newDomain();
  const [first, second] = [
    await place([domain], { dcv_method: 'file' }),
    await place([domain], { dcv_method: 'file' }),
  ];
  const [mine, theirs] = await Promise.all([first, second].map(async (order) => (await entries(order))[0]?.auth_val));
  assert.ok(mine && theirs && mine !== theirs);
  dns.set(domain, 'A', ['127.0.0.1']);
  files.set(`${domain}/`, page(mine));
  files.set(`${domain}/.well-known/pki-validation/${mine}.txt`, page(mine));
  assert.equal(await outcomeAfter(first), 'http_failure');
  files.set(domain + FILE, page(theirs));
  assert.equal(await outcomeAfter(first), 'wrong_value');
  // As a TXT record it proves nothing: only the order's method is checked.
  dns.set(`_dnsauth.${domain}`, 'TXT', [mine]);
  assert.equal(await outcomeAfter(first), 'wrong_value');
  files.set(domain + FILE, page(`${theirs}\n${mine}\n`));
  assert.equal(await outcomeAfter(first), 'issued');
  assert.equal(await outcomeAfter(second), 'issued');
});

rule('dcv 19', 'is followed at most five times, to port 80 or 443 of a name and never to a bare address', async () => {
  /** The file is at another path of another host. */
  const behind = (location: (other: string) => string, status = 302) =>
    outcomeOf(({ domain, value }) => {
      const other = `other.${domain}`;
      dns.set(other, 'A', ['127.0.0.1']);
      for (const host of [domain, other]) files.set(`${host}/proof?x=1`, page(value));
      return redirect(location(other), status);
    });
  for (const status of [301, 302, 307, 308]) {
    assert.equal(await behind((other) => `http://${other}/proof?x=1`, status), 'issued', `absolute ${status}`);
    assert.equal(await behind(() => '/proof?x=1', status), 'issued', `relative ${status}`);
  }
  assert.equal(await behind((other) => `HTTP://${other.toUpperCase()}:80/proof?x=1#part`), 'issued');
  assert.equal(await behind((other) => `http://${other}/proof?x=1`, 303), 'http_failure');

  const refused: readonly ((other: string) => string)[] = [
    (other) => `http://${other}:${web.port}/proof?x=1`,
    (other) => `http://${other}:8080/proof?x=1`,
    (other) => `https://${other}:80/proof?x=1`,
    (other) => `http://${other}:443/proof?x=1`,
    (other) => `//${other}/proof?x=1`,
    (other) => `/\\${other}/proof?x=1`,
    (other) => `ftp://${other}/proof?x=1`,
    (other) => `http://user:word@${other}/proof?x=1`,
    (other) => `http://${other}./proof?x=1`,
    (other) => `http://${other}/proof?x=1, http://${other}/proof?x=1`,
    () => 'proof?x=1',
    () => './proof?x=1',
    () => '?x=1',
    () => '#part',
    () => '',
    () => 'http://',
    () => 'data:text/plain,proof',
    () => `http://${'x'.repeat(2_100)}.com/`,
    ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '[::1]', '[::ffff:127.0.0.1]', '10.0.0.1'].map(
      (address) => () => `http://${address}/proof?x=1`,
    ),
  ];
  for (const location of refused) {
    const before = web.requests.length;
    assert.equal(await behind(location), 'http_failure', location('other'));
    assert.equal(web.requests.length, before + 1, `nothing else is asked: ${location('other')}`);
  }
  // An accepted scheme and port, of a name that does not resolve.
  assert.equal(await behind(() => 'https://nobody-knows.com/proof?x=1'), 'http_failure');
  assert.ok(
    dns.queries.some(({ name }) => name === 'nobody-knows.com'),
    'it was followed',
  );
});

rule('dcv 19', 'A redirect from the file of a name is followed at most five times', async () => {
  const chain = (hops: number) =>
    outcomeOf(({ domain, value }) => {
      for (let hop = 1; hop < hops; hop += 1) files.set(`${domain}/hop${hop}`, redirect(`/hop${hop + 1}`));
      files.set(`${domain}/hop${hops}`, page(value));
      return redirect('/hop1');
    });
  assert.equal(await chain(5), 'issued');
  assert.equal(await chain(6), 'http_failure');
  web.requests.length = 0;
  assert.equal(await outcomeOf(() => redirect(FILE)), 'http_failure');
  assert.equal(web.requests.length, 6);
});

test('a private address is never contacted, whether by DNS or by redirect', async () => {
  await using strict = await startDomainApp({}, 0, []);
  const addressed = async (records: { A?: string[]; AAAA?: string[] }) => {
    const domain = newDomain();
    const order = await strict.place([domain], { dcv_method: 'file' });
    strict.files.set(domain + FILE, page((await strict.entries(order))[0]?.auth_val ?? ''));
    for (const type of ['A', 'AAAA'] as const) if (records[type]) strict.dns.set(domain, type, records[type]);
    await strict.complete(order);
    return await strict.outcome(order);
  };
  const cases = [
    { A: ['127.0.0.1'] },
    { A: ['10.1.2.3'] },
    { A: ['169.254.169.254'] },
    { A: ['0.0.0.0'] },
    { AAAA: ['::1'] },
    { AAAA: ['::ffff:127.0.0.1'] },
    { AAAA: ['fd00:ec2::254'] },
    // An additional public address changes nothing.
    { A: ['198.41.0.4', '127.0.0.1'] },
    { A: ['198.41.0.4'], AAAA: ['::1'] },
  ];
  for (const records of cases) {
    assert.equal(await addressed(records), 'domain_verifing private_address', JSON.stringify(records));
  }
  assert.deepEqual(strict.web.connections, []);
  assert.equal(await addressed({}), 'domain_verifing http_failure', 'no address at all');

  // Allowing one address does not allow a redirect to others.
  const result = await outcomeOf(({ domain }) => {
    dns.set(`inside.${domain}`, 'A', ['127.0.0.2']);
    return redirect(`http://inside.${domain}/proof`);
  });
  assert.equal(result, 'private_address');
  for (const host of ['localhost', 'metadata.google.internal']) {
    assert.match(await outcomeOf(() => redirect(`http://${host}/proof`)), /^(private_address|http_failure)$/, host);
  }
});
