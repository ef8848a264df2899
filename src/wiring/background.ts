// Periodic background jobs ("chores"). A chore never overlaps itself within a process; across instances the chores' own
// leases prevent duplicate work.
import { setTimeout as sleep } from 'node:timers/promises';
import { Refusal } from '../domain/errors.ts';
import { errorLine, type Log } from '../kernel/log.ts';

export interface Chore {
  /** In log lines and metrics. */
  readonly name: string;
  readonly everyMs: number;
  /** Errors are logged and the chore runs again. One that works through a backlog stops early once `stopping` aborts. */
  readonly run: (stopping?: AbortSignal) => Promise<unknown>;
}

interface Background {
  /** Resolves once running chores have ended. */
  stop(): Promise<void>;
}

/** Logs errors other than refusals. A refusal means that the store is busy; it was logged, and the chore retries. */
export const logUnexpected =
  (log: Log, chore: string) =>
  (error: unknown): void => {
    if (!(error instanceof Refusal)) log(errorLine(error, null, chore));
  };

export function runPeriodically(chores: readonly Chore[], log: Log): Background {
  const stopping = new AbortController();
  const { signal } = stopping;
  async function loop({ name, everyMs, run }: Chore): Promise<void> {
    const onError = logUnexpected(log, name);
    while (!signal.aborted) {
      await sleep(everyMs, undefined, { signal }).catch(() => {});
      if (!signal.aborted) await run(signal).catch(onError);
    }
  }
  const running = chores.map(loop);
  return {
    async stop() {
      stopping.abort();
      await Promise.all(running);
    },
  };
}
