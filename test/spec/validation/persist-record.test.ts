// Persistent records over real DNS: their owner name, their syntax, and what they authorize.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { NOON } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { ISSUERS, startDomainApp } from '../../support/domain-app.ts';
import { body, newOrder, type PlacedOrder, reissue } from '../../support/orders.ts';

const world = await startDomainApp();
after(() => world[Symbol.asyncDispose]());
const { app, dns, place, publish, complete, changeMethod, entries, outcome, newDomain } = world;

const PERSIST = { dcv_method: 'dns-persist' };
const [OURS, ALSO_OURS] = ISSUERS;
const THEIRS = 'other-ca.example';
const SOON = NOON / 1000 + 3_600;
const at = (domain: string) => `_validation-persist.${domain}`;
const uriOf = ({ key }: PlacedOrder) => `http://127.0.0.1:0/accounts/${key.accountId}`;

/** Returns the outcome of an order for a new domain, or a name `below` it, with these TXT records at the domain. */
async function outcomeWith(records: (uri: string) => readonly (string | readonly string[])[], below = '') {
  const domain = newDomain();
  // The order's own shortfall is shown first; here only the records in DNS matter.
  const order = await place([below + domain], { ...PERSIST, persist_policy: 'wildcard' });
  dns.set(at(domain), 'TXT', records(uriOf(order)));
  const { status, text } = await complete(order);
  assert.equal(status, 200, text);
  return (await outcome(order)).replace('domain_verifing ', '');
}
const outcomeOf = (record: (uri: string) => string | readonly string[], below = '') =>
  outcomeWith((uri) => [record(uri)], below);

rule('persist 7', 'a TXT record at `_validation-persist.` followed by the name', async () => {
  const domain = newDomain();
  const order = await place([`www.${domain}`], PERSIST);
  const [entry] = await entries(order);
  assert.deepEqual([entry?.auth_path, entry?.approval_email], [at(`www.${domain}`), '']);
  const record = entry?.auth_val ?? '';
  // At any other owner name it does not count.
  const elsewhere = [`www.${domain}`, `_validation-contactemail.www.${domain}`, `_acme-challenge.www.${domain}`];
  for (const name of [...elsewhere, `_dnsauth.www.${domain}`, `www.${at(domain)}`, at(`x.www.${domain}`)]) {
    dns.set(name, 'TXT', [record]);
  }
  await complete(order);
  assert.equal(await outcome(order), 'domain_verifing no_record');
  dns.set(at(`www.${domain}`), 'CAA', [{ flags: 0, tag: 'issue', value: record }]);
  await complete(order);
  assert.equal(await outcome(order), 'domain_verifing no_record', 'of another type');
  // Any number of character-strings, joined without a separator.
  dns.set(at(`www.${domain}`), 'TXT', [[record.slice(0, 5), record.slice(5, 30), record.slice(30)]]);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
});

rule('persist 7', 'followed by the name, without the `*.` of a wildcard', async () => {
  const domain = newDomain();
  const order = await place([`*.${domain}`, domain], { ...PERSIST, persist_policy: 'wildcard' });
  assert.deepEqual(
    (await entries(order)).map(({ auth_path }) => auth_path),
    [at(domain), at(domain)],
  );
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
  assert.ok(!dns.queries.some(({ name }) => name.includes('*')));
});

