// A signer process, seen from the service: one per module and token. It is started when it is first needed, replaced with
// back-off when it ends, hangs or loses its token, and refuses within bounds meanwhile.
//
// A request waits here until the process has a session for it. One that was not sent is certainly not signed. One that was
// sent and not answered is never sent again: its signature may exist. While a process fails again and again, requests are
// refused at once (circuit breaker), but for one at a time that tries whether it is over.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { NotSigned } from '../../domain/certificate/authority.ts';
import type { ReadPin } from './pin-file.ts';
import {
  type Act,
  ANSWER_FD,
  type Answer,
  type Failure,
  type FailureKind,
  type Opening,
  onLines,
  type Request,
  readAnswer,
  SESSIONS,
} from './protocol.ts';

type Carried = Extract<Answer, { kind: 'signature' | 'key' }>;

/** Idle: not needed yet. Waiting: for the next start. Blocked: until there is another PIN. */
export type SignerState = 'idle' | 'starting' | 'ready' | 'waiting' | 'blocked' | 'closed';

export interface SignerFacts {
  readonly state: SignerState;
  /** False from a failure until a process has opened the token again. */
  readonly isAvailable: boolean;
  /** In a row, since the last answer. */
  readonly failures: number;
  readonly lastFailure: string | null;
  readonly queued: number;
}

export interface TokenSigner {
  /** Starts the process unless it was needed before. */
  start(): void;
  /** Starts the process unless it runs. Throws NotSigned if a request would be refused now. */
  requireReady(): void;
  /**
   * Rejects with NotSigned. `accept` judges what the process answered; if it returns false the process is not to be
   * trusted, and is replaced.
   */
  request(act: Act, accept: (answer: Carried) => boolean): Promise<Carried>;
  facts(): SignerFacts;
  close(): void;
}

export interface SignerLimits {
  readonly maxQueued: number;
  /** For a session. */
  readonly waitMs: number;
  /** From sending to the answer. Both together are shorter than a lease. */
  readonly requestMs: number;
  readonly startMs: number;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
}

export const LIMITS: SignerLimits = {
  ...{ maxQueued: 256, waitMs: 3_000, requestMs: 4_000 },
  ...{ startMs: 10_000, firstDelayMs: 100, maxDelayMs: 30_000 },
};

/** What happens in a signer, for metrics and the log. */
export interface SignerObserver {
  onAnswered(seconds: number): void;
  onFailed(kind: FailureKind | 'refused', text: string): void;
  onStarted(isRestart: boolean): void;
}

interface SignerSettings {
  readonly opening: Omit<Opening, 'pin'>;
  readonly readPin: ReadPin;
  readonly observer: SignerObserver;
  readonly limits?: SignerLimits;
  /** Entry point of the process; replaced by a double in tests. */
  readonly program?: string;
}

interface Task {
  readonly act: Act;
  readonly accept: (answer: Carried) => boolean;
  readonly timer: NodeJS.Timeout;
  resolve(answer: Carried): void;
  reject(error: unknown): void;
}
interface Sent extends Task {
  readonly sentAt: number;
  readonly deadline: NodeJS.Timeout;
}

const PROGRAM = fileURLToPath(new URL('./signer-process.ts', import.meta.url));
/** After the second failure in a row. */
const OPENS_CIRCUIT = 2;

