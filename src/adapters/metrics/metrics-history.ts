// The service's own metrics over the last hours, kept in memory: a bounded list of samples, taken from the metrics of all
// processes together.
import type { Clock } from '../../domain/clock.ts';
import {
  type HistoryPoint,
  LATENCY_BOUNDS_MS,
  type MetricSample,
  pointsOf,
  withSample,
} from '../../domain/support/history.ts';
import type { MetricValues } from './metrics.ts';

export interface MetricsHistory {
  sample(): Promise<void>;
  /** Of the time from so long ago. */
  points(spanMs: number): HistoryPoint[];
}

export function metricsHistory(values: () => Promise<MetricValues>, now: Clock): MetricsHistory {
  let samples: readonly MetricSample[] = [];
  return {
    async sample() {
      const next = sampleOf(await values(), now());
      samples = withSample(samples, next);
    },
    points: (spanMs) => pointsOf(samples, now() - spanMs),
  };
}

/** Probes, pages and the console itself are not what callers wait for. */
const INTERFACE = '/openapi/v3';

function sampleOf(metrics: MetricValues, at: number): MetricSample {
  const of = (name: string) => metrics.find((metric) => metric.name === name)?.values ?? [];
  const sum = (name: string) => of(name).reduce((total, { value }) => total + value, 0);
  const gauge = (name: string) => {
    const value = of(name)[0]?.value;
    return value === undefined || Number.isNaN(value) ? null : value;
  };
  const requests = of('reseal_http_request_seconds').filter(({ labels }) =>
    String(labels.route ?? '').startsWith(INTERFACE),
  );
  const below = (bound: string) =>
    requests.reduce((total, { labels, value }) => (String(labels.le) === bound ? total + value : total), 0);
  return {
    at,
    issued: sum('reseal_issuances_total'),
    refused: sum('reseal_refusals_total'),
    within: [...LATENCY_BOUNDS_MS.map((ms) => below(String(ms / 1000))), below('+Inf')],
    waiting: gauge('reseal_orders_waiting'),
    pending: gauge('reseal_callback_pending'),
  };
}
