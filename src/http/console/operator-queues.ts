// Operators' routes over what waits in all accounts: orders for their validation, and events in callback lanes.
import Type from 'typebox';
import { isDegraded } from '../../domain/callbacks/delivery.ts';
import { timeOf } from '../../domain/ids.ts';
import type { WaitingOrder } from '../../domain/support/ports.ts';
import { inLocale, type Locale } from '../../kernel/locale.ts';
import type { DeliveryWithAttempts, ManageDeliveries } from '../../usecases/callbacks/manage-deliveries.ts';
import type { ListAllAccounts } from '../../usecases/support/list-all-accounts.ts';
import type { Api } from '../front/api.ts';
import { localeOf } from '../front/failures.ts';
import { PageQuery, pageOf } from '../front/paging.ts';
import { answers, success } from '../front/reply.ts';
import { moment } from '../front/values.ts';
import { type AccountServices, accountView } from './operator-accounts.ts';
import * as Answer from './operator-schemas.ts';
import { operatorCallOf } from './operator-scope.ts';

export interface QueueServices extends Pick<AccountServices, 'accessAs' | 'now'> {
  readonly listAll: ListAllAccounts;
  readonly deliveries: ManageDeliveries;
}

const hide = true;
const Params = Type.Object({ id: Type.String() });
const LaneQuery = Type.Object({ ...PageQuery.properties, all: Type.Optional(Type.String()) });
/** Of one request; a further one goes on. */
const RESENT_AT_ONCE = 1_000;

export function operatorQueues(api: Api, { listAll, deliveries, accessAs, now }: QueueServices): void {
  const waiting = { hide, querystring: PageQuery, response: answers('OperatorWaiting', Answer.WaitingList) } as const;
  api.get('/waiting', { schema: waiting }, async (request) => {
    const { rows, nextAfter } = await listAll.waiting(pageOf(request.query, PageQuery));
    const locale = localeOf(request);
    return success({ waiting: rows.map((one) => waitingView(one, locale)), next_after: nextAfter });
  });

  const lanes = { hide, querystring: LaneQuery, response: answers('OperatorLanes', Answer.LaneList) } as const;
  api.get('/lanes', { schema: lanes }, async ({ query: { all, ...rest } }) => {
    const { rows, nextAfter } = await listAll.lanes(all !== 'true', pageOf(rest, PageQuery));
    return success({ lanes: rows.map(laneView), next_after: nextAfter });
  });

  const inLane = {
    ...{ hide, params: Params, querystring: PageQuery },
    response: answers('OperatorLane', Answer.LaneDeliveries),
  } as const;
  api.get('/lanes/:id', { schema: inLane }, async (request) => {
    const { account } = await accessAs(operatorCallOf(request)).showAccount(request.params.id);
    const page = pageOf(request.query, PageQuery);
    const { deliveries: found, nextAfter } = await deliveries.list(account.id, {}, page);
    return success({ account: accountView(account), deliveries: found.map(deliveryView), next_after: nextAfter });
  });

  const resumed = { hide, params: Params, response: answers('OperatorLaneResumed', Answer.Nothing) } as const;
  api.post('/lanes/:id/resume', { schema: resumed }, async (request) => {
    const call = operatorCallOf(request);
    const { account } = await accessAs(call).showAccount(request.params.id);
    await deliveries.resumeLane({ ...call, accountId: account.id });
    return success({});
  });

  const resent = { hide, params: Params, response: answers('OperatorLaneResent', Answer.Resent) } as const;
  api.post('/lanes/:id/resend-failed', { schema: resent }, async (request) => {
    const call = operatorCallOf(request);
    const { account } = await accessAs(call).showAccount(request.params.id);
    // Bounded in time: what fails meanwhile is not resent again.
    const filter = { state: 'failed', until: now() + 1 } as const;
    const range = await deliveries.resendRange({ ...call, accountId: account.id }, filter, { limit: RESENT_AT_ONCE });
    return success({ resent: range.resent, is_complete: range.nextAfter === null });
  });
}

const iso = (ms: number): string => new Date(ms).toISOString();

export const problemsOf = (findings: WaitingOrder['findings'], locale: Locale) =>
  Object.entries(findings).map(([name, { problem, reason, at }]) => ({
    ...{ name, problem, reason: inLocale(reason, locale), at: iso(at) },
  }));

const waitingView = (one: WaitingOrder, locale: Locale): Answer.WaitingOrder => ({
  ...{ order_id: one.orderId, certificate_id: one.certificateId, product: one.productId, status: one.status },
  account: { id: one.accountId, name: one.accountName, is_suspended: one.isSuspended },
  ...{ common_name: one.commonName, names: one.names, tries: one.tries },
  // Ids carry the time at which the certificate was requested.
  since: iso(timeOf(one.certificateId) ?? 0),
  ...{ next_check_at: iso(one.dueAt), expires_at: iso(one.expiresAt) },
  problems: problemsOf(one.findings, locale),
});

function laneView({
  lane,
  accountName,
  dueAt,
  pending,
  state,
}: Awaited<ReturnType<ListAllAccounts['lanes']>>['rows'][number]): Answer.Lane {
  return {
    account: { id: lane.accountId, name: accountName },
    ...{ state, failures: lane.failures, pending },
    degraded_since: isDegraded(lane) ? moment(lane.degradedSince) : null,
    closed_until: state === 'closed' ? moment(lane.openUntil) : null,
    next_at: moment(dueAt),
  };
}

const deliveryView = (one: DeliveryWithAttempts): Answer.LaneDelivery => ({
  ...{ id: one.id, order_id: one.orderId, action: one.action, created_at: iso(one.createdAt) },
  ...{ state: one.state, reason: one.reason, next_attempt_at: moment(one.nextAttemptAt) },
  attempts: one.attempted.map(({ number, at, ms, httpStatus, reason, excerpt }) => ({
    ...{ number, at: iso(at), ms, http_status: httpStatus, reason, excerpt },
  })),
});
