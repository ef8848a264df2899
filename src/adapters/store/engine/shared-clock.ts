// The clock that all instances of a store share: the database server's, where there is one. It is measured when the store
// is opened and with every heartbeat, and carried on by the monotonic clock in between. So a step of the machine's clock
// moves no lease, and judging one costs no statement.
import type { Clock } from '../../../domain/clock.ts';
import { SECOND_MS } from '../../../kernel/durations.ts';
import type { Engine } from './engine.ts';
import type { Db } from './schema.ts';

/** Clocks that agree this closely count as equal: a round trip measures no better under load. */
const AGREES_MS = SECOND_MS;

export interface SharedClock {
  readonly now: Clock;
  /** How far this machine's clock is ahead of the shared one; negative if it is behind. */
  readonly skewMs: Clock;
  measure(db: Db): Promise<void>;
}

/** `machineNow` is what the database's clock is compared with. Only a test has a `now` that differs from it. */
export function sharedClock(
  engine: Pick<Engine, 'hasClock' | 'clockOffsetMs'>,
  now: Clock,
  machineNow: Clock,
): SharedClock {
  let measured: { readonly database: number; readonly at: number } | undefined;
  function skewMs(): number {
    if (!measured) return 0;
    const ahead = machineNow() - (measured.database + performance.now() - measured.at);
    return Math.abs(ahead) < AGREES_MS ? 0 : Math.round(ahead);
  }
  return {
    now: () => now() - skewMs(),
    skewMs,
    async measure(db) {
      if (!engine.hasClock) return;
      const offset = await engine.clockOffsetMs(db, machineNow);
      measured = { database: machineNow() + offset, at: performance.now() };
    },
  };
}
