// Persistent records: expiry, records of parent domains, several records at one name, a new lookup before every issuance,
// and the read-only check.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import type { TestApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { ISSUERS, SECOND, startDomainApp } from '../../support/domain-app.ts';
import { body, certificate, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, dns, place, publish, complete, changeMethod, check, entries, outcome, newDomain, workerChecks } = world;

const PERSIST = { dcv_method: 'dns-persist' };
/** The order's own shortfall is shown first; here only the records in DNS matter. */
const WIDE = { ...PERSIST, persist_policy: 'wildcard' };
const [OURS] = ISSUERS;
const at = (domain: string) => `_validation-persist.${domain}`;
const uriOf = ({ key }: PlacedOrder) => `http://127.0.0.1:0/accounts/${key.accountId}`;
const recordFor = (order: PlacedOrder, more = '') => `${OURS}; accounturi=${uriOf(order)}${more}`;
const inSeconds = () => Math.floor(app.now() / SECOND);

async function outcomeAfter(order: PlacedOrder): Promise<string> {
  const { status, text } = await complete(order);
  assert.equal(status, 200, text);
  return (await outcome(order)).replace('domain_verifing ', '');
}
/** Records at each name, beginning with the registrable domain, and the outcome of an order for the last name. */
type Answers = Parameters<typeof dns.set<'TXT'>>[2];
async function climb(below: string, levels: (record: (more?: string) => string) => Record<string, Answers>) {
  const domain = newDomain();
  const order = await place([below + domain], WIDE);
  for (const [prefix, answer] of Object.entries(levels((more) => recordFor(order, more)))) {
    dns.set(at(prefix + domain), 'TXT', answer);
  }
  return await outcomeAfter(order);
}

rule('persist 9', 'A record is valid up to and including the second its `persistUntil` names', async () => {
  const domain = newDomain();
  // In the middle of a second, to show that the whole second counts.
  app.advance(SECOND - (app.now() % SECOND) + 1);
  const order = await place([domain], PERSIST);
  const until = inSeconds() + 100;
  dns.set(at(domain), 'TXT', [recordFor(order, `; persistUntil=${until}`)]);
  assert.equal(await outcomeAfter(order), 'issued');
  const again = async () => {
    await reissue(app, order, body({ common_name: domain }));
    return await outcome(order);
  };
  app.advance(100 * SECOND + 998);
  assert.equal(inSeconds(), until);
  assert.equal(await again(), 'issued', 'in its last millisecond');
  app.advance(1);
  assert.equal(await again(), 'reissuing unauthorized');
  assert.match((await entries(order))[0]?.problem?.message ?? '', new RegExp(`expired .persistUntil=${until}.`));
  // A later expiry is found by a scheduled check.
  dns.set(at(domain), 'TXT', [recordFor(order, `; persistUntil=${until + 3_600}`)]);
  await workerChecks(order);
  assert.equal(await outcome(order), 'issued');
});

rule('persist 9', 'and 0 or less there is expired', async () => {
  for (const until of ['0', '-1', '-99999999999', '1', String(inSeconds() - 1)]) {
    assert.equal(await climb('', (record) => ({ '': [record(`; persistUntil=${until}`)] })), 'unauthorized', until);
  }
  // An order with persist_until cleared shows no persistUntil, which means no expiry.
  const domain = newDomain();
  const order = await place([domain], { ...PERSIST, persist_until: inSeconds() + 5 });
  await changeMethod(order, { ...PERSIST, persist_until: 0 });
  await publish(order);
  app.advance(3_600 * SECOND);
  await workerChecks(order);
  assert.equal(await outcome(order), 'issued');
});

