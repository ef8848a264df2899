// Validation by DNS: what an order asks to publish, which records prove a name, and which do not.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, test } from 'node:test';
import { rule } from '../../support/contract.ts';
import { startDomainApp } from '../../support/domain-app.ts';
import { body, certificate, csrFor, newOrder, type PlacedOrder, reissue, show } from '../../support/orders.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, dns, place, publish, complete, changeMethod, entries, outcome, newDomain } = world;

const FIELDS = ['domain', 'dcv_method', 'auth_path', 'auth_val', 'approval_email', 'verified'] as const;
/** The fields of an entry that the contract lists. */
const shownOf = async (order: PlacedOrder) =>
  (await entries(order)).map((entry) => FIELDS.map((field) => entry[field]));
const valueIn = async (order: PlacedOrder, index = 0): Promise<string> => (await entries(order))[index]?.auth_val ?? '';
const outcomeAfter = async (order: PlacedOrder): Promise<string> => {
  const { status, text } = await complete(order);
  assert.equal(status, 200, text);
  return await outcome(order);
};

rule(
  'order 14',
  'an entry per name with `domain`, `dcv_method`, `auth_path`, `auth_val`, `approval_email` and `verified`',
  async () => {
    const domain = newDomain();
    const order = await place([domain, `www.${domain}`, `*.${domain}`]);
    const [first = '', second = '', third = ''] = (await entries(order)).map(({ auth_val }) => auth_val);
    assert.deepEqual(await shownOf(order), [
      [domain, 'dns', `_dnsauth.${domain}`, first, '', false],
      [`www.${domain}`, 'dns', `_dnsauth.www.${domain}`, second, '', false],
      [`*.${domain}`, 'dns', `_dnsauth.${domain}`, third, '', false],
    ]);
    for (const value of [first, second]) assert.match(value, /^[0-9a-f]{64}$/);
    assert.notEqual(first, second);
    assert.equal(third, first, 'one record for a name and the wildcard on it');
    assert.equal(await valueIn(order), first, 'the value is unchanged');

    // One record is found: the name is verified, and its record stays visible.
    dns.set(`_dnsauth.www.${domain}`, 'TXT', [second]);
    assert.equal(await outcomeAfter(order), 'domain_verifing no_record');
    const [own, www, wildcard] = await entries(order);
    const path = `_dnsauth.www.${domain}`;
    assert.deepEqual([www?.verified, www?.auth_val, www?.auth_path, www?.problem], [true, second, path, null]);
    for (const entry of [own, wildcard]) {
      assert.deepEqual([entry?.verified, entry?.auth_val, entry?.problem?.result], [false, first, 'no_record']);
      assert.equal(entry?.problem?.checked_at, new Date(app.now()).toISOString());
    }
    const chinese = await app.call('GET', `/openapi/v3/orders/${order.id}`, {
      key: order.key,
      headers: { 'accept-language': 'zh-CN' },
    });
    assert.match(chinese.body.data.dcv_val[0].problem.message, /没有 TXT 记录/);

    await publish(order);
    assert.equal(await outcomeAfter(order), 'issued');
    assert.deepEqual(
      (await entries(order)).map(({ verified, auth_val, problem }) => [verified, auth_val, problem]),
      [first, second, third].map((value) => [true, value, null]),
    );
  },
);

rule('order 14', 'shows in `dcv_val` an entry per name with `domain`, `dcv_method`', async () => {
  // A waiting reissue shows its requested names, not the order's current ones.
  const order = await newOrder(app);
  const added = newDomain();
  await reissue(app, order, body({ dns_names: ['www.example.com', added] }));
  assert.deepEqual(
    (await entries(order)).map(({ domain, verified, auth_val }) => [domain, verified, auth_val === '']),
    [
      ['www.example.com', true, false],
      [added, false, false],
    ],
  );
  // Other methods, and a product without names to prove.
  await changeMethod(order, { dcv_method: 'file' });
  const [, file] = await entries(order);
  assert.deepEqual([file?.dcv_method, file?.auth_path], ['file', '/.well-known/pki-validation/fileauth.txt']);
  const signing = await newOrder(app, { product: 'code-signing', commonName: 'Acme Ltd' });
  assert.deepEqual(await entries(signing), []);
  const stranger = await app.newKey();
  const { body: none } = await app.call('GET', `/openapi/v3/orders/${order.id}`, { key: stranger });
  assert.equal(none.code, 'order_not_found');
});

test('an unproven name is never shown as verified, whatever the state of its order', async () => {
  const canceled = await place([newDomain()]);
  await app.call('PUT', `/openapi/v3/orders/${canceled.id}/cancel`, { key: canceled.key });
  assert.deepEqual([await outcome(canceled), (await entries(canceled))[0]?.verified], ['canceled', false]);
});

