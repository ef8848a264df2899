// What the environment says about callbacks, tests and deliveries alike.

import type { AddressRule } from '../domain/egress/addresses.ts';
import type { Rate } from '../domain/rate.ts';
import { DAY_MS, HOUR_MS } from '../kernel/durations.ts';
import type { AccountRule } from './values.ts';
import type { Values } from './variables.ts';

export type CallbackConfig = Readonly<{
  testRate: Rate;
  testsAtOnce: number;
  testsPerAccount: number;
  testsPerHost: number;
  schedule: readonly number[];
  atOnce: number;
  perAccount: number;
  perHost: number;
  retentionMs: number;
  rotationMs: number;
  allow: readonly AccountRule[];
  deny: readonly AddressRule[];
  rootsFile: string | undefined;
  sandboxAllow: readonly AddressRule[];
}>;

/** Ten at once, and ten more in each minute. */
const DEFAULT_TEST_RATE: Rate = { burst: 10, everyMs: 6_000 };
/** Contract delivery 4: a little more than three days, so that a receiver that breaks on a Friday is served on Monday. */
const DEFAULT_SCHEDULE: readonly number[] = [
  ...[5_000, 30_000, 300_000, 1_800_000],
  ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS),
];

export const callbackConfig = (v: Values): CallbackConfig =>
  Object.freeze({
    testRate: v.RESEAL_CALLBACK_TEST_RATE ?? DEFAULT_TEST_RATE,
    testsAtOnce: v.RESEAL_CALLBACK_TESTS_AT_ONCE,
    testsPerAccount: v.RESEAL_CALLBACK_TESTS_PER_ACCOUNT,
    testsPerHost: v.RESEAL_CALLBACK_TESTS_PER_HOST,
    schedule: v.RESEAL_CALLBACK_SCHEDULE ?? DEFAULT_SCHEDULE,
    atOnce: v.RESEAL_CALLBACKS_AT_ONCE,
    perAccount: v.RESEAL_CALLBACKS_PER_ACCOUNT,
    perHost: v.RESEAL_CALLBACKS_PER_HOST,
    retentionMs: v.RESEAL_CALLBACK_RETENTION_DAYS * DAY_MS,
    rotationMs: v.RESEAL_CALLBACK_ROTATION_HOURS * HOUR_MS,
    allow: v.RESEAL_CALLBACK_ALLOW,
    deny: v.RESEAL_CALLBACK_DENY,
    rootsFile: v.RESEAL_CALLBACK_ROOTS_FILE,
    sandboxAllow: v.RESEAL_SANDBOX_ALLOW,
  });
