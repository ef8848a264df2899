// Entry point of the thread in which a running service is examined: some checks hold their thread for as long as they take.
import { parentPort, workerData } from 'node:worker_threads';
import type { Config } from '../config/config.ts';
import { diagnose } from './diagnose.ts';

export interface DoctorData {
  readonly config: Config;
  /** How far the service's clock is ahead of the machine's: not at all, except in tests. */
  readonly clockAheadMs: number;
}

const { config, clockAheadMs } = workerData as DoctorData;
for await (const finding of diagnose(config, () => Date.now() + clockAheadMs)) parentPort?.postMessage(finding);
