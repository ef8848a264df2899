// Isolation: one order, account or resolver can neither delay nor stop others, nor give them a proof that their product
// does not accept.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Product } from '../../../src/domain/catalog/products.ts';
import { rule } from '../../support/contract.ts';
import { FILE, ISSUERS, page, pendingRowOf, SECOND, startDomainApp } from '../../support/domain-app.ts';
import { newOrder, type PlacedOrder, show } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';

const own = { ...OWN_PRODUCT, csr: 'optional' };
const world = await startDomainApp(
  {
    RESEAL_PRODUCTS_FILE: productsFile(
      { ...own, id: 'persist-only', dcv_methods: ['dns-persist'], dcv_scopes: ['fqdn', 'base_domain'] },
      { ...own, id: 'fqdn-only', dcv_methods: ['dns', 'dns-persist'], dcv_scopes: ['fqdn'] },
    ),
  },
  2,
);
after(() => world[Symbol.asyncDispose]());
const { app, dns, resolvers, web, files, place, publish, complete, changeMethod, entries, outcome, newDomain } = world;
const silentOne = resolvers[2]!;

const MOST_MS = 30 * SECOND;
/** Reached by the worker called here, or by the one that the service runs. */
async function workUntil(isSo: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + MOST_MS; ; await sleep(5)) {
    await app.issuance.proveDomains.proveDue();
    if (await isSo()) return;
    assert.ok(performance.now() < end, 'the condition was not reached');
  }
}

const namesOf = (count: number): string[] => Array.from({ length: count }, newDomain);

test('a silent resolver delays nothing, as long as the others agree', async () => {
  // So many names that waiting for it once per batch would exceed the deadline of the request.
  for (const dcv_method of ['dns', 'dns-persist']) {
    const names = namesOf(24);
    const order = await place(names, { dcv_method });
    await publish(order, [dns, resolvers[1]!]);
    for (const { domain, auth_path } of await entries(order)) {
      silentOne.set(auth_path, 'TXT', 'silence');
      silentOne.set(domain, 'CAA', 'silence');
      for (const one of [dns, resolvers[1]!]) one.set(domain, 'CAA', [{ flags: 0, tag: 'issue', value: ISSUERS[0] }]);
    }
    const { status, body } = await complete(order);
    assert.deepEqual([status, body.data.status], [200, 'issued'], dcv_method);
    const asked = new Set(silentOne.queries.map(({ name, type }) => `${name} ${type}`));
    assert.ok(asked.has(`${names[0]} CAA`) && asked.has(`${names.at(-1)} CAA`), 'it was queried like the others');
  }
  // A silent resolver does not count as agreement: one of the other two does not see the proof.
  const order = await place([newDomain()]);
  await publish(order, [dns]);
  const [{ auth_path } = { auth_path: '' }] = await entries(order);
  silentOne.set(auth_path, 'TXT', 'servfail');
  await complete(order);
  assert.equal(await outcome(order), 'domain_verifing perspectives_differ');
});

test('without the primary resolver nothing is issued, whatever the others say', async () => {
  // In parallel, because each silent case takes the full timeout.
  const cases = [
    ['dns', (domain: string) => dns.set(`_dnsauth.${domain}`, 'TXT', 'silence')],
    ['dns-persist', (domain: string) => dns.set(`_validation-persist.${domain}`, 'TXT', 'silence')],
    ['dns', (domain: string) => dns.set(domain, 'CAA', 'silence')],
  ] as const;
  await Promise.all(
    cases.map(async ([dcv_method, silence], index) => {
      const domain = newDomain();
      const order = await place([domain], { dcv_method });
      await publish(order);
      silence(domain);
      await complete(order);
      assert.equal(await outcome(order), 'domain_verifing dns_failure', `case ${index}`);
      // Or every scheduled check would wait for it again.
      await app.call('PUT', `/openapi/v3/orders/${order.id}/cancel`, { key: order.key });
    }),
  );
});

const LEASE_MS = 10 * SECOND;

test('a certificate that cannot be issued delays no other, is retried with backoff, and is issued in the end', async () => {
  const broken = newDomain();
  const poisoned = await place([broken]);
  // More than are checked at once, each in an account of its own.
  const others: PlacedOrder[] = [];
  for (const domain of namesOf(24)) others.push(await place([domain]));
  for (const order of [poisoned, ...others]) await publish(order);
  const authority = app.issuance.authority as { -readonly [K in 'sign']: (typeof app.issuance.authority)[K] };
  const { sign } = authority;
  authority.sign = async (issuer, hash, bytes) => {
    if (Buffer.from(bytes).includes(broken)) throw new Error('the signer says no');
    return await sign(issuer, hash, bytes);
  };
  const logged = () => app.lines.filter((line) => line.event === 'error' && line.message === 'the signer says no');
  const faults = async () =>
    Number(/^reseal_faults_total\{where="validate"\} (\d+)$/m.exec(await app.app.metrics.text())?.[1] ?? 0);
  const before = await faults();
  const triesAre = (count: number) => async () => (await pendingRowOf(app, poisoned))?.tries === count;
  const isIssued = async (order: PlacedOrder) => (await show(app, order)).status === 'issued';
  const untilDue = async () => app.advance(Math.max(0, (await pendingRowOf(app, poisoned))!.dueAt - app.now()));
  try {
    for (const tries of [1, 2, 3]) {
      await untilDue();
      await workUntil(triesAre(tries));
      const { dueAt } = (await pendingRowOf(app, poisoned))!;
      assert.ok(dueAt - app.now() >= 0.8 * 15 * SECOND * 2 ** (tries - 1), `after ${tries}`);
      assert.equal((await faults()) - before, tries, 'its error is counted once per try');
      assert.ok(logged().length >= 1, 'and logged, though not again within a minute');
      await workUntil(async () => (await Promise.all(others.map(isIssued))).every(Boolean));
      assert.equal((await show(app, poisoned)).status, 'issuing');
      // Once the lease expires, the prepared issuance is voided, and the certificate waits again.
      app.advance(LEASE_MS);
      await app.issuance.sweep();
      assert.equal((await show(app, poisoned)).status, 'domain_verifing');
    }
  } finally {
    authority.sign = sign;
  }
  await untilDue();
  await workUntil(() => isIssued(poisoned));
  assert.equal((await show(app, poisoned)).certificate_id, poisoned.certificateId);
});

