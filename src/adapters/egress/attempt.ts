// One call under way: how far it has come, how long each phase took, and what ends it early. Every wait of a call is
// bounded here, by its own limit, by the time of the whole call and by a caller who leaves; and every socket a call
// opens is owned here, so that no path can forget to close one.
import type { Observation, Stage } from '../../domain/egress/outbound.ts';
import { Failure, TIMED_OUT } from './failure.ts';

export class Attempt implements Disposable {
  tls: Observation['tls'] = null;
  readonly #endsAt: number;
  readonly #signal: AbortSignal | undefined;
  readonly #opened = new DisposableStack();
  readonly #phases: Partial<Record<Stage, number>> = {};
  #stage: Stage = 'resolve';
  #since = performance.now();

  constructor(totalMs: number, signal: AbortSignal | undefined) {
    this.#endsAt = this.#since + totalMs;
    this.#signal = signal;
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
   * Closes it when the attempt ends, however it ends, and the last one first: Node (24.21) crashes, beyond any handler,
   * if a socket is destroyed before the TLS socket around it, just when their handshake is done.
   */
  own<T extends { destroy(): void }>(opened: T): T {
    return this.#opened.adopt(opened, () => opened.destroy());
  }

  /** What the work still does after its time is up is nobody's concern, not even when it fails. */
  async within<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
    if (this.#signal?.aborted) throw new Failure('canceled');
    const { promise: end, reject } = Promise.withResolvers<never>();
    const cancel = () => reject(new Failure('canceled'));
    const expire = () => reject(new Failure(TIMED_OUT[this.#stage]));
    const timer = setTimeout(expire, Math.max(0, Math.min(limitMs, this.#endsAt - performance.now())));
    this.#signal?.addEventListener('abort', cancel);
    try {
      return await Promise.race([work(), end]);
    } finally {
      clearTimeout(timer);
      this.#signal?.removeEventListener('abort', cancel);
    }
  }

  [Symbol.dispose](): void {
    this.#opened.dispose();
  }
}
