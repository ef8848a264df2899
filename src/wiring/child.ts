// Entry point of the processes that the supervisor starts: `http` answers requests, `background` delivers callbacks and runs
// the chores. Signals go to all processes of a terminal or a service manager, so only the supervisor obeys them; it ends
// this process by a message, or by its own death, which closes the channel.
import { setTimeout as sleep } from 'node:timers/promises';
import type { MetricValues } from '../adapters/metrics/metrics.ts';
import { readConfig } from '../config/config.ts';
import { coalesce } from '../kernel/concurrency.ts';
import { errorLine, logTo } from '../kernel/log.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { warnOfAddresses } from './addresses.ts';
import { announceInstance } from './instance.ts';
import type { Role, ToChild, ToSupervisor } from './messages.ts';
import { peersThrough } from './peers.ts';
import { keepUpToDate, listen, type Opened, openService, runBackground } from './serve.ts';
import { shareOf } from './shares.ts';
import { startProblem } from './start-up.ts';
import { warnOfResolvers } from './validation.ts';

interface Part {
  readonly address: string;
  readonly url: string;
  stop(drainMs: number): Promise<void>;
}

/** Commits of a few milliseconds cause one message. */
const WAKE_EVERY_MS = 2;

const [role, name, port] = process.argv.slice(2) as [Role, string, string];
const now = Date.now;
const { config: whole } = readConfig(process.env);
const config = { ...shareOf(whole, role), port: Number(port) };
const log = logTo(process.stdout, { format: config.logFormat ?? 'json', process: name }, now);
const peers = peersThrough(tell);
/** Until the service is open there is nothing to wake, to show or to finish. */
let wake = () => {};
let noteDamage = () => {};
let metrics = async (): Promise<MetricValues> => [];
let stop = async (_drainMs: number): Promise<void> => process.exit(EXIT.ok);

function tell(message: ToSupervisor): void {
  if (process.connected) process.send?.(message);
}

const PARTS: Readonly<Record<Role, (opened: Opened) => Promise<Part>>> = {
  async http({ app, services, config }) {
    const { address, url, close } = await listen(app, services, config);
    const upToDate = keepUpToDate(app, services);
    app.store.onEventsCommitted(coalesce(() => tell({ kind: 'events_committed' }), WAKE_EVERY_MS));
    return {
      address,
      url,
      async stop(drainMs) {
        await close(drainMs);
        await upToDate.stop();
      },
    };
  },
  async background({ app, services, config, clockWarnings }) {
    warnOfAddresses(config, log);
    for (const text of clockWarnings) log({ event: 'warning', text });
    const stopping = new AbortController();
    void warnOfResolvers(config, log, stopping.signal);
    const background = runBackground(app, services, config);
    wake = background.dispatcher.wake;
    return {
      address: '',
      url: '',
      async stop(drainMs) {
        stopping.abort();
        await sleep(drainMs);
        await background.stop();
      },
    };
  },
};

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.stdout.on('error', () => tell({ kind: 'output_closed' }));
process.on('uncaughtException', (error) => {
  log(errorLine(error, null));
  process.exit(EXIT.bug);
});
process.on('disconnect', () => process.exit(EXIT.refused));

process.on('message', (message: ToChild) => {
  switch (message.kind) {
    case 'answer':
      peers.onAnswer(message);
      break;
    case 'wake':
      wake();
      break;
    case 'damaged':
      noteDamage();
      break;
    case 'stop':
      void stop(message.drainMs);
      break;
    case 'metrics':
      void metrics().then((values) => tell({ kind: 'metrics', id: message.id, values }));
  }
});

try {
  const opened = await openService(config, { now, log, peers });
  metrics = opened.app.metrics.values;
  noteDamage = opened.app.noteDamage;
  const instance = await announceInstance(opened.app);
  const { address, url, stop: stopPart } = await PARTS[role](opened);
  stop = async (drainMs) => {
    await stopPart(drainMs);
    await instance[Symbol.asyncDispose]();
    await opened[Symbol.asyncDispose]();
    process.exit(EXIT.ok);
  };
  tell({ kind: 'ready', address, url });
} catch (error) {
  const found = await startProblem(error, config);
  const problem =
    found instanceof Problem
      ? found
      : new Problem(EXIT.bug, String((error as Error).stack ?? error), 'This is a bug, please report it.');
  const { exitCode, message, remedy } = problem;
  process.send?.({ kind: 'failed', exitCode, message, remedy } satisfies ToSupervisor, () => process.exit(exitCode));
}
