// What a campaign kills: all processes of a service at once, as a power cut does, or one of several.
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning, processesOf } from '../test/support/processes.ts';
import type { EngineName } from './kill.ts';
import { fraction } from './random.ts';
import type { Service } from './service.ts';

export type Victim = 'everything' | 'supervisor' | 'http' | 'background';

const WORKERS: Readonly<Record<EngineName, number>> = { SQLite: 2, PostgreSQL: 3 };

/** CAMPAIGN_WORKERS overrides it; 0 for a service in one process. */
export const workersFor = (engine: EngineName): number => Number(process.env.CAMPAIGN_WORKERS ?? WORKERS[engine]);

const OF_SEVERAL: readonly Victim[] = ['everything', 'http', 'background', 'http', 'supervisor'];
const GONE_MS = 10_000;

/** A service without workers is one process. */
export const victimOf = (workers: number, seed: string): Victim =>
  workers === 0
    ? 'everything'
    : (OF_SEVERAL[Math.floor(fraction(`${seed} victim`) * OF_SEVERAL.length)] ?? 'everything');

/** Resolves when it is dead. Returns false if the service lives on, because it replaces the process. */
export async function kill({ process: service }: Service, victim: Victim, seed: string): Promise<boolean> {
  const processes = processesOf(service);
  const candidates = processes.filter(({ name }) => name.startsWith(victim));
  const chosen = candidates[Math.floor(fraction(`${seed} process`) * candidates.length)];
  if (chosen) {
    process.kill(chosen.pid, 'SIGKILL');
    await untilGone([chosen.pid]);
    return false;
  }
  // Also where the process is just being replaced.
  await service.end('SIGKILL', victim === 'supervisor' ? 'process' : 'group');
  await untilGone(processes.map(({ pid }) => pid));
  return true;
}

async function untilGone(pids: readonly number[]): Promise<void> {
  for (const end = performance.now() + GONE_MS; pids.some(isRunning); await sleep(1)) {
    if (performance.now() > end) throw new Error(`a killed process still runs: ${pids.filter(isRunning)}`);
  }
}
