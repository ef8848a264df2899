// Operators' routes that tell who did what: the audit over all accounts, finding by any text, the story of an order; and who
// is signed in.
import Type from 'typebox';
import type { AuditEntry } from '../../domain/access/ports.ts';
import { invalid, Refusal } from '../../domain/errors.ts';
import type { Locale } from '../../kernel/locale.ts';
import type { OperatorCall } from '../../usecases/access/audit.ts';
import type { ManageOperators } from '../../usecases/console/manage-operators.ts';
import type { FindAnything } from '../../usecases/support/find-anything.ts';
import type { SearchAudit } from '../../usecases/support/search-audit.ts';
import type { Story, TellStoryOf } from '../../usecases/support/tell-story.ts';
import type { Api } from '../front/api.ts';
import { localeOf } from '../front/failures.ts';
import { timeOf } from '../front/filters.ts';
import { PageQuery, pageOf } from '../front/paging.ts';
import { answers, success } from '../front/reply.ts';
import { moment } from '../front/values.ts';
import { problemsOf } from './operator-queues.ts';
import * as Answer from './operator-schemas.ts';
import { operatorCallOf } from './operator-scope.ts';

export interface SupportServices {
  readonly searchAudit: SearchAudit;
  readonly findAnything: FindAnything;
  readonly tellStoryOf: TellStoryOf;
  readonly operatorsAs: (call: OperatorCall) => ManageOperators;
}

const hide = true;
const Params = Type.Object({ id: Type.String() });
const Text = Type.Optional(Type.String());
const AuditQuery = Type.Object({
  ...PageQuery.properties,
  ...{ account: Text, order: Text, certificate: Text, request: Text, actor: Text, since: Text, until: Text },
});
const FindQuery = Type.Object({ text: Type.String() });
const MAX_TEXT = 300;

export function operatorSupport(
  api: Api,
  { searchAudit, findAnything, tellStoryOf, operatorsAs }: SupportServices,
): void {
  const audited = { hide, querystring: AuditQuery, response: answers('OperatorAudit', Answer.Audit) } as const;
  api.get('/audit', { schema: audited }, async ({ query }) => {
    const { after, limit, since, until, account, request, ...rest } = query;
    const { order, certificate, actor } = rest;
    const filter = {
      ...{ accountId: given(account), order: given(order), certificate: given(certificate) },
      ...{ requestId: given(request), actor: given(actor) },
      since: since ? timeOf('since', since) : undefined,
      until: until ? timeOf('until', until) : undefined,
    };
    const page = pageOf({ ...(after && { after }), ...(limit && { limit }) }, PageQuery);
    const { entries, nextAfter } = await searchAudit(filter, page);
    return success({ audit: entries.map(entryView), next_after: nextAfter });
  });

  const found = { hide, querystring: FindQuery, response: answers('OperatorFindings', Answer.Findings) } as const;
  api.get('/find', { schema: found }, async (request) => {
    const text = request.query.text.trim();
    if (text === '' || text.length > MAX_TEXT) throw noText();
    const findings = await findAnything(text);
    const locale = localeOf(request);
    return success({
      found: findings.found.map(({ kind, text: as, accountId, orderId, certificateId }) => ({
        ...{ kind, text: as, account_id: accountId, order_id: orderId, certificate_id: certificateId },
      })),
      request: findings.ofRequest.map(entryView),
      stories: findings.stories.map((story) => storyView(story, locale)),
      further_orders: findings.furtherOrders,
    });
  });

  const told = { hide, params: Params, response: answers('OperatorStory', Answer.Story) } as const;
  api.get('/orders/:id/story', { schema: told }, async (request) => {
    const story = await tellStoryOf(request.params.id);
    if (!story) throw new Refusal('order_not_found');
    return success(storyView(story, localeOf(request)));
  });

  const people = { hide, response: answers('OperatorOperators', Answer.Operators) } as const;
  const everyone = async (operators: ManageOperators) =>
    success({
      operators: (await operators.list()).map(({ name, role, createdAt, disabledAt }) => ({
        ...{ name, role, created_at: iso(createdAt), disabled_at: moment(disabledAt) },
      })),
      sessions: (await operators.listSessions()).map(sessionView),
    });
  api.get('/operators', { schema: people }, (request) => everyone(operatorsAs(operatorCallOf(request))));
  api.post('/sessions/:id/end', { schema: { ...people, params: Params } }, async (request) => {
    const operators = operatorsAs(operatorCallOf(request));
    await operators.endSession(request.params.id);
    return await everyone(operators);
  });
}

const iso = (ms: number): string => new Date(ms).toISOString();
/** Forms send what is not filled in as an empty text. */
const given = (text: string | undefined): string | undefined => text?.trim() || undefined;

const noText = () =>
  invalid('text', `Send a text of 1 to ${MAX_TEXT} characters.`, `请发送 1 至 ${MAX_TEXT} 个字符的文本。`);

const entryView = (entry: AuditEntry): Answer.Entry => ({
  ...{ id: entry.id, at: iso(entry.at), account_id: entry.accountId, actor: entry.actor, action: entry.action },
  ...{ subject: entry.subject, request_id: entry.requestId, details: entry.details },
});

const storyView = ({ account, order, waiting, events }: Story, locale: Locale): Answer.Story => ({
  account: { id: account.id, name: account.name, suspended_at: moment(account.suspendedAt) },
  order: {
    ...{ id: order.id, product: order.productId, status: order.status, alternative_id: order.alternativeId },
    ...{ common_name: order.commonName, names: order.names, certificate_id: order.currentCertificateId },
    pending_certificate_id: order.pendingCertificateId,
  },
  waiting: waiting
    ? {
        ...{ next_check_at: iso(waiting.dueAt), expires_at: iso(waiting.expiresAt) },
        problems: problemsOf(waiting.findings, locale),
      }
    : null,
  events: events.map(({ at, event, actor, requestId, details }) => ({
    ...{ at: iso(at), event, actor, request_id: requestId, details },
  })),
});

function sessionView({
  owner,
  ...session
}: Awaited<ReturnType<ManageOperators['listSessions']>>[number]): Answer.LiveSession {
  return {
    ...('keyId' in owner
      ? { kind: 'account' as const, owner: owner.keyId }
      : { kind: 'operator' as const, owner: owner.operatorName }),
    ...{ id: session.id, created_at: iso(session.createdAt), last_seen_at: iso(session.lastSeenAt) },
    ...{ expires_at: iso(session.expiresAt), network: session.network },
  };
}
