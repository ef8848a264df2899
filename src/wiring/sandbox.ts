// The sandbox: the real service with demo data, and a small outside world on loopback that makes it work offline: a
// name server, a web answerer, and a receiver of callbacks whose certificate is of the embedded authority.
import { newKeyAndCsr, throwAwayCsr } from '../adapters/ca/csr-writer.ts';
import { randomBytes } from '../adapters/seal/random.ts';
import type { Config } from '../config/config.ts';
import { pem } from '../domain/certificate/pem.ts';
import { parseAddressRule, ruleText } from '../domain/egress/addresses.ts';
import type { PastedCsrs } from '../sandbox/announce.ts';
import { seedCallbacks } from '../sandbox/callbacks.ts';
import { type DnsServer, type Records, startDnsServer } from '../sandbox/dns-server.ts';
import {
  clearSandbox,
  readSandboxFile,
  type SandboxFile,
  sandboxFileIn,
  writeRoots,
  writeSandboxFile,
} from '../sandbox/folder.ts';
import { seedOrders } from '../sandbox/orders.ts';
import { type Receiver, startReceiver } from '../sandbox/receiver.ts';
import { RECEIVER_NAME, receiverIdentity, UNTRUSTED_NAME } from '../sandbox/receiver-identity.ts';
import { seedAccounts } from '../sandbox/seed.ts';
import { startWebAnswerer } from '../sandbox/web-answerer.ts';
import { viewWorld } from '../sandbox/world.ts';
import { type App, type ClockAndLog, openApp } from './app.ts';
import { type CallbackNetwork, openCallbacks } from './callbacks.ts';
import { type Issuance, openIssuance } from './issuance.ts';
import { dnsServers, namesOutside } from './sandbox-outside.ts';
import { type Running, serveApp } from './serve.ts';
import { claimMode, lockSandbox } from './start-up.ts';

const LOOPBACK = '127.0.0.1';
/** One write for a burst of callbacks. */
const NOTE_MS = 200;
const ACCESS_KEY_BYTES = 24;

export interface RunningSandbox extends Running {
  readonly sandbox: SandboxFile;
  readonly file: string;
  /** For requests to paste. */
  readonly csrs: PastedCsrs;
}

