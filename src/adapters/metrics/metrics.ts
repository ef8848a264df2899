// Prometheus metrics. Labels come from closed sets (routes, methods, statuses, codes), never from accounts or raw paths.
// Counters and histograms are of this process and can be summed; store-metrics.ts has what all processes share.
import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';
import type { RuleChange } from '../../domain/catalog/public-rules.ts';
import type { StoreFacts } from '../../domain/support/ports.ts';
import { deliveryMetrics } from './delivery-metrics.ts';
import { hsmMetrics } from './hsm-metrics.ts';
import { storeMetrics } from './store-metrics.ts';

/** How often the delay of the event loop is measured. Every 10 ms, the default, takes half the CPU of an idle process. */
export const LOOP_LOOK_MS = 100;

export type IssuanceOrigin = 'order' | 'reissue' | 'validation';

interface RequestFacts {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
  /** `success`, an error code, or `aborted`. */
  readonly code: string;
}

export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_LOOK_MS });
  // Gauges that are named like counters, which promtool rejects; nodejs_active_resources has the same numbers by type.
  for (const misnamed of ['handles', 'requests', 'resources'])
    registry.removeSingleMetric(`nodejs_active_${misnamed}_total`);
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
  const damaged = new Gauge({
    name: 'reseal_store_damaged',
    help: '1 once damage was met in the files of the database.',
    aggregator: 'max',
    registers,
  });
  const unauthenticated = new Counter({
    name: 'reseal_authentication_failures_total',
    help: 'Requests whose credentials were refused.',
    registers,
  });
  const refusals = new Counter({
    name: 'reseal_refusals_total',
    help: 'Requests that were refused or failed, by error code.',
    labelNames: ['code'],
    registers,
  });
  const issuances = new Counter({
    name: 'reseal_issuances_total',
    help: 'Certificates that were issued, by what led to it: an order, a reissue, or a validation that was waited for.',
    labelNames: ['origin'],
    registers,
  });
  const checks = new Counter({
    name: 'reseal_domain_checks_total',
    help: 'Checks of names of waiting certificates, by method and result.',
    labelNames: ['method', 'result'],
    registers,
  });
  const resolvers = new Gauge({
    name: 'reseal_resolvers_unreachable',
    help: 'DNS resolvers of this service that did not answer when they were last asked.',
    aggregator: 'max',
    registers,
  });
  const revocations = new Counter({
    name: 'reseal_revocations_total',
    help: 'Scheduled revocations that were carried out, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const lints = new Counter({
    name: 'reseal_lints_total',
    help: 'Certificates that were shown to external linters, by verdict; failed: a linter did not answer.',
    labelNames: ['verdict'],
    registers,
  });
  const crls = new Counter({ name: 'reseal_crls_published_total', help: 'CRLs that were published.', registers });
  const faults = new Counter({
    name: 'reseal_faults_total',
    help: 'Unexpected errors, by where they came up: a request, or a background job.',
    labelNames: ['where'],
    registers,
  });
  return {
    requestFinished({ method, route, status, seconds, code }: RequestFacts) {
      requests.observe({ method, route, status }, seconds);
      if (status === 401) unauthenticated.inc();
      if (code !== 'success') refusals.inc({ code });
    },
    issued: (origin: IssuanceOrigin) => issuances.inc({ origin }),
    checked: (method: string, result: string) => checks.inc({ method, result }),
    resolversUnreachable: (count: number) => resolvers.set(count),
    revoked: (reason: string) => revocations.inc({ reason }),
    linted: (verdict: string) => lints.inc({ verdict }),
    crlPublished: () => crls.inc(),
    faulted: (where: string) => faults.inc({ where }),
    watchStore: (read: () => Promise<StoreFacts | undefined>) => storeMetrics(registry, read),
    watchRules: (coming: () => readonly RuleChange[]) => ruleMetrics(registry, coming),
    storeCommitted: (groupSize: number) => commits.observe(groupSize),
    storeUnavailable: () => unavailable.inc(),
    storeDamaged: () => damaged.set(1),
    deliveries: deliveryMetrics(registry),
    hsm: hsmMetrics(registry),
    text: () => registry.metrics(),
    values: (): Promise<MetricValues> => registry.getMetricsAsJSON(),
  };
}

/** Present within the notice of a change that limits what is offered, so that its presence is the alert. */
function ruleMetrics(registry: Registry, coming: () => readonly RuleChange[]): void {
  new Gauge({
    name: 'reseal_rule_change_timestamp_seconds',
    help: 'When a dated rule of public trust changes that limits products on offer; absent more than 60 days before.',
    labelNames: ['rule', 'value'],
    aggregator: 'max',
    registers: [registry],
    collect() {
      this.reset();
      for (const { rule, value, from } of coming()) this.set({ rule, value: String(value) }, from / 1000);
    },
  });
}

/** The metrics of one process, as they pass between processes. */
export type MetricValues = readonly MetricObjectWithValues<MetricValue<string>>[];
