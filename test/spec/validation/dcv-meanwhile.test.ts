// Races between a check and changes of its order. The web server holds its answer back until the test has made the change,
// so that each race is deterministic.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { FILE, page, pendingRowOf, SECOND, startDomainApp } from '../../support/domain-app.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, dns, files, place, complete, changeMethod, entries, outcome, newDomain } = world;

const BY_FILE = { dcv_method: 'file' };
const cancel = ({ id, key }: PlacedOrder) => app.call('PUT', `/openapi/v3/orders/${id}/cancel`, { key });
const actionsOf = async ({ key, id }: PlacedOrder) =>
  (await app.app.store.audit.listOf(key.accountId, { limit: 100 }))
    .filter(({ subject }) => subject === id)
    .map(({ action }) => action);

/** Starts a check of an order whose records are all published; the file of `name` is served only after `meanwhile`. */
async function whileChecking(
  order: PlacedOrder,
  name: string,
  meanwhile: () => Promise<unknown>,
  missing = '',
): Promise<void> {
  const asked = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  for (const { domain, auth_val } of await entries(order)) {
    dns.set(domain, 'A', ['127.0.0.1']);
    if (auth_val !== '' && domain !== missing) files.set(domain + FILE, page(auth_val));
  }
  const held = files.get(name + FILE);
  assert.ok(typeof held === 'string');
  files.set(name + FILE, (socket) => {
    asked.resolve();
    void done.promise.then(() => socket.end(held));
  });
  const checking = complete(order);
  await asked.promise;
  await meanwhile();
  done.resolve();
  const { status, text } = await checking;
  assert.equal(status, 200, text);
}

test('an order that is canceled meanwhile gets no certificate', async () => {
  const domain = newDomain();
  const order = await place([domain], BY_FILE);
  await whileChecking(order, domain, async () => assert.equal((await cancel(order)).status, 200));
  assert.equal((await show(app, order)).status, 'canceled');
  assert.equal((await certificate(app, order, order.certificateId)).status, 'canceled');
  assert.deepEqual(await actionsOf(order), ['order:placed', 'order:canceled']);
});

test('a reissue that replaced the one being checked still waits for its own names', async () => {
  const [domain, first, second] = [newDomain(), newDomain(), newDomain()];
  const order = await newOrder(app, { commonName: domain });
  const ask = (name: string) => reissue(app, order, body({ common_name: domain, dns_names: [name] }, BY_FILE));
  const before = (await ask(first)).body.data.certificate.id;
  let pending = '';
  await whileChecking(order, first, async () => {
    await cancel(order);
    pending = (await ask(second)).body.data.certificate.id;
  });
  const { status, certificate_id, pending_certificate_id } = await show(app, order);
  assert.deepEqual([status, certificate_id, pending_certificate_id], ['reissuing', order.certificateId, pending]);
  assert.equal((await certificate(app, order, before)).status, 'canceled');
  assert.equal((await pendingRowOf(app, order))?.tries, 0, 'this one was never checked');
  // The proof counts all the same: the name is proven.
  await cancel(order);
  await ask(first);
  assert.equal(await outcome(order), 'issued');
});

test('a key that becomes known as compromised meanwhile is not certified', async () => {
  const domain = newDomain();
  const order = await place([domain], BY_FILE, { certificate: { csr: csrFor('p384') } });
  const { publicKey } = (await app.app.store.certificates.find(order.key.accountId, order.certificateId))!;
  await whileChecking(order, domain, () => app.app.store.blockedKeys.add(publicKey.fingerprint, 'leaked', app.now()));
  assert.deepEqual(
    [(await show(app, order)).status, (await certificate(app, order, order.certificateId)).status],
    ['rejected', 'canceled'],
  );
});

test('two concurrent checks issue one certificate', async () => {
  const domain = newDomain();
  const order = await place([domain], BY_FILE);
  await whileChecking(order, domain, async () => {
    // The second check is not delayed, and finishes first.
    const { auth_val } = (await entries(order))[0]!;
    files.set(domain + FILE, page(auth_val));
    assert.equal((await complete(order)).body.data.status, 'issued');
  });
  assert.equal(await outcome(order), 'issued');
  assert.deepEqual(
    (await actionsOf(order)).filter((action) => action === 'certificate:issued'),
    ['certificate:issued'],
  );
});

test('results of the old method are not shown for the new one', async () => {
  const [domain, missing] = [newDomain(), newDomain()];
  const order = await place([domain, missing], BY_FILE);
  const change = async () => assert.equal((await changeMethod(order, { dcv_method: 'dns' })).status, 200);
  await whileChecking(order, domain, change, missing);
  const [proven, other] = await entries(order);
  assert.deepEqual([proven?.verified, other?.verified, other?.dcv_method], [true, false, 'dns']);
  assert.equal(other?.problem, null, 'its record was not checked yet');
  assert.equal((await pendingRowOf(app, order))?.tries, 0);
});

test('a stopping service aborts its checks and starts no more', async () => {
  await using own = await startDomainApp();
  const MANY = 24;
  for (let count = 0; count < MANY; count += 1) {
    const domain = own.newDomain();
    await own.place([domain], BY_FILE);
    own.dns.set(domain, 'A', ['127.0.0.1']);
    // No server answers: a stop that waited would wait for every check.
    own.files.set(domain + FILE, () => {});
  }
  own.app.advance(15 * SECOND);
  // The service starts checking them, and waits for the first answers.
  await own.web.received(1);
  await own.app.stop();
  assert.ok(own.web.requests.length < MANY, `${own.web.requests.length} of ${MANY} were fetched`);
});
