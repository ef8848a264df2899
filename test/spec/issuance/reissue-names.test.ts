// Names of a reissue: which are accepted, which are refused, and the consequences of removing one.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { NOON } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import {
  body,
  certificate,
  newOrder,
  type OrderRequest,
  type PlacedOrder,
  reissue,
  show,
} from '../../support/orders.ts';
import { startWatchedApp } from '../../support/watched-app.ts';

const { app, db, requireRefused, requireIssued } = await startWatchedApp();

const [WWW, APEX, MAIL] = ['www.example.com', 'example.com', 'mail.example.com'];
const REMOVE = { i_know_remove_domain_will_revoke_before_cert: true };
const REPLACE = { i_know_will_revoke_last_cert: true };
const revoked = ({ key }: PlacedOrder) =>
  db
    .prepare('select certificate_id, reason, cause, caused_by_id, due_at from revocation where account_id = ?')
    .all(key.accountId)
    .map((row) => ({ ...row }));

/** Three validated names. */
const threeNames = (request: OrderRequest = {}) => newOrder(app, { dnsNames: [APEX, MAIL], ...request });

/** The names in the certificate itself. */
async function namesIn(order: PlacedOrder, id: string): Promise<string[]> {
  const { subjectAltName = '' } = new X509Certificate((await certificate(app, order, id)).pem);
  return subjectAltName.split(', ').map((one) => one.replace(/^DNS:/, ''));
}

rule('reissue 2', 'A reissue of an SSL product without `certificate.common_name` is refused', async () => {
  for (const product of ['ssl-dv', 'ssl-dv-add', 'ssl-dv-fixed', 'ssl-dv-replace', 'tls-private']) {
    const order = await newOrder(app, { product });
    for (const json of [body({ common_name: undefined }, REPLACE), body({ common_name: '' }, REPLACE)]) {
      await requireRefused(order, json, [400, 'invalid_parameters', 'certificate.common_name']);
    }
    await requireIssued(order, body({}, REPLACE));
  }
});

rule('reissue 4', 'is refused unless `i_know_remove_domain_will_revoke_before_cert` is literally `true`', async () => {
  const order = await threeNames();
  const field = 'i_know_remove_domain_will_revoke_before_cert';
  for (const top of [{}, { [field]: false }, REPLACE]) {
    await requireRefused(order, body({ dns_names: [APEX] }, top), [409, 'remove_domain_not_confirmed', field]);
  }
  for (const value of ['true', 1, null, [true]]) {
    await requireRefused(order, body({ dns_names: [APEX] }, { [field]: value }), [400, 'invalid_parameters', field]);
  }
  const { id } = await requireIssued(order, body({ dns_names: [APEX] }, REMOVE));
  assert.deepEqual(await namesIn(order, id), [WWW, APEX]);
  assert.deepEqual((await show(app, order)).dns_names, [WWW, APEX]);
});

rule('reissue 5', 'goes ahead only if `i_know_will_revoke_last_cert` is `true`', async () => {
  const order = await newOrder(app, { product: 'ssl-dv-replace' });
  const field = 'i_know_will_revoke_last_cert';
  for (const top of [{}, { [field]: false }, REMOVE]) {
    await requireRefused(order, body({}, top), [409, 'revoke_last_cert_not_confirmed', field]);
  }
  for (const value of ['true', 1, null]) {
    await requireRefused(order, body({}, { [field]: value }), [400, 'invalid_parameters', field]);
  }
  const { id } = await requireIssued(order, body({}, REPLACE));
  const revocation = { reason: 'superseded', cause: 'previous_replaced', caused_by_id: id, due_at: NOON };
  assert.deepEqual(revoked(order), [{ certificate_id: order.certificateId, ...revocation }]);
  for (const product of ['ssl-dv', 'ssl-dv-add', 'ssl-dv-fixed', 'tls-private']) {
    const other = await newOrder(app, { product });
    await requireIssued(other, body());
    assert.deepEqual(revoked(other), [], `${product} does not revoke`);
  }
});

