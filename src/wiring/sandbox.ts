// The sandbox: the real service with demo data, and servers on loopback that let it work offline: a name server, a web
// server, servers for clients of ACME, and a receiver of callbacks with a certificate of the embedded CA.
import { newAlpnCertificate } from '../adapters/ca/alpn-certificate-writer.ts';
import { newKeyAndCsr, throwAwayCsr } from '../adapters/ca/csr-writer.ts';
import { randomBytes } from '../adapters/seal/random.ts';
import type { Config } from '../config/config.ts';
import { ACME_PATHS } from '../domain/acme/directory.ts';
import { pem } from '../domain/certificate/pem.ts';
import type { Clock } from '../domain/clock.ts';
import { ruleText } from '../domain/egress/addresses.ts';
import { acmeFaults } from '../sandbox/acme-faults.ts';
import { exposure, type PastedCsrs } from '../sandbox/announce.ts';
import { type MakeAlpnCertificate, startAlpnServer, startChallengeServer } from '../sandbox/challenge-server.ts';
import { ChallengeWorld } from '../sandbox/challenge-world.ts';
import { type DnsServer, type ReplySource, startDnsServer } from '../sandbox/dns-server.ts';
import {
  clearSandbox,
  readSandboxFile,
  type SandboxFile,
  sandboxFileIn,
  writeRoots,
  writeSandboxFile,
} from '../sandbox/folder.ts';
import { type Receiver, startReceiver } from '../sandbox/receiver.ts';
import { RECEIVER_NAME, receiverIdentity, UNTRUSTED_NAME } from '../sandbox/receiver-identity.ts';
import { seedAccounts, seedBinding, seedCallbacks, seedOrders } from '../sandbox/seed.ts';
import { startWebServer } from '../sandbox/web-server.ts';
import { viewWorld } from '../sandbox/world.ts';
import { claimAddresses } from './addresses.ts';
import { type App, type ClockAndLog, openApp } from './app.ts';
import { type CallbackNetwork, openCallbacks } from './callbacks.ts';
import { sandboxLink, seedOperator } from './console.ts';
import { type Issuance, openIssuance } from './issuance.ts';
import { allowRule, dnsServers, validationNetwork } from './sandbox-network.ts';
import { type Running, serveApp } from './serve.ts';
import { claimMode, lockSandbox } from './start-up.ts';

const LOOPBACK = '127.0.0.1';
/** A burst of callbacks causes one write of sandbox.json. */
const DEBOUNCE_MS = 200;
const ACCESS_KEY_BYTES = 24;

export interface RunningSandbox extends Running {
  readonly sandbox: SandboxFile;
  readonly file: string;
  /** For the commands of the greeting. */
  readonly csrs: PastedCsrs;
  /** A new link that signs in to the console, once; undefined if the sandbox's operator was disabled. */
  readonly signInLink: () => Promise<string | undefined>;
}

export async function serveSandbox(configured: Config, { now, log }: ClockAndLog): Promise<RunningSandbox> {
  await using cleanup = new AsyncDisposableStack();
  const warning = exposure(configured.host);
  if (warning) log({ event: 'warning', text: warning.replaceAll(/\s*!!!\s*/g, ' ').trim() });
  const lock = lockSandbox(configured);
  cleanup.defer(() => lock.release());
  const app = await openApp(configured, { now, log });
  cleanup.defer(() => app.close());
  await claimMode(app.store, 'sandbox', configured);
  const config = await claimAddresses(app.store, configured);
  const accounts = await seedAccounts(app.store, app.access);
  await seedOperator(app);
  const { replies, textAt } = viewWorld(config.dataDir, (text) => log({ event: 'warning', text }));
  const published = new ChallengeWorld();
  const dns = cleanup.use(await startNameServer(config, replies, published));
  const startWeb = (port: number) =>
    startWebServer({ host: LOOPBACK, port, textAt: (url) => textAt(url) ?? published.textAt(url) });
  const web = cleanup.use(await listenNear(config, PORT_OFFSETS.web, startWeb));
  const challenges = cleanup.use(
    await listenNear(config, PORT_OFFSETS.challenges, (port) =>
      startChallengeServer({ host: LOOPBACK, port }, published),
    ),
  );
  const makeCertificate: MakeAlpnCertificate = (host, digest) => newAlpnCertificate(host, digest, Date.now());
  const alpn = cleanup.use(
    await listenNear(config, PORT_OFFSETS.tls, (port) =>
      startAlpnServer({ host: LOOPBACK, port }, published, makeCertificate),
    ),
  );
  const addresses = {
    dns: { address: `${LOOPBACK}:${dns.port}` },
    web: { address: `${LOOPBACK}:${web.port}` },
    challenges: { url: `http://${LOOPBACK}:${challenges.port}`, tls_address: `${LOOPBACK}:${alpn.port}` },
  };
  const faults = acmeFaults(config.acmeFaults, Math.random);
  const network = { ...validationNetwork(addresses, config), acmeFaults: faults };
  const issuance = await openIssuance(app, config, now, network);
  let onCallback = () => {};
  const receiver = await startSandboxReceiver(app, issuance, {
    config,
    now,
    onCallback: () => onCallback(),
  });
  cleanup.defer(() => receiver.close());
  const roots = writeRoots(config.dataDir, issuance.issuers);
  const callbacks = openCallbacks(app, config, now, networkOf(config, issuance, addresses, receiver));
  const running = await serveApp(app, { ...issuance, ...callbacks }, config);
  cleanup.defer(() => running.stop());

  const [{ id: accountId }] = accounts as [SandboxFile['accounts'][number]];
  const binding = await seedBinding(app.store, app.acmeAccess, accountId);
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
    acme: { directory: running.url + ACME_PATHS.directory, ...binding },
  });
  const { store } = app;
  const { placeOrder, products } = issuance;
  // Orders first, so that demo orders send no callbacks.
  const orders = await seedOrders({
    store,
    placeOrder,
    products: products.values(),
    accountId,
    makeCsr: throwAwayCsr,
  });
  const seeded = await seedCallbacks({
    store,
    callbacks: callbacks.callbacks,
    accounts,
    receiverUrl: url,
    newAccessKey,
  });
  writeSandboxFile(config.dataDir, sandbox());
  const rewrite = debounced(() => {
    try {
      writeSandboxFile(config.dataDir, sandbox());
    } catch (error) {
      log({ event: 'warning', text: `sandbox.json was not updated (${(error as NodeJS.ErrnoException).code})` });
    }
  });
  onCallback = rewrite.schedule;
  cleanup.move();

  async function stop(drainMs?: number): Promise<void> {
    try {
      await running.stop(drainMs);
      await receiver.close();
      await challenges.close();
      await alpn.close();
      await web.close();
      await dns.close();
      rewrite.flush();
    } finally {
      lock.release();
    }
  }
  return {
    ...running,
    stop,
    sandbox: sandbox(),
    file: sandboxFileIn(config.dataDir),
    signInLink: () => sandboxLink(app, running.url),
    csrs: { p256: await throwAwayCsr('sandbox'), sm2: await throwAwayCsr('sandbox', 'sm2') },
  };
}

