// The dispatcher over a real store, with scripted receivers. The clock is manual, jitter is fixed at its midpoint, and
// only the test triggers polls: no result depends on timing.
import assert from 'node:assert/strict';
import { randomBytes } from '../../src/adapters/seal/random.ts';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { type DatabaseLocation, type OpenStore, openStore } from '../../src/adapters/store/store.ts';
import { readConfig } from '../../src/config/config.ts';
import type { Actor } from '../../src/domain/access/credential.ts';
import type { Delivery } from '../../src/domain/callbacks/delivery.ts';
import type { CallOut, OutboundCall, Outcome } from '../../src/domain/egress/outbound.ts';
import { idMaker } from '../../src/domain/ids.ts';
import { type ConfigureCallback, configureCallback } from '../../src/usecases/callbacks/configure-callback.ts';
import {
  type Dispatcher,
  type DispatcherTools,
  deliverCallbacks,
} from '../../src/usecases/callbacks/deliver-callbacks.ts';
import { type ManageDeliveries, manageDeliveries } from '../../src/usecases/callbacks/manage-deliveries.ts';
import { waitFor } from './deliveries.ts';
import { claimPair, issued, NOW, order } from './records.ts';

/** The defaults of the service. */
const { callbacks: CONFIG } = readConfig({}).config;
const LIMITS = { total: CONFIG.atOnce, perAccount: CONFIG.perAccount, perHost: CONFIG.perHost };
const PATIENCE_MS = 10_000;

const seen = { stage: 'response', phases: {}, tls: null } as const;

export const answers = (status: number, headers: Readonly<Record<string, string>> = {}): CallOut => {
  const outcome: Outcome = { kind: 'answered', status, headers, body: Buffer.from('ok'), isPrivate: false, seen };
  return async () => outcome;
};
/** Never responds; resolves as canceled when the caller aborts. */
export const hangs: CallOut = ({ signal }) =>
  new Promise((resolve) => {
    const canceled = () => resolve({ kind: 'failed', reason: 'canceled', seen });
    if (signal?.aborted) canceled();
    else signal?.addEventListener('abort', canceled);
  });

export const actorFor = (accountId: string): Actor => ({ accountId, actor: 'cli', requestId: null });
export const eventIn = ({ headers }: OutboundCall): string => headers['webhook-id'] ?? '';

/** Wraps a store: `onTransaction` runs at the start of each transaction, with its repositories. */
export function watchTransactions(
  store: OpenStore,
  onTransaction: (to: Parameters<Parameters<OpenStore['transaction']>[0]>[0]) => void,
): OpenStore {
  return {
    ...store,
    transaction: (work) =>
      store.transaction((tx) => {
        onTransaction(tx);
        return work(tx);
      }),
  };
}

export interface DeliveryWorld extends AsyncDisposable {
  readonly store: OpenStore;
  readonly settings: ConfigureCallback;
  readonly deliveries: ManageDeliveries;
  /** Every call of every dispatcher, in order. */
  readonly calls: OutboundCall[];
  readonly now: () => number;
  advance(ms: number): void;
  /** Creates an account, with a receiver at this host if given. */
  account(id: string, host?: string | null): Promise<void>;
  /** Returns the ids of the new events. */
  emit(accountId: string, count?: number): Promise<string[]>;
  listed(accountId: string): Promise<Delivery[]>;
  /** Stopped when the world is disposed of. */
  dispatcher(receiver: CallOut, change?: Partial<DispatcherTools>): Dispatcher;
  /** Simulates a crash: an instance claims what it can, sends it, and dies before any response. */
  dies(): Promise<void>;
  /** One poll of one instance, until all its work has finished. Returns the calls that it made. */
  run(receiver: CallOut, change?: Partial<DispatcherTools>): Promise<OutboundCall[]>;
  /** Polls until the account has nothing pending. */
  drain(accountId: string, receiver: CallOut): Promise<OutboundCall[]>;
}

export async function openDeliveryWorld(location: DatabaseLocation): Promise<DeliveryWorld> {
  let time = NOW;
  const now = () => time;
  const newId = idMaker(now, randomBytes);
  const store = await openStore(location, sealerWith([newSealKey()]), now);
  const policyFor = () => ({ allow: [], deny: [], totalMs: PATIENCE_MS });
  const settings = configureCallback({ store, now, newId, randomBytes, policyFor, overlapMs: CONFIG.rotationMs });
  const faults: unknown[] = [];
  const calls: OutboundCall[] = [];
  const started: Dispatcher[] = [];

  const account = async (id: string, host: string | null = `${id}.example.com`) => {
    await store.accounts.insert({ id, name: id, locale: 'en', kind: 'standard', createdAt: now() });
    if (host !== null) await settings.save(actorFor(id), { url: `https://${host}/`, access_key: `key-of-${id}` });
  };
  await account('owner', null);
  await claimPair(store);
  await store.orders.insert(order('o', { accountId: 'owner' }));
  await store.certificates.insert(issued('c', { accountId: 'owner' }));

  const dispatching = (receiver: CallOut, change: Partial<DispatcherTools> = {}) =>
    deliverCallbacks({
      ...{ store, now, newId, policyFor, schedule: CONFIG.schedule, limits: LIMITS, random: () => 0.5 },
      callOut: (call) => {
        calls.push(call);
        return receiver(call);
      },
      observer: { attempted() {}, firstAttempt() {}, gaveUp() {} },
      onError: (error) => void faults.push(error),
      ...change,
    });
  const dispatcher: DeliveryWorld['dispatcher'] = (receiver, change) => {
    const one = dispatching(receiver, change);
    started.push(one);
    return one;
  };
  const listed = async (accountId: string) =>
    (await store.deliveries.list(accountId, {}, { limit: 1_000 })).deliveries.reverse();

  return {
    ...{ store, settings, deliveries: manageDeliveries(store, now, newId), calls, now, account, listed },
    dispatcher,
    advance(ms) {
      time += ms;
    },
    async emit(accountId, count = 1) {
      const event = { accountId, orderId: 'o', orderStatus: 'issued', certificateId: 'c' } as const;
      const ids = Array.from({ length: count }, newId);
      await store.transaction(async (tx) => {
        for (const id of ids) await tx.outbox.add({ id, ...event, action: 'order:issued', createdAt: now() });
      });
      return ids;
    },
    async dies() {
      await dispatching(() => new Promise<never>(() => {})).poll();
    },
    async run(receiver, change) {
      const before = calls.length;
      const one = dispatcher(receiver, change);
      await one.poll();
      await one.stop(PATIENCE_MS);
      return calls.slice(before);
    },
    async drain(accountId, receiver) {
      const before = calls.length;
      const one = dispatcher(receiver);
      await waitFor(`nothing of ${accountId} is pending`, async () => {
        await one.poll();
        return (await listed(accountId)).every(({ state }) => state !== 'pending');
      });
      await one.stop(PATIENCE_MS);
      return calls.slice(before);
    },
    async [Symbol.asyncDispose]() {
      for (const one of started) await one.stop(0);
      await store.close();
      assert.deepEqual(faults, []);
    },
  };
}
