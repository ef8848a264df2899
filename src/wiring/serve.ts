// Serves an open app over HTTP, with its background work, until stopped: in one process, or as parts that processes share.
// sandbox.ts serves the sandbox.
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, urlHost } from '../config/config.ts';
import { clockFindings } from '../domain/support/clock-facts.ts';
import { SAMPLE_MS } from '../domain/support/history.ts';
import type { Api } from '../http/front/api.ts';
import { buildServer } from '../http/server.ts';
import { MINUTE_MS } from '../kernel/durations.ts';
import { countStorage } from '../usecases/access/count-storage.ts';
import type { Dispatcher } from '../usecases/callbacks/deliver-callbacks.ts';
import { openAcme } from './acme.ts';
import { claimAddresses, warnOfAddresses } from './addresses.ts';
import { type App, type ClockAndLog, openApp, type Surroundings } from './app.ts';
import { type Chore, runPeriodically } from './background.ts';
import { type CallbackServices, openCallbacks } from './callbacks.ts';
import { descriptorLimit, maxConnectionsOf } from './descriptors.ts';
import { announceInstance } from './instance.ts';
import { type Issuance, openIssuance } from './issuance.ts';
import { retentionChores } from './retention.ts';
import { claimMode, listenProblem, readTls, warnOfSandboxRules } from './start-up.ts';
import { warnOfResolvers } from './validation.ts';

const SWEEP_MS = 10_000;
const VALIDATE_MS = 2_000;
const COUNT_MS = MINUTE_MS;
const NAMES_AT_ONCE = 500;
/** Clients that send once a second learn from an answer, not from a reset, that their connection is closed. */
const IDLE_MS = 1_500;

type Services = Issuance & CallbackServices;

export interface Opened extends AsyncDisposable {
  readonly app: App;
  readonly services: Services;
  /** With the addresses that the store has recorded. */
  readonly config: Config;
  /** What was wrong with the clocks when it was opened. */
  readonly clockWarnings: readonly string[];
}

export interface Listening {
  /** Where it listens, which callers may know by another URL. */
  readonly address: string;
  readonly url: string;
  readonly server: Api['server'];
  /** Fails /readyz for `drainMs`, then completes requests in progress within the configured time. */
  close(drainMs: number): Promise<void>;
}

export interface Background {
  readonly dispatcher: Dispatcher;
  /** Resolves once chores and attempts have ended; attempts that take too long are canceled and released. */
  stop(): Promise<void>;
}

export interface Running {
  readonly url: string;
  readonly server: Api['server'];
  /** Graceful shutdown: fails /readyz for `drainMs`, completes requests in progress within the configured time, closes. */
  stop(drainMs?: number): Promise<void>;
}

