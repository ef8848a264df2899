// Pool of worker threads for CPU-bound jobs, which would block the event loop. Threads start on demand, and idle ones do
// not keep the process alive.
//
// Queue and run time are bounded. Owners take turns; a queue that overflows rejects the newest job of the owner with the
// most. A job over its time limit is rejected and its thread terminated. A thread cannot be stopped inside node:crypto, only after; until then it counts as running, because it
// occupies a core. A crashed thread fails one job, and the next job starts a new thread.
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { Refusal } from '../../domain/errors.ts';
import { FairQueue } from '../../kernel/fair-queue.ts';
import type { JOBS } from './jobs.ts';
import { type JobRequest, type JobResult, type Jobs, type Packet, transferable } from './packet.ts';

export interface PoolOptions {
  readonly threads?: number;
  /** Maximum number of jobs waiting for a thread. */
  readonly maxQueued?: number;
  /** Per job, from the time a thread starts it. */
  readonly timeLimitMs?: number;
  /** Entry point of the threads. */
  readonly script?: URL;
}

export interface JobRunner<Table extends Jobs = typeof JOBS> {
  /**
   * The caller owns the input bytes, must not change them until the promise settles, and wipes them then. The output
   * bytes become the caller's. Rejects with the job's own error, or with `service_busy`.
   */
  run<Name extends keyof Table & string>(
    job: Name,
    ...input: Parameters<Table[Name]>
  ): Promise<ReturnType<Table[Name]>>;
}

/** Runs jobs of no particular owner by itself. */
export interface Pool<Table extends Jobs = typeof JOBS> extends JobRunner<Table> {
  /** The jobs of one owner, such as an account. */
  of(owner: string): JobRunner<Table>;
  /** Rejects queued and running jobs; resolves once all threads have exited. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

interface Task extends JobRequest {
  resolve(output: Packet): void;
  reject(reason: unknown): void;
}

interface Thread {
  readonly worker: Worker;
  task: Task | undefined;
  timer?: NodeJS.Timeout;
}

const WORKER = new URL('./worker.ts', import.meta.url);

const busy = (cause?: string): Refusal => new Refusal('service_busy', { retryAfterSeconds: 1, cause });

export function workerPool<Table extends Jobs = typeof JOBS>({
  threads: maxThreads = Math.max(1, availableParallelism() - 1),
  maxQueued = 64,
  timeLimitMs = 10_000,
  script = WORKER,
}: PoolOptions = {}): Pool<Table> {
  const threads = new Set<Thread>();
  const idle = new Set<Thread>();
  const queue = new FairQueue<Task>();
  let isClosed = false;

  /** Assigns queued jobs to idle threads, and starts threads up to the limit. */
  function dispatch(): void {
    while (queue.size > 0) {
      const [thread = threads.size < maxThreads ? startThread() : undefined] = idle;
      const task = thread && queue.shift();
      if (!task) return;
      begin(thread, task);
    }
  }

  function startThread(): Thread {
    // Without the flags of the process: `--eval` or `--test` would make the worker run something else.
    const worker = new Worker(script, { execArgv: [] });
    const thread: Thread = { worker, task: undefined };
    let cause: unknown;
    worker.on('message', (result: JobResult) => {
      const task = end(thread);
      // The job timed out before.
      if (!task) return;
      if ('error' in result) task.reject(result.error);
      else task.resolve(result.output);
      worker.unref();
      idle.add(thread);
      dispatch();
    });
    worker.on('error', (error) => {
      cause = error;
    });
    worker.on('exit', (code) => {
      threads.delete(thread);
      idle.delete(thread);
      const task = end(thread);
      task?.reject(new Error(`the worker ended with code ${code} while at ${task.job}`, { cause }));
      dispatch();
    });
    threads.add(thread);
    return thread;
  }

  function begin(thread: Thread, task: Task): void {
    idle.delete(thread);
    thread.task = task;
    thread.timer = setTimeout(abort, timeLimitMs, thread, `${task.job} took more than ${timeLimitMs} ms`);
    thread.worker.ref();
    const { packet, transfer } = transferable(task.input);
    thread.worker.postMessage({ job: task.job, input: packet } satisfies JobRequest, transfer);
  }

  /** Detaches and returns the running task, if any. The caller settles it. */
  function end(thread: Thread): Task | undefined {
    const { task } = thread;
    thread.task = undefined;
    clearTimeout(thread.timer);
    return task;
  }

  function abort(thread: Thread, why: string): Promise<number> {
    end(thread)?.reject(busy(why));
    return thread.worker.terminate();
  }

  async function close(): Promise<void> {
    isClosed = true;
    for (let task = queue.shift(); task; task = queue.shift()) task.reject(busy('the pool is closed'));
    await Promise.all([...threads].map((thread) => abort(thread, 'the pool is closed')));
  }

  const runFor = (owner: string): JobRunner<Table> => ({
    async run(job, input?: Packet) {
      if (isClosed) throw busy('the pool is closed');
      const { promise, resolve, reject } = Promise.withResolvers<Packet>();
      queue.push(owner, { job, input: input ?? {}, resolve, reject });
      dispatch();
      // Checked after dispatch, so that a pool with maxQueued 0 works.
      if (queue.size > maxQueued) queue.dropLongest()?.reject(busy(`${maxQueued} jobs are waiting`));
      return promise as Promise<never>;
    },
  });

  return {
    ...runFor(''),
    of: runFor,
    close,
    [Symbol.asyncDispose]: close,
  };
}
