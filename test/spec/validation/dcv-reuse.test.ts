// Reuse of proofs: how long, for which products, and within which account.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, test } from 'node:test';
import type { Key } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { DAY, FILE, page, startDomainApp } from '../../support/domain-app.ts';
import { body, type PlacedOrder, reissue, certificate as shownCertificate } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';

const SHORT = { ...OWN_PRODUCT, id: 'short', csr: 'optional', reuse_days: 10, dcv_methods: ['dns', 'file'] };
const world = await startDomainApp({ RESEAL_PRODUCTS_FILE: productsFile(SHORT) });
after(() => world[Symbol.asyncDispose]());
const { app, dns, files, place, publish, complete, entries, outcome, newDomain, workerChecks } = world;

/** Proves a name now, and issues. */
async function provenOrder(names: readonly string[], top: object = {}, wanted = {}): Promise<PlacedOrder> {
  const order = await place(names, top, wanted);
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
  // The record is deleted: from now on the stored proof is reused.
  for (const name of names) dns.clear(`_dnsauth.${name}`);
  files.clear();
  return order;
}

async function reissued(order: PlacedOrder, names: readonly string[], top: object = {}): Promise<string> {
  const [common_name, ...dns_names] = names;
  const { status, text } = await reissue(app, order, body({ common_name, dns_names }, { ...top }));
  assert.equal(status, 200, text);
  return await outcome(order);
}

/** Advances to a time after the proofs; the clock never goes back. */
const moveTo = (since: number, days: number, ms = 0) => app.advance(since + days * DAY + ms - app.now());

const proveOn = (key: Key, name: string, method: string, at: number) =>
  app.app.store.proofs.record(key.accountId, name, method, at);

/** Proofs serve public TLS for so many days now, to the millisecond; other products are not affected. */
async function requireReuse(publicDays: number): Promise<void> {
  const key = await app.newKey();
  for (const method of ['dns', 'file'] as const) {
    const name = newDomain();
    const order = await provenOrder([name], { dcv_method: method }, { key });
    const provenBefore = (days: number, ms = 0) => proveOn(key, name, method, app.now() - days * DAY - ms);
    await provenBefore(publicDays);
    assert.equal(await reissued(order, [name]), 'issued', method);
    // Reuse does not extend a proof.
    await provenBefore(publicDays, 1);
    assert.equal(await reissued(order, [name]), 'reissuing', method);
    // The same proof, under the rules of the requested product: private trust has its own limit, and so may a product.
    for (const [product, days] of Object.entries({ 'ssl-dv': publicDays, 'tls-private': 397, short: 10 })) {
      await provenBefore(days);
      assert.equal(await outcome(await place([name], {}, { key, product })), 'issued', `${product} ${days}`);
      await provenBefore(days, 1);
      assert.match(await outcome(await place([name], {}, { key, product })), /^domain_verifing/, `${product} ${days}`);
    }
    // A new proof counts from then on.
    await provenBefore(0);
    await complete(order);
    assert.equal(await outcome(order), 'issued');
  }
}

/** What is asked for five days before a date, and validated five days after it. */
async function requireNewRules(date: string, reuseDays: number, validityDays: number): Promise<void> {
  app.advance(Date.parse(date) - 5 * DAY - app.now());
  const certificate = { validity_days: 199 };
  const placed = await place([newDomain()], {}, { certificate });
  // Its proof would serve on the day of the reissue, and is too old on the day of the issuance.
  const domain = newDomain();
  const [old, added] = [`old.${domain}`, `new.${domain}`];
  const order = await provenOrder([old]);
  await proveOn(order.key, old, 'dns', app.now() - reuseDays * DAY);
  assert.equal(await reissued(order, [old, added]), 'reissuing');
  const verified = async () => (await entries(order)).map((entry) => entry.verified);
  assert.deepEqual(await verified(), [true, false]);

  app.advance(10 * DAY);
  await publish(placed);
  await complete(placed);
  assert.equal(await outcome(placed), 'issued');
  const { pem } = await shownCertificate(app, placed, placed.certificateId);
  const { validFromDate, validToDate } = new X509Certificate(pem);
  assert.equal(validToDate.getTime() + 1000 - validFromDate.getTime(), validityDays * DAY);

  dns.set(`_dnsauth.${added}`, 'TXT', [(await entries(order))[1]?.auth_val ?? '']);
  await complete(order);
  assert.match(await outcome(order), /^reissuing/);
  assert.deepEqual(await verified(), [false, true], 'the old proof serves no more');
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
}

