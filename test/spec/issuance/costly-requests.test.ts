// Requests that would cost more than others: what is done outside the event loop, and what is not done at all.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { after, test } from 'node:test';
import { parseCsr, readCsr } from '../../../src/adapters/ca/csr.ts';
import { isCostly } from '../../../src/adapters/ca/public-key.ts';
import { csrInspector, inspectCsr } from '../../../src/adapters/workers/inspect-csr.ts';
import { workerPool } from '../../../src/adapters/workers/pool.ts';
import { Refusal } from '../../../src/domain/errors.ts';
import { startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { csr, KEY_KINDS, keyPair, pem } from '../../support/csr.ts';
import { body, certificate, csrFor, newOrder, reissue, spkiIn } from '../../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());

/** How many threads were started meanwhile. */
async function threadsStarted(work: () => Promise<void>): Promise<number> {
  let count = 0;
  const note = () => {
    count += 1;
  };
  subscribe('worker_threads', note);
  await work().finally(() => unsubscribe('worker_threads', note));
  return count;
}

/** Changed in the signature, which is at the end. */
const forged = (text: string): string => {
  const der = Buffer.from(text.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  der[der.length - 1]! ^= 1;
  return der.toString('base64');
};

rule('quota 7', 'is verified outside the event loop; accounts take turns', async () => {
  const order = await newOrder(app);
  const ordinary = await threadsStarted(async () => {
    assert.equal((await reissue(app, order, body())).status, 200);
  });
  assert.equal(ordinary, 0, 'P-256 stays on the event loop');
  const started = await threadsStarted(async () => {
    const { status, body: answer, text } = await reissue(app, order, body({ csr: csrFor('p521') }));
    assert.equal(status, 200, text);
    const issued = await certificate(app, order, answer.data.certificate.id);
    assert.deepEqual(spkiIn(issued), keyPair('p521').spki);
  });
  assert.equal(started, 1);
  // What is wrong is told as before, and where it was told before among the checks.
  const wrong = body({ csr: forged(csrFor('p521')) });
  const { status, body: answer } = await reissue(app, order, wrong);
  assert.deepEqual([status, answer.code, answer.field], [400, 'invalid_csr', 'certificate.csr']);
  assert.match(answer.message, /signature/);
  const elsewhere = await reissue(app, { ...order, id: 'nothing' }, wrong);
  assert.equal(elsewhere.body.code, 'order_not_found');
  const both = await reissue(app, order, { ...wrong, certificate: { ...wrong.certificate, common_name: '-' } });
  assert.equal(both.body.code, 'invalid_domain');
});

test('which CSRs are costly, and that a worker thread finds in them what the event loop would', async () => {
  const isHigh = (text: string) => isCostly(parseCsr(text).publicKey);
  const costly = KEY_KINDS.filter((kind) => isHigh(csrFor(kind)));
  assert.deepEqual(costly, ['p521']);
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 4104 });
  const spki = new Uint8Array(publicKey.export({ format: 'der', type: 'spki' }));
  const long = pem(csr({ key: { privateKey, spki } }));
  assert.ok(isHigh(long));

  await using pool = workerPool({ threads: 1 });
  const inspector = csrInspector(pool);
  for (const junk of ['', 'x', '-----BEGIN ', 'A'.repeat(40_000), 'MAA=', 'MIAA', forged(csrFor())]) {
    const found = inspector.inspectCsr(junk, 'a');
    assert.ok(!(found instanceof Promise), 'refused on the event loop, when its key is asked for');
    assert.throws(found.publicKey, { code: 'invalid_csr' });
  }
  for (const text of [long, csrFor('p521'), csrFor(), forged(long), forged(csrFor()), 'junk', '']) {
    const found = await inspectCsr(pool, text);
    const outcome = (read: () => unknown) => {
      try {
        return read();
      } catch (error) {
        assert.ok(error instanceof Refusal);
        return [error.code, error.facts.field, error.facts.reason];
      }
    };
    assert.deepEqual(
      outcome(found.publicKey),
      outcome(() => readCsr(text).publicKey),
    );
  }
});

rule('quota 7', 'of more than 64 that wait, the newest of the account with the most is `service_busy`', async () => {
  await using pool = workerPool({ threads: 1 });
  const text = csrFor('p521');
  const order: string[] = [];
  const ask = (owner: string, count: number) =>
    Array.from({ length: count }, () =>
      inspectCsr(pool.of(owner), text).then(
        () => void order.push(owner),
        (error: Refusal) => void order.push(`${owner} ${error.code}`),
      ),
    );
  // One runs, 64 wait.
  const flood = ask('flood', 65);
  const others = [...ask('a', 2), ...ask('b', 1)];
  await Promise.all([...flood, ...others]);
  const count = (what: string) => order.filter((one) => one === what).length;
  assert.deepEqual([count('flood'), count('flood service_busy'), count('a'), count('b')], [62, 3, 2, 1]);
  const served = order.filter((one) => !one.includes(' '));
  assert.deepEqual(served.slice(0, 6), ['flood', 'flood', 'a', 'b', 'flood', 'a']);
});