export async function serveSandbox(config: Config, world: ClockAndLog): Promise<RunningSandbox> {
  await using unlessServing = new AsyncDisposableStack();
  const lock = lockSandbox(config);
  unlessServing.defer(() => lock.release());
  const app = await openApp(config, world);
  unlessServing.defer(() => app.close());
  await claimMode(app.store, 'sandbox', config);
  const accounts = await seedAccounts(app.store, app.access);
  const { records, textAt } = viewWorld(config.dataDir, (text) => world.log({ event: 'warning', text }));
  const dns = unlessServing.use(await startNames(config, records));
  const startWeb = (port: number) => startWebAnswerer({ host: LOOPBACK, port, textAt });
  const web = unlessServing.use(await listenNear(config, DISTANCE.web, startWeb));
  const addresses = { dns: { address: `${LOOPBACK}:${dns.port}` }, web: { address: `${LOOPBACK}:${web.port}` } };
  const issuance = await openIssuance(app, config, world.now, namesOutside(addresses, config));
  let noteCallbacks = () => {};
  const receiver = await startOwnReceiver(app, issuance, config, world, () => noteCallbacks());
  unlessServing.defer(() => receiver.close());
  const roots = writeRoots(config.dataDir, issuance.issuers);
  const callbacks = openCallbacks(app, config, world.now, outsideOf(config, issuance, addresses, receiver));
  const running = await serveApp(app, { ...issuance, ...callbacks }, config);
  unlessServing.defer(() => running.stop());

  const [{ id: accountId }] = accounts as [SandboxFile['accounts'][number]];
  const url = `https://${RECEIVER_NAME}:${receiver.port}/`;
  const newAccessKey = () => Buffer.from(randomBytes(ACCESS_KEY_BYTES)).toString('base64url');
  const sandbox = (): SandboxFile => ({
    base_url: running.url,
    accounts: seeded,
    orders,
    receiver: {
      url,
      address: `${LOOPBACK}:${receiver.port}`,
      allow: config.callbacks.sandboxAllow.map(ruleText),
      roots_file: config.callbacks.rootsFile ?? null,
      callbacks: receiver.callbacks(),
    },
    trust: { roots },
    ...addresses,
  });
  // Orders first: what is demo data itself calls nobody back.
  const orders = await seedOrders(app.store, issuance.placeOrder, issuance.products.values(), accountId, throwAwayCsr);
  const seeded = await seedCallbacks(app.store, callbacks.callbacks, accounts, url, newAccessKey);
  writeSandboxFile(config.dataDir, sandbox());
  const notes = debounced(() => {
    try {
      writeSandboxFile(config.dataDir, sandbox());
    } catch (error) {
      world.log({ event: 'warning', text: `sandbox.json was not updated (${(error as NodeJS.ErrnoException).code})` });
    }
  });
  noteCallbacks = notes.note;
  unlessServing.move();

  async function stop(drainMs?: number): Promise<void> {
    try {
      await running.stop(drainMs);
      await receiver.close();
      await web.close();
      await dns.close();
      notes.end();
    } finally {
      lock.release();
    }
  }
  return {
    ...running,
    stop,
    sandbox: sandbox(),
    file: sandboxFileIn(config.dataDir),
    csrs: { p256: await throwAwayCsr('sandbox'), sm2: await throwAwayCsr('sandbox', 'sm2') },
  };
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

/**
 * At a fixed distance from the service where that is free, so that addresses stay the same over restarts; far enough
 * for a second sandbox on the next port. With the usual 8080 the receiver is at 8443.
 */
const DISTANCE = { receiver: 363, dns: 373, web: 383 } as const;

async function listenNear<T>(config: Config, distance: number, listen: (port: number) => Promise<T>): Promise<T> {
  const port = config.port + distance;
  if (config.port === 0 || port > 65_535) return await listen(0);
  return await listen(port).catch((error) => {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return listen(0);
  });
}

async function startNames(config: Config, records: Records): Promise<DnsServer> {
  const dns = await listenNear(config, DISTANCE.dns, (port) => startDnsServer({ host: LOOPBACK, port, records }));
  for (const name of [RECEIVER_NAME, UNTRUSTED_NAME, 'wrong-host.sandbox.test']) {
    dns.set(name, 'A', [LOOPBACK]);
    dns.set(name, 'AAAA', 'nodata');
  }
  dns.set('private.sandbox.test', 'A', ['10.0.0.1']);
  dns.set('broken.sandbox.test', 'A', 'servfail');
  dns.set('broken.sandbox.test', 'AAAA', 'servfail');
  return dns;
}

async function startOwnReceiver(
  app: App,
  { placeOrder, authority }: Issuance,
  config: Config,
  { now }: ClockAndLog,
  onCallback: () => void,
): Promise<Receiver> {
  const { store, access } = app;
  const { key, leaf, issuerId } = await receiverIdentity({ store, access, placeOrder, now, newKeyAndCsr });
  const cert = pem('CERTIFICATE', leaf);
  const chain = authority.chainOf(issuerId).map((one) => pem('CERTIFICATE', one));
  const earlier = readSandboxFile(config.dataDir)?.receiver.callbacks ?? [];
  const certificates = {
    good: { cert: [cert, ...chain].join(''), key },
    // Without its chain nobody can follow it to a root: the commonest mistake of all.
    untrusted: { cert, key },
  };
  return await listenNear(config, DISTANCE.receiver, (port) =>
    startReceiver({ host: LOOPBACK, port, certificates, onCallback, earlier }),
  );
}

function outsideOf(
  config: Config,
  { issuers }: Issuance,
  sandbox: Pick<SandboxFile, 'dns'>,
  receiver: Receiver,
): CallbackNetwork {
  const roots = issuers.filter(({ role }) => role === 'root').map((root) => pem('CERTIFICATE', root.certificate));
  return {
    allow: [parseAddressRule(`${LOOPBACK}:${receiver.port}`)!, ...config.callbacks.sandboxAllow],
    roots,
    dnsServers: dnsServers(sandbox, config),
  };
}

function debounced(write: () => void): { note(): void; end(): void } {
  let timer: NodeJS.Timeout | undefined;
  return {
    note() {
      timer ??= setTimeout(() => {
        timer = undefined;
        write();
      }, NOTE_MS);
    },
    end() {
      if (timer) write();
      clearTimeout(timer);
    },
  };
}
