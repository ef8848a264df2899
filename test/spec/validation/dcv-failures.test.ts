// Failed lookups and unreadable answers: never a permission, never a proof, and not an error of the caller either. The
// check is repeated later.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { RecordValues } from '../../../src/sandbox/dns-message.ts';
import { rule } from '../../support/contract.ts';
import { FILE, ISSUERS, startDomainApp } from '../../support/domain-app.ts';
import { body, certificate, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, dns, files, place, publish, complete, check, entries, outcome, newDomain, workerChecks } = world;

type Caa = RecordValues['CAA'];
const record = (tag: string, value: string, flags = 0): Caa => ({ flags, tag, value });
const OURS = record('issue', ISSUERS[0]);
const BROKEN = ['servfail', 'refused'] as const;

/** Control is proven, so that only CAA decides. */
async function outcomeWith(set: (domain: string) => void): Promise<string> {
  const domain = newDomain();
  set(domain);
  const order = await place([`www.${domain}`]);
  await publish(order);
  await complete(order);
  return (await outcome(order)).replace('domain_verifing ', '');
}

rule('dcv 10', 'Neither a critical CAA property that we do not know', async () => {
  const caa = (...records: readonly Caa[]) => outcomeWith((domain) => dns.set(domain, 'CAA', records));
  assert.equal(await caa(record('tbs', 'unknown', 128)), 'caa_forbidden');
  assert.equal(
    await caa(OURS, record('tbs', 'unknown', 128)),
    'caa_forbidden',
    'a permission next to it does not help',
  );
  assert.equal(await caa(record('TBS', 'unknown', 129), OURS), 'caa_forbidden');
  assert.equal(await caa(OURS, record('issuemail', ISSUERS[0], 128)), 'caa_forbidden');
  assert.equal(await caa(OURS, record('tbs', 'unknown', 0)), 'issued');
  // Only the highest bit means critical.
  assert.equal(await caa(OURS, record('tbs', 'unknown', 127)), 'issued');
  for (const tag of ['critical', 'type']) assert.equal(await caa(OURS, record(tag, '0')), 'issued', tag);
  // A tag outside the grammar might be a restriction that is misspelt.
  for (const tag of ['', 'issue ', 'issue\0']) assert.equal(await caa(OURS, record(tag, '0')), 'dns_failure', tag);
  assert.equal(await caa(record('issue', '')), 'caa_forbidden');
  assert.equal(await caa(record('issue', `${ISSUERS[0]}\0; accounturi=other`)), 'caa_forbidden', 'not cut at the NUL');
  // An empty value is a record: it decides, and the policy above does not.
  const shielded = (domain: string) => {
    dns.set(`www.${domain}`, 'CAA', [record('iodef', '')]);
    dns.set(domain, 'CAA', [record('issue', ';')]);
  };
  assert.equal(await outcomeWith(shielded), 'issued');
  assert.equal(await caa(...Array.from({ length: 101 }, () => OURS)), 'dns_failure', 'more records than the limit');
});

rule('dcv 10', 'nor a failed look-up is ever taken as permission', async () => {
  for (const failure of BROKEN) {
    assert.equal(await outcomeWith((domain) => dns.set(`www.${domain}`, 'CAA', failure)), 'dns_failure', failure);
    // Also above the name, where a policy might be.
    assert.equal(await outcomeWith((domain) => dns.set(domain, 'CAA', failure)), 'dns_failure', failure);
    // Not above the deciding records, where a failure does not matter.
    const decided = (domain: string) => {
      dns.set(`www.${domain}`, 'CAA', [OURS]);
      dns.set(domain, 'CAA', failure);
    };
    assert.equal(await outcomeWith(decided), 'issued', failure);
    // The lookup of a CNAME target fails.
    const aliased = (domain: string) => {
      dns.set(`www.${domain}`, 'CNAME', [`target.${domain}`]);
      dns.set(`target.${domain}`, 'CAA', failure);
    };
    assert.equal(await outcomeWith(aliased), 'dns_failure', failure);
  }
  for (const nothing of ['nodata', 'nxdomain'] as const) {
    assert.equal(await outcomeWith((domain) => dns.set(domain, 'CAA', nothing)), 'issued', nothing);
  }
  // The top-level domain is looked up too.
  dns.set('info', 'CAA', 'servfail');
  const order = await place([`www.${newDomain().slice(0, -4)}.info`]);
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'domain_verifing dns_failure');
  dns.clear('info');
  await workerChecks(order);
  assert.equal(await outcome(order), 'issued');
});