export function tokenSigner(settings: SignerSettings): TokenSigner {
  const { opening, readPin, observer, limits = LIMITS, program = PROGRAM } = settings;
  const queue: Task[] = [];
  const sent = new Map<number, Sent>();
  let state: SignerState = 'idle';
  let child: ChildProcess | undefined;
  let lastId = 0;
  let failures = 0;
  let starts = 0;
  let lastFailure: string | null = null;
  let nextStart = 0;
  let timer: NodeJS.Timeout | undefined;

  const retrySeconds = () => Math.max(1, Math.ceil((nextStart - performance.now()) / 1000));
  const refusal = (why: string) => new NotSigned(true, state === 'ready' ? 1 : retrySeconds(), new Error(why));

  function start(): void {
    const given = readPin();
    if ('why' in given) {
      block(given.why);
      return;
    }
    state = 'starting';
    observer.onStarted(starts++ > 0);
    const started = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program], {
      stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
      env: moduleEnvironment(),
    });
    child = started;
    timer = setTimeout(() => fail(started, 'module', 'it did not open the token in time'), limits.startMs);
    timer.unref();
    started.once('error', (error) => fail(started, 'module', `it cannot be started: ${error.message}`));
    started.once('exit', (code, signal) => fail(started, 'module', `it ended (${signal ?? code})`));
    started.stdin?.on('error', () => {});
    onLines(started.stdio[ANSWER_FD] as Readable, (line) => {
      if (child !== started) return;
      const answer = line === undefined ? undefined : readAnswer(line);
      if (answer?.kind === 'ready') becomeReady();
      else if (answer?.kind === 'refused') {
        if (answer.failure.kind === 'pin') given.onRefused();
        fail(started, answer.failure.kind, answer.failure.text);
      } else if (answer) receive(started, answer);
      else fail(started, 'module', 'it sent what is no answer');
    });
    // It may wait for requests for days, which must not keep a command from ending.
    started.unref();
    for (const stream of [started.stdin, started.stdio[ANSWER_FD]]) (stream as { unref?(): void } | null)?.unref?.();
    write({ ...opening, pin: given.pin });
  }

  const write = (line: Opening | Request): void => void child?.stdin?.write(`${JSON.stringify(line)}\n`);

  function becomeReady(): void {
    if (state !== 'starting') return;
    clearTimeout(timer);
    state = 'ready';
    pump();
  }

  /** Sends what waits, as long as there is a session. */
  function pump(): void {
    // Until it has answered once after failures, it gets one request at a time.
    const sessions = failures >= OPENS_CIRCUIT ? 1 : SESSIONS;
    while (state === 'ready' && sent.size < sessions) {
      const task = queue.shift();
      if (!task) return;
      clearTimeout(task.timer);
      const id = ++lastId;
      const process = child;
      const deadline = setTimeout(() => {
        if (process) fail(process, 'module', `it did not answer within ${limits.requestMs} ms`);
      }, limits.requestMs);
      sent.set(id, { ...task, deadline, sentAt: performance.now() });
      write({ ...task.act, id });
    }
  }

  function receive(from: ChildProcess, answer: Extract<Answer, { id: number }>): void {
    const task = sent.get(answer.id);
    if (!task || (answer.kind !== 'failed' && !task.accept(answer))) {
      fail(from, 'module', task ? 'its answer does not verify' : 'it answered what it was not asked');
      return;
    }
    sent.delete(answer.id);
    clearTimeout(task.deadline);
    if (answer.kind === 'failed') {
      refuse(from, task, answer.failure);
      return;
    }
    failures = 0;
    observer.onAnswered((performance.now() - task.sentAt) / 1000);
    task.resolve(answer);
    pump();
  }

  function refuse(from: ChildProcess, task: Task, { kind, text, isUnsigned }: Failure): void {
    task.reject(new NotSigned(isUnsigned, retrySeconds(), new Error(text)));
    if (kind !== 'key') {
      fail(from, kind, text);
      return;
    }
    // Other keys of the token are not affected.
    lastFailure = text;
    observer.onFailed(kind, text);
    pump();
  }

  /** Ends the process, and starts another one later. What was sent may have been signed. */
  function fail(failed: ChildProcess, kind: FailureKind, text: string): void {
    if (child !== failed) return;
    child = undefined;
    clearTimeout(timer);
    failed.kill('SIGKILL');
    failures += 1;
    lastFailure = text;
    observer.onFailed(kind, text);
    if (kind === 'pin') block(text);
    else wait('waiting', Math.min(limits.firstDelayMs * 2 ** (failures - 1), limits.maxDelayMs));
    for (const task of sent.values()) {
      clearTimeout(task.deadline);
      task.reject(new NotSigned(false, retrySeconds(), new Error(text)));
    }
    sent.clear();
    if (failures >= OPENS_CIRCUIT || state === 'blocked') dropQueue(text);
  }

  function wait(next: 'waiting' | 'blocked', delayMs: number): void {
    state = next;
    nextStart = performance.now() + delayMs;
    timer = setTimeout(start, delayMs);
    // A caller that waits keeps the process alive by its own timer.
    timer.unref();
  }

  /** Looks for another PIN now and then; the token is not asked before. */
  function block(why: string): void {
    lastFailure = why;
    wait('blocked', limits.maxDelayMs);
    dropQueue(why);
  }

  function dropQueue(why: string): void {
    for (const task of queue.splice(0)) {
      clearTimeout(task.timer);
      task.reject(refusal(why));
    }
  }

  function requireReady(): void {
    if (state === 'idle') start();
    const isOpen = failures >= OPENS_CIRCUIT && (state !== 'ready' || sent.size + queue.length > 0);
    if (isOpen || state === 'blocked' || state === 'closed' || queue.length >= limits.maxQueued) {
      observer.onFailed('refused', '');
      throw refusal(lastFailure ?? `${limits.maxQueued} requests are waiting`);
    }
  }

  return {
    start() {
      if (state === 'idle') start();
    },

    requireReady,

    async request(act, accept) {
      requireReady();
      const { promise, resolve, reject } = Promise.withResolvers<Carried>();
      const task: Task = { act, accept, resolve, reject, timer: setTimeout(giveUp, limits.waitMs) };
      function giveUp(): void {
        queue.splice(queue.indexOf(task), 1);
        observer.onFailed('refused', '');
        reject(refusal('no session was free in time'));
      }
      queue.push(task);
      pump();
      return await promise;
    },

    facts: () => ({
      ...{ state, failures, lastFailure, queued: queue.length + sent.size },
      isAvailable: state === 'ready' || (state !== 'blocked' && failures === 0),
    }),

    close() {
      if (state === 'closed') return;
      clearTimeout(timer);
      const running = child;
      child = undefined;
      state = 'closed';
      running?.kill('SIGKILL');
      for (const task of sent.values()) {
        clearTimeout(task.deadline);
        task.reject(new NotSigned(false, 1, new Error('the service is stopping')));
      }
      sent.clear();
      dropQueue('the service is stopping');
    },
  };
}

/** Modules are configured by variables of their own. Those of this service hold secrets, as do those of PostgreSQL. */
const moduleEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(RESEAL_|PG|NODE_|npm_)/.test(name)));
