// The commands' context, wired to the real services. The environment is read only when a command needs it, so that help
// works with an invalid configuration.
import { existsSync } from 'node:fs';
import { finished } from 'node:stream/promises';
import { readCatalog } from '../adapters/catalog/products-file.ts';
import { lockFolder } from '../adapters/store/engine/folder-lock.ts';
import type { Context, Invocation } from '../cli/command.ts';
import { type Config, type Environment, readConfig } from '../config/config.ts';
import { readEnvFile } from '../config/env-file.ts';
import type { Clock } from '../domain/clock.ts';
import { errorLine, type Log, logTo } from '../kernel/log.ts';
import { type Diagnostic, EXIT, Problem } from '../kernel/problem.ts';
import { announcement, exposure } from '../sandbox/announce.ts';
import { addressCommands, recordedAddresses } from './addresses.ts';
import { type App, openApp } from './app.ts';
import type { Running } from './serve.ts';
import { fewerWorkers, workersOf } from './shares.ts';
import { startProblem, storeName, storeProblem } from './start-up.ts';
import type { Supervised } from './supervisor.ts';

const { stdout } = process;
/** A terminal and a launcher may both forward the same signal; within this time it counts once. */
const SAME_SIGNAL_MS = 500;
/** Ctrl-C ends a sandbox without a noticeable delay; no load balancer watches it. */
const SANDBOX_DRAIN_MS = 250;

/** Lazy imports: commands that do not serve start in half the time without the HTTP front. */
const loadServe = () => import('./serve.ts');
const loadSandbox = () => import('./sandbox.ts');
const loadSandboxWorld = () => import('../sandbox/world.ts');

/** `environment` is extended by the variables of a settings file, so that processes started from here have them too. */
export const commandContext =
  (environment: Record<string, string | undefined>, now: Clock = Date.now) =>
  (invocation: Invocation) =>
    contextFor(invocation, environment, now);

