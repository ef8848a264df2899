// What the console tells operators about the service itself: authority, doctor, attention, history; and what its pages weigh.
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after } from 'node:test';
import { startApp } from '../../support/app.ts';
import { operatorCalls, signInOperator, withSession } from '../../support/console.ts';
import { rule } from '../../support/contract.ts';
import { waitFor } from '../../support/deliveries.ts';
import { reseal } from '../../support/in-process.ts';
import { newOrder } from '../../support/orders.ts';

const app = await startApp();
after(() => app[Symbol.asyncDispose]());
const { data } = operatorCalls(app, await signInOperator(app, 'alice', 'act'));

rule('console 71', 'lists issuers with purposes, expiry, fingerprint, counts', async () => {
  await newOrder(app);
  const { issuers } = await data('authority');
  const { out } = await reseal(['ca', 'list', '--json'], { RESEAL_DATA_DIR: app.folder }, app.now);
  const listed = JSON.parse(out).issuers;
  assert.deepEqual(
    issuers.map(({ id, fingerprint, issued, purposes }: Record<string, unknown>) => [
      id,
      fingerprint,
      issued,
      purposes,
    ]),
    listed.map(({ id, fingerprint, issued, purposes }: Record<string, unknown>) => [id, fingerprint, issued, purposes]),
  );
  const signing = issuers.find(({ issued }: { issued: number }) => issued > 0);
  const shard = 1;
  assert.equal((await app.call('GET', `/crl/${signing.id}/${shard}.crl`)).status, 200);
  const again = (await data('authority')).issuers.find(({ id }: { id: string }) => id === signing.id);
  const [crl] = again.crls;
  assert.deepEqual([crl.shard, crl.entries, crl.this_update < crl.next_update], [shard, 0, true]);
});

rule('console 72', 'One examination runs at a time in a process', async () => {
  const { examine } = app.app.operator;
  const first = examine(0);
  app.advance(5);
  const [one, other] = await Promise.all([first, examine(0)]);
  assert.equal(one.startedAt, other.startedAt);
  const ended = await waitFor('the examination ends', async () => {
    const doctor = await data('doctor');
    return doctor.ended_at !== null && doctor;
  });
  const { out } = await reseal(['doctor', '--json'], { RESEAL_DATA_DIR: app.folder }, app.now);
  const checks = (findings: readonly { check: string }[]) => findings.map(({ check }) => check);
  assert.deepEqual(checks(ended.findings), checks(JSON.parse(out).findings).slice(1));
  app.advance(10_000);
  assert.equal((await data('doctor')).started_at, ended.started_at);
  app.advance(1);
  assert.notEqual((await data('doctor')).started_at, ended.started_at);
});

rule('console 73', 'lists problems before warnings', async () => {
  const { accountId } = await app.newKey();
  {
    using db = new DatabaseSync(join(app.folder, 'reseal.db'));
    db.exec('pragma busy_timeout = 5000');
    db.prepare('insert into callback_lane (account_id, trips, failures) values (?, 1, 8)').run(accountId);
  }
  await newOrder(app, { commonName: 'waits.example.com', vouches: false });
  const kinds = async () => {
    const { attention } = await data('attention');
    const severities = attention.map(({ severity }: { severity: string }) => severity);
    assert.deepEqual(severities, severities.toSorted());
    return attention.map(({ kind }: { kind: string }) => kind);
  };
  const before = await kinds();
  assert.ok(before.includes('lanes') && before.includes('doctor') && !before.includes('waiting'), before.join());
  app.advance(24 * 3_600_000);
  const again = withSession(app, await signInOperator(app, 'next-day', 'view'));
  const { attention } = (await again('GET', 'operator/attention')).body.data;
  const waiting = attention.find(({ kind }: { kind: string }) => kind === 'waiting');
  assert.equal(waiting.count, 1);
  assert.ok(Date.parse(waiting.since) < app.now() - 24 * 3_600_000);
});

rule('console 74', 'at most 120 points of the last hour or of the last six', async () => {
  const asking = withSession(app, await signInOperator(app, 'drawing', 'view'));
  const points = async (hours: string) => (await asking('GET', `operator/history?hours=${hours}`)).body.data.points;
  await app.app.sampleMetrics();
  await newOrder(app, { commonName: 'drawn.example.com' });
  const key = await app.newKey();
  for (let count = 0; count < 3; count += 1) await app.call('GET', '/openapi/v3/orders', { key });
  await app.call('GET', '/openapi/v3/orders/none', { key });
  app.advance(15_000);
  await app.app.sampleMetrics();
  const last = (await points('1')).at(-1);
  assert.deepEqual([last.issued, last.refused, last.requests, last.waiting], [1, 1, 4, 1]);
  assert.ok(last.median_ms > 0 && last.slow_ms >= last.median_ms);
  app.advance(2 * 3_600_000);
  const late = withSession(app, await signInOperator(app, 'drawing-late', 'view'));
  const later = async (hours: string) => (await late('GET', `operator/history?hours=${hours}`)).body.data.points.length;
  assert.deepEqual([await later('1'), (await later('6')) > 0], [0, true]);
  assert.equal((await late('GET', 'operator/history?hours=7')).body.field, 'hours');
});

rule('console 76', 'loads at most 150 KB of script', async () => {
  const page = await app.call('GET', '/console/');
  const base = /src="(assets\/[^/]+)\/app\.ts"/.exec(page.text)?.[1] ?? '';
  const libraries: Record<string, string> = JSON.parse(
    /<script type="importmap">(.*?)<\/script>/.exec(page.text)?.[1] ?? '',
  ).imports;
  const sizes = new Map<string, number>();
  async function load(url: URL): Promise<void> {
    if (sizes.has(url.pathname)) return;
    const { status, text } = await app.call('GET', url.pathname);
    assert.equal(status, 200, url.pathname);
    sizes.set(url.pathname, Buffer.byteLength(text));
    const imports = [...text.matchAll(/(?:from|import)\s*["']([^"']+)["']/g)].map(([, specifier = '']) => specifier);
    for (const specifier of new Set(imports)) {
      const library = libraries[specifier];
      await load(library ? new URL(library, `${app.url}/console/`) : new URL(specifier, url));
    }
  }
  await load(new URL(`${base}/app.ts`, `${app.url}/console/`));
  const atFirst = new Map(sizes);
  for (const file of globSync('*.ts', {
    cwd: new URL('../../../src/console/pages/operator/', import.meta.url).pathname,
  })) {
    sizes.clear();
    for (const [path, size] of atFirst) sizes.set(path, size);
    await load(new URL(`${base}/pages/operator/${file}`, `${app.url}/console/`));
    const all = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    assert.ok(all <= 150_000, `${file}: ${all} bytes`);
  }
});
