// Starts the processes of a service and keeps them running: first the one for background work, which also does the work of a
// first start, then those that answer requests. They share a listener, whose connections are dealt out in turn (node:cluster).
// A process that ends is replaced; what it had begun is taken over through the leases in the store, as after any crash.
import cluster, { type Worker } from 'node:cluster';
import module from 'node:module';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { metricsHistory } from '../adapters/metrics/metrics-history.ts';
import { processMetrics } from '../adapters/metrics/process-metrics.ts';
import type { Config } from '../config/config.ts';
import { SAMPLE_MS } from '../domain/support/history.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { ClockAndLog } from './app.ts';
import { runPeriodically } from './background.ts';
import type { Answered, Question, Role, ToChild, ToSupervisor } from './messages.ts';
import { sharedState } from './shared-state.ts';
import { listenProblem, warnOfSandboxRules } from './start-up.ts';

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url));
/** A checkout strips the types of the console's modules, by an interface of Node that still warns. A package has none to strip. */
const CHILD_FLAGS = ['--disable-warning=ExperimentalWarning'];
/** Opening the store may wait for a migration by another instance. */
const START_MS = 600_000;
/** A process that ended sooner after its start is replaced with a delay, which doubles. */
const AT_ONCE_MS = 1_000;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 10_000;
/** About forty seconds. */
const MAX_FAILED_STARTS = 10;
/** Beyond the time for requests in progress. */
const STOP_GRACE_MS = 5_000;

export interface Supervised {
  /** Rejects when the service cannot go on: no process of a kind starts any more. */
  readonly failed: Promise<never>;
  /** Resolves when the reader of the log is gone. */
  readonly outputClosed: Promise<void>;
  /** As Running.stop. */
  stop(drainMs?: number): Promise<void>;
}

interface Slot {
  readonly role: Role;
  readonly name: string;
  worker: Worker | undefined;
  /** In a row. */
  quickEnds: number;
}

type Ready = Extract<ToSupervisor, { kind: 'ready' }>;

