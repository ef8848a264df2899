// Serving: an open app behind an HTTP server. The sandbox is served from serve-sandbox.ts.
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import type { Api } from '../http/front/api.ts';
import { buildServer } from '../http/server.ts';
import { type App, openApp, type World } from './app.ts';
import { type Chore, keepRunning, logUnexpected } from './background.ts';
import { type CallbackServices, openCallbacks } from './callbacks.ts';
import { type Issuance, openIssuance } from './issuance.ts';
import { claimMode, listenProblem, readTls } from './start-up.ts';

const SWEEP_MS = 10_000;
const PROVE_MS = 2_000;

export interface Running {
  readonly url: string;
  readonly server: Api['server'];
  /**
   * Says "not ready" for `drainMs`, so that callers who are on their way get in; then finishes what was begun, for at
   * most the configured time, and lets go of everything.
   */
  stop(drainMs?: number): Promise<void>;
}

/** Serves until stopped. A sandbox's data folder is refused: its keys lie open in sandbox.json. */
export async function serve(config: Config, world: World): Promise<Running> {
  await using unlessServing = new AsyncDisposableStack();
  const app = await openApp(config, world);
  unlessServing.defer(() => app.close());
  await claimMode(app.store, 'serve', config);
  if (config.callbacks.sandboxAllow.length > 0) {
    world.log({ event: 'warning', text: 'RESEAL_SANDBOX_ALLOW opens nothing here; see RESEAL_CALLBACK_ALLOW' });
  }
  const issuance = await openIssuance(app, config, world.now);
  const running = await serveApp(app, { ...issuance, ...openCallbacks(app, config, world.now) }, config);
  unlessServing.move();
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
    },
  );
  const { host, port } = config;
  await server.listen({ host, port }).catch((error) => {
    throw listenProblem(error, host, port);
  });
  address = `${config.tls ? 'https' : 'http'}://${urlHost(host)}:${(server.server.address() as AddressInfo).port}`;
  app.log({ event: 'listening', text: `${address} as ${publicUrl()}` });
  const chores: Chore[] = [
    { everyMs: SWEEP_MS, run: services.sweep },
    { everyMs: PROVE_MS, run: services.proveDomains.due },
    ...services.deliveryChores,
    ...services.revocationChores,
  ];
  const background = keepRunning(chores, logUnexpected(app.log));
  app.store.onEventsCommitted(services.dispatcher.wake);
  services.dispatcher.wake();
  return {
    url: publicUrl(),
    server: server.server,
    async stop(drainMs = 0) {
      app.log({ event: 'stopping', text: 'finishing the requests under way' });
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
      app.log({ event: 'stopped', text: 'everything that was begun is finished or refused' });
    },
  };
}

/** A wildcard address can be listened on, not called. */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