rule(
  'reissue 24',
  'With `dns_names`, also with an empty array, the wanted names are the common name and exactly those',
  async () => {
    const order = await threeNames();
    for (const [dnsNames, wanted] of [
      [
        [APEX, MAIL],
        [WWW, APEX, MAIL],
      ],
      [
        [WWW, MAIL, APEX],
        [WWW, MAIL, APEX],
      ],
      [
        [MAIL, MAIL, WWW],
        [WWW, MAIL],
      ],
      [[], [WWW]],
      [[WWW], [WWW]],
    ] as const) {
      const { id } = await requireIssued(order, body({ dns_names: dnsNames }, REMOVE));
      assert.deepEqual(await namesIn(order, id), wanted);
      assert.deepEqual((await show(app, order)).certificate.dns_names, wanted);
    }
  },
);

rule('reissue 25', 'Without `dns_names`, the wanted names are the common name and the current names', async () => {
  const order = await threeNames();
  const { id } = await requireIssued(order, body({ common_name: MAIL }));
  assert.deepEqual(await namesIn(order, id), [MAIL, WWW, APEX]);
  const { common_name, dns_names } = await show(app, order);
  assert.deepEqual([common_name, dns_names], [MAIL, [MAIL, WWW, APEX]]);
  assert.equal(new X509Certificate((await certificate(app, order, id)).pem).subject, `CN=${MAIL}`);
  assert.deepEqual(revoked(order), []);
  // Also for a new name.
  const { data } = (await reissue(app, order, body({ common_name: 'new.example.com' }, {}), '?dry_run=true')).body;
  assert.deepEqual([data.plan.added_names, data.plan.removed_names], [['new.example.com'], []]);
});

rule('reissue 26', 'agree as A-labels in lower case, with any final dot removed', async () => {
  const idn = 'xn--bcher-kva.example.com';
  const order = await newOrder(app, { product: 'ssl-dv-fixed', dnsNames: [APEX, idn, '*.example.com'] });
  const other = {
    common_name: 'WWW.Example.COM.',
    dns_names: ['EXAMPLE.com.', 'Bücher.example.com', '*.EXAMPLE.com', 'XN--bcher-KVA.example.com'],
  };
  const { id } = await requireIssued(order, body(other));
  assert.deepEqual(
    await namesIn(order, id),
    [WWW, APEX, idn, '*.example.com'],
    'a product with fixed names found no change',
  );
  const { id: repeated } = await requireIssued(
    order,
    body({ ...other, dns_names: [...other.dns_names, APEX, 'example.COM'] }),
  );
  assert.deepEqual(await namesIn(order, repeated), [WWW, APEX, idn, '*.example.com']);
  // A wildcard is a different name from those it covers.
  const json = body({ common_name: '*.example.com', dns_names: [] });
  const { details } = await requireRefused(order, json, [400, 'invalid_sans', 'certificate.dns_names']);
  assert.deepEqual(details.removed_names, [WWW, APEX, idn]);
});

rule('reissue 27', 'is found by comparing with the current certificate of the order', async () => {
  const order = await threeNames();
  await requireIssued(order, body({ dns_names: [] }, REMOVE));
  // Back again: no name of the current certificate is removed, so no consent is needed, although the first one had
  // three.
  const { data } = (await reissue(app, order, body({ dns_names: [MAIL] }), '?dry_run=true')).body;
  assert.deepEqual([data.plan.added_names, data.plan.removed_names], [[MAIL], []]);
  await requireIssued(order, body({ dns_names: [MAIL] }));
  const { details } = await requireRefused(order, body({ dns_names: [APEX] }), [
    409,
    'remove_domain_not_confirmed',
    'i_know_remove_domain_will_revoke_before_cert',
  ]);
  assert.deepEqual(details.removed_names, [MAIL]);
});

