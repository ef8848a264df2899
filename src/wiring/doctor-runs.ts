// Runs the doctor inside a running service: in a thread of its own, one at a time, for a bounded time. Findings are kept, and
// those of a run that has not ended can be read already.
import { Worker } from 'node:worker_threads';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import { MINUTE_MS, SECOND_MS } from '../kernel/durations.ts';
import type { Diagnostic } from '../kernel/problem.ts';
import type { Examination, Examine } from '../usecases/support/examine.ts';

/** What the thread is given. */
export interface DoctorData {
  readonly config: Config;
  /** How far the service's clock is ahead of the machine's: not at all, except in tests. */
  readonly clockAheadMs: number;
}

const THREAD = new URL('./doctor-thread.ts', import.meta.url);
const MAX_RUN_MS = MINUTE_MS;
/** For how long a request waits for the end of a run; after that it is told what was found so far. */
const ANSWER_MS = 2 * SECOND_MS;

export function doctorRuns(config: Config, now: Clock): Examine {
  let last: Examination | undefined;
  let running: { readonly examination: Examination; readonly ended: Promise<void> } | undefined;

  function start(): NonNullable<typeof running> {
    const findings: Diagnostic[] = [];
    const examination = { startedAt: now(), endedAt: null, findings };
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const workerData: DoctorData = { config, clockAheadMs: now() - Date.now() };
    const worker = new Worker(THREAD, { workerData, execArgv: ['--disable-warning=ExperimentalWarning'] });
    const cancel = () => {
      findings.push(unfinished(`it has not ended within ${MAX_RUN_MS / SECOND_MS} s`));
      void worker.terminate();
    };
    const deadline = setTimeout(cancel, MAX_RUN_MS).unref();
    worker.on('message', (finding: Diagnostic) => findings.push(finding));
    worker.on('error', (error) => findings.push(unfinished(`it has failed: ${error.message}`)));
    // A check that holds its thread ends first: no second run begins before.
    worker.once('exit', () => {
      clearTimeout(deadline);
      last = { ...examination, endedAt: now() };
      running = undefined;
      resolve();
    });
    // A service that stops does not wait for it.
    worker.unref();
    return { examination, ended };
  }

  return async (maxAgeMs) => {
    const isFresh = last?.endedAt != null && now() - last.endedAt <= maxAgeMs;
    if (last && isFresh) return last;
    running ??= start();
    const { examination, ended } = running;
    const { promise: waited, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ANSWER_MS);
    await Promise.race([ended, waited]);
    clearTimeout(timer);
    return last && last.startedAt >= examination.startedAt ? last : examination;
  };
}

const unfinished = (text: string): Diagnostic => ({
  check: 'doctor',
  state: 'warning',
  text,
  remedy: 'Run it at the command line, where it may take its time: reseal doctor',
});
