// Threads for work that computes for milliseconds: on the event loop it would hold up every other request. There are
// few threads, they start when first needed, and a process that waits for none of them can end.
//
// Everything is bounded: who finds the queue full is told so at once, and a job beyond its time is given up together
// with its thread. A thread cannot be stopped inside node:crypto, only after; until then it keeps its place, because it
// keeps its core. A thread that dies takes one job with it, and the next job starts another.
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { Refusal } from '../../domain/errors.ts';
import type { JOBS } from './jobs.ts';
import { type Answer, type Jobs, movable, type Order, type Packet } from './packet.ts';

export interface PoolOptions {
  readonly threads?: number;
  /** Jobs that may wait for a thread. */
  readonly maxQueued?: number;
  /** For one job, from when a thread begins it. */
  readonly timeLimitMs?: number;
  /** What the threads run. */
  readonly script?: URL;
}

export interface Pool<Table extends Jobs = typeof JOBS> {
  /**
   * Bytes of the input stay the caller's, who leaves them alone until the answer is there and wipes them then; bytes of
   * the output become the caller's. Rejects with what the job threw, or with `service_busy`.
   */
  run<Name extends keyof Table & string>(
    job: Name,
    ...input: Parameters<Table[Name]>
  ): Promise<ReturnType<Table[Name]>>;
  /** Gives up what is queued and what runs; resolves when the threads are gone. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

interface Task extends Order {
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

export function workPool<Table extends Jobs = typeof JOBS>({
  threads: maxThreads = Math.max(1, availableParallelism() - 1),
  maxQueued = 64,
  timeLimitMs = 10_000,
  script = WORKER,
}: PoolOptions = {}): Pool<Table> {
  const threads = new Set<Thread>();
  const idle = new Set<Thread>();
  const queue: Task[] = [];
  let isClosed = false;

  /** Gives queued jobs to whatever threads there are or may be. */
  function next(): void {
    while (queue.length > 0) {
      const [thread = threads.size < maxThreads ? start() : undefined] = idle;
      if (!thread) return;
      begin(thread, queue.shift()!);
    }
  }

  function start(): Thread {
    // Flags of the process are none of the worker's: `--eval` or `--test` would have it run something else.
    const worker = new Worker(script, { execArgv: [] });
    const thread: Thread = { worker, task: undefined };
    let cause: unknown;
    worker.on('message', (answer: Answer) => {
      const task = end(thread);
      // Too late: the job was given up.
      if (!task) return;
      if ('error' in answer) task.reject(answer.error);
      else task.resolve(answer.output);
      worker.unref();
      idle.add(thread);
      next();
    });
    worker.on('error', (error) => {
      cause = error;
    });
    worker.on('exit', (code) => {
      threads.delete(thread);
      idle.delete(thread);
      const task = end(thread);
      task?.reject(new Error(`the worker ended with code ${code} while at ${task.job}`, { cause }));
      next();
    });
    threads.add(thread);
    return thread;
  }

  function begin(thread: Thread, task: Task): void {
    idle.delete(thread);
    thread.task = task;
    thread.timer = setTimeout(giveUp, timeLimitMs, thread, `${task.job} took more than ${timeLimitMs} ms`);
    thread.worker.ref();
    const { packet, transfer } = movable(task.input);
    thread.worker.postMessage({ job: task.job, input: packet } satisfies Order, transfer);
  }

  /** The job the thread was at, if it was at one: whoever takes it away answers it. */
  function end(thread: Thread): Task | undefined {
    const { task } = thread;
    thread.task = undefined;
    clearTimeout(thread.timer);
    return task;
  }

  function giveUp(thread: Thread, why: string): Promise<number> {
    end(thread)?.reject(busy(why));
    return thread.worker.terminate();
  }

  async function close(): Promise<void> {
    isClosed = true;
    for (const task of queue.splice(0)) task.reject(busy('the pool is closed'));
    await Promise.all([...threads].map((thread) => giveUp(thread, 'the pool is closed')));
  }

  return {
    async run(job, input?: Packet) {
      if (isClosed) throw busy('the pool is closed');
      const { promise, resolve, reject } = Promise.withResolvers<Packet>();
      queue.push({ job, input: input ?? {}, resolve, reject });
      next();
      // Looked at after a thread may have taken it: a pool without a queue still works.
      if (queue.length > maxQueued) queue.pop()?.reject(busy(`${maxQueued} jobs are waiting`));
      return promise as Promise<never>;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
