// Reuse of proofs: how long, for which products, and within which account.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { NOON } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { DAY, FILE, page, startDomainApp } from '../../support/domain-app.ts';
import { body, type PlacedOrder, reissue } from '../../support/orders.ts';
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
const giveUp = ({ id, key }: PlacedOrder) => app.call('PUT', `/openapi/v3/orders/${id}/cancel`, { key });

/** Advances to a time after the proofs; the clock never goes back. */
const moveTo = (since: number, days: number, ms = 0) => app.advance(since + days * DAY + ms - app.now());

rule('dcv 7', 'under public rules serves again for at most 200 days', async () => {
  const [byDns, byFile, private_, short] = [newDomain(), newDomain(), newDomain(), newDomain()];
  const key = await app.newKey();
  const orders = {
    dns: await provenOrder([byDns], {}, { key }),
    file: await provenOrder([byFile], { dcv_method: 'file' }, { key }),
    private: await provenOrder([private_], {}, { key, product: 'tls-private' }),
    short: await provenOrder([short], {}, { key, product: 'short' }),
  };
  const since = app.now();
  moveTo(since, 10);
  assert.equal(await reissued(orders.short, [short]), 'issued');
  moveTo(since, 10, 1);
  assert.equal(await reissued(orders.short, [short]), 'reissuing', 'a product may have its own limit');
  await giveUp(orders.short);

  moveTo(since, 199);
  assert.equal(await reissued(orders.dns, [byDns]), 'issued');
  moveTo(since, 200);
  assert.equal(await reissued(orders.dns, [byDns]), 'issued');
  assert.equal(await reissued(orders.file, [byFile]), 'issued');
  // Reuse does not extend a proof.
  moveTo(since, 200, 1);
  assert.equal(await reissued(orders.dns, [byDns]), 'reissuing');
  assert.equal(await reissued(orders.file, [byFile]), 'reissuing');
  assert.equal(await reissued(orders.private, [private_]), 'issued', 'private trust has its own limit');
  // The same proof, under the rules of the requested product.
  assert.equal(await outcome(await place([private_], {}, { key })), 'domain_verifing');
  assert.equal(await outcome(await place([byDns], {}, { key, product: 'tls-private' })), 'issued');

  // A new proof, by the other method, counts from then on.
  await world.changeMethod(orders.dns, { dcv_method: 'file' });
  await publish(orders.dns);
  await complete(orders.dns);
  assert.equal(await outcome(orders.dns), 'issued');
  moveTo(since, 300);
  assert.equal(await reissued(orders.dns, [byDns]), 'issued');
  moveTo(since, 397, 1);
  assert.equal(await reissued(orders.private, [private_]), 'reissuing');
  assert.ok(app.now() > NOON);
});

test('a proof that expires while another name is pending is required again', async () => {
  const domain = newDomain();
  const [old, added] = [`old.${domain}`, `new.${domain}`];
  const order = await provenOrder([old]);
  const since = app.now();
  moveTo(since, 199);
  assert.equal(await reissued(order, [old, added]), 'reissuing');
  assert.deepEqual(
    (await entries(order)).map(({ verified }) => verified),
    [true, false],
  );
  moveTo(since, 201);
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
  moveTo(since, 199);
  assert.equal(await reissued(order, [wildcard, added], { dcv_method: 'file' }), 'reissuing');
  moveTo(since, 201);
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
