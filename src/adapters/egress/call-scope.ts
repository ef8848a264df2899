// State of one outbound call: stage, timings, deadline, cancellation, sockets. Every wait of a call goes through
// `within`, and every socket through `own`, so that no path can hang or leak one.
import type { Observation, Stage } from '../../domain/egress/outbound.ts';
import { Failure, TIMEOUT_REASON } from './failure.ts';

export class CallScope implements Disposable {
  tls: Observation['tls'] = null;
  readonly #endsAt: number;
  readonly #signal: AbortSignal | undefined;
  readonly #opened: { destroy(): void }[] = [];
  /** End the waits that are under way. */
  readonly #ends = new Set<(failure: Failure) => void>();
  readonly #phases: Partial<Record<Stage, number>> = {};
  #stage: Stage = 'resolve';
  #since = performance.now();

  constructor(totalMs: number, signal: AbortSignal | undefined) {
    this.#endsAt = this.#since + totalMs;
    this.#signal = signal;
    if (signal) cancellationBy(signal).add(this);
  }

  get stage(): Stage {
    return this.#stage;
  }

  enter(stage: Stage): void {
    if (stage === this.#stage) return;
    const now = performance.now();
    this.#phases[this.#stage] = Math.round(now - this.#since);
    this.#stage = stage;
    this.#since = now;
  }

  seen(): Observation {
    const current = Math.round(performance.now() - this.#since);
    return { stage: this.#stage, phases: { ...this.#phases, [this.#stage]: current }, tls: this.tls };
  }

  /**
   * Destroys `opened` when the call ends, last opened first: Node (24.21) crashes, beyond any handler, if a socket is
   * destroyed before the TLS socket around it, just when their handshake is done.
   */
  own<T extends { destroy(): void }>(opened: T): T {
    this.#opened.push(opened);
    return opened;
  }

  /** Leaves open what the call opened. Call only once another owner is responsible for it. */
  disown(): void {
    this.#opened.length = 0;
  }

  /** Throws if the call was canceled. */
  check(): void {
    if (this.#signal?.aborted) throw new Failure('canceled');
  }

  /** Rejects with a Failure on timeout, deadline or cancellation. What `work` does after that is ignored. */
  within<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.check();
      const leave = () => {
        clearTimeout(timer);
        this.#ends.delete(end);
      };
      const end = (failure: unknown) => {
        leave();
        reject(failure);
      };
      const expire = () => end(new Failure(TIMEOUT_REASON[this.#stage]));
      const timer = setTimeout(expire, Math.max(0, Math.min(limitMs, this.#endsAt - performance.now())));
      this.#ends.add(end);
      const succeed = (value: T) => {
        leave();
        resolve(value);
      };
      try {
        work().then(succeed, end);
      } catch (error) {
        end(error);
      }
    });
  }

  cancel(): void {
    for (const end of this.#ends) end(new Failure('canceled'));
  }

  [Symbol.dispose](): void {
    if (this.#signal) cancellationBy(this.#signal).delete(this);
    for (const opened of this.#opened.toReversed()) opened.destroy();
  }
}

/** The calls that a signal cancels. They share a listener: Node looks through all of a signal to add or to remove one. */
class Cancellation {
  readonly #signal: AbortSignal;
  readonly #scopes = new Set<CallScope>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  add(scope: CallScope): void {
    if (this.#scopes.size === 0) this.#signal.addEventListener('abort', this.#cancel);
    this.#scopes.add(scope);
  }

  delete(scope: CallScope): void {
    this.#scopes.delete(scope);
    if (this.#scopes.size === 0) this.#signal.removeEventListener('abort', this.#cancel);
  }

  readonly #cancel = (): void => {
    for (const scope of this.#scopes) scope.cancel();
  };
}

const cancellations = new WeakMap<AbortSignal, Cancellation>();

function cancellationBy(signal: AbortSignal): Cancellation {
  const cancellation = cancellations.get(signal) ?? new Cancellation(signal);
  cancellations.set(signal, cancellation);
  return cancellation;
}
