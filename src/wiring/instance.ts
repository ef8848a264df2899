// A serving process as other processes see it in the store: that it runs, which seal keys it holds, and how far its clock
// is off the database's, which every announcement measures anew.
import { hostname } from 'node:os';
import { ANNOUNCE_MS } from '../adapters/store/access/sealing.ts';
import type { App } from './app.ts';
import { runPeriodically } from './background.ts';

/** Until disposed of, at best: an instance that cannot say goodbye is forgotten after its last announcement has aged. */
export async function announceInstance({ store, newId, log }: App): Promise<AsyncDisposable> {
  const instance = { id: newId(), name: `${hostname()}, process ${process.pid}` };
  const announce = async () => await store.sealing.announce({ ...instance, clockAheadMs: await store.measureClock() });
  await announce();
  const announcing = runPeriodically([{ name: 'announce', everyMs: ANNOUNCE_MS, run: announce }], log);
  return {
    async [Symbol.asyncDispose]() {
      await announcing.stop();
      await store.sealing.withdraw(instance).catch(() => {});
    },
  };
}
