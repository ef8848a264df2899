// The inside of a worker: one order after the other. The pool sends the next only when the last was answered.
import { parentPort } from 'node:worker_threads';
import { JOBS } from './jobs.ts';
import { type Answer, type Jobs, movable, type Order, wipe } from './packet.ts';

const jobs: Jobs = JOBS;

parentPort?.on('message', ({ job, input }: Order) => {
  try {
    const output = jobs[job]!(input as never);
    const { packet, transfer } = movable(output);
    wipe(output);
    answer({ output: packet }, transfer);
  } catch (error) {
    answer({ error });
  } finally {
    wipe(input);
  }
});

function answer(what: Answer, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(what, transfer);
}
