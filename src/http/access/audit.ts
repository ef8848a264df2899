// GET /openapi/v3/account/audit: what was done in the account, by whom. An extension of the specification.
import Type from 'typebox';
import { isOperator, keyOfActor } from '../../domain/access/credential.ts';
import type { AuditEntry } from '../../domain/access/ports.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Page } from '../../domain/page.ts';
import type { Api } from '../front/api.ts';
import { callerOf } from '../front/authentication.ts';
import { NextAfter, nextAfter, PageQuery, pageOf } from '../front/paging.ts';
import { answers, success } from '../front/reply.ts';
import { DateTime, list, nullable, word } from '../front/values.ts';

/** The account's rows, oldest first. */
export type ListAudit = (accountId: AccountId, page: Page) => Promise<AuditEntry[]>;

export const AuditEntryView = Type.Object(
  {
    id: Type.String(),
    at: DateTime,
    actor: Type.String({ description: 'The key id of a caller, `operator` or `service`.' }),
    via: nullable(word('AuditVia', ['console'], 'How a caller acted: in the console, or (null) with the key itself.')),
    action: Type.String({ examples: ['order:reissued'] }),
    subject: Type.String({ description: 'The id or name that the action is about.' }),
    request_id: nullable(Type.String()),
    details: Type.Unsafe<AuditEntry['details']>({
      type: 'object',
      additionalProperties: { type: ['string', 'number', 'null'] },
      description: 'What else there is to know; its fields depend on the action.',
    }),
  },
  { title: 'AuditEntry' },
);
const List = Type.Object({ audit: list(AuditEntryView), next_after: NextAfter });

export function auditOperation(api: Api, listAudit: ListAudit): void {
  api.get(
    '/account/audit',
    {
      config: { action: 'read_audit' },
      schema: {
        operationId: 'listAudit',
        summary: 'List what was done in the account, the oldest first',
        description: 'What the operator did is listed too, without the person and the details.',
        querystring: PageQuery,
        tags: ['account'],
        'x-reseal-extension': true,
        errors: [],
        response: answers('AuditList', List),
      },
    },
    async (request) => {
      const page = pageOf(request.query, PageQuery);
      const entries = await listAudit(callerOf(request).account.id, page);
      const ids = entries.map(({ id }) => id);
      return success({ audit: entries.map(auditEntryView), next_after: nextAfter(ids, page) });
    },
  );
}

/** Names of the operator's users, and what they noted, are not the account's business. */
export function auditEntryView({
  id,
  at,
  actor,
  action,
  subject,
  requestId,
  details,
}: AuditEntry): Type.Static<typeof AuditEntryView> {
  const common = { id, at: new Date(at).toISOString(), action, subject, request_id: requestId };
  if (isOperator(actor)) return { ...common, actor: 'operator', via: null, details: {} };
  const { keyId, isSession } = keyOfActor(actor);
  return { ...common, actor: keyId, via: isSession ? 'console' : null, details };
}
