// Metrics of several processes as one text.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from '../../../src/adapters/metrics/metrics.ts';
import { processMetrics } from '../../../src/adapters/metrics/process-metrics.ts';
import type { StoreFacts } from '../../../src/domain/support/ports.ts';

const amountOf = (text: string, name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);

/** A process that answers through JSON, as messages between processes do. */
function join(all: ReturnType<typeof processMetrics>, member: number) {
  const metrics = createMetrics();
  all.joined(member, 'http', async (id) =>
    all.received(member, id, JSON.parse(JSON.stringify(await metrics.values()))),
  );
  return metrics;
}

test('counters and histograms are summed, and stay when a process ends', async () => {
  const all = processMetrics();
  const [first, second] = [join(all, 1), join(all, 2)];
  first.storeCommitted(3);
  second.storeCommitted(40);
  second.deliveries.attempted('delivered');
  const committed = 'reseal_store_group_commit_transactions';
  const delivered = 'reseal_callback_attempts_total{outcome="delivered"}'.replaceAll(/[{}]/g, '\\$&');
  const before = await all.text();
  assert.deepEqual(
    [`${committed}_sum`, `${committed}_count`, delivered].map((name) => amountOf(before, name)),
    [43, 2, 1],
  );
  assert.equal(amountOf(before, 'reseal_processes\\{role="http"\\}'), 2);
  all.left(2);
  join(all, 3).storeCommitted(1);
  for (const _ of ['once', 'again']) {
    const after = await all.text();
    assert.deepEqual(
      [`${committed}_sum`, `${committed}_count`, delivered].map((name) => amountOf(after, name)),
      [44, 3, 1],
    );
    assert.equal(amountOf(after, 'reseal_processes_ended_total\\{role="http"\\}'), 1);
  }
});

test('gauges of the store, which every process reads alike, are not summed', async () => {
  const all = processMetrics();
  const facts: StoreFacts = {
    ...{ now: 0, waiting: { count: 3, oldestAt: 0 }, overdue: { count: 0, oldestAt: null }, issuers: [] },
    ...{ responders: [], crls: [], offlineLists: [], queue: { pending: 7, oldestPendingAt: null, degradedLanes: 0 } },
    ...{
      walBytes: 0,
      sizeBytes: 1,
      lastBackupAt: null,
      clock: { aheadMs: 0, instances: [], stray: [], lastUsedAt: 0 },
    },
  };
  for (const id of [1, 2]) join(all, id).watchStore(async () => facts);
  const text = await all.text();
  assert.deepEqual(
    ['reseal_callback_pending', 'reseal_orders_waiting'].map((name) => amountOf(text, name)),
    [7, 3],
  );
});

test('a process that ends while it is asked delays nothing', async () => {
  const all = processMetrics();
  all.joined(1, 'http', () => all.left(1));
  assert.equal(amountOf(await all.text(), 'reseal_processes\\{role="http"\\}'), 0);
});
