// Holds timers of selected work until a test expires them, so that a time limit is reached deterministically and not
// because the machine is slow. All other timers run normally.
import { AsyncLocalStorage } from 'node:async_hooks';

interface HeldTimers extends Disposable {
  /** Holds the timers set from here on in this asynchronous context and its descendants. */
  holdFromHere(): void;
  /** Delays of held timers that were not cleared. */
  readonly delays: readonly number[];
  /** Fires all held timers at once. */
  expire(): void;
}

/** Replaces the global functions until disposed of. Timers of node:timers and of sockets are not affected. */
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
