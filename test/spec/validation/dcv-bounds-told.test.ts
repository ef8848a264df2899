// What the applicant is shown in edge cases of domain validation: stored proofs, unprovable names, expired records, names
// too long for our label, and an order placed concurrently.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { DAY, ISSUERS, SECOND, startDomainApp } from '../../support/domain-app.ts';
import { csrFor, type PlacedOrder } from '../../support/orders.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, dns, place, publish, complete, changeMethod, check, entries, outcome, newDomain } = world;

const cancel = ({ id, key }: PlacedOrder) => app.call('PUT', `/openapi/v3/orders/${id}/cancel`, { key });
const checkAnswer = ({ id, key }: PlacedOrder) => app.call('GET', `/openapi/v3/orders/${id}/dcv-check`, { key });

/** Proven once, then the record is deleted. */
async function proveOnce(name: string, key: PlacedOrder['key']): Promise<void> {
  const order = await place([name], { dcv_method: 'dns' }, { key });
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
  for (const { auth_path } of await entries(order)) dns.clear(auth_path);
  dns.clear(`_dnsauth.${name.replace('*.', '')}`);
}

test('a stored proof is ok, with nothing to publish; a persistent record is looked up each time', async () => {
  const key = await app.newKey();
  const [kept, other] = [newDomain(), newDomain()];
  await proveOnce(kept, key);
  for (const dcv_method of ['dns', 'file']) {
    const order = await place([kept, other], { dcv_method }, { key });
    const { [kept]: seen, [other]: missing } = await check(order);
    assert.deepEqual(
      [seen?.result, seen?.message, seen?.auth_path, seen?.auth_val, seen?.caa.result],
      ['ok', '', '', '', 'ok'],
      dcv_method,
    );
    assert.notEqual(missing?.result, 'ok');
    assert.match(missing?.auth_val ?? '', /^[0-9a-f]{64}$/);
  }
  const order = await place([kept, other], { dcv_method: 'dns-persist' }, { key });
  const { [kept]: seen } = await check(order);
  assert.deepEqual([seen?.result, seen?.auth_path], ['no_record', `_validation-persist.${kept}`]);
  // CAA is checked against the method of the stored proof, if any, not against that of the order.
  const byFile = await place([kept, other], { dcv_method: 'file' }, { key });
  const onlyDns = [{ flags: 0, tag: 'issue', value: `${ISSUERS[0]}; validationmethods=ca-dns` }];
  for (const name of [kept, other]) dns.set(name, 'CAA', onlyDns);
  const results = Object.entries(await check(byFile)).map(([name, { caa }]) => [name, caa.result]);
  assert.deepEqual(Object.fromEntries(results), { [kept]: 'ok', [other]: 'caa_forbidden' });
});

test('a wildcard of an order by file is listed, and reported as not provable once its proof has expired', async () => {
  const key = await app.newKey();
  const domain = newDomain();
  const wildcard = `*.${domain}`;
  await proveOnce(wildcard, key);
  await app.app.store.proofs.record(key.accountId, wildcard, 'dns', app.now() - 190 * DAY);
  const order = await place([domain, wildcard], { dcv_method: 'file' }, { key });
  const before = await check(order);
  assert.deepEqual(Object.keys(before).sort(), [wildcard, domain].sort());
  assert.deepEqual([before[wildcard]?.result, before[wildcard]?.auth_val], ['ok', '']);
  app.advance(11 * DAY);
  const { [wildcard]: over } = await check(order);
  assert.deepEqual([over?.result, over?.dcv_method, over?.auth_val], ['unauthorized', '', '']);
  assert.match(over?.message ?? '', /A file never proves a wildcard/);
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'domain_verifing unauthorized');
  const [byFile, unproven] = await entries(order);
  assert.deepEqual([byFile?.verified, unproven?.verified], [true, false]);
});

