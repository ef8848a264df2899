// What the commands can do, wired to the real thing. The environment is read when a command needs it, so that help
// works under a broken configuration.
import { checkFolder, checkSealKey, checkTls } from './adapters/doctor/files.ts';
import { checkResolver } from './adapters/doctor/resolver.ts';
import { checkStore } from './adapters/doctor/store.ts';
import { openApp, type Running, resetSandbox, serve, serveSandbox } from './app.ts';
import type { Context } from './cli/command.ts';
import { type Config, type Environment, readConfig } from './config.ts';
import { faultLine, type Log, logTo } from './log.ts';
import { EXIT, type Finding, Problem } from './problem.ts';
import { announcement } from './sandbox/announce.ts';

const now = Date.now;

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

    async serve() {
      const log = logAs(load().logFormat ?? 'json');
      await untilSignal(await serve(load(log), { now, log }), log);
    },

    async serveSandbox() {
      const log = logAs(load().logFormat ?? 'text');
      const running = await serveSandbox(load(log), { now, log });
      process.stdout.write(`${announcement(running.sandbox, running.file)}\n`);
      await untilSignal(running, log);
    },

    resetSandbox() {
      const config = load();
      return { folder: config.dataDir, deleted: resetSandbox(config) };
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
  const files = [checkFolder(config.dataDir), checkSealKey(config.sealKey), checkTls(config.tls, now())];
  findings.push({ check: 'runtime', state: 'ok', text: `Node ${process.versions.node}` }, ...files);
  // Opening the store with a seal key that others can read, or in a folder we may not write, would only say it again.
  if (files.every(({ state }) => state !== 'problem')) {
    const open = async () => (await openApp(config, { now, log: () => {} })).store;
    findings.push(...(await checkStore(open, now)));
  }
  return [...findings, await checkResolver(config.dnsServers)];
}

/** Stops gracefully on the first signal; a second one means now. */
async function untilSignal(running: Running, log: Log): Promise<void> {
  process.on('uncaughtException', (error) => {
    log(faultLine(error, null));
    process.exit(EXIT.bug);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  let isStopping = false;
  const onSignal = () => {
    if (isStopping) process.exit(EXIT.refused);
    isStopping = true;
    resolve();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  await promise;
  await running.stop();
}
