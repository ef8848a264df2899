// Several resolvers: whoever lies to one of them, or takes it down, neither forges a proof nor stops one.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { DnsServer } from '../../../src/sandbox/dns-server.ts';
import { rule } from '../../support/contract.ts';
import { type DomainApp, FILE, ISSUERS, page, startDomainApp } from '../../support/domain-app.ts';
import { body, newOrder, reissue } from '../../support/orders.ts';

const ALONE = await startDomainApp();
const TWO = await startDomainApp({}, 1);
const THREE = await startDomainApp({}, 2);
const FOUR = await startDomainApp({}, 3);
for (const world of [ALONE, TWO, THREE, FOUR]) after(() => world[Symbol.asyncDispose]());

/** What differs, and for which of the resolvers; the primary one is the first. */
type Change = (resolver: DnsServer, domain: string) => void;

/** A new order, published as it should be; then some of the resolvers see something else. */
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

/** By how many there are and which of them differ; the problem of the primary one is told as it is. */
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
    const told = { issued: 'issued', own: problem, others: 'perspectives_differ' }[expected];
    const what = `of ${world.resolvers.length}: ${which.join()}`;
    assert.equal(await outcomeOf(world, which, change, top), told, what);
  }
}

rule('dcv 11', 'With several resolvers the primary must agree, and of three at most one may differ', async () => {
  await requireTable('no_record', (resolver, domain) => resolver.clear(`_dnsauth.${domain}`));
});

rule('dcv 11', 'the primary must agree, and of three at most one may differ', async () => {
  // Other ways of not seeing it: another value, no answer.
  await requireTable('wrong_value', (resolver, domain) => resolver.set(`_dnsauth.${domain}`, 'TXT', ['of another']));
  await requireTable('dns_failure', (resolver, domain) => resolver.set(`_dnsauth.${domain}`, 'TXT', 'servfail'));
});

rule('dcv 11', 'and of three at most one may differ', async () => {
  // CAA is a question like any other, and a file is fetched from where each of them says that it is.
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

test('whoever owns the primary resolver alone, or the others alone, forges nothing', async () => {
  for (const liars of [[0], [1, 2]]) {
    const order = await THREE.place([THREE.newDomain()]);
    const lying = liars.map((index) => THREE.resolvers[index]!);
    await THREE.publish(order, lying);
    await THREE.complete(order);
    assert.match(await THREE.outcome(order), /^domain_verifing (no_record|perspectives_differ)$/, liars.join());
  }
  // A web server of one's own, which the primary resolver is made to point to, is one view of three.
  const domain = THREE.newDomain();
  const order = await THREE.place([domain], { dcv_method: 'file' });
  THREE.files.set(domain + FILE, page((await THREE.entries(order))[0]?.auth_val ?? ''));
  THREE.dns.set(domain, 'A', ['127.0.0.1']);
  for (const other of THREE.resolvers.slice(1)) other.set(domain, 'A', ['198.51.100.7']);
  await THREE.complete(order);
  assert.equal(await THREE.outcome(order), 'domain_verifing perspectives_differ');
});

test('each question is compared for itself, and every resolver is asked', async () => {
  // One does not see the proof, another forbids by CAA: each time it is one of two others.
  const mixed = await outcomeOf(THREE, [1, 2], (resolver, domain) => {
    if (resolver === THREE.resolvers[1]) resolver.clear(`_dnsauth.${domain}`);
    else resolver.set(domain, 'CAA', [{ flags: 0, tag: 'issue', value: ';' }]);
  });
  assert.equal(mixed, 'issued');
  for (const { queries } of THREE.resolvers) {
    assert.ok(queries.some(({ type }) => type === 'TXT') && queries.some(({ type }) => type === 'CAA'));
  }
  // A reissue whose names are proven asks all of them about CAA too.
  const domain = THREE.newDomain();
  const order = await newOrder(THREE.app, { commonName: domain });
  for (const other of THREE.resolvers.slice(1)) other.set(domain, 'CAA', [{ flags: 0, tag: 'issue', value: ';' }]);
  await reissue(THREE.app, order, body({ common_name: domain }));
  assert.equal(await THREE.outcome(order), 'reissuing perspectives_differ');
  const ours = [{ flags: 0, tag: 'issue', value: ISSUERS[0] }];
  THREE.resolvers[1]!.set(domain, 'CAA', ours);
  await THREE.workerLooks(order);
  assert.equal(await THREE.outcome(order), 'issued');
});

test('what differs is told, with the reason of the one that does not see it', async () => {
  const domain = TWO.newDomain();
  const order = await TWO.place([domain]);
  await TWO.publish(order, [TWO.dns]);
  const { [domain]: seen } = await TWO.check(order);
  assert.deepEqual([seen?.result, seen?.caa.result], ['perspectives_differ', 'ok']);
  assert.match(seen?.message ?? '', new RegExp(`There is no TXT record at _dnsauth.${domain}`));
});