rule(
  'reissue 28',
  'list the names that would go and the identifiers of the certificates that would be revoked',
  async () => {
    const order = await threeNames({ product: 'ssl-dv-replace' });
    const lost = body({ dns_names: [APEX] });
    const first = await requireRefused(order, lost, [409, 'remove_domain_not_confirmed', Object.keys(REMOVE)[0]!]);
    assert.deepEqual(first.details, { removed_names: [MAIL], certificates: [order.certificateId] });
    const json = body({ dns_names: [APEX] }, REMOVE);
    const second = await requireRefused(order, json, [409, 'revoke_last_cert_not_confirmed', Object.keys(REPLACE)[0]!]);
    assert.deepEqual(second.details, { removed_names: [MAIL], certificates: [order.certificateId] });

    // For a product that keeps earlier certificates, each valid one with that name.
    const kept = await threeNames();
    const { id: again } = await requireIssued(kept, body());
    const { id: smaller } = await requireIssued(kept, body({ dns_names: [APEX, MAIL] }));
    const { details } = await requireRefused(kept, lost, [409, 'remove_domain_not_confirmed', Object.keys(REMOVE)[0]!]);
    assert.deepEqual(details.removed_names, [MAIL]);
    assert.deepEqual([...details.certificates].sort(), [kept.certificateId, again, smaller].sort());
    const { id: last } = await requireIssued(kept, { ...lost, ...REMOVE });
    const found = revoked(kept);
    assert.deepEqual(found.map((one) => one.certificate_id).sort(), [...details.certificates].sort());
    for (const one of found) assert.deepEqual([one.cause, one.caused_by_id], ['name_removed', last]);
    const shown = await certificate(app, kept, again);
    assert.deepEqual([shown.revocation.reason, shown.revocation.due_at], ['superseded', new Date(NOON).toISOString()]);
    // A certificate already scheduled for revocation is not listed again, and one without the name not at all.
    const next = await requireRefused(kept, body({ dns_names: [] }), [
      409,
      'remove_domain_not_confirmed',
      Object.keys(REMOVE)[0]!,
    ]);
    assert.deepEqual(next.details, { removed_names: [APEX], certificates: [last] });
  },
);

rule(
  'errors remove_domain_not_confirmed',
  'the reissue would remove a name and the caller has not consented',
  async () => {
    const order = await threeNames();
    for (const json of [body({ dns_names: [] }), body({ common_name: 'new.example.com', dns_names: [WWW, APEX] })]) {
      await requireRefused(order, json, [
        409,
        'remove_domain_not_confirmed',
        'i_know_remove_domain_will_revoke_before_cert',
      ]);
    }
  },
);

rule(
  'errors revoke_last_cert_not_confirmed',
  'the product revokes the previous certificate on reissue and the caller has not consented',
  async () => {
    const order = await newOrder(app, { product: 'ssl-dv-replace' });
    await requireRefused(order, body(), [409, 'revoke_last_cert_not_confirmed', 'i_know_will_revoke_last_cert']);
  },
);

const BAD_NAMES: Readonly<Record<string, readonly string[]>> = {
  underscore: ['a_b.example.com', '_dmarc.example.com', 'a_.example.com', '*.a_b.example.com'],
  'malformed label': [
    ...['-a.example.com', 'a-.example.com', 'a..example.com', '.example.com', 'example.com..', '.', '', ' ', '*'],
    ...[
      `${'a'.repeat(64)}.example.com`,
      `${'a.'.repeat(130)}com`,
      'x'.repeat(100_000),
      'exa mple.com',
      'a\0.example.com',
    ],
    ...['https://example.com', 'example.com:443', 'example.com/x', 'a@example.com', 'example.com\n', 'DNS:example.com'],
    ...['xn--a.example.com', 'xn--.example.com', 'ab--c.example.com', 'a,b.example.com', "a'.example.com"],
  ],
  'U-label': ['例子。com', 'ｅxample.com', 'example。com', 'exam\u200dple.com', '\u212a.example.com', '🔏.com'],
  address: ['192.0.2.1', '1.2.3.4.', '[2001:db8::1]', '2001:db8::1', '127.1', '0x7f000001', 'example.123'],
  'internal suffix': [
    ...['localhost', 'www', 'db.internal', 'printer.local', 'a.localhost', 'router.home.arpa', 'x.test', 'x.example'],
    ...['x.invalid', 'x.onion', '1.2.0.192.in-addr.arpa', 'x.corp-does-not-exist'],
  ],
  'public suffix': ['com', 'co.uk', 'github.io', '*.com', '*.co.uk', '*.github.io', '*.xn--p1ai'],
  wildcard: ['**.example.com', '*.*.example.com', 'a*.example.com', 'www.*.com', '*example.com', '*.'],
};

