// The supervisor's side of peers.ts: slots of operations, and locks. What a process held is released when it ends.
import type { Config } from '../config/config.ts';
import { keyedMutex } from '../kernel/concurrency.ts';
import { operationSlots } from '../usecases/access/in-flight.ts';
import type { Answered, Lasting } from './messages.ts';
import { configuredTestSlots } from './peers.ts';

export interface SharedState {
  /** Replies when it is held: a lock once it is free; a slot at once, or whose limit is reached if there is none. */
  acquire(member: number, id: number, question: Lasting, reply: (value: Answered) => void): void;
  release(member: number, id: number): void;
  /** Releases everything the process holds or waits for. */
  left(member: number): void;
}

export function sharedState(config: Config): SharedState {
  const testSlots = configuredTestSlots(config);
  const slots = operationSlots(config.inFlight);
  const withLock = keyedMutex();
  const held = new Map<number, Map<number, () => void>>();

  const hold = (member: number, id: number, release: () => void) => {
    const own = held.get(member) ?? new Map<number, () => void>();
    held.set(member, own.set(id, release));
  };

  return {
    acquire(member, id, question, reply) {
      if (question.about === 'lock') {
        const { promise: released, resolve } = Promise.withResolvers<void>();
        hold(member, id, resolve);
        void withLock(question.key, async () => {
          reply('held');
          await released;
        });
        return;
      }
      const slot =
        question.about === 'test_slot'
          ? testSlots(question.accountId, question.host)
          : slots(question.operation, question.accountId);
      if (typeof slot === 'string') return reply(slot);
      hold(member, id, () => slot[Symbol.dispose]());
      reply('held');
    },

    release(member, id) {
      const own = held.get(member);
      own?.get(id)?.();
      own?.delete(id);
    },

    left(member) {
      for (const release of held.get(member)?.values() ?? []) release();
      held.delete(member);
    },
  };
}
