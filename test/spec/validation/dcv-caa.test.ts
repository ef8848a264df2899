// CAA over real DNS: which records decide, what they permit, and that every name is checked before every issuance.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { RecordValues } from '../../../src/sandbox/dns-message.ts';
import { rule } from '../../support/contract.ts';
import { ISSUERS, startDomainApp } from '../../support/domain-app.ts';
import { body, certificate, newOrder, reissue, show } from '../../support/orders.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, dns, place, publish, complete, entries, outcome, newDomain, workerChecks } = world;

type Caa = RecordValues['CAA'];
const record = (tag: string, value: string, flags = 0): Caa => ({ flags, tag, value });
const issue = (value: string) => record('issue', value);
const wild = (value: string) => record('issuewild', value);
const [OURS, ALSO_OURS] = ISSUERS;
const THEIRS = 'other-ca.example';

/** Control is proven, so that only CAA decides. */
async function outcomeOf(names: readonly string[], top: object = {}): Promise<string> {
  const order = await place(names, top);
  await publish(order);
  const { status, text } = await complete(order);
  assert.equal(status, 200, text);
  return (await outcome(order)).replace('domain_verifing ', '');
}
/** The outcome for a new name with these records. */
async function outcomeWith(records: readonly Caa[], below = ''): Promise<string> {
  const domain = newDomain();
  dns.set(domain, 'CAA', records);
  return await outcomeOf([below + domain]);
}

rule('dcv 9', 'a policy that leaves our issuer out stops the issuance', async () => {
  const cases: readonly (readonly [records: readonly Caa[], expected: 'issued' | 'caa_forbidden'])[] = [
    [[issue(OURS)], 'issued'],
    [[issue(ALSO_OURS)], 'issued'],
    [[issue('CA.Example.NET')], 'issued'],
    [[record('ISSUE', ` ${OURS} ; policy=ev`)], 'issued'],
    [[issue(THEIRS), issue(OURS)], 'issued'],
    [[record('iodef', 'mailto:security@example.com')], 'issued'],
    [[record('issuemail', THEIRS), record('contactemail', 'a@example.com')], 'issued'],
    [[issue(OURS), record('issue', THEIRS, 128)], 'issued'],
    [[record('issue', OURS, 128)], 'issued'],
    [[issue(THEIRS)], 'caa_forbidden'],
    [[issue(THEIRS), record('iodef', 'mailto:security@example.com')], 'caa_forbidden'],
    [[issue(';')], 'caa_forbidden'],
    [[issue(`${OURS}.`)], 'caa_forbidden'],
    [[issue(`sub.${OURS}`)], 'caa_forbidden'],
    [[issue(OURS.slice(OURS.indexOf('.') + 1))], 'caa_forbidden'],
    [[issue(`${OURS} ${THEIRS}`)], 'caa_forbidden'],
    [[issue(`${OURS}, ${THEIRS}`)], 'caa_forbidden'],
    [[issue(`"${OURS}"`)], 'caa_forbidden'],
    [[issue(`${OURS}; nonsense`)], 'caa_forbidden'],
    // issuewild applies to wildcards only.
    [[wild(THEIRS)], 'issued'],
  ];
  for (const [records, expected] of cases) assert.equal(await outcomeWith(records), expected, JSON.stringify(records));
});

