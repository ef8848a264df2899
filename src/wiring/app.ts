// The composition root: opens the store for a configuration and builds the use cases over it. serve.ts adds HTTP.
import { createMetrics } from '../adapters/metrics/metrics.ts';
import { randomBytes } from '../adapters/seal/random.ts';
import { SealBroken } from '../adapters/seal/seal.ts';
import { openSealer } from '../adapters/seal/seal-check.ts';
import { type OpenStore, openStore } from '../adapters/store/store.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import { Refusal } from '../domain/errors.ts';
import { idMaker } from '../domain/ids.ts';
import type { AppServices } from '../http/server.ts';
import { type Log, mask } from '../kernel/log.ts';
import { summarized } from '../kernel/summarized-log.ts';
import { authenticateCaller } from '../usecases/access/authenticate-caller.ts';
import { changeAccount } from '../usecases/access/change-account.ts';
import { type ManageAccess, manageAccess } from '../usecases/access/manage-access.ts';
import { quotaUse } from '../usecases/access/quota-use.ts';
import { noPeers, type Peers } from './peers.ts';
import { makeFolder, requireNoForgottenStore, requireStore, storeProblem } from './start-up.ts';
import { storeFacts } from './store-facts.ts';

/** The only dependencies that tests replace. */
export interface ClockAndLog {
  readonly now: Clock;
  readonly log: Log;
  /** For commands that only read: throws a Problem instead of creating or migrating anything. */
  readonly mustExist?: boolean;
}

/** The process that an app is opened in. */
export interface Surroundings extends ClockAndLog {
  /** Left out where one process is the whole service. */
  readonly peers?: Peers;
}

export interface App extends AppServices {
  readonly now: Clock;
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly access: ManageAccess;
  readonly store: OpenStore;
  readonly peers: Peers;
  close(): Promise<void>;
}

export async function openApp(config: Config, surroundings: Surroundings): Promise<App> {
  const { now, mustExist = false, peers = noPeers(config) } = surroundings;
  await requireNoForgottenStore(config).catch((error) => {
    throw storeProblem(error, config);
  });
  if (mustExist) await requireStore(config);
  else makeFolder(config.dataDir);
  const metrics = createMetrics();
  const bounded = summarized(surroundings.log);
  const log: Log = (line) => {
    if (line.event === 'error') metrics.faulted(line.chore ?? 'request');
    bounded(line);
  };
  const { sealer, problemOf } = openSealer(config.sealKey);
  const store = await openStore(config.database, sealer, now, {
    onCommit: metrics.storeCommitted,
    onUnavailable(error) {
      metrics.storeUnavailable();
      log({ event: 'store_unavailable', text: mask(error instanceof Error ? error.message : String(error)) });
    },
  }).catch((error) => {
    throw storeProblem(error, config);
  });
  try {
    await store.sealing.confirm();
  } catch (error) {
    await store.close();
    throw problemOf(error);
  }
  metrics.watchStore(storeFacts(store, now));
  const newId = idMaker(now, randomBytes);
  return {
    now,
    newId,
    log,
    metrics: { ...metrics, text: () => peers.metricsText(metrics) },
    store,
    peers,
    access: manageAccess({ store, now, newId, randomBytes, quotas: config.quotas }),
    quotaUse: (account) => quotaUse(store, account, config.quotas),
    authenticate: authenticateCaller(store, now),
    changeAccount: changeAccount(store, now, newId),
    listAudit: (accountId, page) => store.audit.listOf(accountId, page),
    checkReady: readinessOf(store, log),
    close: () => store.close(),
  };
}

/** A value without a key is a part of the service that fails, however well the rest works; each such state is logged once. */
function readinessOf(store: OpenStore, log: Log): () => Promise<void> {
  let reported = '';
  return async () => {
    await store.probeWrite();
    try {
      await store.sealing.requireKeys();
      reported = '';
    } catch (error) {
      if (!(error instanceof SealBroken)) throw error;
      if (error.message !== reported) log({ event: 'warning', text: error.message });
      reported = error.message;
      throw new Refusal('service_busy', { retryAfterSeconds: 1, cause: error });
    }
  };
}