// In this order: the clock goes forward only.
rule('dcv 24', 'under public rules serves again for at most 200 days', () => requireReuse(200));

rule(
  'dcv 24',
  'for 100 from 2027-03-15 on, and for 10 from 2029-03-15 on, also for what waited over the date',
  async () => {
    await requireNewRules('2027-03-15', 100, 99);
    assert.equal(new Date(app.now()).toISOString(), '2027-03-20T00:00:00.000Z');
    await requireReuse(100);
  },
);

rule('reissue 49', 'and for 46 from 2029-03-15 on, also if it was asked for before', async () => {
  await requireNewRules('2029-03-15', 10, 46);
  assert.equal(new Date(app.now()).toISOString(), '2029-03-20T00:00:00.000Z');
  await requireReuse(10);
});

test('a proof that expires while another name is pending is required again', async () => {
  const domain = newDomain();
  const [old, added] = [`old.${domain}`, `new.${domain}`];
  const order = await provenOrder([old]);
  const since = app.now();
  moveTo(since, 9);
  assert.equal(await reissued(order, [old, added]), 'reissuing');
  assert.deepEqual(
    (await entries(order)).map(({ verified }) => verified),
    [true, false],
  );
  moveTo(since, 11);
  // The scheduled check finds nothing yet.
  await workerChecks(order);
  dns.set(`_dnsauth.${added}`, 'TXT', [(await entries(order))[1]?.auth_val ?? '']);
  await complete(order);
  assert.deepEqual(
    (await entries(order)).map(({ verified, problem }) => [verified, problem?.result]),
    [
      [false, 'no_record'],
      [true, undefined],
    ],
  );
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
});

rule('dcv 5', 'A wildcard name is never proven by `file`', async () => {
  // Its proof by DNS was valid when the reissue began, so that file could prove the rest; it has expired since.
  const domain = newDomain();
  const [wildcard, added] = [`*.${domain}`, `new.${domain}`];
  const order = await provenOrder([wildcard]);
  const since = app.now();
  moveTo(since, 9);
  assert.equal(await reissued(order, [wildcard, added], { dcv_method: 'file' }), 'reissuing');
  moveTo(since, 11);
  await workerChecks(order);
  // Publishes what the order shows, for the wildcard too.
  const values = (await entries(order)).map(({ auth_val }) => auth_val).join('\n');
  for (const host of [domain, added]) {
    dns.set(host, 'A', ['127.0.0.1']);
    files.set(host + FILE, page(values));
  }
  await complete(order);
  assert.doesNotMatch(await outcome(order), /issued/);
  assert.deepEqual(
    (await entries(order)).map(({ domain: name, verified }) => [name, verified]),
    [
      [wildcard, false],
      [added, true],
    ],
  );
  // By DNS it can be proven.
  await world.changeMethod(order, { dcv_method: 'dns' });
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
});

rule('dcv 8', 'A name proven for one account does not serve another account', async () => {
  const domain = newDomain();
  const [mine, theirs] = [await app.newKey(), await app.newKey()];
  await provenOrder([`www.${domain}`, `www.below.${domain}`], {}, { key: mine });
  await provenOrder([`www.base.${domain}`], { dcv_scope: 'base_domain' }, { key: mine });
  for (const name of [`www.${domain}`, `www.base.${domain}`, `any.${domain}`, domain, `*.${domain}`]) {
    assert.equal(await outcome(await place([name], {}, { key: mine })), 'issued', name);
    assert.equal(await outcome(await place([name], {}, { key: theirs })), 'domain_verifing', name);
  }
  // Another API key of the same account.
  const another = await app.anotherKey(mine.accountId, 'standard');
  assert.equal(await outcome(await place([`www.${domain}`], {}, { key: another })), 'issued');
});
