// Prometheus metrics. Labels come from closed sets (routes, methods, statuses), never from accounts or raw paths.
import { Counter, collectDefaultMetrics, Histogram, type MetricObject, Registry } from 'prom-client';
import { deliveryMetrics } from './delivery-metrics.ts';

interface RequestFacts {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
}

export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const requests = new Histogram({
    name: 'reseal_http_request_seconds',
    help: 'Time from the request head to the end of the answer.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15],
    registers,
  });
  const commits = new Histogram({
    name: 'reseal_store_group_commit_transactions',
    help: 'Transactions that shared one commit of the embedded database.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
    registers,
  });
  const unavailable = new Counter({
    name: 'reseal_store_unavailable_total',
    help: 'Store operations refused because the database failed.',
    registers,
  });
  const unauthenticated = new Counter({
    name: 'reseal_authentication_failures_total',
    help: 'Requests whose credentials were refused.',
    registers,
  });
  return {
    requestFinished({ seconds, ...labels }: RequestFacts) {
      requests.observe(labels, seconds);
      if (labels.status === 401) unauthenticated.inc();
    },
    storeCommitted: (groupSize: number) => commits.observe(groupSize),
    storeUnavailable: () => unavailable.inc(),
    deliveries: deliveryMetrics(registry),
    text: () => registry.metrics(),
    values: (): Promise<MetricValues> => registry.getMetricsAsJSON(),
  };
}

/** The metrics of one process, as they pass between processes. */
export type MetricValues = readonly MetricObject[];
