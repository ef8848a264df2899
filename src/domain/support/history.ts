// The service's own metrics over the last hours: samples in a bounded list, and points that a chart is drawn from. Pure.
import { HOUR_MS, SECOND_MS } from '../../kernel/durations.ts';

/** Counters since the start of the service, and gauges of the moment. */
export interface MetricSample {
  readonly at: number;
  readonly issued: number;
  readonly refused: number;
  /** Requests to the interface, by the bound of LATENCY_BOUNDS_MS that they stayed below; cumulative, the last is all of them. */
  readonly within: readonly number[];
  /** Null if the store could not be read. */
  readonly waiting: number | null;
  readonly pending: number | null;
}

/** What happened until `at`, since the point before. */
export interface HistoryPoint {
  readonly at: number;
  readonly issued: number;
  readonly refused: number;
  readonly requests: number;
  /** Upper bounds; null without requests. */
  readonly medianMs: number | null;
  readonly slowMs: number | null;
  readonly waiting: number | null;
  readonly pending: number | null;
}

/** Those of the metric `reseal_http_request_seconds`. Slower requests count as the last. */
export const LATENCY_BOUNDS_MS = [1, 5, 10, 50, 100, 500, 1_000, 5_000, 15_000] as const;

export const SAMPLE_MS = 15 * SECOND_MS;
export const HISTORY_MS = 6 * HOUR_MS;
const MAX_SAMPLES = HISTORY_MS / SAMPLE_MS + 1;
const MAX_POINTS = 120;
/** The share of requests that are not slower than `slowMs`. */
const SLOW = 0.95;

/** The samples with one more, without those that are too old. */
export const withSample = (samples: readonly MetricSample[], next: MetricSample): MetricSample[] =>
  [...samples, next].slice(-MAX_SAMPLES);

/** At most 120 points of equal length that cover the time since `since`. */
export function pointsOf(samples: readonly MetricSample[], since: number): HistoryPoint[] {
  const first = samples.findIndex(({ at }) => at >= since);
  if (first < 0) return [];
  // The sample before is what the first point is counted from.
  const kept = samples.slice(Math.max(0, first - 1));
  const step = Math.max(1, Math.ceil((kept.length - 1) / MAX_POINTS));
  const points: HistoryPoint[] = [];
  for (let end = kept.length - 1; end - step >= 0; end -= step) {
    const [from, to] = [kept[end - step], kept[end]];
    if (from && to) points.push(pointOf(from, to, kept.slice(end - step + 1, end + 1)));
  }
  return points.reverse();
}

function pointOf(from: MetricSample, to: MetricSample, covered: readonly MetricSample[]): HistoryPoint {
  const within = to.within.map((count, index) => grown(from.within[index], count));
  return {
    at: to.at,
    issued: grown(from.issued, to.issued),
    refused: grown(from.refused, to.refused),
    requests: within.at(-1) ?? 0,
    medianMs: quantile(within, 0.5),
    slowMs: quantile(within, SLOW),
    waiting: highest(covered.map(({ waiting }) => waiting)),
    pending: highest(covered.map(({ pending }) => pending)),
  };
}

/** A counter that fell was begun anew. */
const grown = (before = 0, after = 0): number => (after >= before ? after - before : after);

/** A short peak must not vanish between two points. */
function highest(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
}

function quantile(within: readonly number[], share: number): number | null {
  const all = within.at(-1) ?? 0;
  if (all === 0) return null;
  const index = within.findIndex((count) => count >= all * share);
  return LATENCY_BOUNDS_MS[Math.min(index, LATENCY_BOUNDS_MS.length - 1)] ?? null;
}