/** An order with a proven name, so that only DNS decides. */
async function requirePending(order: PlacedOrder, common_name: string, top: object = {}): Promise<string> {
  const before = await show(app, order);
  const { status, body: answer, text } = await reissue(app, order, body({ common_name }, { ...top }));
  assert.deepEqual([status, answer.code], [200, 'success'], text);
  const { id } = answer.data.certificate;
  const after = await show(app, order);
  assert.deepEqual([after.status, after.pending_certificate_id], ['reissuing', id]);
  assert.deepEqual(after.certificate, before.certificate, 'the previous certificate stays current');
  assert.equal((await certificate(app, order, id)).status, 'pending');
  assert.equal(await outcome(order), 'reissuing dns_failure');
  return id;
}

rule('reissue 37', 'the certificate becomes pending and the request is no error', async () => {
  for (const failure of BROKEN) {
    const domain = newDomain();
    const order = await newOrder(app, { commonName: domain });
    dns.set(domain, 'CAA', failure);
    const id = await requirePending(order, domain);
    const again = await reissue(app, order, body({ common_name: domain }));
    assert.deepEqual([again.status, again.body.code], [409, 'reissue_in_progress']);
    dns.clear(domain);
    await workerChecks(order);
    const { status, certificate_id } = await show(app, order);
    assert.deepEqual([status, certificate_id], ['issued', id]);
  }
  // Persistent records are looked up before the request is answered.
  const domain = newDomain();
  const order = await place([domain], { dcv_method: 'dns-persist' });
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
  const path = `_validation-persist.${domain}`;
  const [published = ''] = dns.list().flatMap(({ name, answers }) => (name === path ? (answers[0] as string[]) : []));
  dns.set(path, 'TXT', 'servfail');
  const id = await requirePending(order, domain);
  dns.set(path, 'TXT', [published]);
  await workerChecks(order);
  assert.equal((await show(app, order)).certificate_id, id);
  // The same for a first order.
  dns.set(path, 'TXT', 'refused');
  const placed = await place([domain], { dcv_method: 'dns-persist' }, { key: order.key });
  assert.equal(await outcome(placed), 'domain_verifing dns_failure');
});

rule('reissue 37', 'When DNS cannot answer a validation or CAA question now', async () => {
  // In parallel, because each silent case takes the full timeout.
  const caa = newDomain();
  const persist = newDomain();
  const [vouched, bound] = [
    await newOrder(app, { commonName: caa }),
    await place([persist], { dcv_method: 'dns-persist' }),
  ];
  await publish(bound);
  await complete(bound);
  assert.equal(await outcome(bound), 'issued');
  dns.set(caa, 'CAA', 'silence');
  dns.set(`_validation-persist.${persist}`, 'TXT', 'silence');
  await Promise.all([requirePending(vouched, caa), requirePending(bound, persist)]);
  for (const name of [caa, `_validation-persist.${persist}`]) dns.clear(name);
  await workerChecks(vouched);
  await workerChecks(bound);
  assert.deepEqual([await outcome(vouched), await outcome(bound)], ['issued', 'reissuing no_record']);
});

test('the silent party is reported: DNS or the web server', async () => {
  const txt = newDomain();
  const byDns = await place([txt]);
  dns.set(`_dnsauth.${txt}`, 'TXT', 'silence');
  const host = newDomain();
  const byFile = await place([host], { dcv_method: 'file' });
  dns.set(host, 'A', ['127.0.0.1']);
  files.set(host + FILE, () => {});
  const unknown = newDomain();
  const nowhere = await place([unknown], { dcv_method: 'file' });
  dns.set(unknown, 'A', 'servfail');
  const checks = await Promise.all([byDns, byFile, nowhere].map(check));
  assert.equal(checks[0]?.[txt]?.result, 'dns_failure');
  assert.equal(checks[2]?.[unknown]?.result, 'http_failure');
  assert.match(checks[2]?.[unknown]?.message ?? '', /dns_failure/);
  assert.equal(checks[1]?.[host]?.result, 'http_failure', 'its DNS has answered');
  assert.deepEqual(
    (await Promise.all([byDns, byFile].map(entries))).map(([entry]) => entry?.verified),
    [false, false],
  );
});