test('a proof by a method or scope that a product does not offer does not count for it', async () => {
  const key = await app.newKey();
  const prove = async (names: readonly string[], top: object, product = 'ssl-dv') => {
    const order = await place(names, top, { key, product });
    await publish(order);
    await complete(order);
    assert.equal(await outcome(order), 'issued');
  };
  const verified = async (names: readonly string[], product: string, top: object = {}) => {
    const order = await place(names, top, { key, product });
    return [(await show(app, order)).status, ...(await entries(order)).map((entry) => entry.verified)];
  };
  const [domain, base] = [newDomain(), newDomain()];
  await prove([domain], { dcv_method: 'dns' });
  await prove([base], { dcv_method: 'dns', dcv_scope: 'base_domain' });
  const below = `www.${base}`;
  // Other orders are not affected.
  assert.deepEqual(await verified([domain, base, below, `*.${base}`], 'ssl-dv'), ['issued', true, true, true, true]);
  assert.deepEqual(await verified([domain], 'fqdn-only'), ['issued', true]);

  assert.deepEqual(await verified([domain, base, below], 'persist-only'), ['domain_verifing', false, false, false]);
  const dns_names = [domain, base, below, `*.${base}`];
  assert.deepEqual(await verified(dns_names, 'fqdn-only'), ['domain_verifing', true, false, false, false]);
  // Nor at a later check.
  const order = await place([below], {}, { key, product: 'fqdn-only' });
  await complete(order);
  assert.equal(await outcome(order), 'domain_verifing no_record');
  // A product accepts proofs by its own methods.
  await prove([below], { dcv_method: 'dns', dcv_scope: 'fqdn' }, 'fqdn-only');
  assert.deepEqual(await verified([below], 'fqdn-only'), ['issued', true]);
  // Names vouched for by an operator count for every product.
  const vouched = await newOrder(app, { commonName: newDomain() }, key);
  assert.deepEqual(await verified([(await show(app, vouched)).common_name], 'persist-only'), ['issued', true]);
});

test('an order whose product no longer offers its method says so, and waits', async () => {
  const products = app.issuance.products as Map<string, Product>;
  const asItWas = products.get('ssl-dv')!;
  const domain = newDomain();
  const order = await place([domain], { dcv_method: 'dns' });
  await publish(order);
  products.set('ssl-dv', { ...asItWas, dcvMethods: ['file', 'dns-persist'] });
  try {
    const before = dns.queries.length;
    const { status, body } = await complete(order);
    assert.deepEqual([status, body.data.status], [200, 'domain_verifing']);
    const [entry] = await entries(order);
    assert.deepEqual([entry?.verified, entry?.auth_val, entry?.problem?.result], [false, '', 'unauthorized']);
    assert.match(entry?.problem?.message ?? '', /does not offer the validation method/);
    assert.deepEqual(
      dns.queries.slice(before).filter(({ name }) => name.endsWith(domain)),
      [],
      'nothing is asked in vain',
    );
    const { [domain]: seen } = await world.check(order);
    assert.deepEqual([seen?.result, seen?.dcv_method, seen?.auth_val], ['unauthorized', '', '']);
    // The order can change to another method.
    const changed = await changeMethod(order, { dcv_method: 'dns' });
    assert.deepEqual([changed.status, changed.body.code], [400, 'invalid_dcv_method']);
    assert.equal((await changeMethod(order, { dcv_method: 'dns-persist' })).status, 200);
    await publish(order);
    await complete(order);
    assert.equal(await outcome(order), 'issued');
  } finally {
    products.set('ssl-dv', asItWas);
  }
});

rule('quota 10', 'what waits of others is checked meanwhile, however much of the account is due', async () => {
  const released = Promise.withResolvers<void>();
  const oneEnded = Promise.withResolvers<'a silent one had ended before'>();
  // Three accounts with unresponsive names, each with more than its share.
  for (const key of [await app.newKey(), await app.newKey(), await app.newKey()]) {
    for (const domain of namesOf(20)) {
      await place([domain], { dcv_method: 'file' }, { key });
      for (const one of resolvers) one.set(domain, 'A', ['127.0.0.1']);
      files.set(domain + FILE, (socket) => {
        socket.on('close', () => oneEnded.resolve('a silent one had ended before'));
        void released.promise.then(() => socket.end(page('not yet')));
      });
    }
  }
  // Last in the queue.
  app.advance(1);
  const honest = await place([newDomain()]);
  await publish(honest);
  const before = web.requests.length;
  app.advance(15 * SECOND);
  const running = app.issuance.proveDomains.proveDue();
  await web.received(before + 1);
  const issued = (async () => {
    while ((await show(app, honest)).status !== 'issued') await sleep(10);
    return 'issued';
  })();
  const first = await Promise.race([issued, oneEnded.promise]);
  released.resolve();
  assert.equal(first, 'issued');
  await Promise.all([running, issued]);
});