rule('dcv 4', '`dns` is proven by a TXT record whose value is bound to the order', async () => {
  const domain = newDomain();
  const order = await place([domain]);
  const mine = await valueIn(order);
  const path = `_dnsauth.${domain}`;
  // Values of another order, of another account, and of a reissue of another order are rejected.
  const sister = await place([domain], {}, { key: order.key });
  const stranger = await place([domain]);
  const other = await newOrder(app, {}, order.key);
  await reissue(app, other, body({ dns_names: ['www.example.com', domain] }));
  const values = [await valueIn(sister), await valueIn(stranger), await valueIn(other, 1)];
  assert.equal(new Set([mine, ...values]).size, 4);
  dns.set(path, 'TXT', values);
  assert.equal(await outcomeAfter(order), 'domain_verifing wrong_value');

  const nearly = [mine.toUpperCase(), mine.slice(1), `${mine}0`, `"${mine}"`, [mine.slice(0, 9), ' ', mine.slice(9)]];
  dns.set(path, 'TXT', nearly);
  assert.equal(await outcomeAfter(order), 'domain_verifing wrong_value');
  // Records are not concatenated.
  dns.set(path, 'TXT', [mine.slice(0, 32), mine.slice(32)]);
  assert.equal(await outcomeAfter(order), 'domain_verifing wrong_value');
  // At the name itself, or above or below the owner name, it proves nothing.
  dns.clear(path);
  for (const place of [domain, `www.${domain}`, `_dnsauth.www.${domain}`, '_dnsauth.com'])
    dns.set(place, 'TXT', [mine]);
  assert.equal(await outcomeAfter(order), 'domain_verifing no_record');

  // Among many others (truncated, so over TCP), and split into character-strings.
  const others = Array.from({ length: 40 }, (_, index) => `v=spf1 include:_spf${index}.${domain} -all`);
  dns.set(path, 'TXT', [...others, [mine.slice(0, 20), '', mine.slice(20)]]);
  assert.equal(await outcomeAfter(order), 'issued');
  const { pem } = await certificate(app, order, order.certificateId);
  assert.equal(new X509Certificate(pem).subjectAltName, `DNS:${domain}`);
  assert.deepEqual(
    (await app.app.store.audit.listOf(order.key.accountId, { limit: 50 }))
      .filter(({ action }) => action === 'name:validated' || action === 'certificate:issued')
      .filter(({ details }) => details.order_id === order.id || details.certificate_id === order.certificateId)
      .map(({ actor, action, subject }) => [actor, action, subject]),
    [
      ['service', 'name:validated', domain],
      ['service', 'certificate:issued', order.id],
    ],
  );
});

rule('dcv 4', 'a TXT record whose value is bound to the order', async () => {
  // Each certificate of an order has its own value: the record of the previous one proves nothing.
  const order = await newOrder(app);
  const added = newDomain();
  const again = () => reissue(app, order, body({ dns_names: ['www.example.com', added] }));
  await again();
  await publish(order);
  const before = await valueIn(order, 1);
  await app.call('PUT', `/openapi/v3/orders/${order.id}/cancel`, { key: order.key });
  await again();
  assert.notEqual(await valueIn(order, 1), before);
  assert.equal(await outcomeAfter(order), 'reissuing wrong_value');
  // Through a CNAME, as with delegated validation.
  dns.clear(`_dnsauth.${added}`);
  dns.set(`_dnsauth.${added}`, 'CNAME', [`answers.${added}`]);
  dns.set(`answers.${added}`, 'TXT', [await valueIn(order, 1)]);
  assert.equal(await outcomeAfter(order), 'issued');
});

test('a failed lookup differs from an absent record, and neither proves anything', async () => {
  const cases = {
    servfail: 'dns_failure',
    refused: 'dns_failure',
    nxdomain: 'no_record',
    nodata: 'no_record',
  } as const;
  for (const [answer, problem] of Object.entries(cases)) {
    const domain = newDomain();
    const order = await place([domain]);
    dns.set(`_dnsauth.${domain}`, 'TXT', answer as keyof typeof cases);
    assert.equal(await outcomeAfter(order), `domain_verifing ${problem}`, answer);
  }
  // More records than the limit fail the lookup, even if the right one is among them.
  const domain = newDomain();
  const order = await place([domain]);
  const many = Array.from({ length: 101 }, (_, index) => (index === 0 ? '' : `record ${index}`));
  dns.set(`_dnsauth.${domain}`, 'TXT', [await valueIn(order), ...many.slice(1)]);
  assert.equal(await outcomeAfter(order), 'domain_verifing dns_failure');
});