/** Deletes the sandbox's files and returns their names. */
export function resetSandbox(config: Config): string[] {
  const lock = lockSandbox(config);
  try {
    return clearSandbox(config.dataDir);
  } finally {
    lock.release();
  }
}

/**
 * Offsets from the port of the service, so that addresses survive restarts, with room for other sandboxes on the next
 * ports. With the default 8080 the receiver is at 8443.
 */
const PORT_OFFSETS = { receiver: 363, dns: 373, web: 383, tls: 393, challenges: 403 } as const;

/** Falls back to a random free port if the one at the offset is taken. */
async function listenNear<T>(config: Config, offset: number, listen: (port: number) => Promise<T>): Promise<T> {
  const port = config.port + offset;
  if (config.port === 0 || port > 65_535) return await listen(0);
  return await listen(port).catch((error) => {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return listen(0);
  });
}

/** Of records of one name and type, those that a client of ACME published count. */
async function startNameServer(config: Config, set: ReplySource, published: ChallengeWorld): Promise<DnsServer> {
  const replies: ReplySource = (name) => {
    const [ours, theirs] = [set(name), published.replies(name)];
    return ours && theirs ? new Map([...ours, ...theirs]) : (theirs ?? ours);
  };
  const sources = { replies, fallback: published.fallback };
  const dns = await listenNear(config, PORT_OFFSETS.dns, (port) =>
    startDnsServer({ host: LOOPBACK, port, ...sources }),
  );
  for (const name of [RECEIVER_NAME, UNTRUSTED_NAME, 'wrong-host.sandbox.test']) {
    dns.set(name, 'A', [LOOPBACK]);
    dns.set(name, 'AAAA', 'nodata');
  }
  dns.set('private.sandbox.test', 'A', ['10.0.0.1']);
  dns.set('broken.sandbox.test', 'A', 'servfail');
  dns.set('broken.sandbox.test', 'AAAA', 'servfail');
  return dns;
}

async function startSandboxReceiver(
  { store, access }: App,
  { placeOrder, authority }: Issuance,
  { config, now, onCallback }: { readonly config: Config; readonly now: Clock; readonly onCallback: () => void },
): Promise<Receiver> {
  const { key, leaf, issuerId } = await receiverIdentity({ store, access, placeOrder, now, newKeyAndCsr });
  const cert = pem('CERTIFICATE', leaf);
  const chain = (await authority.chainOf(issuerId)).map((one) => pem('CERTIFICATE', one));
  const earlier = readSandboxFile(config.dataDir)?.receiver.callbacks ?? [];
  const certificates = {
    good: { cert: [cert, ...chain].join(''), key },
    // Without its chain, clients cannot build a path to a root: the most common misconfiguration.
    untrusted: { cert, key },
  };
  return await listenNear(config, PORT_OFFSETS.receiver, (port) =>
    startReceiver({ host: LOOPBACK, port, certificates, onCallback, earlier }),
  );
}

function networkOf(
  config: Config,
  { issuers }: Issuance,
  sandbox: Pick<SandboxFile, 'dns'>,
  receiver: Receiver,
): CallbackNetwork {
  const roots = issuers.filter(({ role }) => role === 'root').map((root) => pem('CERTIFICATE', root.certificate));
  return {
    allow: [allowRule(`${LOOPBACK}:${receiver.port}`), ...config.callbacks.sandboxAllow],
    roots,
    dnsServers: dnsServers(sandbox, config),
  };
}

/** `schedule` runs `write` once after a delay, however often it is called; `flush` runs a scheduled one now. */
function debounced(write: () => void): { schedule(): void; flush(): void } {
  let timer: NodeJS.Timeout | undefined;
  return {
    schedule() {
      timer ??= setTimeout(() => {
        timer = undefined;
        write();
      }, DEBOUNCE_MS);
    },
    flush() {
      if (timer) write();
      clearTimeout(timer);
    },
  };
}