/** Refuses a sandbox's data folder, because its keys are in plain text in sandbox.json. */
export async function openService(configured: Config, surroundings: Surroundings): Promise<Opened> {
  await using onFailure = new AsyncDisposableStack();
  const { now } = surroundings;
  const app = await openApp(configured, surroundings);
  onFailure.defer(() => app.close());
  await claimMode(app.store, 'serve', configured);
  // Before anything is repaired, and before the first probe is written.
  const findings = clockFindings(await app.store.clockFacts(), now());
  const config = await claimAddresses(app.store, configured);
  const issuance = await openIssuance(app, config, now);
  onFailure.defer(() => issuance.close());
  const services = { ...issuance, ...openCallbacks(app, config, now) };
  const opened = onFailure.move();
  return { app, services, config, clockWarnings: findings, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** The whole service in this process. */
export async function serve(configured: Config, surroundings: ClockAndLog): Promise<Running> {
  warnOfSandboxRules(configured, surroundings.log);
  await using onFailure = new AsyncDisposableStack();
  const { app, services, config, clockWarnings } = onFailure.use(await openService(configured, surroundings));
  warnOfAddresses(config, surroundings.log);
  for (const text of clockWarnings) surroundings.log({ event: 'warning', text });
  const running = await serveApp(app, services, config);
  onFailure.move();
  const stopping = new AbortController();
  void warnOfResolvers(config, surroundings.log, stopping.signal);
  return {
    ...running,
    stop(drainMs) {
      stopping.abort();
      return running.stop(drainMs);
    },
  };
}

export async function serveApp(app: App, services: Services, config: Config): Promise<Running> {
  await using onFailure = new AsyncDisposableStack();
  const instance = onFailure.use(await announceInstance(app));
  const { address, url, server, close } = await listen(app, services, config);
  onFailure.move();
  app.log({ event: 'listening', text: `${address} as ${url}` });
  const background = runBackground(app, services, config);
  const sampling = runPeriodically([{ name: 'sample_metrics', everyMs: SAMPLE_MS, run: app.sampleMetrics }], app.log);
  return {
    url,
    server,
    async stop(drainMs = 0) {
      app.log({ event: 'stopping', text: 'finishing requests in progress' });
      const closed = close(drainMs);
      await sleep(drainMs);
      await Promise.all([closed, background.stop(), sampling.stop()]);
      await services.close();
      await instance[Symbol.asyncDispose]();
      await app.close();
      app.log({ event: 'stopped', text: 'all requests are finished or refused' });
    },
  };
}

/** Answers requests, without background work. */
export async function listen(app: App, services: Services, config: Config): Promise<Listening> {
  let address = '';
  const publicUrl = () => config.publicUrl ?? address;
  const server = await buildServer(
    {
      ...{ ...app, ...services },
      acme: await openAcme(app, services, config, publicUrl),
      checkReady: async () => ({
        ...(await app.checkReady()),
        ...services.resolverDetail(),
        ...services.tokenDetail(),
      }),
    },
    {
      publicUrl,
      pathPrefix: config.publicUrl ? new URL(config.publicUrl).pathname.replace(/\/$/, '') : '',
      tls: config.tls && readTls(config.tls),
      trustedProxies: config.trustedProxies,
      metricsToken: config.metricsToken,
      consoleNetworks: config.consoleNetworks,
      maxRequests: config.maxRequests,
      maxConnections: maxConnectionsOf(config, descriptorLimit()),
      logsProbes: config.logsProbes,
    },
  );
  services.startTokens();
  for (const text of await services.crls.takeUp()) app.log({ event: 'warning', text });
  const { host, port } = config;
  // Node would listen on the first address of `localhost`, which may be ::1, and only there.
  await server.listen({ host: host === 'localhost' ? '127.0.0.1' : host, port }).catch((error) => {
    throw listenProblem(error, host, port);
  });
  address = `${config.tls ? 'https' : 'http'}://${urlHost(host)}:${(server.server.address() as AddressInfo).port}`;
  return {
    address,
    url: publicUrl(),
    server: server.server,
    async close(drainMs) {
      server.drain.begin();
      await sleep(drainMs);
      const deadline = setTimeout(server.drain.closeAll, config.shutdownMs);
      server.drain.stopListening();
      await app.peers.listenerClosed();
      await server.drain.closeConnections(Math.min(drainMs, IDLE_MS));
      await server.close();
      clearTimeout(deadline);
    },
  };
}

/** The dispatcher and all chores: once per service. */
export function runBackground(app: App, services: Services, config: Config): Background {
  const { dispatcher } = services;
  const chores: Chore[] = [
    { name: 'sweep', everyMs: SWEEP_MS, run: services.sweep },
    { name: 'validate', everyMs: VALIDATE_MS, run: services.proveDomains.proveDue },
    ...services.acmeChores,
    ...services.deliveryChores,
    ...services.revocationChores,
    ...retentionChores(app, config),
    {
      name: 'complete_names',
      everyMs: COUNT_MS,
      run: () => app.store.transaction((tx) => tx.orders.completeNames(NAMES_AT_ONCE)),
    },
    { name: 'count_storage', everyMs: COUNT_MS, run: (stopping) => countStorage(app.store, app.now, stopping) },
  ];
  const periodic = runPeriodically(chores, app.log);
  app.store.onEventsCommitted(dispatcher.wake);
  dispatcher.wake();
  return {
    dispatcher,
    async stop() {
      await dispatcher.stop(config.shutdownMs);
      await periodic.stop();
    },
  };
}

/** What a process needs to do that only answers requests. */
export const keepUpToDate = ({ log }: App, { takeUpIssuers }: Services): { stop(): Promise<void> } =>
  runPeriodically([{ name: 'take_up_issuers', everyMs: SWEEP_MS, run: takeUpIssuers }], log);
