// Several resolvers: an attacker who spoofs one of them, or takes it down, can neither forge nor block a proof.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { DnsServer } from '../../../src/sandbox/dns-server.ts';
import { rule } from '../../support/contract.ts';
import { type DomainApp, FILE, ISSUERS, page, startDomainApp } from '../../support/domain-app.ts';
import { body, csrFor, newOrder, reissue } from '../../support/orders.ts';

const ALONE = await startDomainApp();
const TWO = await startDomainApp({}, 1);
const THREE = await startDomainApp({}, 2);
const FOUR = await startDomainApp({}, 3);
for (const world of [ALONE, TWO, THREE, FOUR]) after(() => world[Symbol.asyncDispose]());

/** What differs, and for which resolvers; the first is the primary. */
type Change = (resolver: DnsServer, domain: string) => void;

/** Places an order with correct records, then changes what some resolvers see. */
async function outcomeOf(
  world: DomainApp,
  which: readonly number[],
  change: Change,
  top: object = {},
): Promise<string> {
  const domain = world.newDomain();
  const order = await world.place([domain], top);
  await world.publish(order);
  for (const index of which) change(world.resolvers[index]!, domain);
  const { status, text } = await world.complete(order);
  assert.equal(status, 200, text);
  return (await world.outcome(order)).replace('domain_verifing ', '');
}

/** By the number of perspectives and which of them differ. The primary's problem is reported unchanged. */
const TABLE: readonly (readonly [world: DomainApp, which: readonly number[], expected: 'issued' | 'own' | 'others'])[] =
  [
    [ALONE, [], 'issued'],
    [ALONE, [0], 'own'],
    [TWO, [], 'issued'],
    [TWO, [0], 'own'],
    [TWO, [1], 'others'],
    [TWO, [0, 1], 'own'],
    [THREE, [], 'issued'],
    [THREE, [0], 'own'],
    [THREE, [1], 'issued'],
    [THREE, [2], 'issued'],
    [THREE, [1, 2], 'others'],
    [THREE, [0, 1], 'own'],
    [THREE, [0, 1, 2], 'own'],
    [FOUR, [0], 'own'],
    [FOUR, [3], 'issued'],
    [FOUR, [1, 3], 'others'],
    [FOUR, [1, 2, 3], 'others'],
  ];

async function requireTable(problem: string, change: Change, top: object = {}): Promise<void> {
  for (const [world, which, expected] of TABLE) {
    const outcome = { issued: 'issued', own: problem, others: 'perspectives_differ' }[expected];
    const what = `of ${world.resolvers.length}: ${which.join()}`;
    assert.equal(await outcomeOf(world, which, change, top), outcome, what);
  }
}

rule('dcv 11', 'With several resolvers the primary must agree, and of three at most one may differ', async () => {
  await requireTable('no_record', (resolver, domain) => resolver.clear(`_dnsauth.${domain}`));
});

rule('dcv 11', 'the primary must agree, and of three at most one may differ', async () => {
  // Other failures: another value, no answer.
  await requireTable('wrong_value', (resolver, domain) => resolver.set(`_dnsauth.${domain}`, 'TXT', ['of another']));
  await requireTable('dns_failure', (resolver, domain) => resolver.set(`_dnsauth.${domain}`, 'TXT', 'servfail'));
});

rule('dcv 11', 'and of three at most one may differ', async () => {
  // Applies to CAA too, and files are fetched from the address that each resolver returns.
  const forbid: Change = (resolver, domain) =>
    resolver.set(domain, 'CAA', [{ flags: 0, tag: 'issue', value: 'other-ca.example' }]);
  await requireTable('caa_forbidden', forbid);
  await requireTable('dns_failure', (resolver, domain) => resolver.set(domain, 'CAA', 'servfail'));
  const file = { dcv_method: 'file' };
  await requireTable('private_address', (resolver, domain) => resolver.set(domain, 'A', ['10.0.0.1']), file);
  await requireTable('http_failure', (resolver, domain) => resolver.clear(domain), file);
});

rule('dcv 11', 'With several resolvers the primary must agree', async () => {
  const persist = { dcv_method: 'dns-persist' };
  await requireTable('no_record', (resolver, domain) => resolver.clear(`_validation-persist.${domain}`), persist);
});

test('control of only the primary resolver, or only the others, forges nothing', async () => {
  for (const liars of [[0], [1, 2]]) {
    const order = await THREE.place([THREE.newDomain()]);
    const lying = liars.map((index) => THREE.resolvers[index]!);
    await THREE.publish(order, lying);
    await THREE.complete(order);
    assert.match(await THREE.outcome(order), /^domain_verifing (no_record|perspectives_differ)$/, liars.join());
  }
  // An attacker's web server, to which the spoofed primary points, is one perspective of three.
  const domain = THREE.newDomain();
  const order = await THREE.place([domain], { dcv_method: 'file' });
  THREE.files.set(domain + FILE, page((await THREE.entries(order))[0]?.auth_val ?? ''));
  THREE.dns.set(domain, 'A', ['127.0.0.1']);
  for (const other of THREE.resolvers.slice(1)) other.set(domain, 'A', ['198.51.100.7']);
  await THREE.complete(order);
  assert.equal(await THREE.outcome(order), 'domain_verifing perspectives_differ');
});