rule('dcv 9', 'climbing from the name towards the root, with `issuewild` before `issue` for wildcards', async () => {
  assert.equal(await outcomeWith([issue(THEIRS)], 'www.'), 'caa_forbidden', 'the parent decides');
  assert.equal(await outcomeWith([issue(THEIRS)], 'a.b.c.'), 'caa_forbidden');
  const nearest = async (near: readonly Caa[], far: readonly Caa[]) => {
    const domain = newDomain();
    dns.set(`b.${domain}`, 'CAA', near);
    dns.set(domain, 'CAA', far);
    return await outcomeOf([`a.b.${domain}`]);
  };
  assert.equal(await nearest([issue(OURS)], [issue(THEIRS)]), 'issued', 'the nearest decides alone');
  assert.equal(await nearest([issue(THEIRS)], [issue(OURS)]), 'caa_forbidden');
  assert.equal(await nearest([record('iodef', 'mailto:a@example.com')], [issue(';')]), 'issued');
  // Lookups include the public suffix, but no sibling of the name.
  dns.set('org.uk', 'CAA', [issue(';')]);
  const charity = `${newDomain().slice(0, -4)}.org.uk`;
  assert.equal(await outcomeOf([`www.${charity}`]), 'caa_forbidden');
  dns.set(charity, 'CAA', [issue(OURS)]);
  dns.set(`mail.${charity}`, 'CAA', [issue(';')]);
  assert.equal(await outcomeOf([`www.${charity}`]), 'issued');
  assert.ok(dns.queries.some(({ name, type }) => name === 'uk' && type === 'CAA'));
  assert.ok(!dns.queries.some(({ name, type }) => name === '' && type === 'CAA'));

  const wildcards: readonly (readonly [records: readonly Caa[], plain: string, wildcard: string])[] = [
    [[issue(OURS), wild(THEIRS)], 'issued', 'caa_forbidden'],
    [[issue(THEIRS), wild(OURS)], 'caa_forbidden', 'issued'],
    [[issue(OURS)], 'issued', 'issued'],
    [[issue(THEIRS)], 'caa_forbidden', 'caa_forbidden'],
    [[wild(';')], 'issued', 'caa_forbidden'],
    [[issue(OURS), wild(THEIRS), record('ISSUEWILD', OURS)], 'issued', 'issued'],
  ];
  for (const [records, plain, wildcard] of wildcards) {
    assert.equal(await outcomeWith(records), plain, JSON.stringify(records));
    assert.equal(await outcomeWith(records, '*.'), wildcard, `wildcard ${JSON.stringify(records)}`);
    assert.equal(await outcomeWith(records, '*.a.b.'), wildcard, `wildcard far below ${JSON.stringify(records)}`);
  }
});

test('an alias has the records of its target, and otherwise those above itself', async () => {
  const aliased = async (set: (domain: string, target: string) => void) => {
    const [domain, target] = [newDomain(), newDomain()];
    dns.set(`www.${domain}`, 'CNAME', [`www.${target}`]);
    dns.set(`www.${target}`, 'A', ['192.0.2.1']);
    set(domain, target);
    return await outcomeOf([`www.${domain}`]);
  };
  assert.equal(await aliased((_, target) => dns.set(`www.${target}`, 'CAA', [issue(THEIRS)])), 'caa_forbidden');
  assert.equal(await aliased((_, target) => dns.set(`www.${target}`, 'CAA', [issue(OURS)])), 'issued');
  assert.equal(await aliased((_, target) => dns.set(target, 'CAA', [issue(THEIRS)])), 'issued', 'not above the target');
  assert.equal(await aliased((domain) => dns.set(domain, 'CAA', [issue(THEIRS)])), 'caa_forbidden');
  assert.equal(await aliased((_, target) => dns.clear(`www.${target}`)), 'issued', 'an alias of nothing');
});

test('a record may name accounts and methods, and then it permits those only', async () => {
  const withParameters = async (parameters: (accountUri: string) => string, method = 'dns') => {
    const domain = newDomain();
    const order = await place([domain], { dcv_method: method });
    const { accountId } = order.key;
    const accountUri = `http://127.0.0.1:0/accounts/${accountId}`;
    dns.set(domain, 'CAA', [issue(`${OURS}; ${parameters(accountUri)}`)]);
    await publish(order);
    await complete(order);
    return (await outcome(order)).replace('domain_verifing ', '');
  };
  assert.equal(await withParameters((uri) => `accounturi=${uri}`), 'issued');
  assert.equal(await withParameters((uri) => `accounturi=${uri}0`), 'caa_forbidden');
  assert.equal(await withParameters((uri) => `accounturi=${uri.toUpperCase()}`), 'caa_forbidden');
  assert.equal(await withParameters((uri) => `accounturi=${uri}; accounturi=${uri}`), 'caa_forbidden');
  assert.equal(await withParameters(() => 'validationmethods=ca-dns'), 'issued');
  assert.equal(await withParameters(() => 'validationmethods=http-01,ca-dns'), 'issued');
  for (const list of ['ca-file', 'dns-01', 'dns', 'ca-dns-persist', 'CA-DNS', 'ca-dns,']) {
    assert.equal(await withParameters(() => `validationmethods=${list}`), 'caa_forbidden', list);
  }
  assert.equal(await withParameters(() => 'validationmethods=ca-file', 'file'), 'issued');
  assert.equal(await withParameters(() => 'validationmethods=ca-dns-persist', 'dns-persist'), 'issued');
});

