// Worker thread: runs one job at a time. The pool sends the next request only after the last result.
import { parentPort } from 'node:worker_threads';
import { JOBS } from './jobs.ts';
import { type JobRequest, type JobResult, type Jobs, transferable, wipe } from './packet.ts';

const jobs: Jobs = JOBS;

parentPort?.on('message', ({ job, input }: JobRequest) => {
  try {
    const run = jobs[job];
    if (!run) throw new TypeError(`there is no job ${job}`);
    const output = run(input as never);
    const { packet, transfer } = transferable(output);
    wipe(output);
    reply({ output: packet }, transfer);
  } catch (error) {
    reply({ error });
  } finally {
    wipe(input);
  }
});

function reply(result: JobResult, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(result, transfer);
}