test('an order that has ended is not checked', async () => {
  for (const dcv_method of ['dns', 'file', 'dns-persist']) {
    const domain = newDomain();
    const order = await place([domain], { dcv_method });
    await cancel(order);
    const before = dns.queries.length;
    const { status, body } = await checkAnswer(order);
    assert.deepEqual([status, body.code, body.details], [409, 'order_state_conflict', { status: 'canceled' }]);
    assert.ok(!dns.queries.slice(before).some(({ name }) => name.endsWith(domain)));
  }
});

test('of two orders placed concurrently with one alternative id, the second is refused with the id of the first', async () => {
  const key = await app.newKey();
  // Both find the alternative id free before either is written.
  const orders = app.app.store.orders as { -readonly [K in 'findByAlternative']: typeof finding };
  const { findByAlternative: finding } = app.app.store.orders;
  const bothAsked = Promise.withResolvers<void>();
  let asked = 0;
  orders.findByAlternative = async (...which) => {
    const found = await finding(...which);
    asked += 1;
    if (asked === 2) bothAsked.resolve();
    await bothAsked.promise;
    return found;
  };
  const json = () => ({
    alternative_order_id: 'same',
    dcv_method: 'dns',
    certificate: { csr: csrFor(), common_name: newDomain(), sign_hash: 'sha256' },
  });
  const post = () => app.call('POST', '/openapi/v3/orders/ssl-dv', { key, json: json() });
  try {
    const [winner, loser] = (await Promise.all([post(), post()])).sort((one, other) => one.status - other.status);
    assert.equal(winner?.status, 200, winner?.text);
    assert.deepEqual(
      [loser?.status, loser?.body.code, loser?.body.details],
      [409, 'duplicate_alternative_order_id', { order_id: winner?.body.data.id }],
    );
  } finally {
    orders.findByAlternative = finding;
  }
});

test('a record whose persist_until has passed is shown as expired, until a later one is sent', async () => {
  const until = Math.floor(app.now() / 1000) + 60;
  const order = await place([newDomain()], { dcv_method: 'dns-persist', persist_until: until });
  const shown = async () => {
    const [entry] = await entries(order);
    return [entry?.auth_val.endsWith(`; persistUntil=${until}`), entry?.verified, entry?.problem?.result];
  };
  assert.deepEqual(await shown(), [true, false, 'no_record']);
  app.advance(61 * SECOND);
  assert.deepEqual(await shown(), [true, false, 'unauthorized']);
  const [{ problem } = { problem: null }] = await entries(order);
  assert.match(problem?.message ?? '', /has expired. Send a later persist_until/);
  assert.equal(problem?.checked_at, null, 'no check was needed');
  // Sending only the method keeps persist_until, so the answer still shows the expiry.
  const { body } = await changeMethod(order, { dcv_method: 'dns-persist' });
  assert.equal(body.data.dcv_val[0].problem.result, 'unauthorized');
  // A record published all the same is reported by the check.
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'domain_verifing unauthorized');
  await changeMethod(order, { dcv_method: 'dns-persist', persist_until: 0 });
  assert.equal((await entries(order))[0]?.problem, null);
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
});

test('a name too long to carry our label is proven by a record above it', async () => {
  const base = newDomain();
  const label = 'a'.repeat(60);
  const start = `${label}.${label}.${label}.`;
  const long = `${start}${'b'.repeat(238 - start.length - base.length - 1)}.${base}`;
  assert.equal(long.length, 238);
  const order = await place([base, long], {
    ...{ dcv_method: 'dns-persist', dcv_scope: 'base_domain', persist_policy: 'wildcard' },
  });
  await complete(order);
  assert.equal(await outcome(order), 'domain_verifing no_record', 'reported as missing, not as a DNS failure');
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
  // Records of parents must still have policy=wildcard.
  const narrow = await place([base, long], { dcv_method: 'dns-persist', dcv_scope: 'base_domain' });
  await publish(narrow);
  await complete(narrow);
  assert.equal(await outcome(narrow), 'domain_verifing unauthorized');
});