test('the method of the proof counts, not the current method of the order', async () => {
  const domain = newDomain();
  const order = await place([domain]);
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued', 'proven by dns');
  dns.set(domain, 'CAA', [issue(`${OURS}; validationmethods=ca-file`)]);
  await reissue(app, order, body({ common_name: domain }, { dcv_method: 'file' }));
  assert.equal(await outcome(order), 'reissuing caa_forbidden', 'no file was fetched');
});

test('a name proven by the permitted method is issued, whatever the current method of the order', async () => {
  const domain = newDomain();
  const order = await place([domain]);
  await publish(order);
  await complete(order);
  dns.set(domain, 'CAA', [issue(`${OURS}; validationmethods=ca-dns`)]);
  await reissue(app, order, body({ common_name: domain }, { dcv_method: 'file' }));
  assert.equal(await outcome(order), 'issued');
});

rule('dcv 9', 'CAA is checked for every name before issuance', async () => {
  // One forbidden name stops the certificate, and is reported.
  const [free, shut] = [newDomain(), newDomain()];
  dns.set(shut, 'CAA', [issue(THEIRS)]);
  const order = await place([free, `www.${free}`, `www.${shut}`]);
  await publish(order);
  await complete(order);
  assert.deepEqual(
    (await entries(order)).map(({ domain, verified, problem }) => [domain, verified, problem?.result]),
    [
      [free, true, undefined],
      [`www.${free}`, true, undefined],
      [`www.${shut}`, true, 'caa_forbidden'],
    ],
  );
  assert.match((await entries(order))[2]?.problem?.message ?? '', new RegExp(`CAA at ${shut}: .* issue "${OURS}"`));
  assert.equal((await certificate(app, order, order.certificateId)).status, 'pending');
  dns.clear(shut);
  await workerChecks(order);
  assert.equal(await outcome(order), 'issued');

  // The record appears between the proofs of the two names.
  const [early, late] = [newDomain(), newDomain()];
  const slow = await place([early, late]);
  const [first, second] = await entries(slow);
  dns.set(first!.auth_path, 'TXT', [first!.auth_val]);
  await complete(slow);
  assert.deepEqual(
    (await entries(slow)).map(({ verified }) => verified),
    [true, false],
  );
  dns.set(early, 'CAA', [issue(THEIRS)]);
  dns.set(second!.auth_path, 'TXT', [second!.auth_val]);
  await complete(slow);
  assert.equal(await outcome(slow), 'domain_verifing caa_forbidden');
  dns.set(early, 'CAA', [issue(THEIRS), issue(OURS)]);
  await complete(slow);
  assert.equal(await outcome(slow), 'issued');
});

rule('dcv 9', 'CAA is checked for every name before issuance', async () => {
  // Also if no name needs proof: reissue and order wait, and are issued once CAA permits.
  const domain = newDomain();
  const order = await newOrder(app, { commonName: domain });
  const earlier = await show(app, order);
  dns.set(domain, 'CAA', [issue(';')]);
  const { status, body: answer } = await reissue(app, order, body({ common_name: domain }));
  const pendingId = answer.data.certificate.id;
  assert.equal(status, 200);
  assert.equal(await outcome(order), 'reissuing caa_forbidden');
  assert.deepEqual((await show(app, order)).certificate, earlier.certificate, 'the previous certificate stays current');
  const placed = await place([domain], {}, { key: order.key });
  assert.equal(await outcome(placed), 'domain_verifing caa_forbidden');
  await workerChecks(order);
  assert.equal(await outcome(order), 'reissuing caa_forbidden', 'still forbidden');
  dns.clear(domain);
  await workerChecks(order);
  assert.equal(await outcome(order), 'issued');
  assert.equal((await show(app, order)).certificate_id, pendingId);
  await workerChecks(placed);
  assert.equal(await outcome(placed), 'issued');
  // Names vouched for by an operator are checked too.
  dns.set(domain, 'CAA', [issue(THEIRS)]);
  assert.equal(await outcome(await newOrder(app, { commonName: domain })), 'domain_verifing caa_forbidden');
});