rule('persist 11', 'For a name without a record of its own, those of its ancestors', async () => {
  const wide = '; policy=wildcard';
  const cases: readonly (readonly [string, string, Parameters<typeof climb>[1], string])[] = [
    ['nothing anywhere', 'a.b.', () => ({}), 'no_record'],
    ['the registrable domain', 'a.b.', (record) => ({ '': [record(wide)] }), 'issued'],
    ['the one between', 'a.b.', (record) => ({ 'b.': [record(wide)] }), 'issued'],
    ['without the policy', 'a.b.', (record) => ({ '': [record()] }), 'unauthorized'],
    ['of another policy', 'a.b.', (record) => ({ 'b.': [record('; policy=fqdn')] }), 'unauthorized'],
    ['a near one without, a far one with', 'a.b.', (record) => ({ 'b.': [record()], '': [record(wide)] }), 'issued'],
    ['a sibling', 'a.b.', (record) => ({ 'c.': [record(wide)], 'a.': [record(wide)] }), 'no_record'],
    ['a name below', 'b.', (record) => ({ 'a.b.': [record(wide)] }), 'no_record'],
    // A record of ours at the name is decisive, whatever the parents have.
    ['its own', 'a.', (record) => ({ 'a.': [record()], '': 'servfail' }), 'issued'],
    ['expired', 'a.', (record) => ({ 'a.': [record('; persistUntil=1')], '': [record(wide)] }), 'unauthorized'],
    ['malformed', 'a.', (record) => ({ 'a.': [record(';')], '': [record(wide)] }), 'malformed'],
    ['of another', 'a.', (record) => ({ 'a.': [record('x')], '': [record(wide)] }), 'unauthorized'],
    ['too narrow for it', '*.a.', (record) => ({ 'a.': [record()], '': [record(wide)] }), 'unauthorized'],
    // Records of other CAs are not.
    ['other issuers', 'a.', (record) => ({ 'a.': ['other-ca.example; x', 'v=1'], '': [record(wide)] }), 'issued'],
    // A failed lookup might have had a record.
    ['no answer', 'a.b.', (record) => ({ 'a.b.': 'servfail', '': [record(wide)] }), 'dns_failure'],
    ['none between', 'a.b.', (record) => ({ 'b.': 'refused', '': [record(wide)] }), 'dns_failure'],
    ['none beyond', 'a.b.', (record) => ({ 'b.': [record(wide)], '': 'servfail' }), 'issued'],
  ];
  for (const [what, below, levels, expected] of cases) assert.equal(await climb(below, levels), expected, what);
});

rule('persist 11', 'up to the registrable domain are asked, and count only with `policy=wildcard`', async () => {
  // A public suffix is shared by many registrants, and is not looked up.
  const suffixes: Record<string, string> = { 'co.uk': '.co.uk', uk: '.co.uk', com: '.com', 'github.io': '.github.io' };
  for (const [suffix, ending] of Object.entries(suffixes)) {
    const name = `www.${newDomain().slice(0, -4)}${ending}`;
    const order = await place([name], PERSIST);
    dns.set(at(suffix), 'TXT', [recordFor(order, '; policy=wildcard')]);
    assert.equal(await outcomeAfter(order), 'no_record', suffix);
    assert.ok(!dns.queries.some((query) => query.name === at(suffix)), suffix);
    dns.clear(at(suffix));
  }
  // A name without a registrable domain, as private trust certifies, only counts for itself.
  const inside = await place(['db.corp.internal'], PERSIST, { product: 'tls-private' });
  dns.set(at('corp.internal'), 'TXT', [recordFor(inside, '; policy=wildcard')]);
  assert.equal(await outcomeAfter(inside), 'no_record');
  dns.set(at('db.corp.internal'), 'TXT', [recordFor(inside)]);
  assert.equal(await outcomeAfter(inside), 'issued');
});

rule('persist 12', 'One record must satisfy everything; parameters of several records are never combined', async () => {
  const past = '; persistUntil=1';
  const other = 'x';
  const wide = '; policy=wildcard';
  const cases: readonly (readonly [string, Parameters<typeof climb>[1], string])[] = [
    ['', (record) => ({ '': [record(past), record(other)] }), 'unauthorized'],
    ['*.', (record) => ({ '': [record(), record(other + wide)] }), 'unauthorized'],
    ['*.', (record) => ({ '': [record(), record(past + wide)] }), 'unauthorized'],
    ['*.', (record) => ({ '': [record(), `${OURS}; policy=wildcard`] }), 'malformed'],
    ['', (record) => ({ '': [`${OURS}`, record().replace(`${OURS}; `, '')] }), 'malformed'],
    ['a.', (record) => ({ 'a.': [record(past)], '': [record(wide)] }), 'unauthorized'],
    ['a.b.', (record) => ({ 'b.': [record()], '': [record(past + wide)] }), 'unauthorized'],
    // One complete record is enough, whatever is beside it and in any order.
    ['*.', (record) => ({ '': [record(past), record(other), record(), record(wide)] }), 'issued'],
    ['*.', (record) => ({ '': [record(wide), record(past), record(';')] }), 'issued'],
  ];
  for (const [below, levels, expected] of cases) {
    assert.equal(await climb(below, levels), expected, `${below} ${JSON.stringify(levels((more = '') => more))}`);
  }
});

rule('persist 15', 'The record is looked up again at every issuance; no earlier result is reused', async () => {
  const domain = newDomain();
  const first = await place([domain], PERSIST);
  await publish(first);
  assert.equal(await outcomeAfter(first), 'issued');
  const { key } = first;
  const asked = () => dns.queries.filter(({ name }) => name === at(domain)).length;
  // Issued at once while the record exists: a reissue, and another order of the account.
  for (let count = 0; count < 3; count += 1) {
    const before = asked();
    await reissue(app, first, body({ common_name: domain }));
    assert.equal(await outcome(first), 'issued');
    assert.ok(asked() > before);
  }
  const second = await place([domain], PERSIST, { key });
  assert.equal(await outcome(second), 'issued');
  // Deleting the record withdraws the authorization immediately.
  dns.clear(at(domain));
  const { body: answer } = await reissue(app, first, body({ common_name: domain }));
  assert.equal(await outcome(first), 'reissuing no_record');
  assert.equal(await outcome(await place([domain], PERSIST, { key })), 'domain_verifing no_record');
  // It leaves no stored proof.
  assert.equal(await outcome(await place([domain], { dcv_method: 'dns' }, { key })), 'domain_verifing');
  dns.set(at(domain), 'TXT', [recordFor(first)]);
  await workerChecks(first);
  assert.equal(await outcome(first), 'issued');
  assert.equal((await certificate(app, first, answer.data.certificate.id)).status, 'issued');
});