export async function supervise(config: Config, { now, log }: ClockAndLog): Promise<Supervised> {
  warnOfSandboxRules(config, log);
  const port = await freePort(config);
  const state = sharedState(config);
  const metrics = processMetrics();
  const history = metricsHistory(metrics.values, now);
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  failed.catch(() => {});
  const { promise: outputClosed, resolve: onOutputClosed } = Promise.withResolvers<void>();
  const background: Slot = { role: 'background', name: 'background', worker: undefined, quickEnds: 0 };
  const http = Array.from(
    { length: config.workers },
    (_, index): Slot => ({ role: 'http', name: `http-${index + 1}`, worker: undefined, quickEnds: 0 }),
  );
  const slots = [background, ...http];
  const isAlive = (role: Role) => slots.some((slot) => slot.role === role && slot.worker?.isConnected());
  /** Processes that have stopped listening, and wait for the others. */
  const deaf = new Map<number, () => void>();
  let isStopping = false;
  let isDamaged = false;
  let sampling: ReturnType<typeof runPeriodically> | undefined;

  const tell = (worker: Worker | undefined, message: ToChild) => {
    // The channel may close at any time; what is lost is asked again, or found by the next poll.
    if (worker?.isConnected()) worker.send(message, () => {});
  };

  function receive(worker: Worker, message: ToSupervisor): void {
    switch (message.kind) {
      case 'events_committed':
        tell(background.worker, { kind: 'wake' });
        break;
      case 'damaged':
        isDamaged = true;
        for (const slot of slots) tell(slot.worker, { kind: 'damaged' });
        break;
      case 'output_closed':
        onOutputClosed();
        break;
      case 'ask':
        answer(worker, message.id, message.question);
        break;
      case 'release':
        state.release(worker.id, message.id);
        break;
      case 'metrics':
        metrics.received(worker.id, message.id, message.values);
        break;
      // Each start listens for these by itself.
      case 'ready':
      case 'failed':
    }
  }

  function answer(worker: Worker, id: number, question: Question): void {
    const reply = (value: Answered) => tell(worker, { kind: 'answer', id, value });
    if (question.about === 'metrics') void metrics.text().then(reply);
    else if (question.about === 'history') reply(JSON.stringify(history.points(question.spanMs)));
    else if (question.about === 'listener') {
      deaf.set(worker.id, () => reply(null));
      tellIfAllDeaf();
    } else state.acquire(worker.id, id, question, reply);
  }

  /**
   * A client whose connection is closed by one process must not get through to another that is about to stop listening:
   * the kernel resets connections that wait when the last one does.
   */
  function tellIfAllDeaf(): void {
    if (http.some(({ worker }) => worker?.isConnected() && !deaf.has(worker.id))) return;
    for (const tellIt of deaf.values()) tellIt();
  }

  /** Resolves when the process is ready; rejects with its problem, or when it ends before. */
  function start(slot: Slot): Promise<Ready> {
    cluster.setupPrimary({ exec: CHILD, args: [slot.role, slot.name, String(port)], execArgv: CHILD_FLAGS });
    const cache = module.getCompileCacheDir();
    const worker = cluster.fork({
      RESEAL_WORKERS: String(config.workers),
      ...(cache !== undefined && { NODE_COMPILE_CACHE: cache }),
    });
    slot.worker = worker;
    metrics.joined(worker.id, slot.role, (id) => tell(worker, { kind: 'metrics', id }));
    const { promise: ready, resolve, reject } = Promise.withResolvers<Ready>();
    const deadline = setTimeout(() => worker.process.kill('SIGKILL'), START_MS);
    let readyAt: number | undefined;
    worker.on('message', (message: ToSupervisor) => {
      if (message.kind === 'failed') reject(new Problem(message.exitCode, message.message, message.remedy));
      if (message.kind === 'ready') {
        readyAt = performance.now();
        log({ event: 'process_started', text: `${slot.name} is process ${worker.process.pid}` });
        resolve(message);
        if (isDamaged) tell(worker, { kind: 'damaged' });
      }
      receive(worker, message);
    });
    worker.on('error', reject);
    worker.once('exit', (code: number | null, signal: string | null) => {
      clearTimeout(deadline);
      slot.worker = undefined;
      state.left(worker.id);
      metrics.left(worker.id);
      deaf.delete(worker.id);
      tellIfAllDeaf();
      const how = signal ? `was killed by ${signal}` : `ended with code ${code}`;
      reject(new Problem(EXIT.bug, `the process ${slot.name} ${how} before it was ready`, 'Look at the log above.'));
      if (readyAt === undefined || isStopping) return;
      log({ event: 'process_ended', text: `${slot.name} (process ${worker.process.pid}) ${how}` });
      if (performance.now() - readyAt > AT_ONCE_MS) slot.quickEnds = 0;
      void replace(slot);
    });
    return ready.finally(() => clearTimeout(deadline));
  }

  /** Tries for as long as another process of the kind serves. */
  async function replace(slot: Slot): Promise<void> {
    for (let failures = 0; !isStopping; failures += 1) {
      if (slot.quickEnds > 0) await sleep(Math.min(FIRST_DELAY_MS * 2 ** (slot.quickEnds - 1), MAX_DELAY_MS));
      if (isStopping) return;
      slot.quickEnds += 1;
      try {
        await start(slot);
        return;
      } catch (error) {
        const problem = error instanceof Problem ? error : new Problem(EXIT.bug, String(error), 'Report this bug.');
        log({ event: 'warning', text: `${slot.name} does not start: ${problem.message}` });
        if (failures >= MAX_FAILED_STARTS && !isAlive(slot.role)) {
          fail(problem);
          return;
        }
      }
    }
  }

  async function stop(drainMs = 0): Promise<void> {
    isStopping = true;
    log({ event: 'stopping', text: 'finishing requests in progress' });
    const sampled = sampling?.stop();
    const ended = slots.flatMap(({ worker }) => {
      if (!worker || worker.isDead()) return [];
      const { promise, resolve } = Promise.withResolvers<void>();
      worker.once('exit', () => resolve());
      tell(worker, { kind: 'stop', drainMs });
      return [promise];
    });
    const deadline = setTimeout(kill, drainMs + config.shutdownMs + STOP_GRACE_MS);
    await Promise.all([...ended, sampled]);
    clearTimeout(deadline);
    log({ event: 'stopped', text: 'all requests are finished or refused' });
  }

  function kill(): void {
    isStopping = true;
    for (const { worker } of slots) worker?.process.kill('SIGKILL');
  }

  try {
    await start(background);
    const [first] = await Promise.all(http.map(start));
    log({ event: 'listening', text: `${first?.address} as ${first?.url}` });
    sampling = runPeriodically([{ name: 'sample_metrics', everyMs: SAMPLE_MS, run: history.sample }], log);
    return { failed, outputClosed, stop };
  } catch (error) {
    kill();
    throw error;
  }
}

/** Reports a port that cannot be used before anything is started. Resolves with the port, chosen if it is 0. */
async function freePort({ host, port }: Config): Promise<number> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once('error', (error) => reject(listenProblem(error, host, port)));
  server.listen({ host, port, exclusive: true }, () => {
    const address = server.address();
    server.close(() => resolve(typeof address === 'object' && address ? address.port : port));
  });
  return await promise;
}