rule(
  'key 4',
  'An RSA key is examined for a prime modulus outside the event loop, when it is new to the process',
  async () => {
    await using own = await startApp();
    const order = await newOrder(own);
    const reissueRsa = async () => {
      assert.equal((await reissue(own, order, body({ csr: csrFor('rsa2048') }))).status, 200);
    };
    assert.deepEqual([await threadsStarted(reissueRsa), await threadsStarted(reissueRsa)], [1, 0]);
  },
);

rule('key 4', 'many at once wait, and none is `service_busy`', async () => {
  await using pool = workerPool({ threads: 1, maxQueued: 16 });
  const { inspectCsr: inspect, requireStrongKey } = csrInspector(pool, 1);
  const text = csrFor('rsa2048');
  const found = await Promise.all(Array.from({ length: 100 }, () => inspect(text, 'a')));
  for (const one of found) assert.deepEqual(one?.publicKey().spki, keyPair('rsa2048').spki);
  const isCheap = (csr: string) => !(inspect(csr, 'a') instanceof Promise);
  assert.ok(isCheap(text), 'known by now');
  // Its modulus is not looked at again; that of any other key is.
  const known = { ...found[0]!.publicKey(), spki: new Uint8Array() };
  requireStrongKey(known);
  assert.throws(() => requireStrongKey({ ...known, fingerprint: 'of another key' }));
  assert.ok(isCheap(csrFor('p384')));
  // Another one takes its place: what is remembered is bounded.
  await inspect(csrFor('rsa3072'), 'a');
  assert.ok(isCheap(csrFor('rsa3072')));
  const again = inspect(text, 'a');
  assert.ok(again instanceof Promise);
  await again;
});

rule('quota 11', 'covers the fields that the operation knows, and no others', async () => {
  const order = await newOrder(app);
  const sent = body();
  const once = { 'idempotency-key': 'known' };
  const first = await reissue(app, order, sent, '', once);
  assert.equal(first.status, 200, first.text);
  const { certificate: fields } = sent;
  const turned = { certificate: Object.fromEntries(Object.entries(fields).reverse()) };
  const wide = { certificate: { ...fields, unknown: { csr: 1 } }, unknown: [{ certificate: {} }], csr: 'elsewhere' };
  for (const same of [sent, turned, wide]) {
    assert.deepEqual((await reissue(app, order, same, '', once)).body, first.body);
  }
  for (const another of [
    body({ csr: csrFor('p384') }),
    { ...sent, dcv_scope: 'fqdn' },
    { certificate: { ...fields, dns_names: [] } },
    { ...sent, i_know_will_revoke_last_cert: false },
  ]) {
    assert.equal((await reissue(app, order, another, '', once)).body.code, 'idempotency_key_reused');
  }
});

rule('quota 12', 'A body that nests deeper than 64 levels is `invalid_parameters`', async () => {
  const key = await app.newKey();
  const put = (raw: string) =>
    app.call('PUT', '/openapi/v3/account', { key, raw, headers: { 'content-type': 'application/json' } });
  const nested = (levels: number) => `{"name":"x","unknown":${'['.repeat(levels)}${']'.repeat(levels)}}`;
  assert.equal((await put(nested(63))).status, 200);
  const { status, body: answer } = await put(nested(64));
  assert.deepEqual([status, answer.code], [400, 'invalid_parameters']);
  assert.match(answer.message, /64 levels/);
  assert.equal((await put(`{"name":${'{"a":'.repeat(64)}1${'}'.repeat(64)}}`)).body.code, 'invalid_parameters');
  // Brackets in texts are no levels, however their quotes are escaped; nor are those side by side.
  for (const fine of [
    JSON.stringify({ name: 'x', unknown: '['.repeat(100) }),
    JSON.stringify({ name: 'x', unknown: `"${'{'.repeat(100)}\\` }),
    JSON.stringify({ name: 'x', unknown: Array(200).fill([{}]) }),
  ]) {
    assert.equal((await put(fine)).status, 200, fine.slice(0, 40));
  }
  // As long as a body may be.
  const huge = await put(`{"name":"x","unknown":${'['.repeat(120_000)}${']'.repeat(120_000)}}`);
  assert.match(huge.body.message, /64 levels/);
});

rule('quota 12', 'and so is one of more than 10 000 strings, objects and arrays', async () => {
  const key = await app.newKey();
  const put = (unknown: unknown) => app.call('PUT', '/openapi/v3/account', { key, json: { name: 'x', unknown } });
  // The body, the array and two keys and a name are five.
  for (const part of ['', {}, []]) {
    assert.equal((await put(Array(9_995).fill(part))).status, 200);
    const { status, body: answer } = await put(Array(9_996).fill(part));
    assert.deepEqual([status, answer.code], [400, 'invalid_parameters']);
    assert.match(answer.message, /more than 10000/);
  }
  assert.equal((await put(Array(100_000).fill(1))).status, 200, 'numbers cost little');
});
