// The composition root: opens the store for a configuration and builds the use cases over it. serve.ts adds HTTP.
import { createMetrics } from '../adapters/metrics/metrics.ts';
import { metricsHistory } from '../adapters/metrics/metrics-history.ts';
import { randomBytes } from '../adapters/seal/random.ts';
import { SealBroken } from '../adapters/seal/seal.ts';
import { openSealer } from '../adapters/seal/seal-check.ts';
import { type OpenStore, openStore } from '../adapters/store/store.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import { Refusal } from '../domain/errors.ts';
import { idMaker } from '../domain/ids.ts';
import { instanceSkewMs, isNoticeable, strayCount } from '../domain/support/clock-facts.ts';
import type { AppServices } from '../http/server.ts';
import { SECOND_MS } from '../kernel/durations.ts';
import { type Log, mask } from '../kernel/log.ts';
import { summarized } from '../kernel/summarized-log.ts';
import { useAccessTokens } from '../usecases/access/access-tokens.ts';
import type { OperatorCall } from '../usecases/access/audit.ts';
import { authenticateCaller } from '../usecases/access/authenticate-caller.ts';
import { changeAccount } from '../usecases/access/change-account.ts';
import { type ManageAccess, manageAccess } from '../usecases/access/manage-access.ts';
import { quotaUse } from '../usecases/access/quota-use.ts';
import { type ManageAcme, manageAcme } from '../usecases/acme/manage-acme.ts';
import { followAccount } from '../usecases/console/follow-account.ts';
import { type ManageOperators, manageOperators } from '../usecases/console/manage-operators.ts';
import { useConsoleSessions } from '../usecases/console/sessions.ts';
import { searchAudit } from '../usecases/support/search-audit.ts';
import { doctorRuns } from './doctor-runs.ts';
import { operatorServices } from './operator.ts';
import { noPeers, type Peers } from './peers.ts';
import { makeFolder, requireNoForgottenStore, requireStore, storeProblem } from './start-up.ts';
import { storeFacts } from './store-facts.ts';

/** However often readiness is asked for. */
const CLOCK_EVERY_MS = 10 * SECOND_MS;

/** The only dependencies that tests replace. */
export interface ClockAndLog {
  readonly now: Clock;
  /** The clock that the database's is compared with; replaced to be a machine whose clock is wrong. */
  readonly machineNow?: Clock;
  readonly log: Log;
  /** Entry point of the signer processes of tokens; replaced by a double. */
  readonly signerProgram?: string;
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
  /** The same for an operator of the console; undefined for the command line's user. */
  readonly accessAs: (call: OperatorCall | undefined) => ManageAccess;
  readonly operators: ManageOperators;
  readonly acmeAccess: ManageAcme;
  /** For a process that is the whole service; of several the supervisor does it. */
  readonly sampleMetrics: () => Promise<void>;
  readonly store: OpenStore;
  readonly peers: Peers;
  readonly signerProgram: string | undefined;
  /** The database's files are damaged: /readyz fails until the service is started again. */
  readonly noteDamage: () => void;
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
  let isDamaged = false;
  const noteDamage = () => {
    if (isDamaged) return;
    isDamaged = true;
    metrics.storeDamaged();
    log({ event: 'store_damaged', text: DAMAGED });
  };
  const { sealer, problemOf } = openSealer(config.sealKey);
  const store = await openStore(config.database, sealer, now, {
    ...(surroundings.machineNow && { machineNow: surroundings.machineNow }),
    onCommit: metrics.storeCommitted,
    onUnavailable(error, isDamage) {
      metrics.storeUnavailable();
      log({ event: 'store_unavailable', text: mask(textOf(error)) });
      if (!isDamage || isDamaged) return;
      noteDamage();
      peers.reportDamage();
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
  const facts = storeFacts(store, now);
  metrics.watchStore(facts);
  const history = metricsHistory(metrics.values, now);
  const newId = idMaker(now, randomBytes);
  const authenticate = authenticateCaller(store, now);
  const accessAs: App['accessAs'] = (call) =>
    manageAccess({ store, now, newId, randomBytes, quotas: config.quotas }, call);
  return {
    now,
    newId,
    log,
    metrics: { ...metrics, text: () => peers.metricsText(metrics) },
    store,
    peers,
    signerProgram: surroundings.signerProgram,
    access: accessAs(undefined),
    accessAs,
    acmeAccess: manageAcme({ store, now, newId, randomBytes }),
    quotaUse: (account) => quotaUse(store, account, config.quotas),
    authenticate,
    accessTokens: useAccessTokens({ store, now, newId, randomBytes }),
    consoleSessions: useConsoleSessions({ store, now, newId, randomBytes, authenticate }),
    followAccount: followAccount(store, now),
    operators: manageOperators({ store, now, newId, randomBytes }),
    sampleMetrics: history.sample,
    operator: {
      ...operatorServices({ store, now, newId }, { facts, examine: doctorRuns(config, now) }),
      accessAs,
      operatorsAs: (call) => manageOperators({ store, now, newId, randomBytes }, call),
      history: (spanMs) => peers.metricsHistory(history, spanMs),
    },
    changeAccount: changeAccount(store, now, newId),
    listAudit: (accountId, page) => store.audit.listOf(accountId, page),
    searchAudit: searchAudit(store),
    noteDamage,
    checkReady: readinessOf(store, log, () => isDamaged),
    close: () => store.close(),
  };
}

const DAMAGED =
  'the files of the database are damaged. Stop the service, keep a copy of them, and restore the last backup: reseal restore FILE --crl …';

/** Errors of several attempts to connect have no message of their own. */
const textOf = (error: unknown): string =>
  error instanceof Error ? error.message || String((error as NodeJS.ErrnoException).code) : String(error);

/** A value without a key is a part of the service that fails, however well the rest works; each such state is logged once. */
function readinessOf(store: OpenStore, log: Log, isDamaged: () => boolean): AppServices['checkReady'] {
  let reported = '';
  const readClock = clockDetail(store);
  return async () => {
    // Whatever else still works: rows on damaged pages are lost, or wrong.
    if (isDamaged()) throw new Refusal('service_busy', { retryAfterSeconds: 1 });
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
    return await readClock();
  };
}

/** Wrong clocks do not make a service unready: it works, and taking all instances out would be an outage. */
function clockDetail(store: OpenStore): () => Promise<Readonly<Record<string, unknown>>> {
  let last: { readonly at: number; readonly detail: Readonly<Record<string, unknown>> } | undefined;
  return async () => {
    if (last && performance.now() - last.at < CLOCK_EVERY_MS) return last.detail;
    const facts = await store.clockFacts();
    const seconds = (ms: number) => (isNoticeable(ms) ? Math.round(ms / SECOND_MS) : 0);
    const clock = {
      ahead_of_database_seconds: seconds(facts.aheadMs),
      instances_differ_by_seconds: seconds(instanceSkewMs(facts)),
      stray_times: strayCount(facts),
    };
    last = { at: performance.now(), detail: Object.values(clock).every((value) => value === 0) ? {} : { clock } };
    return last.detail;
  };
}
