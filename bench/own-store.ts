// Our store and our service as candidates: the use case behind PUT /openapi/v3/account, called directly or over HTTP. Each
// candidate has a store of its own, and with it its own group sizes.
import { randomBytes } from 'node:crypto';
import { makeKeys, type Settings } from '../campaigns/service.ts';
import { Client } from '../campaigns/writers.ts';
import { openSealer } from '../src/adapters/seal/seal-check.ts';
import { openStore } from '../src/adapters/store/store.ts';
import { readConfig } from '../src/config/config.ts';
import { idMaker } from '../src/domain/ids.ts';
import { changeAccount } from '../src/usecases/access/change-account.ts';
import { serve } from '../src/wiring/serve.ts';
import { type Candidate, medianOf, runConcurrently } from './comparison.ts';

const now = Date.now;
const newId = idMaker(now, randomBytes);

/** A candidate whose resources are released with the stack. */
export type Entry = Pick<Candidate, 'run'> & {
  /** Writes per commit; undefined where the database does its own group commit. */
  groups?(): Promise<string>;
};

/** The use case at the given concurrency, with one account per lane. */
export async function ownStore(settings: Settings, lanes: number, stack: AsyncDisposableStack): Promise<Entry> {
  const keys = await makeKeys(settings, lanes);
  const { config } = readConfig(settings);
  const sizes: number[] = [];
  const store = await openStore(config.database, openSealer(config.sealKey).sealer, now, {
    onCommit: (size) => sizes.push(size),
  });
  stack.defer(() => store.close());
  const callers = await Promise.all(keys.map(({ keyId }) => store.credentials.findForAuthentication(keyId)));
  const change = changeAccount(store, now, newId);
  return {
    run: (deadline) =>
      runConcurrently(lanes, deadline, async (lane) => {
        const requestId = newId();
        await change(callers[lane]!.caller, { name: `name ${requestId}` }, requestId);
      }),
    async groups() {
      const sorted = sizes.toSorted((one, other) => one - other);
      const mean = sorted.reduce((sum, size) => sum + size, 0) / sorted.length;
      return `median ${medianOf(sorted)}, mean ${mean.toFixed(1)}, largest ${sorted.at(-1)}`;
    },
  };
}

/** The whole service in this process. Its clients share its thread, which lowers the rate. */
export async function ownService(settings: Settings, lanes: number, stack: AsyncDisposableStack): Promise<Entry> {
  const keys = await makeKeys(settings, lanes);
  const { config } = readConfig({ RESEAL_PORT: '0', ...settings });
  const running = await serve(config, { now, log: () => {} });
  stack.defer(() => running.stop());
  const client = stack.use(new Client(running.url, lanes));
  return {
    run: (deadline) =>
      runConcurrently(lanes, deadline, async (lane) => {
        const answer = await client.rename(keys[lane]!, `name ${newId()}`);
        if (answer?.status !== 200) throw new Error(`a write was answered with ${answer?.status ?? 'silence'}`);
      }),
    async groups() {
      const metrics = await (await fetch(`${running.url}/metrics`)).text();
      const value = (suffix: string) =>
        Number(new RegExp(`^reseal_store_group_commit_transactions_${suffix} (\\S+)$`, 'm').exec(metrics)?.[1]);
      return `mean ${(value('sum') / value('count')).toFixed(1)}`;
    },
  };
}
