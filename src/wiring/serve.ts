// Serves an open app over HTTP, with its background work, until stopped. sandbox.ts serves the sandbox.
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import type { Api } from '../http/front/api.ts';
import { buildServer } from '../http/server.ts';
import { type App, type ClockAndLog, openApp } from './app.ts';
import { type Chore, runPeriodically } from './background.ts';
import { type CallbackServices, openCallbacks } from './callbacks.ts';
import { type Issuance, openIssuance } from './issuance.ts';
import { retentionChores } from './retention.ts';
import { claimMode, listenProblem, readTls } from './start-up.ts';

const SWEEP_MS = 10_000;
const VALIDATE_MS = 2_000;

export interface Running {
  readonly url: string;
  readonly server: Api['server'];
  /** Graceful shutdown: fails /readyz for `drainMs`, completes requests in progress within the configured time, closes. */
  stop(drainMs?: number): Promise<void>;
}

/** Refuses a sandbox's data folder, because its keys are in plain text in sandbox.json. */
export async function serve(config: Config, { now, log }: ClockAndLog): Promise<Running> {
  await using onFailure = new AsyncDisposableStack();
  const app = await openApp(config, { now, log });
  onFailure.defer(() => app.close());
  await claimMode(app.store, 'serve', config);
  if (config.callbacks.sandboxAllow.length > 0) {
    log({
      event: 'warning',
      text: 'RESEAL_SANDBOX_ALLOW has no effect outside the sandbox; see RESEAL_CALLBACK_ALLOW',
    });
  }
  const issuance = await openIssuance(app, config, now);
  const running = await serveApp(app, { ...issuance, ...openCallbacks(app, config, now) }, config);
  onFailure.move();
  return running;
}

export async function serveApp(app: App, services: Issuance & CallbackServices, config: Config): Promise<Running> {
  let address = '';
  const publicUrl = () => config.publicUrl ?? address;
  const server = await buildServer(
    { ...app, ...services },
    {
      publicUrl,
      pathPrefix: config.publicUrl ? new URL(config.publicUrl).pathname.replace(/\/$/, '') : '',
      tls: config.tls && readTls(config.tls),
      trustedProxies: config.trustedProxies,
      metricsToken: config.metricsToken,
      maxRequests: config.maxRequests,
      logsProbes: config.logsProbes,
    },
  );
  const { host, port } = config;
  await server.listen({ host, port }).catch((error) => {
    throw listenProblem(error, host, port);
  });
  address = `${config.tls ? 'https' : 'http'}://${urlHost(host)}:${(server.server.address() as AddressInfo).port}`;
  app.log({ event: 'listening', text: `${address} as ${publicUrl()}` });
  const chores: Chore[] = [
    { name: 'sweep', everyMs: SWEEP_MS, run: services.sweep },
    { name: 'validate', everyMs: VALIDATE_MS, run: services.proveDomains.proveDue },
    ...services.deliveryChores,
    ...services.revocationChores,
    ...retentionChores(app, config),
  ];
  const background = runPeriodically(chores, app.log);
  app.store.onEventsCommitted(services.dispatcher.wake);
  services.dispatcher.wake();
  return {
    url: publicUrl(),
    server: server.server,
    async stop(drainMs = 0) {
      app.log({ event: 'stopping', text: 'finishing requests in progress' });
      server.drain.isDraining = true;
      await sleep(drainMs);
      const deadline = setTimeout(() => server.server.closeAllConnections(), config.shutdownMs);
      const delivered = services.dispatcher.stop(config.shutdownMs);
      await server.close();
      clearTimeout(deadline);
      await delivered;
      await background.stop();
      await services.close();
      await app.close();
      app.log({ event: 'stopped', text: 'all requests are finished or refused' });
    },
  };
}

/** Replaces a wildcard address, which callers cannot connect to, with localhost. */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
