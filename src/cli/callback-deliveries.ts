// reseal callback deliveries | resend | resume | replay: the delivery log of an account, and resending. The running service sends
// what is requested here within a second.

import { ACTION_IDS } from '../domain/callbacks/callback.ts';
import { DELIVERY_STATES, type DeliveryAttempt, type DeliveryState } from '../domain/callbacks/delivery.ts';
import type { DeliveryFilter } from '../domain/callbacks/ports.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { byOperator } from '../usecases/access/audit.ts';
import type { DeliveryWithAttempts } from '../usecases/callbacks/manage-deliveries.ts';
import type { Arguments, Command } from './command.ts';
import { duration, oneOf, pageSize, table, time } from './values.ts';

const REPLAYABLE = DELIVERY_STATES.filter((state) => state !== 'pending');
const REPLAY_BATCH = 1_000;

const FILTERS = {
  order: { type: 'string', about: 'only callbacks of this order' },
  action: { type: 'string', about: `one of ${ACTION_IDS.join(', ')}` },
  since: { type: 'string', about: 'at most this old, e.g. 24h' },
  until: { type: 'string', about: 'older than this, e.g. 30m' },
} as const;

function filterOf({ order, action, since, until }: Arguments['options'], now: number): DeliveryFilter {
  const before = (option: string, given: unknown) => (given === undefined ? undefined : now - duration(option, given));
  return {
    orderId: order === undefined ? undefined : String(order),
    action: action === undefined ? undefined : oneOf('action', action, ACTION_IDS, 'order:issued'),
    since: before('since', since),
    until: before('until', until),
  };
}

const stateOf = (given: unknown): DeliveryState | undefined =>
  given === undefined ? undefined : oneOf('state', given, DELIVERY_STATES, 'pending');

const attemptView = ({ number, at, ms, httpStatus, reason, excerpt }: DeliveryAttempt) => ({
  ...{ number, at: time(at), ms, http_status: httpStatus, reason, excerpt },
});

const viewOf = (delivery: DeliveryWithAttempts) => ({
  id: delivery.id,
  order_id: delivery.orderId,
  cert_id: delivery.certificateId,
  order_status: delivery.orderStatus,
  action: delivery.action,
  created_at: time(delivery.createdAt),
  state: delivery.state,
  reason: delivery.reason,
  next_attempt_at: delivery.nextAttemptAt === null ? null : time(delivery.nextAttemptAt),
  settled_at: delivery.settledAt === null ? null : time(delivery.settledAt),
  attempts: delivery.attempted.map(attemptView),
});

function rowOf(delivery: DeliveryWithAttempts): string[] {
  const last = delivery.attempted.at(-1);
  const outcome = last ? String(last.httpStatus ?? last.reason) : (delivery.reason ?? '-');
  return [
    ...[delivery.id, delivery.action, delivery.orderId, delivery.state, String(delivery.attempts), outcome],
    ...[time(delivery.createdAt), time(delivery.nextAttemptAt)],
  ];
}

const COLUMNS = ['ID', 'ACTION', 'ORDER', 'STATE', 'ATTEMPTS', 'LAST', 'CREATED', 'NEXT'];

export const callbackDeliveries: Command = {
  store: 'existing',
  about: 'list the callbacks of an account, newest first; --json shows every attempt',
  examples: ['callback deliveries ACCOUNT', 'callback deliveries ACCOUNT --state failed --since 7d'],
  positionals: ['ACCOUNT'],
  options: {
    ...FILTERS,
    state: { type: 'string', about: `one of ${DELIVERY_STATES.join(', ')}` },
    after: { type: 'string', about: 'continue after this id' },
    limit: { type: 'string', about: 'maximum number (default 100)' },
  },
  async run({ positionals: [accountId = ''], options }, { withCallbacks, now }) {
    const filter = { ...filterOf(options, now()), state: stateOf(options.state) };
    const page = {
      after: options.after === undefined ? undefined : String(options.after),
      limit: pageSize(options.limit),
    };
    const { deliveries, nextAfter } = await withCallbacks(async (callbacks) => {
      await callbacks.account(accountId);
      return await callbacks.deliveries.list(accountId, filter, page);
    });
    const more = nextAfter === null ? '' : `\n\nThere may be more: --after ${nextAfter}`;
    return {
      json: { deliveries: deliveries.map(viewOf), next_after: nextAfter },
      text: `${deliveries.length === 0 ? 'None.' : table(COLUMNS, deliveries.map(rowOf))}${more}`,
    };
  },
};

export const callbackResend: Command = {
  store: 'existing',
  about: 'resend one callback',
  examples: ['callback resend ACCOUNT DELIVERY'],
  positionals: ['ACCOUNT', 'DELIVERY'],
  options: {},
  async run({ positionals: [accountId = '', id = ''] }, { withCallbacks }) {
    const delivery = await withCallbacks(async ({ account, deliveries }) => {
      await account(accountId);
      return await deliveries.resend(byOperator(accountId), id);
    });
    return { json: { delivery: viewOf(delivery) }, text: 'It will be sent again by the running service.' };
  },
};

export const callbackResume: Command = {
  store: 'existing',
  about: 'try a receiver that was failing now, and send what is pending if it answers',
  examples: ['callback resume ACCOUNT'],
  positionals: ['ACCOUNT'],
  options: {},
  async run({ positionals: [accountId = ''] }, { withCallbacks }) {
    await withCallbacks(async ({ account, deliveries }) => {
      await account(accountId);
      await deliveries.resumeLane(byOperator(accountId));
    });
    return { json: { resumed: accountId }, text: 'The running service tries the receiver within a second.' };
  },
};

export const callbackReplay: Command = {
  store: 'existing',
  about: 'resend all callbacks in a state, oldest first and one at a time',
  examples: ['callback replay ACCOUNT --state suppressed', 'callback replay ACCOUNT --state failed --since 7d'],
  positionals: ['ACCOUNT'],
  options: { ...FILTERS, state: { type: 'string', about: `one of ${REPLAYABLE.join(', ')}` } },
  async run({ positionals: [accountId = ''], options }, { withCallbacks, now }) {
    const state = REPLAYABLE.find((one) => one === options.state);
    if (!state)
      throw new Problem(EXIT.usage, '--state is missing or not known', `Use one of: ${REPLAYABLE.join(', ')}.`);
    const given = filterOf(options, now());
    // Bounded, so that events created during the replay are not replayed.
    const filter = { ...given, until: given.until ?? now() + 1, state };
    const resent = await withCallbacks(async ({ account, deliveries }) => {
      await account(accountId);
      let total = 0;
      let after: string | undefined;
      do {
        const range = await deliveries.resendRange(byOperator(accountId), filter, { after, limit: REPLAY_BATCH });
        total += range.resent;
        after = range.nextAfter ?? undefined;
      } while (after !== undefined);
      return total;
    });
    return { json: { resent }, text: `${resent} will be sent again by the running service.` };
  },
};