function contextFor(invocation: Invocation, environment: Record<string, string | undefined>, now: Clock): Context {
  const { mustExist, hints, isTerminal } = invocation;
  const report = once(invocation.report);
  function settings(): Environment {
    const file = invocation.envFile ?? environment.RESEAL_ENV_FILE;
    if (file) {
      Object.assign(environment, readEnvFile(file, environment));
      report(`settings from ${file}`);
    }
    return environment;
  }
  const load = (log?: Log, overrides: Environment = {}): Config => {
    const { config, warnings } = readConfig({ ...settings(), ...overrides });
    for (const text of warnings) log?.({ event: 'warning', text });
    return config;
  };
  function loadAndReport(): Config {
    const config = load();
    report(`store ${storeName(config.database)}`);
    return config;
  }
  const logAs = (format: 'json' | 'text', process?: string) => logTo(stdout, { format, process }, now);
  /** Log lines are dropped: stdout is for the command's output, and store failures reach the operator as errors. */
  async function withApp<T>(work: (app: App, config: Config) => Promise<T>): Promise<T> {
    const config = loadAndReport();
    const app = await openApp(config, { now, log: () => {}, mustExist });
    try {
      return await work(app, config);
    } catch (error) {
      throw storeProblem(error, config);
    } finally {
      await app.close();
    }
  }

  /** With the addresses of the service beside it. */
  const withAddressedApp = <T>(isIssuing: boolean, work: (app: App, config: Config) => Promise<T>): Promise<T> =>
    withApp(async (app, config) => await work(app, await recordedAddresses(app.store, config, isIssuing)));

  return {
    now,
    isTerminal,

    report: (line) => process.stderr.write(`${line}\n`),

    products: () => readCatalog(load().productsFile),

    async lintFile(text) {
      const { lintFile } = await import('./lint.ts');
      return await lintFile(load(), text);
    },

    async storeCommands() {
      const { storeCommands } = await import('./store-commands.ts');
      return storeCommands(loadAndReport(), now);
    },

    withAddresses: (work) => withApp((app) => work(addressCommands(app))),

    withRecords: (work) =>
      withAddressedApp(false, async (app, config) => {
        const { openRecords } = await import('./records.ts');
        return await work(await openRecords(app, config, now));
      }),

    withConsole: (work) =>
      withAddressedApp(false, async (app, config) => {
        const { consoleCommands } = await import('./console.ts');
        return await work(consoleCommands(app, config));
      }),

    withAccess: (work) => withApp(({ access }) => work(access)),

    withAcme: (work) => withApp(({ acmeAccess }) => work(acmeAccess)),

    withIssuance: (work) =>
      withAddressedApp(true, async (app, config) => {
        const { openIssuance } = await import('./issuance.ts');
        const { validationNetwork, sandboxOf } = await import('./sandbox-network.ts');
        const sandbox = await sandboxOf(app.store, config);
        const issuance = await openIssuance(app, config, now, sandbox && validationNetwork(sandbox, config));
        return await work(issuance).finally(() => issuance.close());
      }),

    withCallbacks: (work) =>
      withApp(async (app, config) => {
        const { callbackCommands } = await import('./callback-commands.ts');
        return await work(await callbackCommands(app, config, now));
      }),

    withRevocation: (work) =>
      withAddressedApp(true, async (app, config) => {
        const { openIssuance } = await import('./issuance.ts');
        const { revocationCommands } = await import('./revocation-commands.ts');
        const issuance = await openIssuance(app, config, now);
        return await work(revocationCommands(issuance)).finally(() => issuance.close());
      }),

    withCloudKeys: (work) =>
      withApp(async ({ store, newId }) => {
        const { operateCloudKeys } = await import('../usecases/cloud-keys/operate-cloud-keys.ts');
        return await work(operateCloudKeys({ store, now, newId }));
      }),

    withSupport: (work) =>
      withApp(async ({ store }) => {
        const { findAnything } = await import('../usecases/support/find-anything.ts');
        const { searchAudit } = await import('../usecases/support/search-audit.ts');
        return await work({ findAnything: findAnything(store), searchAudit: searchAudit(store) });
      }),

    withAuthorities: (work) =>
      withApp(async (app, config) => {
        const { authorityCommands } = await import('./authorities.ts');
        return await work(authorityCommands(app, config, now));
      }),

    withCustody: (work) =>
      withAddressedApp(true, async (app, config) => {
        const { openCustody } = await import('./authorities.ts');
        return await work(openCustody(app, config, now));
      }),

    async offlineRoot() {
      const { offlineRoot } = await import('./offline-root.ts');
      return offlineRoot(now);
    },

    async askSecret(question, instead) {
      const { askSecret } = await import('./terminal.ts');
      return await askSecret(question, instead);
    },

    async serve(workers) {
      const overrides = workers === undefined ? {} : { RESEAL_WORKERS: workers };
      const asked = load(undefined, overrides);
      const config = { ...asked, workers: workersOf(asked) };
      const log = logAs(config.logFormat ?? 'json', config.workers > 0 ? 'supervisor' : undefined);
      load(log, overrides);
      if (config.workers < asked.workers) log({ event: 'warning', text: fewerWorkers(config) });
      if (config.workers === 0) {
        const { serve } = await loadServe();
        return await untilSignal(
          log,
          noting(config, log, () => serve(config, { now, log })),
          config.drainMs,
        );
      }
      const { supervise } = await import('./supervisor.ts');
      await untilSignal(
        log,
        noting(config, log, () => supervise(config, { now, log })),
        config.drainMs,
      );
    },

    async serveSandbox() {
      const config = load();
      const log = logAs(config.logFormat ?? 'text');
      const { serveSandbox } = await loadSandbox();
      const start = noting(config, log, () => serveSandbox({ ...load(log), workers: 0 }, { now, log }));
      const announced = async () => {
        const running = await start();
        // A journal would keep the link.
        const link = isTerminal ? await running.signInLink() : undefined;
        process.stdout.write(`${hints(announcement(running.sandbox, running.file, running.csrs, link))}\n`);
        // Last, where it is seen, and on stderr, where a redirected log does not hide it.
        const warning = exposure(config.host);
        if (warning) process.stderr.write(`\n${hints(warning)}\n`);
        return running;
      };
      await untilSignal(log, announced, SANDBOX_DRAIN_MS);
    },

    async resetSandbox() {
      const { resetSandbox } = await loadSandbox();
      const config = load();
      if (!existsSync(config.dataDir)) return { folder: config.dataDir, deleted: [] };
      const { withWorldLock } = await loadSandboxWorld();
      return {
        folder: config.dataDir,
        deleted: await withWorldLock(config.dataDir, lockFolder, () => resetSandbox(config)),
      };
    },

    async readSandbox() {
      const { readSandboxFile } = await import('../sandbox/folder.ts');
      return readSandboxFile(load().dataDir);
    },

    async withBackups(work) {
      const { backupCommands } = await import('./backup.ts');
      return await work(backupCommands(load(), now));
    },

    hold: () => ({
      announce: (snapshot) => void process.stdout.write(`${snapshot}\n`),
      released: () => finished(process.stdin.resume()),
    }),

    async sandboxWorld() {
      const { worldCommands } = await loadSandboxWorld();
      return worldCommands(load().dataDir, lockFolder);
    },

    diagnose: () => diagnoseHere(load, report, now),
  };
}