rule('errors invalid_domain', '`invalid_domain` is 400: a name is not one the product can certify', async () => {
  const order = await newOrder(app);
  for (const [what, names] of Object.entries(BAD_NAMES)) {
    for (const name of names) {
      const second = body({ dns_names: [WWW, name] });
      const { message } = await requireRefused(order, second, [400, 'invalid_domain', 'certificate.dns_names.1']);
      assert.ok(message.length < 600, `${what}: the response does not repeat an arbitrarily long name`);
      if (name === '') continue; // An empty common name is a missing one.
      const first = body({ common_name: name });
      await requireRefused(order, first, [400, 'invalid_domain', 'certificate.common_name']);
    }
  }
  assert.match(
    (await reissue(app, order, body({ common_name: 'ｂücher.example.com' }))).body.message,
    /xn--bcher-kva\.example\.com/,
    'the remedy is given',
  );
  assert.match(
    (await reissue(app, order, body({ dns_names: [''] }))).body.message,
    /Send \[\] for the common name alone; a reissue without dns_names keeps the current names/,
  );
  // Unusual but valid names.
  for (const name of [
    '*.example.co.uk',
    'a--b.example.com',
    '1.example.com',
    'xn--bcher-kva.example.com',
    'x.github.io',
  ]) {
    const { status, text } = await reissue(app, order, body({ dns_names: [name] }), '?dry_run=true');
    assert.equal(status, 200, text);
  }
  // Under private rules internal names are allowed, but their syntax is still checked.
  const inside = await newOrder(app, { product: 'tls-private', commonName: 'db.internal' });
  await requireIssued(inside, body({ common_name: 'db.internal' }));
  const json = body({ common_name: 'd_b.internal' });
  await requireRefused(inside, json, [400, 'invalid_domain', 'certificate.common_name']);
});

rule(
  'errors invalid_sans',
  'the wanted names differ from the current ones in a way the product does not allow',
  async () => {
    const wanted = (...names: string[]) => body({ dns_names: names }, REMOVE);
    const field = 'certificate.dns_names';
    const fixed = await threeNames({ product: 'ssl-dv-fixed' });
    for (const json of [
      wanted(),
      wanted(APEX),
      wanted(APEX, MAIL, 'new.example.com'),
      body({ common_name: 'new.example.com' }),
    ]) {
      await requireRefused(fixed, json, [400, 'invalid_sans', field]);
    }
    await requireIssued(fixed, wanted(MAIL, APEX));
    const growing = await threeNames({ product: 'ssl-dv-add' });
    for (const json of [wanted(), wanted(APEX), wanted(APEX, 'new.example.com')]) {
      const { details } = await requireRefused(growing, json, [400, 'invalid_sans', field]);
      assert.ok(details.removed_names.includes(MAIL));
    }
    const answer = await reissue(app, growing, wanted(MAIL, APEX, 'new.example.com'));
    assert.equal((await certificate(app, growing, answer.body.data.certificate.id)).status, 'pending');
    const free = await threeNames();
    const many = Array.from({ length: 1000 }, (_, index) => `n${index}.example.com`);
    await requireRefused(free, wanted(...many), [400, 'invalid_sans', field]);
    await requireRefused(free, wanted(...many.slice(0, 100)), [400, 'invalid_sans', field]);
    const { status } = await reissue(app, free, wanted(...many.slice(0, 99)), '?dry_run=true');
    assert.equal(status, 200, 'a hundred in total are accepted');
    for (const product of ['code-signing', 'document-signing']) {
      const signing = await newOrder(app, { product, commonName: 'Example Ltd' });
      await requireRefused(signing, body({ common_name: 'Other Ltd' }), [
        400,
        'invalid_sans',
        'certificate.common_name',
      ]);
      await requireRefused(signing, body({ common_name: undefined, dns_names: [WWW] }), [400, 'invalid_sans', field]);
    }
  },
);

rule('reissue 47', 'A name may be sent with U-labels', async () => {
  const [unicode, ascii] = ['bücher.example.com', 'xn--bcher-kva.example.com'];
  const order = await newOrder(app, { commonName: ascii });
  const { id } = await requireIssued(order, body({ common_name: unicode }), 'the stored proof is found');
  const shown = await certificate(app, order, id);
  assert.deepEqual([shown.common_name, shown.dns_names], [ascii, [ascii]]);
  assert.deepEqual([shown.common_name_unicode, shown.dns_names_unicode], [unicode, [unicode]]);
  const [entry] = (await show(app, order)).dcv_val;
  assert.deepEqual([entry.domain, entry.domain_unicode], [ascii, unicode]);
});
