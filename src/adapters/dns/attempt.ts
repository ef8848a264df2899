// One question at one server over one transport, limited in time. A single timer looks after all that wait: nearly every
// attempt ends long before its limit, so that a timer and a listener of its own would cost more than what they guard.
import type { Ask, AskedQuestion, Outcome, Settle } from './exchange.ts';
import type { Question } from './message.ts';

export const SILENT = { kind: 'silent' } as const;

export interface AttemptLimits {
  readonly limitMs: number;
  /** Once aborted, nothing is waited for any more. */
  readonly signal: AbortSignal;
}

/** How much later than its limit an attempt may be given up. */
const LOOK_MS = 20;
const waiting = new Set<Attempt>();
let timer: NodeJS.Timeout | undefined;

/** The timer also keeps the process running, which sockets do not. */
function look(): void {
  const now = performance.now();
  for (const attempt of waiting) attempt.giveUpIfDue(now);
  if (waiting.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}

class Attempt {
  /** Undefined once called: a transport that throws may have taken the question all the same, and answer it. */
  #settle: Settle<Outcome | typeof SILENT> | undefined;
  #asked: AskedQuestion | undefined;
  readonly #signal: AbortSignal;
  readonly #endsAt: number;

  constructor({ limitMs, signal }: AttemptLimits, settle: Settle<Outcome | typeof SILENT>) {
    this.#settle = settle;
    this.#signal = signal;
    this.#endsAt = performance.now() + limitMs;
  }

  /** A transport that throws, for want of descriptors or entropy, is unreachable like any other. */
  begin(ask: Ask, question: Question): void {
    try {
      this.#asked = ask(question, this.#end);
      waiting.add(this);
      timer ??= setInterval(look, LOOK_MS);
    } catch {
      this.#end({ kind: 'unreachable' });
    }
  }

  giveUpIfDue(now: number): void {
    if (now < this.#endsAt && !this.#signal.aborted) return;
    this.#asked?.withdraw();
    this.#end(SILENT);
  }

  readonly #end = (outcome: Outcome | typeof SILENT): void => {
    const settle = this.#settle;
    this.#settle = undefined;
    waiting.delete(this);
    settle?.(outcome);
  };
}

/** Calls `settle` once. */
export const attempt = (
  ask: Ask,
  question: Question,
  limits: AttemptLimits,
  settle: Settle<Outcome | typeof SILENT>,
): void => new Attempt(limits, settle).begin(ask, question);
