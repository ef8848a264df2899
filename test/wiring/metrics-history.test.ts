// The history of a service with several processes: sampled by the supervisor over all of them, and asked for by each.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from '../../src/adapters/metrics/metrics.ts';
import { metricsHistory } from '../../src/adapters/metrics/metrics-history.ts';
import { processMetrics } from '../../src/adapters/metrics/process-metrics.ts';
import { SAMPLE_MS } from '../../src/domain/support/history.ts';
import type { ToSupervisor } from '../../src/wiring/messages.ts';
import { peersThrough } from '../../src/wiring/peers.ts';

test('the history counts what all processes did, those that have ended included', async () => {
  let now = 0;
  const together = processMetrics();
  const workers = [createMetrics(), createMetrics()];
  for (const [member, worker] of workers.entries()) {
    const answer = (id: number) => void worker.values().then((values) => together.received(member, id, values));
    together.joined(member, 'http', answer);
  }
  const history = metricsHistory(together.values, () => now);
  const next = async () => {
    now += SAMPLE_MS;
    await history.sample();
  };
  await next();
  const request = { method: 'GET', route: '/openapi/v3/orders', status: 200, code: 'success' };
  for (const worker of workers) {
    worker.issued('order');
    worker.requestFinished({ ...request, seconds: 0.003 });
    worker.requestFinished({ ...request, seconds: 9, route: '/readyz' });
    worker.requestFinished({ ...request, seconds: 9, status: 404, code: 'order_not_found' });
  }
  await next();
  together.left(1);
  workers[0]?.issued('reissue');
  await next();

  const peers = peersThrough((message: ToSupervisor) => {
    if (message.kind !== 'ask' || message.question.about !== 'history') return;
    const value = JSON.stringify(history.points(message.question.spanMs));
    peers.onAnswer({ kind: 'answer', id: message.id, value });
  });
  const points = await peers.metricsHistory(
    metricsHistory(workers[0]?.values ?? (async () => []), () => now),
    now,
  );
  assert.deepEqual(
    points.map(({ issued, refused, requests, medianMs, slowMs }) => [issued, refused, requests, medianMs, slowMs]),
    [
      [2, 2, 4, 5, 15_000],
      [1, 0, 0, null, null],
    ],
  );
});