rule('persist 8', 'must name one of our issuer domain names and, byte for byte, the URI of the account', async () => {
  const good = [OURS, ALSO_OURS, 'CA.EXAMPLE.net', `${OURS}.`, `  ${OURS}\t`];
  for (const issuer of good) assert.equal(await outcomeOf((uri) => `${issuer}; accounturi=${uri}`), 'issued', issuer);
  const others = [
    THEIRS,
    '',
    ' ',
    `sub.${OURS}`,
    'example.net',
    `${OURS}..`,
    `.${OURS}`,
    `"${OURS}"`,
    `${OURS} x`,
    'CA',
  ];
  for (const issuer of others) {
    assert.equal(await outcomeOf((uri) => `${issuer}; accounturi=${uri}`), 'no_record', `"${issuer}"`);
  }
  const stranger = `http://127.0.0.1:0/accounts/${(await app.newKey()).accountId}`;
  const wrong: readonly ((uri: string) => string)[] = [
    () => stranger,
    (uri) => uri.toUpperCase(),
    (uri) => uri.replace('http:', 'HTTP:'),
    (uri) => uri.replace('http:', 'https:'),
    (uri) => `${uri}/`,
    (uri) => `${uri}#`,
    (uri) => uri.slice(0, -1),
    (uri) => uri.replace('/accounts/', '/%61ccounts/'),
    (uri) => uri.replace('127.0.0.1', 'localhost'),
    (uri) => `"${uri}"`,
  ];
  for (const other of wrong) {
    assert.equal(await outcomeOf((uri) => `${OURS}; accounturi=${other(uri)}`), 'unauthorized', other('http://…/a'));
  }
  for (const record of [OURS, `${OURS};`, `${OURS}; policy=wildcard`, `${OURS}; accounturi=`]) {
    assert.equal(await outcomeOf(() => record), 'malformed', record);
  }
});

rule('persist 8', 'records of other issuers are skipped, even malformed ones', async () => {
  const foreign = [
    THEIRS,
    `${THEIRS};;;`,
    `${THEIRS}; accounturi=a b`,
    `${THEIRS}; persistUntil=0`,
    'v=spf1 -all',
    ';',
    '',
  ];
  assert.equal(await outcomeWith(() => foreign), 'no_record');
  assert.equal(await outcomeWith((uri) => [...foreign, `${OURS}; accounturi=${uri}`]), 'issued');
  assert.equal(await outcomeWith((uri) => [`${OURS}; accounturi=${uri}`, ...foreign]), 'issued');
});

rule(
  'persist 10',
  'A record authorizes its own name only; with `policy=wildcard`, in any case of letters',
  async () => {
    const cases: readonly (readonly [policy: string, reaches: boolean])[] = [
      ['', false],
      ['; policy=wildcard', true],
      ['; policy=WildCard', true],
      ['; POLICY=WILDCARD', true],
      ['; policy = wildcard', true],
      ['; policy=fqdn', false],
      ['; policy=', false],
      ['; policy=wildcards', false],
      ['; policy=*', false],
      ['; policy="wildcard"', false],
      ['; x-policy=wildcard', false],
    ];
    for (const [policy, reaches] of cases) {
      const record = (uri: string) => `${OURS}; accounturi=${uri}${policy}`;
      assert.equal(await outcomeOf(record), 'issued', `its own name${policy}`);
      const expected = reaches ? 'issued' : 'unauthorized';
      for (const below of ['*.', 'www.', 'a.b.c.', '*.a.']) {
        assert.equal(await outcomeOf(record, below), expected, `${below}${policy}`);
      }
    }
  },
);

rule('persist 10', 'and every name below it; any other policy counts as none', async () => {
  // Records at siblings, or at a name that only shares a textual suffix, do not count.
  const domain = newDomain();
  const key = await app.newKey();
  const wide = { ...PERSIST, persist_policy: 'wildcard' };
  const order = await place([`a.${domain}`], wide, { key });
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
  for (const name of [`b.${domain}`, `xa.${domain}`, domain, `*.${domain}`, `x${domain}`]) {
    assert.equal(await outcome(await place([name], wide, { key })), 'domain_verifing no_record', name);
  }
  assert.equal(await outcome(await place([`*.a.${domain}`, `x.y.a.${domain}`], wide, { key })), 'issued');
});