rule('dcv 5', 'A wildcard name is never proven by `file`', async () => {
  const domain = newDomain();
  const key = await app.newKey();
  const request = { csr: csrFor(), common_name: `*.${domain}`, sign_hash: 'sha256' };
  const json = { certificate: request, dcv_method: 'file' };
  const placed = await app.call('POST', '/openapi/v3/orders/ssl-dv', { key, json });
  assert.deepEqual([placed.status, placed.body.code, placed.body.field], [400, 'invalid_dcv_method', 'dcv_method']);
  const order = await newOrder(app);
  const { body: refused } = await reissue(app, order, body({ dns_names: [`*.${domain}`] }, { dcv_method: 'file' }));
  assert.equal(refused.code, 'invalid_dcv_method');
  // Nor can a waiting order change to it.
  for (const names of [[`*.${domain}`], [domain, `*.${domain}`]]) {
    const waiting = await place(names);
    const { status, body: answer } = await changeMethod(waiting, { dcv_method: 'file' });
    assert.deepEqual([status, answer.code, answer.field], [400, 'invalid_dcv_method', 'dcv_method']);
    assert.equal((await show(app, waiting)).dcv_method, 'dns');
  }
  // The file of a name proves that name, not its wildcard.
  const plain = await place([domain], { dcv_method: 'file' }, { key });
  await publish(plain);
  assert.equal(await outcomeAfter(plain), 'issued');
  const wildcard = await place([`*.${domain}`], {}, { key });
  assert.equal(await outcome(wildcard), 'domain_verifing');
});

rule(
  'dcv 6',
  'With scope `base_domain` the proof is asked of the registrable domain, and with `fqdn` of the name itself',
  async () => {
    const key = await app.newKey();
    const uk = `${newDomain().slice(0, -4)}.co.uk`;
    const com = newDomain();
    const names = [`a.b.${com}`, `*.c.${com}`, com, `www.${uk}`];
    const pathsOf = async (dcv_scope: string) =>
      (await entries(await place(names, { dcv_scope }))).map(({ auth_path }) => auth_path.replace('_dnsauth.', ''));
    assert.deepEqual(await pathsOf('fqdn'), [`a.b.${com}`, `c.${com}`, com, `www.${uk}`]);
    assert.deepEqual(await pathsOf('base_domain'), [com, com, com, uk]);

    // A record at the name does not prove the base domain, and vice versa.
    const based = await place([`www.${uk}`], { dcv_scope: 'base_domain' }, { key });
    dns.set(`_dnsauth.www.${uk}`, 'TXT', [await valueIn(based)]);
    assert.equal(await outcomeAfter(based), 'domain_verifing no_record');
    const own = await place([`www.${com}`], {}, { key });
    dns.set(`_dnsauth.${com}`, 'TXT', [await valueIn(own)]);
    assert.equal(await outcomeAfter(own), 'domain_verifing no_record');

    // A proof of the base domain covers names below it, for later reissues too, but no sibling.
    await publish(based);
    assert.equal(await outcomeAfter(based), 'issued');
    const reissued = async (...dns_names: string[]) => {
      const { text, status } = await reissue(app, based, body({ common_name: `www.${uk}`, dns_names }));
      assert.equal(status, 200, text);
      return await outcome(based);
    };
    assert.equal(await reissued(`deep.mail.${uk}`, `*.${uk}`, uk), 'issued');
    assert.equal(await reissued(`deep.mail.${uk}`, `*.${uk}`, uk, `not${uk}`), 'reissuing');
    // A proof of one name covers only that name.
    await publish(own);
    assert.equal(await outcomeAfter(own), 'issued');
    for (const name of [com, `mail.www.${com}`, `*.www.${com}`, `ww.${com}`]) {
      const { body: answer } = await reissue(app, own, body({ common_name: `www.${com}`, dns_names: [name] }));
      assert.equal((await certificate(app, own, answer.data.certificate.id)).status, 'pending', name);
      await app.call('PUT', `/openapi/v3/orders/${own.id}/cancel`, { key });
    }
  },
);

rule('dcv 6', 'With scope `base_domain` the proof is asked of the registrable domain', async () => {
  const domain = newDomain();
  // Customers below a private suffix are separate domains.
  const pages = await place(['alice.github.io'], { dcv_scope: 'base_domain' });
  assert.deepEqual((await entries(pages))[0]?.auth_path, '_dnsauth.alice.github.io');
  // A file proves only the name it is served from.
  const key = await app.newKey();
  const json = { certificate: { csr: csrFor(), common_name: domain, sign_hash: 'sha256' }, dcv_method: 'file' };
  const { body: answer } = await app.call('POST', '/openapi/v3/orders/ssl-dv', {
    key,
    json: { ...json, dcv_scope: 'base_domain' },
  });
  assert.deepEqual([answer.code, answer.field], ['invalid_parameters', 'dcv_scope']);
});

test('the base domain itself, proven with scope base_domain, covers names below it', async () => {
  const domain = newDomain();
  const order = await place([domain], { dcv_scope: 'base_domain' });
  await publish(order);
  assert.equal(await outcomeAfter(order), 'issued');
  await reissue(app, order, body({ common_name: domain, dns_names: [`www.${domain}`] }));
  assert.equal(await outcome(order), 'issued');
});
