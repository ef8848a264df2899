// Entry point of the thread in which a running service is examined: some checks hold their thread for as long as they take.
import { parentPort, workerData } from 'node:worker_threads';
import { diagnose } from './diagnose.ts';
import type { DoctorData } from './doctor-runs.ts';

const { config, clockAheadMs } = workerData as DoctorData;
for await (const finding of diagnose(config, () => Date.now() + clockAheadMs)) parentPort?.postMessage(finding);
