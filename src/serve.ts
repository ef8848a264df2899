// Serving: an open app behind an HTTP server, as a production service or as the sandbox.
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { throwAwayCsr } from './adapters/ca/csr-writer.ts';
import { type App, openApp, type World } from './app.ts';
import { type CallbackServices, openCallbacks } from './callbacks.ts';
import type { Config } from './config.ts';
import { Refusal } from './domain/errors.ts';
import { type Api, buildServer } from './http/server.ts';
import { type Issuance, openIssuance } from './issuance.ts';
import { faultLine } from './log.ts';
import { clearSandbox, type SandboxFile, sandboxFileIn, writeRoots, writeSandboxFile } from './sandbox/folder.ts';
import { seedOrders } from './sandbox/orders.ts';
import { seedAccounts } from './sandbox/seed.ts';
import { claimMode, listenProblem, lockSandbox, readTls } from './start-up.ts';

const SWEEP_MS = 10_000;

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
  const issuance = await openIssuance(app, config, world.now);
  const running = await serveApp(app, { ...issuance, ...openCallbacks(app, config, world.now) }, config);
  unlessServing.move();
  return running;
}

export interface RunningSandbox extends Running {
  readonly sandbox: SandboxFile;
  readonly file: string;
  /** For a request to paste. */
  readonly csr: string;
}

export async function serveSandbox(config: Config, world: World): Promise<RunningSandbox> {
  await using unlessServing = new AsyncDisposableStack();
  const lock = lockSandbox(config);
  unlessServing.defer(() => lock.release());
  const app = await openApp(config, world);
  unlessServing.defer(() => app.close());
  await claimMode(app.store, 'sandbox', config);
  const accounts = await seedAccounts(app.store, app.access);
  const issuance = await openIssuance(app, config, world.now);
  const running = await serveApp(app, { ...issuance, ...openCallbacks(app, config, world.now) }, config);
  unlessServing.defer(() => running.stop());
  const [{ id: accountId }] = accounts as [SandboxFile['accounts'][number]];
  const orders = await seedOrders(app.store, issuance.placeOrder, issuance.products.values(), accountId, throwAwayCsr);
  const trust = { roots: writeRoots(config.dataDir, issuance.issuers) };
  const sandbox = { base_url: running.url, accounts, orders, receiver: {}, trust, dns: {} };
  writeSandboxFile(config.dataDir, sandbox);
  unlessServing.move();
  const stop = (drainMs?: number) => running.stop(drainMs).finally(() => lock.release());
  return { ...running, stop, sandbox, file: sandboxFileIn(config.dataDir), csr: throwAwayCsr('sandbox') };
}

/** Deletes what the sandbox made; returns the names of the files. */
export function resetSandbox(config: Config): string[] {
  const lock = lockSandbox(config);
  try {
    return clearSandbox(config.dataDir);
  } finally {
    lock.release();
  }
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
  // A store that is busy said so itself, and is asked again; whoever wants the order meanwhile voids it too.
  const onFault = (error: unknown) => {
    if (!(error instanceof Refusal)) app.log(faultLine(error, null));
  };
  const sweeper = setInterval(() => services.sweep().catch(onFault), SWEEP_MS);
  return {
    url: publicUrl(),
    server: server.server,
    async stop(drainMs = 0) {
      app.log({ event: 'stopping', text: 'finishing the requests under way' });
      server.drain.isDraining = true;
      await sleep(drainMs);
      clearInterval(sweeper);
      const deadline = setTimeout(() => server.server.closeAllConnections(), config.shutdownMs);
      await server.close();
      clearTimeout(deadline);
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
