// Turns of the dispatcher. What ends and what begins between two of them shares a commit, which costs more than the rows in
// it: a process that writes loses what it has cached of a file that another process writes to.

/** The least time between two turns of a busy dispatcher, by what asks for the second. */
const PAUSE_MS = {
  /** Events may be new, or due. */
  claim: 10,
  /** Attempts have ended, and nothing waits for that: recorded with the next claim, if one comes soon. */
  record: 50,
} as const;

export type TurnPurpose = keyof typeof PAUSE_MS;

export interface DispatcherTurns {
  /** At once after a pause, and while deliveries come one by one. */
  next(purpose: TurnPurpose): Promise<void>;
  /** Brings the next turn forward, if there will be one. */
  hasten(purpose: TurnPurpose): void;
  /** To be called for every delivery that begins. */
  noteSent(): void;
}

export function dispatcherTurns(): DispatcherTurns {
  let pending: (PromiseWithResolvers<void> & { at: number; timer?: NodeJS.Timeout }) | undefined;
  let lastTurn = Number.NEGATIVE_INFINITY;
  let sentSince = 0;
  let sentBefore = 0;

  function begin(): void {
    const turn = pending;
    pending = undefined;
    lastTurn = performance.now();
    sentBefore = sentSince;
    sentSince = 0;
    turn?.resolve();
  }

  function hasten(purpose: TurnPurpose): void {
    // What the last turn claimed is sent only after its commit.
    const isBusy = Math.max(sentSince, sentBefore) > 1;
    const at = isBusy ? lastTurn + PAUSE_MS[purpose] : 0;
    if (!pending || pending.at <= at) return;
    pending.at = at;
    clearTimeout(pending.timer);
    const waitMs = at - performance.now();
    if (waitMs > 0) pending.timer = setTimeout(begin, waitMs);
    else {
      // As early as can be: nothing brings it forward any more.
      pending.at = 0;
      setImmediate(begin);
    }
  }

  return {
    next(purpose) {
      pending ??= { ...Promise.withResolvers<void>(), at: Number.POSITIVE_INFINITY };
      const { promise } = pending;
      hasten(purpose);
      return promise;
    },
    hasten,
    noteSent() {
      sentSince += 1;
    },
  };
}
