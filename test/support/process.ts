// The real program in a process of its own, with only the environment that the test gives it. Most commands run in the
// test's process instead: in-process.ts.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { nameServer } from './name-server.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/reseal.mjs', import.meta.url));

export interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** A loaded machine takes long. */
const START_MS = 120_000;
const NAMES = await nameServer();

export type Settings = Readonly<Record<string, string>>;

/** A sandbox has its own name server, which commands in its folder use. */
export const withNameServer = (args: readonly string[], settings: Settings): Settings =>
  ['serve', 'order', 'doctor'].includes(args[0] ?? '') ? { RESEAL_DNS_SERVERS: NAMES, ...settings } : settings;

function start(args: readonly string[], settings: Settings, program = process.execPath): ChildProcess {
  // One process unless a test is about several: each takes half a second of CPU to start. No load balancer must notice.
  const here = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' };
  const quick = { RESEAL_WORKERS: '0', RESEAL_DRAIN_SECONDS: '0' };
  const env = { ...here, ...quick, ...withNameServer(args, settings) };
  // Its own process group, so that a test can signal all of it, as terminals and supervisors do.
  return spawn(program, [LAUNCHER, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
}

/** Runs a command to its end, in a process of its own. */
export async function spawnReseal(args: readonly string[], settings: Settings = {}): Promise<Finished> {
  const child = start(args, settings);
  let out = '';
  let err = '';
  child.stdout?.on('data', (chunk) => (out += chunk));
  child.stderr?.on('data', (chunk) => (err += chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out, err };
}

export class RunningProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  output = '';

  constructor(child: ChildProcess) {
    this.child = child;
    const keep = (chunk: Buffer) => (this.output += chunk);
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
  }

  /** Resolves with the URL once the process reports that it listens. */
  listening(): Promise<string> {
    return this.said(/listening[^h]*(https?:\/\/[^\s"]+)/);
  }

  /** Resolves with the first capture group once the output matches; rejects if the process exits first. */
  said(pattern: RegExp): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const look = () => {
      const found = pattern.exec(this.output);
      if (found) resolve(found[1] ?? found[0]);
    };
    this.child.stdout?.on('data', look);
    this.child.once('close', () => reject(new Error(`it ended: ${this.output}`)));
    const deadline = setTimeout(() => reject(new Error(`nothing like ${pattern} in: ${this.output}`)), START_MS);
    look();
    return promise.finally(() => {
      clearTimeout(deadline);
      this.child.stdout?.off('data', look);
    });
  }

  async end(signal: NodeJS.Signals, to: 'process' | 'group' = 'process'): Promise<number | null> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return this.child.exitCode;
    const closed = once(this.child, 'close');
    process.kill(to === 'group' ? -this.child.pid! : this.child.pid!, signal);
    const [code] = (await closed) as [number | null];
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL', 'group');
  }
}

/** Starts a command that serves until a signal. */
export function startReseal(args: readonly string[], settings: Settings, program?: string): RunningProcess {
  return new RunningProcess(start(args, settings, program));
}
