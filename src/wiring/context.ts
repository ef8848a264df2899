// What the commands can do, wired to the real thing. The environment is read when a command needs it, so that help
// works under a broken configuration.
import { type ImportedIssuer, readImportedIssuer } from '../adapters/ca/imported-issuer.ts';
import { checkFolder, checkSealKey, checkTls } from '../adapters/doctor/files.ts';
import { checkProducts } from '../adapters/doctor/products.ts';
import { checkResolver } from '../adapters/doctor/resolver.ts';
import { checkSm2 } from '../adapters/doctor/sm2.ts';
import { checkStore } from '../adapters/doctor/store.ts';
import { sealKeysOf } from '../adapters/seal/seal-check.ts';
import { lockFolder } from '../adapters/store/engine/folder-lock.ts';
import type { Context } from '../cli/command.ts';
import { type Config, type Environment, readConfig } from '../config/config.ts';
import { errorLine, type Log, logTo } from '../kernel/log.ts';
import { EXIT, type Finding, Problem } from '../kernel/problem.ts';
import { announcement } from '../sandbox/announce.ts';
import { openApp } from './app.ts';
import type { Running } from './serve.ts';

const now = Date.now;
const SAME_SIGNAL_MS = 500;
// Longer than a connection waits to be accepted, shorter than anyone waits for a restart.
const DRAIN_MS = 250;

/** Loaded when needed: commands that do not serve start in half the time without the HTTP front. */
const serving = () => import('./serve.ts');
const sandbox = () => import('./sandbox.ts');
const worldFile = () => import('../sandbox/world.ts');

export function commandContext(environment: Environment): Context {
  const load = (log?: Log): Config => {
    const { config, warnings } = readConfig(environment);
    for (const text of warnings) log?.({ event: 'warning', text });
    return config;
  };
  const logAs = (format: 'json' | 'text') => logTo(process.stdout, format, now);

  return {
    now,

    async withAccess(work) {
      // A command's own output is the answer; the store's state reaches the user as an error, not as a log line.
      const app = await openApp(load(), { now, log: () => {} });
      return await work(app.access).finally(() => app.close());
    },

    async withIssuance(work) {
      const config = load();
      const app = await openApp(config, { now, log: () => {} });
      try {
        const { openIssuance } = await import('./issuance.ts');
        const { namesOutside, sandboxOf } = await import('./sandbox-outside.ts');
        const sandbox = await sandboxOf(app.store, config);
        const issuance = await openIssuance(app, config, now, sandbox && namesOutside(sandbox, config));
        return await work(issuance).finally(() => issuance.close());
      } finally {
        await app.close();
      }
    },

    async withCallbacks(work) {
      const config = load();
      const app = await openApp(config, { now, log: () => {} });
      try {
        const { callbackCommands } = await import('./callback-commands.ts');
        return await work(await callbackCommands(app, config, now));
      } finally {
        await app.close();
      }
    },

    async withRevocation(work) {
      const config = load();
      const app = await openApp(config, { now, log: () => {} });
      try {
        const { openIssuance } = await import('./issuance.ts');
        const { revocationCommands } = await import('./revocation-commands.ts');
        const issuance = await openIssuance(app, config, now);
        return await work(revocationCommands(app, issuance)).finally(() => issuance.close());
      } finally {
        await app.close();
      }
    },

    async withCloudKeys(work) {
      const app = await openApp(load(), { now, log: () => {} });
      const { operateCloudKeys } = await import('../usecases/cloud-keys/operate-cloud-keys.ts');
      return await work(operateCloudKeys({ store: app.store, now, newId: app.newId })).finally(() => app.close());
    },

    async withAuthorities(work) {
      const app = await openApp(load(), { now, log: () => {} });
      const { store, newId } = app;
      const adopt = async (own: ImportedIssuer) => {
        const pair = readImportedIssuer(own, now(), newId);
        await store.transaction((tx) => tx.issuers.adopt(pair));
        return pair[1];
      };
      const block = (fingerprints: readonly string[]) =>
        store.transaction(async (tx) => {
          for (const fingerprint of fingerprints) await tx.blockedKeys.add(fingerprint, 'imported', now());
        });
      return await work({ list: () => store.issuers.listPublic(), adopt, block }).finally(() => app.close());
    },

    async serve() {
      const log = logAs(load().logFormat ?? 'json');
      const { serve } = await serving();
      await untilSignal(log, () => serve(load(log), { now, log }));
    },

    async serveSandbox() {
      const log = logAs(load().logFormat ?? 'text');
      const { serveSandbox } = await sandbox();
      await untilSignal(log, async () => {
        const running = await serveSandbox(load(log), { now, log });
        process.stdout.write(`${announcement(running.sandbox, running.file, running.csrs)}\n`);
        return running;
      });
    },

    async resetSandbox() {
      const { resetSandbox } = await sandbox();
      const config = load();
      const { alone } = await worldFile();
      return { folder: config.dataDir, deleted: await alone(config.dataDir, lockFolder, () => resetSandbox(config)) };
    },

    async readSandbox() {
      const { readSandboxFile } = await import('../sandbox/folder.ts');
      return readSandboxFile(load().dataDir);
    },

    async sandboxWorld() {
      const { worldCommands } = await worldFile();
      return worldCommands(load().dataDir, lockFolder);
    },

    diagnose: () => diagnose(environment),
  };
}

async function diagnose(environment: Environment): Promise<Finding[]> {
  let config: Config;
  const findings: Finding[] = [];
  try {
    const read = readConfig(environment);
    config = read.config;
    const state = read.warnings.length === 0 ? 'ok' : 'warning';
    findings.push({ check: 'configuration', state, text: read.warnings.join(' ') || 'every variable is understood' });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return [{ check: 'configuration', state: 'problem', text: error.message, remedy: error.remedy }];
  }
  const products = checkProducts(config.productsFile);
  const files = [checkFolder(config.dataDir), checkSealKey(config.sealKey), checkTls(config.tls, now())];
  const runtime = { check: 'runtime', state: 'ok', text: `Node ${process.versions.node}` } as const;
  findings.push(products.finding, runtime, checkSm2(), ...files);
  // Opening the store with a seal key that others can read, or in a folder we may not write, would only say it again.
  if (files.every(({ state }) => state !== 'problem')) {
    findings.push(...(await checkStore(config.database, sealKeysOf(config.sealKey), now, products.longestDays)));
  }
  return [...findings, await checkResolver(config.dnsServers)];
}

/**
 * Stops gracefully on the first signal; a second one means now. Listens before anything starts, so that a signal
 * that comes early is not the abrupt end of half a start.
 */
async function untilSignal(log: Log, start: () => Promise<Running>): Promise<void> {
  const { promise: signalled, resolve } = Promise.withResolvers<void>();
  let firstAt = Number.POSITIVE_INFINITY;
  const onSignal = () => {
    // A terminal and a launcher may both pass on the same one: only after a moment is it a second wish.
    if (performance.now() - firstAt > SAME_SIGNAL_MS) process.exit(EXIT.refused);
    firstAt = Math.min(firstAt, performance.now());
    resolve();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal).on('SIGHUP', onSignal);
  // Whoever read our lines is gone; without this the next one would be an error nobody catches.
  process.stdout.on('error', onSignal);
  process.on('uncaughtException', (error) => {
    log(errorLine(error, null));
    process.exit(EXIT.bug);
  });
  const running = await start();
  await signalled;
  await running.stop(DRAIN_MS);
}
