// The processes of a running `reseal serve`, as its log names them.
import { readFileSync } from 'node:fs';
import type { RunningProcess } from './process.ts';

export interface ServiceProcess {
  readonly name: string;
  readonly pid: number;
}

/** Those that run: the supervisor's children. */
export function processesOf({ output }: Pick<RunningProcess, 'output'>): ServiceProcess[] {
  const started = output.matchAll(/"process_started","text":"(\S+) is process (\d+)"/g);
  const latest = new Map(Array.from(started, ([, name = '', pid]) => [name, Number(pid)]));
  return Array.from(latest, ([name, pid]) => ({ name, pid })).filter(({ pid }) => isRunning(pid));
}

/** A process that has ended may stay as a zombie until its parent, or the first process, has noticed. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return process.platform !== 'linux';
  }
}
