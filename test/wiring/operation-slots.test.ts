// Slots of operations, as the supervisor keeps them for all workers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { Refusal } from '../../src/domain/errors.ts';
import type { ToSupervisor } from '../../src/wiring/messages.ts';
import { type Peers, peersThrough } from '../../src/wiring/peers.ts';
import { sharedState } from '../../src/wiring/shared-state.ts';

const LIMIT = 3;

test('operations in flight count over all workers, and a worker that ends gives its slots back', async () => {
  const state = sharedState(readConfig({ RESEAL_PLACEMENTS_PER_ACCOUNT: String(LIMIT) }).config);
  /** A worker, connected to the supervisor's state as supervisor.ts connects it. */
  function worker(member: number): Peers {
    const peers = peersThrough((message: ToSupervisor) => {
      if (message.kind === 'release') state.release(member, message.id);
      if (message.kind !== 'ask') return;
      const { id, question } = message;
      if (question.about === 'metrics' || question.about === 'history' || question.about === 'listener') return;
      state.acquire(member, id, question, (value) => peers.onAnswer({ kind: 'answer', id, value }));
    });
    return peers;
  }
  const [one, two] = [worker(1), worker(2)];
  const isRefused = (error: unknown) => error instanceof Refusal && error.code === 'request_too_fast';
  await one.acquireSlot('placement', 'a');
  await one.acquireSlot('placement', 'a');
  const last = await two.acquireSlot('placement', 'a');
  await assert.rejects(one.acquireSlot('placement', 'a'), isRefused);
  await assert.rejects(two.acquireSlot('placement', 'a'), isRefused);
  // Of another account, and of another kind.
  await two.acquireSlot('placement', 'b');
  await two.acquireSlot('dry_run', 'a');
  last[Symbol.dispose]();
  await one.acquireSlot('placement', 'a');
  await assert.rejects(two.acquireSlot('placement', 'a'), isRefused);
  state.left(1);
  for (let count = 0; count < LIMIT; count += 1) await two.acquireSlot('placement', 'a');
  await assert.rejects(two.acquireSlot('placement', 'a'), isRefused);
});