rule('persist 13', 'A duplicate known tag, a missing `=`, an empty tag, an empty parameter', async () => {
  const good = (uri: string) => `${OURS}; accounturi=${uri}`;
  const faults: readonly ((uri: string) => string)[] = [
    (uri) => `${good(uri)}; accounturi=${uri}`,
    (uri) => `${good(uri)}; ACCOUNTURI=http://another`,
    (uri) => `${good(uri)}; policy=wildcard; policy=wildcard`,
    (uri) => `${good(uri)}; policy=fqdn; Policy=wildcard`,
    (uri) => `${good(uri)}; persistUntil=${SOON}; persistuntil=${SOON}`,
    (uri) => `${good(uri)}; wildcard`,
    (uri) => `${OURS}; accounturi ${uri}`,
    (uri) => `${good(uri)}; =wildcard`,
    (uri) => `${good(uri)};  = `,
    (uri) => `${good(uri)};`,
    (uri) => `${good(uri)}; ; policy=wildcard`,
    (uri) => `${OURS};; accounturi=${uri}`,
    (uri) => `${good(uri)}; note=two words`,
    (uri) => `${good(uri)}; policy=wild card`,
    (uri) => `${good(uri)} policy=wildcard`,
    (uri) => `${good(uri)}; note=a\tb`,
    (uri) => `${good(uri)}; note=a\u0007b`,
    (uri) => `${good(uri)}; note=caf\u00e9`,
    ...['', 'soon', '1e12', '+5', '0x7fffffff', `${SOON}.5`, `${SOON}s`, '--1', '1,9', 'NaN', '٣'].map(
      (until) => (uri: string) => `${good(uri)}; persistUntil=${until}`,
    ),
    (uri) => `${good(uri)}; note=${'x'.repeat(5_000)}`,
  ];
  for (const fault of faults) assert.equal(await outcomeOf(fault), 'malformed', fault('uri').slice(0, 80));
  // A valid record beside it still authorizes.
  assert.equal(await outcomeWith((uri) => [`${good(uri)};`, good(uri), `${OURS}; nonsense`]), 'issued');
});

rule('persist 13', 'a blank inside a value or a `persistUntil` that is no integer', async () => {
  // Values are trimmed, and an integer may have any number of digits.
  const accepted: readonly ((uri: string) => string)[] = [
    (uri) => `\t${OURS} ;\taccounturi\t=\t${uri}\t;  persistUntil =  ${SOON} `,
    (uri) => `${OURS};accounturi=${uri};policy=wildcard;persistUntil=${SOON}`,
    (uri) => `${OURS}; accounturi=${uri}; persistUntil=${'9'.repeat(40)}`,
    (uri) => `${OURS}; accounturi=${uri}; persistUntil=000${SOON}`,
    (uri) => `${OURS}; accounturi=${uri}; note=a=b=c`,
    (uri) => `${OURS}; accounturi=${uri}; note=`,
  ];
  for (const record of accepted) assert.equal(await outcomeOf(record), 'issued', record('uri'));
  for (const past of ['-5', '-0', '0', '00', `-${'9'.repeat(40)}`]) {
    const record = (uri: string) => `${OURS}; accounturi=${uri}; persistUntil=${past}`;
    assert.equal(await outcomeOf(record), 'unauthorized', past);
  }
});

rule('persist 14', 'Tags of a record are read in any case of letters, and unknown ones are ignored', async () => {
  const accepted: readonly ((uri: string) => string)[] = [
    (uri) => `${OURS}; ACCOUNTURI=${uri}; PERSISTUNTIL=${SOON}`,
    (uri) => `${OURS}; AccountUri=${uri}; persistuntil=${SOON}; POLICY=wildcard`,
    (uri) => `${OURS}; note=x; NOTE=y; note=z; accounturi=${uri}`,
    (uri) => `${OURS}; validationmethods=dns-01; accounturi=${uri}; constructor=x; __proto__=y`,
    (uri) => `${OURS}; a_b.c=1; accounturi=${uri}; 7=seven`,
  ];
  for (const record of accepted) assert.equal(await outcomeOf(record), 'issued', record('uri'));
  // Known tags are case-insensitive.
  const wrong: readonly ((uri: string) => string)[] = [
    (uri) => `${OURS}; ACCOUNTURI=${uri}x`,
    (uri) => `${OURS}; accounturi=${uri}; PERSISTUNTIL=1`,
  ];
  for (const record of wrong) assert.equal(await outcomeOf(record), 'unauthorized', record('uri'));
});

