// A serving process as other processes see it in the store: that it runs, and which seal keys it holds.
import { hostname } from 'node:os';
import { ANNOUNCE_MS } from '../adapters/store/access/sealing.ts';
import type { App } from './app.ts';
import type { Chore } from './background.ts';

interface AnnouncedInstance {
  readonly chore: Chore;
  /** Best effort: an instance that cannot say goodbye is forgotten after its last announcement has aged. */
  withdraw(): Promise<void>;
}

export async function announceInstance({ store, newId }: App): Promise<AnnouncedInstance> {
  const instance = { id: newId(), name: `${hostname()}, process ${process.pid}` };
  const announce = () => store.sealing.announce(instance);
  await announce();
  return {
    chore: { everyMs: ANNOUNCE_MS, run: announce },
    withdraw: () => store.sealing.withdraw(instance).catch(() => {}),
  };
}
