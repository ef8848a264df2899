// Domain validation in a reissue: the method, its scope, and the binding of a persistent record.
import assert from 'node:assert/strict';
import { PRODUCTS } from '../../../src/domain/catalog/products.ts';
import { NOON, startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { body, certificate, newOrder, type PlacedOrder, show } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';
import { startWatchedApp } from '../../support/watched-app.ts';

const NARROW = { ...OWN_PRODUCT, id: 'narrow', csr: 'optional' };
const { app, requireBad, requireAnswered } = await startWatchedApp({ RESEAL_PRODUCTS_FILE: productsFile(NARROW) });

const NOW_SECONDS = NOON / 1000;
const [UNTIL, LATER] = [1_900_000_000, 1_950_000_000];
const NEW = 'new.example.com';

const ask = (order: PlacedOrder, top: object, change = {}) => requireAnswered(order, body(change, { ...top }));
const requireRefused = (order: PlacedOrder, top: object, code: string, field: string, change = {}) =>
  requireBad(order, body(change, { ...top }), field, code);

const binding = async (order: PlacedOrder) => {
  const { dcv_method, persist_until, persist_policy } = await show(app, order);
  return [dcv_method, persist_until, persist_policy];
};
const PERSIST = { dcv_method: 'dns-persist' };
/** An order with its own binding. */
async function boundOrder(until: number = UNTIL, policy = 'wildcard'): Promise<PlacedOrder> {
  const order = await newOrder(app);
  await ask(order, { ...PERSIST, persist_until: until, persist_policy: policy });
  assert.deepEqual(await binding(order), ['dns-persist', until, policy]);
  return order;
}

rule('dcv 1', 'A reissue without `dcv_method` uses the method the order already has', async () => {
  for (const method of ['dns', 'file', 'dns-persist']) {
    const order = await newOrder(app);
    await ask(order, { dcv_method: method });
    assert.equal((await show(app, order)).dcv_method, method);
    await ask(order, {});
    assert.equal((await show(app, order)).dcv_method, method);
    // A file never validates a wildcard, which reveals the method that is used.
    const wildcard = { dns_names: ['*.example.com'] };
    if (method === 'file') await requireRefused(order, {}, 'invalid_dcv_method', 'dcv_method', wildcard);
    else assert.equal((await certificate(app, order, await ask(order, {}, wildcard))).status, 'pending');
    const pending = await newOrder(app);
    await ask(pending, { dcv_method: method });
    await ask(pending, {}, { dns_names: [NEW] });
    const { status, dcv_method } = await show(app, pending);
    assert.deepEqual([status, dcv_method], ['reissuing', method]);
  }
});

rule('dcv 2', '`dcv_scope` is `fqdn` by default or `base_domain`; one that the product does not offer', async () => {
  const order = await newOrder(app);
  assert.equal((await show(app, order)).dcv_scope, 'fqdn');
  await ask(order, {});
  assert.equal((await show(app, order)).dcv_scope, 'fqdn');
  for (const scope of ['base_domain', 'fqdn']) {
    await ask(order, { dcv_scope: scope });
    assert.equal((await show(app, order)).dcv_scope, scope);
  }
  for (const scope of ['zone', 'FQDN', 'base-domain', 'wildcard', ' fqdn']) {
    await requireRefused(order, { dcv_scope: scope }, 'invalid_parameters', 'dcv_scope');
  }
  const narrow = await newOrder(app, { product: 'narrow' });
  const { message } = await requireRefused(narrow, { dcv_scope: 'base_domain' }, 'invalid_parameters', 'dcv_scope');
  assert.match(message, /offers fqdn/);
  await ask(narrow, { dcv_scope: 'fqdn' });
  for (const product of ['code-signing', 'document-signing']) {
    const signing = await newOrder(app, { product });
    await requireRefused(signing, { dcv_scope: 'fqdn' }, 'invalid_parameters', 'dcv_scope');
  }
});

rule('dcv 3', 'without a mail server configured no product offers `email`', async () => {
  // Dual certificates need another kind of key; their methods are covered below.
  for (const { id, kind } of [...app.issuance.products.values()].filter(({ form }) => form === 'single')) {
    const order = await newOrder(app, { product: id });
    const offered = kind !== 'ssl' ? [] : id === 'narrow' ? ['dns'] : ['dns', 'file', 'dns-persist'];
    const consent = { i_know_will_revoke_last_cert: true };
    for (const method of ['dns', 'file', 'email', 'dns-persist']) {
      if (offered.includes(method)) {
        await ask(order, { ...consent, dcv_method: method });
        assert.equal((await show(app, order)).dcv_method, method);
      } else {
        await requireRefused(order, { ...consent, dcv_method: method }, 'invalid_dcv_method', 'dcv_method');
      }
    }
  }
  assert.ok(PRODUCTS.every(({ dcvMethods }) => !(dcvMethods as readonly string[]).includes('email')));
  const file = productsFile({ ...NARROW, dcv_methods: ['dns', 'email'] });
  await assert.rejects(startApp({ RESEAL_PRODUCTS_FILE: file }), /cannot serve it yet/);
});

rule('errors invalid_dcv_method', 'the product does not offer the validation method that was asked for', async () => {
  const order = await newOrder(app);
  for (const method of ['email', 'http', 'DNS', 'dns_persist', 'dns-persist ', 'constructor', 'x'.repeat(10_000)]) {
    const { message } = await requireRefused(order, { dcv_method: method }, 'invalid_dcv_method', 'dcv_method');
    assert.match(message, /dns, file, dns-persist/, 'the response lists the allowed methods');
  }
  const narrow = await newOrder(app, { product: 'narrow' });
  for (const method of ['file', 'dns-persist']) {
    await requireRefused(narrow, { dcv_method: method }, 'invalid_dcv_method', 'dcv_method');
  }
});

rule('reissue 6', 'have an effect only if `dcv_method` of the same request is `dns-persist`', async () => {
  const fields = { persist_until: LATER, persist_policy: 'fqdn' };
  const order = await boundOrder();
  // The order's method is dns-persist, but this request does not specify it.
  await ask(order, fields);
  assert.deepEqual(await binding(order), ['dns-persist', UNTIL, 'wildcard']);
  for (const method of ['dns', 'file']) {
    await ask(order, { ...fields, dcv_method: method });
    assert.deepEqual(await binding(order), [method, UNTIL, 'wildcard']);
  }
  await ask(order, { ...fields, ...PERSIST });
  assert.deepEqual(await binding(order), ['dns-persist', LATER, 'fqdn']);
  // Also when the certificate is pending.
  await ask(order, { ...PERSIST, persist_until: UNTIL }, { dns_names: [NEW] });
  assert.deepEqual(await binding(order), ['dns-persist', UNTIL, 'fqdn']);
});

rule('persist 1', 'leaving out `persist_until` keeps the value of the order', async () => {
  const order = await boundOrder();
  await ask(order, PERSIST);
  assert.equal((await binding(order))[1], UNTIL);
  await ask(order, { ...PERSIST, persist_policy: 'wildcard' });
  assert.equal((await binding(order))[1], UNTIL);
  const unbound = await newOrder(app);
  await ask(unbound, PERSIST);
  assert.equal((await binding(unbound))[1], null);
});

rule('persist 2', '`persist_until` 0 clears the value of the order: the authorization has no expiry', async () => {
  const order = await boundOrder();
  await ask(order, { ...PERSIST, persist_until: 0 });
  assert.equal((await binding(order))[1], null);
  await ask(order, { ...PERSIST, persist_until: UNTIL });
  await requireRefused(order, { ...PERSIST, persist_until: null }, 'invalid_parameters', 'persist_until');
  assert.equal((await binding(order))[1], UNTIL, 'null does not clear');
});

rule('persist 3', 'With `dns-persist`, leaving out `persist_policy` means `fqdn`', async () => {
  const order = await boundOrder();
  await ask(order, { ...PERSIST, persist_until: LATER });
  assert.deepEqual(await binding(order), ['dns-persist', LATER, 'fqdn'], 'the wildcard of the order is not kept');
});

rule('persist 4', 'a value that is neither 0 nor in the future is `invalid_parameters`', async () => {
  const order = await boundOrder();
  const milliseconds = NOON + 86_400_000;
  for (const until of [1, -1, NOW_SECONDS, NOW_SECONDS - 1, milliseconds, Number.MAX_SAFE_INTEGER, 1e300, -1e300]) {
    await requireRefused(order, { ...PERSIST, persist_until: until }, 'invalid_parameters', 'persist_until');
  }
  await ask(order, { ...PERSIST, persist_until: NOW_SECONDS + 1 });
  assert.equal((await binding(order))[1], NOW_SECONDS + 1, 'seconds');
});

rule('persist 5', 'a `persist_policy` other than `fqdn` and `wildcard` is `invalid_parameters`', async () => {
  const order = await boundOrder();
  for (const policy of ['', 'zone', 'FQDN', 'Wildcard', 'wildcard ', '*']) {
    await requireRefused(order, { ...PERSIST, persist_policy: policy }, 'invalid_parameters', 'persist_policy');
  }
});

rule('persist 6', 'With another `dcv_method`, or none, the persist binding of the order stays as it is', async () => {
  const order = await boundOrder();
  for (const top of [{}, { dcv_method: 'dns' }, { dcv_method: 'file' }]) {
    for (const fields of [{}, { persist_until: 0 }, { persist_until: LATER }, { persist_policy: 'fqdn' }]) {
      await ask(order, { ...top, ...fields });
      assert.deepEqual((await binding(order)).slice(1), [UNTIL, 'wildcard']);
    }
  }
});