rule('persist 18', 'The order shows the exact record to publish', async () => {
  const domain = newDomain();
  const order = await place([domain], PERSIST);
  const uri = uriOf(order);
  const shown = async (change: object) => {
    const { status, text } = await changeMethod(order, { ...PERSIST, ...change });
    assert.equal(status, 200, text);
    return (await entries(order))[0]?.auth_val;
  };
  const plain = `${OURS}; accounturi=${uri}`;
  assert.equal((await entries(order))[0]?.auth_val, plain);
  assert.equal(await shown({}), plain);
  assert.equal(await shown({ persist_until: SOON }), `${plain}; persistUntil=${SOON}`);
  assert.equal(await shown({ persist_policy: 'wildcard' }), `${plain}; policy=wildcard; persistUntil=${SOON}`, 'kept');
  assert.equal(await shown({ persist_until: 0 }), plain, '0 means none');
  assert.equal(await shown({ persist_policy: 'wildcard' }), `${plain}; policy=wildcard`);
  assert.equal(await shown({ persist_policy: 'fqdn', persist_until: SOON }), `${plain}; persistUntil=${SOON}`);
  // The record shown does authorize. Issued orders show it too, because it is reused.
  await publish(order);
  await complete(order);
  assert.equal(await outcome(order), 'issued');
  const [entry] = await entries(order);
  assert.deepEqual([entry?.auth_path, entry?.auth_val], [at(domain), `${plain}; persistUntil=${SOON}`]);
});

rule(
  'persist 18',
  '`policy=wildcard` only for `wildcard`, for a wildcard name and for the name it stands on',
  async () => {
    // Through a reissue that leaves persist_policy out.
    const domain = newDomain();
    const order = await newOrder(app, { commonName: domain });
    const names = [`*.${domain}`, `www.${domain}`];
    await reissue(app, order, body({ common_name: domain, dns_names: names }, { ...PERSIST }));
    const plain = `${OURS}; accounturi=${uriOf(order)}`;
    const shown = (await entries(order)).map(({ domain: name, auth_val, problem }) => [
      name,
      auth_val,
      problem?.result,
    ]);
    assert.deepEqual(shown.slice(1), [
      [`*.${domain}`, `${plain}; policy=wildcard`, 'no_record'],
      [`www.${domain}`, plain, 'no_record'],
    ]);
    assert.equal(shown[0]?.[1], `${plain}; policy=wildcard`, 'one record for both');
    const { data } = (await app.call('GET', `/openapi/v3/orders/${order.id}`, { key: order.key })).body;
    assert.equal(data.persist_policy, 'fqdn');
    await publish(order);
    await complete(order);
    assert.equal(await outcome(order), 'issued');
  },
);

rule(
  'persist 19',
  'an explicit `persist_policy` `fqdn` together with a wildcard name is `invalid_parameters`',
  async () => {
    const domain = newDomain();
    const order = await newOrder(app, { commonName: domain });
    const names = { common_name: domain, dns_names: [`*.${domain}`] };
    const fqdn = { ...PERSIST, persist_policy: 'fqdn' };
    const { status, body: answer } = await reissue(app, order, body(names, fqdn));
    assert.deepEqual([status, answer.code, answer.field], [400, 'invalid_parameters', 'persist_policy']);
    assert.equal((await reissue(app, order, body(names, PERSIST))).status, 200);
    assert.equal((await changeMethod(order, fqdn)).status, 400);
    assert.equal((await changeMethod(order, { ...PERSIST, persist_policy: 'wildcard' })).status, 200);
  },
);
