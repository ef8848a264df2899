// The metrics that watch a CA: strict form, names that alerts and dashboards use, and values that follow the facts.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { byOperator } from '../../../src/usecases/access/audit.ts';
import { rule } from '../../support/contract.ts';
import { startDomainApp } from '../../support/domain-app.ts';
import { type Metric, parseExposition } from '../../support/exposition.ts';
import { body, newOrder, reissue } from '../../support/orders.ts';

const domains = await startDomainApp();
after(() => domains[Symbol.asyncDispose]());
const { app } = domains;
const ROOT = new URL('../../../', import.meta.url);

async function scrape(): Promise<Map<string, Metric>> {
  const { status, text } = await app.call('GET', '/metrics');
  assert.equal(status, 200);
  return parseExposition(text);
}
const valueIn = (metrics: ReadonlyMap<string, Metric>, name: string, labels: Record<string, string> = {}): number => {
  const matches = (metrics.get(name)?.samples ?? []).filter((one) =>
    Object.entries(labels).every(([label, value]) => one.labels[label] === value),
  );
  return matches.reduce((sum, { value }) => sum + value, 0);
};

rule('ops 25', 'The metrics tell issuances, refusals by code, waiting orders and the age of the oldest', async () => {
  const { store, newId } = app.app;
  const before = await scrape();
  const order = await newOrder(app);
  assert.equal((await reissue(app, order, body())).status, 200);
  assert.equal((await reissue(app, order, body({ sign_hash: 'md5' }))).status, 400);
  const waiting = await domains.place([domains.newDomain()], { dcv_method: 'dns' });
  app.advance(60_000);
  await domains.workerChecks(waiting);
  await app.issuance.revoke(byOperator(order.key.accountId), order.certificateId, { reason: undefined });
  await store.settings.put('last_backup_at', String(app.now()));
  const now = await scrape();
  const grown = (name: string, labels?: Record<string, string>) =>
    valueIn(now, name, labels) - valueIn(before, name, labels);
  assert.equal(grown('reseal_issuances_total', { origin: 'order' }), 1);
  assert.equal(grown('reseal_issuances_total', { origin: 'reissue' }), 1);
  assert.equal(grown('reseal_refusals_total', { code: 'invalid_parameters' }), 1);
  assert.ok(grown('reseal_domain_checks_total', { method: 'dns', result: 'no_record' }) >= 1);
  assert.equal(valueIn(now, 'reseal_orders_waiting'), 1);
  assert.ok(valueIn(now, 'reseal_orders_oldest_waiting_seconds') >= 60);
  assert.equal(valueIn(now, 'reseal_backup_last_success_timestamp_seconds'), app.now() / 1000);
  assert.equal(before.get('reseal_backup_last_success_timestamp_seconds')?.samples.length, 0);
  assert.ok(valueIn(now, 'reseal_store_size_bytes') > 100_000);
  const issuers = now.get('reseal_issuer_expiry_timestamp_seconds')?.samples ?? [];
  assert.ok(issuers.length >= 6 && issuers.every(({ value }) => value > app.now() / 1000));
  const [crl] = now.get('reseal_crl_next_update_timestamp_seconds')?.samples ?? [];
  assert.equal(crl?.value, app.now() / 1000 - 3_600 + 7 * 86_400);
  assert.equal(valueIn(now, 'reseal_crl_this_update_timestamp_seconds'), app.now() / 1000 - 3_600);
  // Nothing carries it out: the row of a certificate that is being signed.
  const late = { reason: 'superseded', cause: 'requested', causedById: null, dueAt: app.now() - 5_000 } as const;
  const { certificateId } = waiting;
  await store.revocations.schedule(waiting.key.accountId, certificateId, { ...late, revokedAt: null });
  const event = { accountId: order.key.accountId, orderId: order.id, orderStatus: 'issued', certificateId } as const;
  await app.callbacks.dispatcher.stop(0);
  const by = byOperator(order.key.accountId);
  await app.callbacks.callbacks.save(by, { url: 'https://receiver.example.com/', access_key: 'key' });
  await store.outbox.add({ ...event, id: newId(), action: 'order:issued', createdAt: app.now() - 9_000 });
  const after = await scrape();
  assert.equal(valueIn(after, 'reseal_revocations_overdue'), 1);
  assert.equal(valueIn(after, 'reseal_revocations_oldest_overdue_seconds'), 5);
  assert.equal(valueIn(after, 'reseal_callback_pending'), 1);
  assert.equal(valueIn(after, 'reseal_callback_oldest_pending_seconds'), 9);
});

test('every metric of an alert or a dashboard exists, and each gauge of the store is watched', async () => {
  const metrics = await scrape();
  const exported = new Set(
    [...metrics].flatMap(([name, { type }]) =>
      type === 'histogram' ? [name, `${name}_bucket`, `${name}_count`] : [name],
    ),
  );
  const used = new Set<string>();
  const files = globSync(['deploy/prometheus/*.yml', 'deploy/grafana/*.json'], { cwd: ROOT });
  assert.equal(files.length, 2);
  for (const file of files) {
    for (const [name] of readFileSync(new URL(file, ROOT), 'utf8').matchAll(/\breseal_[a-z_]+\b/g)) {
      assert.ok(exported.has(name), `${file} uses ${name}, which is not exported`);
      used.add(name);
    }
  }
  const gauges = [...metrics].filter(([name, { type }]) => name.startsWith('reseal_') && type === 'gauge');
  assert.deepEqual(
    gauges.map(([name]) => name).filter((name) => !used.has(name)),
    [],
  );
  for (const file of files.filter((one) => one.endsWith('.json')))
    JSON.parse(readFileSync(new URL(file, ROOT), 'utf8'));
});

test('while the store cannot be read, counters are still shown', async (context) => {
  context.mock.method(app.app.store.issuers, 'listPublic', () => Promise.reject(new Error('down')));
  const metrics = await scrape();
  assert.ok(Number.isNaN(metrics.get('reseal_orders_waiting')?.samples[0]?.value));
  assert.deepEqual(metrics.get('reseal_issuer_expiry_timestamp_seconds')?.samples, []);
  assert.ok(valueIn(metrics, 'reseal_http_request_seconds', {}) > 0);
});

rule(
  'ops 51',
  'the metrics tell of a dated rule that will limit products on offer from 60 days before it applies',
  async () => {
    const coming = async (moment: string) => {
      app.advance(Date.parse(moment) - app.now());
      const { samples } = (await scrape()).get('reseal_rule_change_timestamp_seconds')!;
      return samples.map(
        ({ labels, value }) => `${labels.rule} ${labels.value} ${new Date(value * 1000).toISOString()}`,
      );
    };
    assert.deepEqual(await coming('2027-01-13T22:59:59Z'), []);
    const first = ['max_validity_days 99 2027-03-15T00:00:00.000Z', 'reuse_days 100 2027-03-15T00:00:00.000Z'];
    assert.deepEqual(await coming('2027-01-13T23:00:00Z'), first);
    assert.deepEqual(await coming('2027-03-14T22:59:59Z'), first);
    assert.deepEqual(await coming('2027-03-20T00:00:00Z'), []);
    assert.deepEqual(await coming('2029-01-14T00:00:00Z'), [
      ...['max_validity_days 46 2029-03-15T00:00:00.000Z', 'reuse_days 10 2029-03-15T00:00:00.000Z'],
    ]);
  },
);
