// Timers of some of the work in this process, held until a test lets them expire: so a limit is reached because the test
// says so, and not because the machine was slow. The timers of everything else run as always.
import { AsyncLocalStorage } from 'node:async_hooks';

interface HeldTimers extends Disposable {
  /** The timers that this turn of the event loop sets from here on are held, and those of all that it leads to. */
  holdFromHere(): void;
  /** Of those that are held, and were not cleared. */
  readonly delays: readonly number[];
  /** All that are held; they do not have to wait any more. */
  expire(): void;
}

/** Replaces the global functions until it is disposed of. Timers of node:timers and of sockets are none of its business. */
export function holdTimers(): HeldTimers {
  const { setTimeout, clearTimeout } = globalThis;
  const isHeld = new AsyncLocalStorage<boolean>();
  const held = new Map<unknown, { readonly ms: number; readonly call: () => void }>();
  globalThis.setTimeout = ((call: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) => {
    const timer = setTimeout(call, ms, ...given);
    if (!isHeld.getStore()) return timer;
    clearTimeout(timer);
    held.set(timer, { ms, call: () => call(...given) });
    return timer;
  }) as typeof setTimeout;
  globalThis.clearTimeout = (timer) => {
    held.delete(timer);
    clearTimeout(timer);
  };
  return {
    holdFromHere: () => isHeld.enterWith(true),
    get delays() {
      return [...held.values()].map(({ ms }) => ms);
    },
    expire() {
      const expired = [...held.values()];
      held.clear();
      for (const { call } of expired) call();
    },
    [Symbol.dispose]() {
      globalThis.setTimeout = setTimeout;
      globalThis.clearTimeout = clearTimeout;
    },
  };
}
