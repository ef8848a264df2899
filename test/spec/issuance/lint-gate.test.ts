// The gate of external linters before a signature. The linter is a real process; what it does depends on the names in the
// certificate that it is shown (test/support/linter.mjs).
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import { type Answer, newFolder, startApp } from '../../support/app.ts';
import { rule } from '../../support/contract.ts';
import { startDomainApp } from '../../support/domain-app.ts';
import { lintersFile, TEST_LINTER } from '../../support/linters.ts';
import { body, newOrder, reissue, show } from '../../support/orders.ts';
import { OWN_PRODUCT, productsFile } from '../../support/products.ts';

const LINTED = { ...OWN_PRODUCT, id: 'linted', csr: 'optional', requires_lint: true };
const CONSENT = { i_know_remove_domain_will_revoke_before_cert: true };
const folder = newFolder();
const [shownTo, refusing] = [join(folder, 'shown.pem'), join(folder, 'refusing')];
/** Keeps what it was shown, and passes it. */
const KEEP = `require('fs').copyFileSync(process.argv[1], process.argv[2]); console.log('{"results":[]}')`;
const WITNESS = { name: 'witness', format: 'pkilint', command: [process.execPath, '-e', KEEP, '{file}', shownTo] };
const world = await startDomainApp({
  RESEAL_PRODUCTS_FILE: productsFile(LINTED),
  RESEAL_LINTERS_FILE: lintersFile(
    { ...TEST_LINTER, command: [...TEST_LINTER.command, refusing], limit_ms: 30_000 },
    WITNESS,
  ),
});
after(() => world[Symbol.asyncDispose]());
const { app } = world;
const database = new DatabaseSync(join(app.folder, 'reseal.db'), { timeout: 5_000 });
after(() => database.close());
const rows = (sql: string, ...values: string[]) => database.prepare(sql).all(...values) as Record<string, string>[];

const issued = await newOrder(app, { product: 'linted', commonName: 'a.example.com' });
const { key } = issued;
const reissueWith = (...dns_names: string[]): Promise<Answer> =>
  reissue(app, issued, body({ common_name: 'a.example.com', dns_names }, CONSENT));
const place = (common_name: string, top: object = {}) =>
  app.call('POST', '/openapi/v3/orders/linted', { key, json: body({ common_name }, { dcv_method: 'dns', ...top }) });
for (const name of ['refused', 'warned', 'crashes', 'floods', 'mute', 'babbles'])
  await app.app.store.proofs.record(key.accountId, `lint-${name}.example.com`, 'dns', app.now());
const refusals = () => app.app.store.lintResults.listRefused(100);

rule('lint 1', 'what they said is durable before the signature', async () => {
  assert.deepEqual(
    rows('select verdict, linters from lint_result where order_id = ?', issued.id).map((row) => ({ ...row })),
    [{ verdict: 'passed', linters: '["test-linter","witness"]' }],
  );
  // The trigger stands for a crash after the result was stored, and before the certificate was.
  database.exec("create trigger no_certificate before insert on certificate begin select raise(abort, 'crash'); end");
  assert.equal((await reissueWith()).status, 500);
  database.exec('drop trigger no_certificate');
  const serials = rows('select serial from lint_result where order_id = ?', issued.id);
  assert.equal(serials.length, 2);
  app.advance(11_000);
  await app.issuance.sweep();
  const warned = await reissueWith('lint-warned.example.com');
  assert.equal(warned.status, 200, 'a warning refuses nothing by default');
});

rule('lint 2', 'signed with a key of the issuer', async () => {
  const { status, body: answer } = await reissueWith();
  assert.equal(status, 200);
  const seen = new X509Certificate(readFileSync(shownTo));
  const { Certificate } = (await app.call('GET', `/openapi/v3/certs/${answer.data.certificate.id}`, { key })).body.data;
  const signed = new X509Certificate(Certificate.pem);
  const issuer = new X509Certificate(Certificate.ica_pem ?? Certificate.chain);
  assert.equal(seen.serialNumber, signed.serialNumber, 'the very certificate');
  assert.equal(signed.verify(issuer.publicKey), true);
  assert.equal(seen.verify(issuer.publicKey), false, 'worthless to its reader');
  assert.equal(seen.issuer, signed.issuer);
});