test('each lookup is compared separately, and every resolver is queried', async () => {
  // One does not see the proof, another is forbidden by CAA: each check has one dissenter of two.
  const mixed = await outcomeOf(THREE, [1, 2], (resolver, domain) => {
    if (resolver === THREE.resolvers[1]) resolver.clear(`_dnsauth.${domain}`);
    else resolver.set(domain, 'CAA', [{ flags: 0, tag: 'issue', value: ';' }]);
  });
  assert.equal(mixed, 'issued');
  for (const { queries } of THREE.resolvers) {
    assert.ok(queries.some(({ type }) => type === 'TXT') && queries.some(({ type }) => type === 'CAA'));
  }
  // CAA is corroborated even if all names are proven already.
  const domain = THREE.newDomain();
  const order = await newOrder(THREE.app, { commonName: domain });
  for (const other of THREE.resolvers.slice(1)) other.set(domain, 'CAA', [{ flags: 0, tag: 'issue', value: ';' }]);
  await reissue(THREE.app, order, body({ common_name: domain }));
  assert.equal(await THREE.outcome(order), 'reissuing perspectives_differ');
  const ours = [{ flags: 0, tag: 'issue', value: ISSUERS[0] }];
  THREE.resolvers[1]!.set(domain, 'CAA', ours);
  await THREE.workerChecks(order);
  assert.equal(await THREE.outcome(order), 'issued');
});

test('a disagreement is reported with the reason of the perspective that fails', async () => {
  const domain = TWO.newDomain();
  const order = await TWO.place([domain]);
  await TWO.publish(order, [TWO.dns]);
  const { [domain]: seen } = await TWO.check(order);
  assert.deepEqual([seen?.result, seen?.caa.result], ['perspectives_differ', 'ok']);
  assert.match(seen?.message ?? '', new RegExp(`There is no TXT record at _dnsauth.${domain}`));
});

rule('dcv 25', '4 and from 2026-12-15 on 5: a request is `service_busy`, and what waits goes on waiting', async () => {
  await using world = await startDomainApp({ RESEAL_REQUIRE_PERSPECTIVES: 'true' }, 4);
  const { app } = world;
  const key = await app.newKey();
  const issued = await world.place([world.newDomain()], {}, { key });
  await world.publish(issued);
  await world.complete(issued);
  assert.equal(await world.outcome(issued), 'issued', 'four are enough today');
  const [waits, inside] = [
    await world.place([world.newDomain()], {}, { key }),
    await world.place([world.newDomain()], {}, { key, product: 'tls-private' }),
  ];
  for (const order of [waits, inside]) await world.publish(order);

  app.advance(Date.parse('2026-12-14T22:00:00Z') - app.now());
  const names = (await world.entries(issued)).map(({ domain }) => domain);
  const again = () => reissue(app, issued, body({ common_name: names[0], dns_names: [] }));
  assert.equal((await again()).status, 200);
  app.advance(Date.parse('2026-12-15T00:00:00Z') - app.now());
  const { status, headers, body: answer } = await again();
  assert.deepEqual([status, answer.code, headers.get('retry-after')], [503, 'service_busy', '3600']);
  assert.match(
    answer.message,
    /ask for 5 remote perspectives on every name, and 4 are configured.*RESEAL_DNS_PERSPECTIVES/,
  );
  const dcv_method = 'dns';
  const certificate = { csr: csrFor(), common_name: names[0], sign_hash: 'sha256' };
  const placed = await app.call('POST', '/openapi/v3/orders/ssl-dv', { key, json: { dcv_method, certificate } });
  assert.deepEqual([placed.status, placed.body.code], [503, 'service_busy'], placed.text);
  await world.complete(waits);
  assert.match(await world.outcome(waits), /^domain_verifing/);
  assert.deepEqual(
    (await world.entries(waits)).map(({ verified }) => verified),
    [true],
  );
  await world.complete(inside);
  assert.equal(await world.outcome(inside), 'issued', 'of private trust');
});

rule('console 31', 'what each resolver sees of the record, the primary one first', async () => {
  const domain = THREE.newDomain();
  const order = await THREE.place([domain]);
  await THREE.publish(order);
  const [entry] = await THREE.entries(order);
  THREE.resolvers[1]?.set(entry?.auth_path ?? '', 'TXT', 'nxdomain');
  THREE.resolvers[2]?.set(entry?.auth_path ?? '', 'TXT', ['something else']);
  const { result, perspectives } = (await THREE.check(order))[domain]!;
  assert.deepEqual(
    [result, ...perspectives.map((one) => one.result)],
    ['perspectives_differ', 'ok', 'no_record', 'wrong_value'],
  );
  assert.match(perspectives[2]?.message ?? '', /something else/);
  // A name that is proven needs no record, though it is not issued: CAA forbids it.
  THREE.resolvers[1]?.set(entry?.auth_path ?? '', 'TXT', [entry?.auth_val ?? '']);
  for (const one of THREE.resolvers) one.set(domain, 'CAA', [{ flags: 0, tag: 'issue', value: 'other.example' }]);
  await THREE.complete(order);
  assert.deepEqual((await THREE.check(order))[domain]?.perspectives, []);
});