/** All stored state, except for the rate limits. */
function everything({ folder }: TestApp): unknown {
  const db = new DatabaseSync(join(folder, 'reseal.db'), { readOnly: true });
  const tables = db.prepare(`select name from sqlite_master where type = 'table' order by 1`).all();
  const names = tables.map(({ name }) => String(name)).filter((name) => !['rate_limit', 'credential'].includes(name));
  assert.ok(names.includes('waiting_certificate') && names.includes('audit'), names.join());
  const rows = names.map((name) => [name, db.prepare(`select * from "${name}"`).all()]);
  db.close();
  return rows;
}

rule('persist 17', 'A read-only check says what DNS answers for the record now', async () => {
  // In an app of its own, so that nothing else is due.
  await using own = await startDomainApp();
  const domain = newDomain();
  const [a, b, c, d, e] = ['a', 'b', 'c', 'd', 'e'].map((label) => `${label}.${domain}`) as [string, ...string[]];
  const order = await own.place([a, b!, c!, d!, e!], PERSIST);
  own.dns.set(at(a), 'TXT', [recordFor(order)]);
  own.dns.set(at(c!), 'TXT', [recordFor(order, '; persistUntil=soon')]);
  own.dns.set(at(d!), 'TXT', [recordFor(order, 'x')]);
  own.dns.set(at(e!), 'TXT', 'servfail');
  const before = everything(own.app);
  const checks = await own.check(order);
  assert.deepEqual(
    Object.entries(checks).map(([name, { result, caa }]) => [name, result, caa.result]),
    [
      [a, 'ok', 'ok'],
      [b, 'no_record', 'ok'],
      [c, 'malformed', 'ok'],
      [d, 'unauthorized', 'ok'],
      [e, 'dns_failure', 'ok'],
    ],
  );
  for (const [name, { auth_path, auth_val, dcv_method, message, result }] of Object.entries(checks)) {
    assert.deepEqual([auth_path, auth_val, dcv_method], [at(name), recordFor(order), 'dns-persist']);
    assert.equal(message === '', result === 'ok', 'every failure has a message');
  }
  assert.deepEqual(everything(own.app), before, 'it changes nothing');
  // Not even if all checks pass: the order waits for dcv-completed or its next scheduled check.
  await own.publish(order);
  assert.ok(Object.values(await own.check(order)).every(({ result }) => result === 'ok'));
  assert.deepEqual(everything(own.app), before);
  assert.equal((await show(own.app, order)).status, 'domain_verifing');
});

rule(
  'persist 17',
  'tells apart no record, a malformed one, one that does not authorize, and a DNS failure',
  async () => {
    // Issued orders too, for any credential that may read; CAA is reported separately.
    const domain = newDomain();
    const order = await place([domain], PERSIST);
    await publish(order);
    assert.equal(await outcomeAfter(order), 'issued');
    const now = async () => {
      const { result, caa } = (await check(order))[domain]!;
      return [result, caa.result];
    };
    assert.deepEqual(await now(), ['ok', 'ok']);
    dns.set(domain, 'CAA', [{ flags: 0, tag: 'issue', value: ';' }]);
    dns.clear(at(domain));
    assert.deepEqual(await now(), ['no_record', 'caa_forbidden']);
    dns.set(domain, 'CAA', 'servfail');
    dns.set(at(domain), 'TXT', [`${OURS}; policy`]);
    assert.deepEqual(await now(), ['malformed', 'dns_failure']);
    const path = `/openapi/v3/orders/${order.id}/dcv-check`;
    const chinese = await app.call('GET', path, { key: order.key, headers: { 'accept-language': 'zh-CN' } });
    assert.match(chinese.body.data.checks[0].message, /TXT 记录：.*参数须写作/);
    const stranger = await app.call('GET', path, { key: await app.newKey() });
    assert.deepEqual([stranger.status, stranger.body.code], [404, 'order_not_found']);
    // Without a persistent record there is nothing to check.
    const other = await newOrder(app);
    const { status, body: answer } = await app.call('GET', `/openapi/v3/orders/${other.id}/dcv-check`, {
      key: other.key,
    });
    assert.deepEqual([status, answer.code], [409, 'order_state_conflict']);
  },
);