rule('lint 3', '`lint_refused` with the findings in `details`', async () => {
  const before = await show(app, issued);
  const { status, body: answer } = await reissueWith('lint-refused.example.com');
  assert.deepEqual([status, answer.code], [422, 'lint_refused']);
  assert.deepEqual(answer.details.findings, [
    { linter: 'test-linter', severity: 'error', code: 'e_test_rule', text: 'a rule of this test' },
  ]);
  const { audit: _, ...after } = await show(app, issued);
  assert.deepEqual(after, before);
  const [refused] = await refusals();
  assert.equal(refused?.orderId, issued.id);
  assert.deepEqual(
    rows('select * from certificate where serial = ?', refused?.serial ?? ''),
    [],
    'not signed, not voided',
  );
  assert.deepEqual(rows('select * from signing'), []);
  const entries = await app.app.store.audit.listOf(key.accountId, { limit: 100 });
  const entry = entries.findLast(({ action }) => action === 'certificate:lint_refused');
  assert.deepEqual([entry?.subject, entry?.details.why], [issued.id, 'test-linter e_test_rule']);
  assert.equal((await reissueWith()).status, 200, 'the order is free');
});

rule(
  'errors lint_refused',
  'is 422: a linter of the operator refused the certificate, and nothing was signed',
  async () => {
    assert.equal((await place('lint-refused.example.com')).status, 422);
  },
);

rule('lint 3', 'a new one ends as `canceled`', async () => {
  app.advance(1_000);
  const alternative_order_id = 'shop-lint';
  assert.equal((await place('lint-refused.example.com', { alternative_order_id })).body.code, 'lint_refused');
  const [refused] = await refusals();
  const left = await app.call('GET', `/openapi/v3/orders/${refused?.orderId}`, { key });
  assert.deepEqual([left.body.data.status, left.body.data.alternative_order_id], ['canceled', null]);
  assert.equal((await place('a.example.com', { alternative_order_id })).status, 200, 'its own id is free again');
});

rule('lint 4', 'crashes, floods, or says what cannot be read', async () => {
  const expected = {
    'lint-crashes': /ended by SIGSEGV/,
    'lint-floods': /printed more than/,
    'lint-mute': /printed nothing/,
    'lint-babbles': /not that of zlint/,
  };
  for (const [name, why] of Object.entries(expected)) {
    app.advance(1_000);
    const answer = await reissueWith(`${name}.example.com`);
    assert.deepEqual([answer.status, answer.body.code], [503, 'service_busy'], name);
    assert.ok(Number(answer.headers.get('retry-after')) > 0, name);
    const [{ verdict } = { verdict: { kind: 'passed' as const } }] = await refusals();
    assert.equal(verdict.kind, 'failed', name);
    if (verdict.kind === 'failed') assert.match(verdict.why, why);
  }
  assert.equal((await reissueWith()).status, 200);
});

/** A service whose linter never answers. */
const HANGING = { ...TEST_LINTER, command: [process.execPath, '-e', 'setInterval(() => {}, 1000)'], limit_ms: 1_500 };
const stuck = await startApp({
  RESEAL_PRODUCTS_FILE: productsFile(LINTED),
  RESEAL_LINTERS_FILE: lintersFile(HANGING),
});
after(() => stuck[Symbol.asyncDispose]());

rule('lint 5', 'are issued while a linter hangs', async () => {
  let isHanging = true;
  const hanging = newOrder(stuck, { product: 'linted' }).finally(() => {
    isHanging = false;
  });
  const refused = assert.rejects(hanging, { code: 'service_busy' });
  const other = await newOrder(stuck);
  assert.equal((await reissue(stuck, other, body())).status, 200);
  assert.equal(isHanging, true);
  await refused;
  const [result] = await stuck.app.store.lintResults.listRefused(1);
  assert.match(result?.verdict.kind === 'failed' ? result.verdict.why : '', /did not end within/);
});

rule('lint 6', 'goes on waiting, and is issued once its linters pass it', async () => {
  app.advance(1_000);
  writeFileSync(refusing, '');
  const { data } = (await place('lint-later.example.com')).body;
  const order = { key, id: data.id, certificateId: data.certificate.id };
  await world.publish(order);
  await world.complete(order);
  assert.equal((await show(app, order)).status, 'domain_verifing');
  assert.equal((await refusals())[0]?.certificateId, order.certificateId);
  rmSync(refusing);
  app.advance(60_000);
  await world.complete(order);
  assert.equal((await show(app, order)).status, 'issued');
});

rule('lint 7', 'is not issued where no linter is configured', async () => {
  await using bare = await startApp({ RESEAL_PRODUCTS_FILE: productsFile(LINTED) });
  await assert.rejects(newOrder(bare, { product: 'linted' }), { code: 'service_busy' });
  assert.ok(bare.lines.some((line) => 'text' in line && /linted cannot be issued/.test(String(line.text))));
});