/** Logs which store a service uses, once it has started; explains why it could not. */
const noting =
  <T>(config: Config, log: Log, start: () => Promise<T>) =>
  async (): Promise<T> => {
    const running = await start().catch(async (error) => {
      throw await startProblem(error, config);
    });
    log({ event: 'store', text: storeName(config.database) });
    return running;
  };

/** A command that opens the store twice reports it once. */
function once(report: (text: string) => void): (text: string) => void {
  const reported = new Set<string>();
  return (text) => {
    if (!reported.has(text)) report(text);
    reported.add(text);
  };
}

async function diagnoseHere(
  load: (log: Log) => Config,
  report: (text: string) => void,
  now: Clock,
): Promise<Diagnostic[]> {
  let config: Config;
  const warnings: string[] = [];
  try {
    config = load((line) => 'text' in line && warnings.push(line.text));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return [{ check: 'configuration', state: 'problem', text: error.message, remedy: error.remedy }];
  }
  report(`store ${storeName(config.database)}`);
  const state = warnings.length === 0 ? 'ok' : 'warning';
  const findings: Diagnostic[] = [
    { check: 'configuration', state, text: warnings.join(' ') || 'every variable is valid' },
  ];
  const { diagnose } = await import('./diagnose.ts');
  for await (const finding of diagnose(config, now)) findings.push(finding);
  return findings;
}

/**
 * Shuts down gracefully on the first signal, exits at once on a second one. Handlers are installed before anything
 * starts, so that an early signal does not kill a half-started service.
 */
async function untilSignal(log: Log, start: () => Promise<Running | Supervised>, drainMs: number): Promise<void> {
  const { promise: signalled, resolve } = Promise.withResolvers<void>();
  let firstAt = Number.POSITIVE_INFINITY;
  const onSignal = () => {
    if (performance.now() - firstAt > SAME_SIGNAL_MS) process.exit(EXIT.refused);
    firstAt = Math.min(firstAt, performance.now());
    resolve();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal).on('SIGHUP', onSignal);
  // The reader of stdout is gone (EPIPE). Without a handler the next log line would be an uncaught error.
  process.stdout.on('error', onSignal);
  process.on('uncaughtException', (error) => {
    log(errorLine(error, null));
    process.exit(EXIT.bug);
  });
  const running = await start();
  try {
    await ('failed' in running ? Promise.race([signalled, running.outputClosed, running.failed]) : signalled);
  } finally {
    await running.stop(drainMs);
  }
}
