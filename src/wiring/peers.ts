// What the processes of one service share beside the store: slots of callback tests and of other operations, locks of cloud-held keys, metrics, and
// the wake-up of the dispatcher. A process that is the whole service has its own; others ask the supervisor.
import type { createMetrics } from '../adapters/metrics/metrics.ts';
import type { MetricsHistory } from '../adapters/metrics/metrics-history.ts';
import type { Config } from '../config/config.ts';
import type { Refusal } from '../domain/errors.ts';
import type { HistoryPoint } from '../domain/support/history.ts';
import { type KeyedMutex, keyedMutex } from '../kernel/concurrency.ts';
import {
  type AcquireSlot,
  type LimitOwner,
  limitReached,
  operationSlots,
  tooManyInFlight,
} from '../usecases/access/in-flight.ts';
import {
  type AcquireTestSlot,
  noFreeTestSlot,
  type TestSlots,
  testSlots,
} from '../usecases/callbacks/concurrency-limits.ts';
import type { Answer, Answered, Lasting, Question, ToSupervisor } from './messages.ts';

export interface Peers {
  readonly acquireTestSlot: AcquireTestSlot;
  readonly acquireSlot: AcquireSlot;
  readonly withLock: KeyedMutex;
  /** Call after listening has stopped. Resolves once it has in all processes: they share the listener. */
  listenerClosed(): Promise<void>;
  /** Tells them that the database's files are damaged. */
  reportDamage(): void;
  /** Of all processes together. */
  metricsText(own: Pick<ReturnType<typeof createMetrics>, 'text'>): Promise<string>;
  /** Likewise, over the last hours. */
  metricsHistory(own: MetricsHistory, spanMs: number): Promise<HistoryPoint[]>;
}

export const configuredTestSlots = ({ callbacks }: Config): TestSlots =>
  testSlots({
    total: callbacks.testsAtOnce,
    perAccount: callbacks.testsPerAccount,
    perHost: callbacks.testsPerHost,
  });

export function noPeers(config: Config): Peers {
  const acquire = configuredTestSlots(config);
  const slots = operationSlots(config.inFlight);
  return {
    async acquireTestSlot(accountId, host) {
      const slot = acquire(accountId, host);
      if (typeof slot === 'string') throw noFreeTestSlot(slot);
      return slot;
    },
    async acquireSlot(operation, accountId) {
      const slot = slots(operation, accountId);
      if (slot === 'account') throw tooManyInFlight(operation);
      return slot;
    },
    withLock: keyedMutex(),
    listenerClosed: async () => {},
    reportDamage() {},
    metricsText: (own) => own.text(),
    metricsHistory: async (own, spanMs) => own.points(spanMs),
  };
}

/** Requests to the supervisor, each answered once. Their number is bounded by that of the HTTP requests. */
export function peersThrough(tell: (message: ToSupervisor) => void): Peers & { onAnswer(answer: Answer): void } {
  const waiting = new Map<number, (value: Answered) => void>();
  let lastId = 0;
  const ask = (question: Question): { id: number; answer: Promise<Answered> } => {
    const id = ++lastId;
    const { promise: answer, resolve } = Promise.withResolvers<Answered>();
    waiting.set(id, resolve);
    tell({ kind: 'ask', id, question });
    return { id, answer };
  };
  async function acquire(
    question: Lasting,
    refuse: (owner: LimitOwner) => Refusal = limitReached,
  ): Promise<Disposable> {
    const { id, answer } = ask(question);
    const value = await answer;
    if (value === 'account' || value === 'service') throw refuse(value);
    return { [Symbol.dispose]: () => tell({ kind: 'release', id }) };
  }
  return {
    acquireTestSlot: (accountId, host) => acquire({ about: 'test_slot', accountId, host }, noFreeTestSlot),
    acquireSlot: (operation, accountId) =>
      acquire({ about: 'operation_slot', operation, accountId }, () => tooManyInFlight(operation)),
    async withLock(key, work) {
      using _lock = await acquire({ about: 'lock', key });
      return await work();
    },
    async listenerClosed() {
      await ask({ about: 'listener' }).answer;
    },
    reportDamage: () => tell({ kind: 'damaged' }),
    async metricsText() {
      return (await ask({ about: 'metrics' }).answer) ?? '';
    },
    async metricsHistory(_own, spanMs) {
      return JSON.parse((await ask({ about: 'history', spanMs }).answer) ?? '[]');
    },
    onAnswer({ id, value }) {
      waiting.get(id)?.(value);
      waiting.delete(id);
    },
  };
}
