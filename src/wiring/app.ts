// The composition root: opens the store for a configuration and builds the use cases over it. serve.ts adds HTTP.
import { createMetrics } from '../adapters/metrics/metrics.ts';
import { randomBytes } from '../adapters/seal/random.ts';
import { openSealer } from '../adapters/seal/seal-check.ts';
import { type OpenStore, openStore } from '../adapters/store/store.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import { idMaker } from '../domain/ids.ts';
import type { AppServices } from '../http/server.ts';
import { type Log, mask } from '../kernel/log.ts';
import { summarized } from '../kernel/summarized-log.ts';
import { authenticateCaller } from '../usecases/access/authenticate-caller.ts';
import { changeAccount } from '../usecases/access/change-account.ts';
import { type ManageAccess, manageAccess } from '../usecases/access/manage-access.ts';
import { makeFolder, storeProblem } from './start-up.ts';
import { storeFacts } from './store-facts.ts';

/** The only dependencies that tests replace. */
export interface ClockAndLog {
  readonly now: Clock;
  readonly log: Log;
}

export interface App extends AppServices {
  readonly now: Clock;
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly access: ManageAccess;
  readonly store: OpenStore;
  close(): Promise<void>;
}

export async function openApp(config: Config, { now, log: write }: ClockAndLog): Promise<App> {
  makeFolder(config.dataDir);
  const metrics = createMetrics();
  const bounded = summarized(write);
  const log: Log = (line) => {
    if (line.event === 'error') metrics.faulted(line.chore ?? 'request');
    bounded(line);
  };
  const { sealer, confirm } = openSealer(config.sealKey);
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
    await confirm(store);
  } catch (error) {
    await store.close();
    throw error;
  }
  metrics.watchStore(storeFacts(store, now));
  const newId = idMaker(now, randomBytes);
  return {
    now,
    newId,
    log,
    metrics,
    store,
    access: manageAccess({ store, now, newId, randomBytes }),
    authenticate: authenticateCaller(store, now),
    changeAccount: changeAccount(store, now, newId),
    listAudit: (accountId, page) => store.audit.listOf(accountId, page),
    probeWrite: () => store.probeWrite(),
    close: () => store.close(),
  };
}
