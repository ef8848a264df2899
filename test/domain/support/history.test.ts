// Points of the metrics' history: differences of counters, quantiles by bucket, bounds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type MetricSample, pointsOf, SAMPLE_MS, withSample } from '../../../src/domain/support/history.ts';

const NONE = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const sample = (index: number, change: Partial<MetricSample> = {}): MetricSample => ({
  ...{ at: index * SAMPLE_MS, issued: 0, refused: 0, within: NONE, waiting: 0, pending: 0 },
  ...change,
});

test('a point is what happened since the one before; a counter that was begun anew counts from zero', () => {
  const samples = [
    sample(0, { issued: 5, refused: 7 }),
    sample(1, { issued: 9, refused: 7, waiting: null, pending: 3 }),
    sample(2, { issued: 2, refused: 8, waiting: null, pending: null }),
  ];
  const seen = pointsOf(samples, 0).map(({ at, issued, refused, waiting, pending }) => [
    at,
    issued,
    refused,
    waiting,
    pending,
  ]);
  assert.deepEqual(seen, [
    [SAMPLE_MS, 4, 0, null, 3],
    [2 * SAMPLE_MS, 2, 1, null, null],
  ]);
  assert.deepEqual(pointsOf(samples.slice(0, 1), 0), []);
  assert.deepEqual(pointsOf([], 0), []);
});

test('latency is the bound below which a share of the requests stayed', () => {
  // Of twenty requests ten took at most 5 ms, nine up to 50 ms, one longer than any bound.
  const within = [0, 10, 10, 19, 19, 19, 19, 19, 19, 20];
  const [point] = pointsOf([sample(0), sample(1, { within })], 0);
  assert.deepEqual([point?.requests, point?.medianMs, point?.slowMs], [20, 5, 50]);
  const [idle] = pointsOf([sample(0), sample(1)], 0);
  assert.deepEqual([idle?.requests, idle?.medianMs, idle?.slowMs], [0, null, null]);
});

test('samples are kept for six hours, and drawn as at most 120 points that miss no peak and no event', () => {
  let samples: readonly MetricSample[] = [];
  for (let index = 0; index < 5_000; index += 1) {
    samples = withSample(samples, sample(index, { issued: index, waiting: index === 4_321 ? 99 : 0 }));
  }
  assert.equal(samples.length, 1_441);
  const points = pointsOf(samples, 0);
  assert.equal(points.length, 120);
  assert.equal(
    points.reduce((sum, { issued }) => sum + issued, 0),
    1_440,
  );
  assert.equal(Math.max(...points.map(({ waiting }) => waiting ?? 0)), 99);
  assert.equal(pointsOf(samples, 4_999 * SAMPLE_MS).length, 1);
});
