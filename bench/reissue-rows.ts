// The rows of the table that `npm run bench -- reissues` prints, and the measurements they are made from.
import type { Row } from './aims.ts';
import type { Sample } from './contender.ts';
import type { Kind } from './upper-bounds.ts';

interface Measured {
  /** CPU of one verify and one sign. */
  readonly crypto: Readonly<Record<Kind, number>>;
  readonly samples: Readonly<Record<'p256' | 'rsa2048' | 'floor' | 'callbacks', Sample>>;
  readonly twoWorkers: Sample | undefined;
  readonly alone: { readonly p50: number; readonly fsyncMs: number };
  readonly postgres: { readonly roundTrips: number; readonly cpuMicros: number | undefined } | undefined;
}

export const ROWS: readonly Row<Measured>[] = [
  {
    about: 'CPU of a P-256 reissue on SQLite, 64 at once, CAA asked ÷ verify + sign',
    aim: { atMost: 4 },
    ratio: ({ crypto, samples }) => ({ value: samples.p256.cpuMicros, by: crypto.p256, unit: 'µs' }),
  },
  {
    about: 'the same ÷ floor server (HTTP, verify, sign, one durable row)',
    aim: { atMost: 1.4 },
    ratio: ({ samples: { p256, floor } }) => ({ value: p256.cpuMicros, by: floor.cpuMicros, unit: 'µs' }),
  },
  {
    about: 'CPU of a reissue with a known RSA-2048 key and an RSA-3072 issuer ÷ verify + sign',
    aim: { atMost: 1.8 },
    ratio: ({ crypto, samples }) => ({ value: samples.rsa2048.cpuMicros, by: crypto.rsa2048, unit: 'µs' }),
  },
  {
    about: 'CPU of a reissue and its delivered callback ÷ without callbacks',
    aim: { atMost: 1.6 },
    ratio: ({ samples: { p256, callbacks } }) => ({ value: callbacks.cpuMicros, by: p256.cpuMicros, unit: 'µs' }),
  },
  {
    about: 'p99 of reissues while every one calls back ÷ without callbacks',
    aim: { atMost: 1.5 },
    ratio: ({ samples: { p256, callbacks } }) => ({ value: callbacks.p99, by: p256.p99, unit: 'ms' }),
  },
  {
    about: 'reissues with two workers ÷ one, on cores shared with the callers',
    aim: { atLeast: 1.25 },
    ratio: ({ twoWorkers, samples: { p256 } }) =>
      twoWorkers && { value: twoWorkers.perSecond, by: p256.perSecond, unit: 'per second' },
  },
  {
    about: 'share of all cores that is busy with two workers',
    aim: { atLeast: 0.9 },
    ratio: ({ twoWorkers }) => twoWorkers && { value: twoWorkers.busy, unit: '' },
  },
  {
    about: 'PostgreSQL: round trips of a reissue',
    aim: { atMost: 4 },
    ratio: ({ postgres }) => postgres && { value: postgres.roundTrips, unit: '' },
  },
  {
    about: 'PostgreSQL: CPU of service and database ÷ verify + sign',
    aim: { atMost: 12 },
    ratio: ({ postgres, crypto }) =>
      postgres?.cpuMicros ? { value: postgres.cpuMicros, by: crypto.p256, unit: 'µs' } : undefined,
  },
  {
    about: 'KiB written by a reissue, answer and log line included',
    aim: { atMost: 25 },
    ratio: ({ samples: { p256 } }) => ({ value: p256.writtenBytes / 1_024, unit: 'KiB' }),
  },
  {
    about: 'write calls of a reissue',
    ratio: ({ samples: { p256 } }) => ({ value: p256.writeCalls, unit: '' }),
  },
  {
    about: 'p50 of reissues one at a time ÷ two fsyncs + verify + sign',
    aim: { atMost: 2 },
    ratio: ({ alone, crypto }) => ({ value: alone.p50, by: 2 * alone.fsyncMs + crypto.p256 / 1_000, unit: 'ms' }),
  },
];
