// /openapi/v3/account/callback/deliveries: the account's events with their attempts, and resending. Extensions of the
// specification.

import Type from 'typebox';
import { CALLBACK_ACTIONS, type CallbackAction, isCallbackAction } from '../../domain/callbacks/callback.ts';
import { DELIVERY_STATES } from '../../domain/callbacks/delivery.ts';
import type { DeliveryFilter } from '../../domain/callbacks/ports.ts';
import { parseDateTime } from '../../domain/certificate/validity.ts';
import { invalid, type Refusal } from '../../domain/errors.ts';
import type { OrderId } from '../../domain/ids.ts';
import type { DeliveryWithAttempts, ManageDeliveries } from '../../usecases/callbacks/manage-deliveries.ts';
import type { Api } from '../front/api.ts';
import { actorOf, callerOf } from '../front/authentication.ts';
import { PageQuery, pageOf } from '../front/paging.ts';
import { answers, success } from '../front/reply.ts';
import { DateTime, moment, nullable } from '../front/values.ts';

const ACTIONS = Object.keys(CALLBACK_ACTIONS);
const RESENDABLE = DELIVERY_STATES.filter((state) => state !== 'pending');

const Filter = {
  order_id: Type.Optional(Type.String()),
  action: Type.Optional(Type.String({ enum: ACTIONS })),
  since: Type.Optional({ ...DateTime, description: 'Events from then on.' }),
  until: Type.Optional({ ...DateTime, description: 'Events before then.' }),
};
const Query = Type.Object({
  ...Filter,
  state: Type.Optional(Type.String({ enum: [...DELIVERY_STATES] })),
  ...PageQuery.properties,
});
const Range = Type.Object({
  ...Filter,
  state: Type.String({ enum: RESENDABLE }),
  after: Type.Optional(Type.String({ description: 'next_after of the answer before.' })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
});

const View = Type.Object({
  id: Type.String({ description: 'The webhook-id of every attempt.' }),
  order_id: Type.String(),
  cert_id: Type.String(),
  order_status: Type.String(),
  action: Type.String(),
  created_at: DateTime,
  state: Type.Enum([...DELIVERY_STATES]),
  reason: nullable(Type.String({ description: 'Why it is suppressed, or was given up.' })),
  next_attempt_at: nullable(DateTime),
  settled_at: nullable(DateTime),
  attempts: Type.Array(
    Type.Object({
      number: Type.Integer(),
      at: DateTime,
      ms: Type.Integer(),
      http_status: nullable(Type.Integer()),
      reason: nullable(Type.String()),
      excerpt: nullable(Type.String({ description: 'At most 2 KiB of the answer, with the access key masked.' })),
    }),
  ),
});
const List = Type.Object({ deliveries: Type.Array(View), next_after: nullable(Type.String()) });
const One = Type.Object({ delivery: View });
const Resent = Type.Object({ resent: Type.Integer(), next_after: nullable(Type.String()) });

const common = { tags: ['callback'], 'x-reseal-extension': true };
const PATH = '/account/callback/deliveries';
const MAX_RESENT = 1_000;

export function deliveryOperations(api: Api, deliveries: ManageDeliveries): void {
  const config = { action: 'configure_callback' as const };
  api.get(
    PATH,
    {
      config,
      schema: {
        summary: 'List the callbacks, the newest first, with every attempt',
        description:
          'With a filter that little passes, a page may hold less than its limit and still have a next_after: go on from there.',
        querystring: Query,
        ...common,
        response: answers(List),
      },
    },
    async (request) => {
      const { state, ...rest } = request.query;
      const filter = { ...filterOf(rest), state: state === undefined ? undefined : stateOf(state, DELIVERY_STATES) };
      const found = await deliveries.list(callerOf(request).account.id, filter, pageOf(rest));
      return success({ deliveries: found.deliveries.map(viewOf), next_after: found.nextAfter });
    },
  );

  api.post(
    `${PATH}/:id/resend`,
    {
      config,
      schema: {
        summary: 'Send a callback again',
        params: Type.Object({ id: Type.String() }),
        ...common,
        response: answers(One),
      },
    },
    async (request) => success({ delivery: viewOf(await deliveries.resend(actorOf(request), request.params.id)) }),
  );

  api.post(
    `${PATH}/resend`,
    {
      config,
      schema: {
        summary: 'Send a range of callbacks again, the oldest first and one after the other',
        description: `At most ${MAX_RESENT} at once; next_after says where to go on. Actions that are not enabled are left out.`,
        body: Range,
        ...common,
        response: answers(Resent),
      },
    },
    async (request) => {
      const { state, after, limit = MAX_RESENT, ...rest } = request.body;
      if (limit < 1 || limit > MAX_RESENT) {
        throw invalid('limit', `limit is a number from 1 to ${MAX_RESENT}.`, `limit 须为 1 至 ${MAX_RESENT} 的整数。`);
      }
      const filter = { ...filterOf(rest), state: stateOf(state, RESENDABLE) };
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
  action: actionOf(action),
  since: timeOf('since', since),
  until: timeOf('until', until),
});

function actionOf(text: string | undefined): CallbackAction | undefined {
  if (text === undefined || isCallbackAction(text)) return text;
  throw unknownValue('action', ACTIONS);
}

function stateOf<State extends string>(text: string, known: readonly State[]): State {
  const state = known.find((one) => one === text);
  if (state !== undefined) return state;
  throw unknownValue('state', known);
}

const unknownValue = (field: string, known: readonly string[]): Refusal =>
  invalid(field, `${field} is one of ${known.join(', ')}.`, `${field} 须为以下之一：${known.join('、')}。`);

function timeOf(field: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  // parseDateTime() drops milliseconds, which certificates do not have but events do.
  if (parseDateTime(text) !== undefined) return Date.parse(text.toUpperCase());
  throw invalid(
    field,
    `${field} is a date and time with its zone, such as 2026-11-15T12:00:00Z.`,
    `${field} 须为带时区的日期时间，例如 2026-11-15T12:00:00Z。`,
  );
}

const viewOf = (delivery: DeliveryWithAttempts): Type.Static<typeof View> => ({
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
