// Work that goes on while the service serves: each chore again and again, never twice at the same time in one process.
// Across instances it is the chores' own leases that keep two from doing the same work.
import { setTimeout as sleep } from 'node:timers/promises';
import { Refusal } from '../domain/errors.ts';
import { errorLine, type Log } from '../kernel/log.ts';

export interface Chore {
  readonly everyMs: number;
  /**
   * What it throws is told, and the chore goes on: a store that is busy now will answer later. One that works through a
   * backlog ends at the next step once `stopping` is aborted.
   */
  readonly run: (stopping?: AbortSignal) => Promise<unknown>;
}

export interface Background {
  /** Resolves when what was under way has ended. */
  stop(): Promise<void>;
}

/** A store that is busy said so itself, and is asked again; anything else is a bug of ours. */
export const logUnexpected =
  (log: Log) =>
  (error: unknown): void => {
    if (!(error instanceof Refusal)) log(errorLine(error, null));
  };

export function keepRunning(chores: readonly Chore[], onError: (error: unknown) => void): Background {
  const stopping = new AbortController();
  const { signal } = stopping;
  async function goOn({ everyMs, run }: Chore): Promise<void> {
    while (!signal.aborted) {
      await sleep(everyMs, undefined, { signal }).catch(() => {});
      if (!signal.aborted) await run(signal).catch(onError);
    }
  }
  const running = chores.map(goOn);
  return {
    async stop() {
      stopping.abort();
      await Promise.all(running);
    },
  };
}
