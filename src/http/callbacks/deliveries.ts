// /openapi/v3/account/callback/deliveries: the account's events with their attempts, and resending. Extensions of the
// specification.

import Type from 'typebox';
import { ACTION_IDS } from '../../domain/callbacks/callback.ts';
import {
  ATTEMPT_REASONS,
  DELIVERY_STATES,
  GIVEN_UP_REASONS,
  SUPPRESSION_REASONS,
} from '../../domain/callbacks/delivery.ts';
import type { DeliveryFilter } from '../../domain/callbacks/ports.ts';
import { invalid } from '../../domain/errors.ts';
import type { OrderId } from '../../domain/ids.ts';
import type { DeliveryWithAttempts, ManageDeliveries } from '../../usecases/callbacks/manage-deliveries.ts';
import type { Api } from '../front/api.ts';
import { actorOf, callerOf } from '../front/authentication.ts';
import { timeOf, wordOf } from '../front/filters.ts';
import { NextAfter, PageQuery, pageOf } from '../front/paging.ts';
import { answers, success } from '../front/reply.ts';
import { DateTime, list, moment, nullable, text, word } from '../front/values.ts';
import { OrderStatusWord } from '../issuance/order-view.ts';
import { ActionWord } from './callback.ts';
import { Excerpt } from './callback-test-operation.ts';

const RESENDABLE = DELIVERY_STATES.filter((state) => state !== 'pending');
const MAX_RESENT = 1_000;

const State = word('DeliveryState', DELIVERY_STATES);
const Filter = {
  order_id: Type.Optional(Type.String()),
  action: Type.Optional(text(ActionWord)),
  since: Type.Optional({ ...DateTime, description: 'Events from then on.' }),
  until: Type.Optional({ ...DateTime, description: 'Events before then.' }),
};
const Query = Type.Object({ ...Filter, state: Type.Optional(text(State)), ...PageQuery.properties });
const Range = Type.Object(
  {
    ...Filter,
    state: Type.String({ enum: RESENDABLE }),
    after: Type.Optional(Type.String({ description: '`next_after` of the answer before.' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_RESENT, default: MAX_RESENT })),
  },
  { title: 'ResendRequest' },
);

const Attempt = Type.Object(
  {
    number: Type.Integer(),
    at: DateTime,
    ms: Type.Integer(),
    http_status: nullable(Type.Integer()),
    reason: nullable(word('AttemptFailure', ATTEMPT_REASONS)),
    excerpt: nullable(Excerpt),
  },
  { title: 'DeliveryAttempt' },
);
export const DeliveryView = Type.Object(
  {
    id: Type.String({ description: 'The webhook-id of every attempt.' }),
    order_id: Type.String(),
    cert_id: Type.String(),
    order_status: OrderStatusWord,
    action: ActionWord,
    created_at: DateTime,
    state: State,
    reason: nullable(
      word('DeliveryReason', [...SUPPRESSION_REASONS, ...GIVEN_UP_REASONS], 'Why it is suppressed, or was given up.'),
    ),
    next_attempt_at: nullable(DateTime),
    settled_at: nullable(DateTime),
    attempts: list(Attempt),
  },
  { title: 'Delivery' },
);
const List = Type.Object({ deliveries: list(DeliveryView), next_after: NextAfter });
const One = Type.Object({ delivery: DeliveryView });
const Resent = Type.Object({ resent: Type.Integer(), next_after: NextAfter });

const common = { tags: ['callbacks'], 'x-reseal-extension': true } as const;
const PATH = '/account/callback/deliveries';

export function deliveryOperations(api: Api, deliveries: ManageDeliveries): void {
  const config = { action: 'configure_callback' as const };
  api.get(
    PATH,
    {
      config,
      schema: {
        operationId: 'listDeliveries',
        summary: 'List the callbacks, the newest first, with every attempt',
        description:
          'With a filter that little passes, a page may hold less than its limit and still have a next_after: go on from there.',
        querystring: Query,
        ...common,
        errors: [],
        response: answers('DeliveryList', List),
      },
    },
    async (request) => {
      const { state, ...rest } = request.query;
      const filter = {
        ...filterOf(rest),
        state: state === undefined ? undefined : wordOf('state', state, DELIVERY_STATES),
      };
      const found = await deliveries.list(callerOf(request).account.id, filter, pageOf(request.query, Query));
      return success({ deliveries: found.deliveries.map(deliveryView), next_after: found.nextAfter });
    },
  );

  api.post(
    `${PATH}/:id/resend`,
    {
      config,
      schema: {
        operationId: 'resendDelivery',
        summary: 'Send a callback again',
        description: 'Also one that was received before, or suppressed.',
        params: Type.Object({ id: Type.String({ description: 'The id of the delivery.' }) }),
        ...common,
        errors: ['delivery_not_found', 'callback_not_configured', 'callback_paused'],
        response: answers('Delivery', One),
      },
    },
    async (request) =>
      success({ delivery: deliveryView(await deliveries.resend(actorOf(request), request.params.id)) }),
  );

  api.post(
    `${PATH}/resend`,
    {
      config,
      schema: {
        operationId: 'resendDeliveries',
        summary: 'Send a range of callbacks again, the oldest first and one after the other',
        description: `At most ${MAX_RESENT} at once; next_after says where to go on. Actions that are not enabled are left out.`,
        body: Range,
        ...common,
        errors: ['callback_not_configured', 'callback_paused'],
        response: answers('Resent', Resent),
      },
    },
    async (request) => {
      const { state, after, limit = MAX_RESENT, ...rest } = request.body;
      if (limit < 1 || limit > MAX_RESENT) {
        throw invalid('limit', `limit is a number from 1 to ${MAX_RESENT}.`, `limit 须为 1 至 ${MAX_RESENT} 的整数。`);
      }
      const filter = { ...filterOf(rest), state: wordOf('state', state, RESENDABLE) };
      const { resent, nextAfter } = await deliveries.resendRange(actorOf(request), filter, { after, limit });
      return success({ resent, next_after: nextAfter });
    },
  );
}

interface FilterFields {
  readonly order_id?: OrderId;
  readonly action?: string;
  readonly since?: string;
  readonly until?: string;
}

const filterOf = ({ order_id, action, since, until }: FilterFields): DeliveryFilter => ({
  orderId: order_id,
  action: action === undefined ? undefined : wordOf('action', action, ACTION_IDS),
  since: since === undefined ? undefined : timeOf('since', since),
  until: until === undefined ? undefined : timeOf('until', until),
});

export const deliveryView = (delivery: DeliveryWithAttempts): Type.Static<typeof DeliveryView> => ({
  id: delivery.id,
  order_id: delivery.orderId,
  cert_id: delivery.certificateId,
  order_status: delivery.orderStatus,
  action: delivery.action,
  created_at: new Date(delivery.createdAt).toISOString(),
  state: delivery.state,
  reason: delivery.reason,
  next_attempt_at: moment(delivery.nextAttemptAt),
  settled_at: moment(delivery.settledAt),
  attempts: delivery.attempted.map(({ number, at, ms, httpStatus, reason, excerpt }) => ({
    ...{ number, at: new Date(at).toISOString(), ms, http_status: httpStatus, reason, excerpt },
  })),
});
