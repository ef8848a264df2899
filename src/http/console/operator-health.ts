// Operators' routes that say how the service is: what needs attention, its metrics over the last hours, the doctor, and the
// authority.
import Type from 'typebox';
import { isKeyHere } from '../../domain/certificate/authority.ts';
import { HISTORY_MS, type HistoryPoint } from '../../domain/support/history.ts';
import { HOUR_MS, SECOND_MS } from '../../kernel/durations.ts';
import type { Diagnostic } from '../../kernel/problem.ts';
import type { IssuerOverview } from '../../usecases/issuance/manage-authorities.ts';
import type { Examination, Examine, ListAttention } from '../../usecases/support/examine.ts';
import type { Api } from '../front/api.ts';
import { wordOf } from '../front/filters.ts';
import { answers, success } from '../front/reply.ts';
import { moment } from '../front/values.ts';
import * as Answer from './operator-schemas.ts';

export interface HealthServices {
  readonly attention: ListAttention;
  readonly examine: Examine;
  /** Of all processes together. */
  readonly history: (spanMs: number) => Promise<readonly HistoryPoint[]>;
  readonly issuers: () => Promise<readonly IssuerOverview[]>;
}

const hide = true;
/** However often the page is opened. */
const DOCTOR_EVERY_MS = 10 * SECOND_MS;
const HOURS = ['1', String(HISTORY_MS / HOUR_MS)] as const;
const Span = Type.Object({ hours: Type.Optional(Type.String()) });

export function operatorHealth(api: Api, { attention, examine, history, issuers }: HealthServices): void {
  const listed = { hide, response: answers('OperatorAttention', Answer.AttentionList) } as const;
  api.get('/attention', { schema: listed }, async () => {
    const { items, examination } = await attention();
    return success({
      attention: items.map(({ kind, severity, diagnostic, count, since }) => ({
        ...{ kind, severity, count, since: moment(since) },
        finding: diagnostic && findingView(diagnostic),
      })),
      examined_at: moment(examination.endedAt),
    });
  });

  const drawn = { hide, querystring: Span, response: answers('OperatorHistory', Answer.History) } as const;
  api.get('/history', { schema: drawn }, async ({ query: { hours = HOURS[0] } }) => {
    const points = await history(Number(wordOf('hours', hours, HOURS)) * HOUR_MS);
    return success({ points: points.map(pointView) });
  });

  const examined = { hide, response: answers('OperatorDoctor', Answer.Doctor) } as const;
  api.get('/doctor', { schema: examined }, async () => success(doctorView(await examine(DOCTOR_EVERY_MS))));

  const shown = { hide, response: answers('OperatorAuthority', Answer.Authority) } as const;
  api.get('/authority', { schema: shown }, async () => success({ issuers: (await issuers()).map(issuerView) }));
}

const iso = (ms: number): string => new Date(ms).toISOString();

const findingView = ({ check, state, text, remedy = '' }: Diagnostic): Answer.Finding => ({
  ...{ check, state, text, remedy: remedy === '' ? null : remedy },
});

const doctorView = ({ startedAt, endedAt, findings }: Examination): Answer.Doctor => ({
  started_at: iso(startedAt),
  ended_at: moment(endedAt),
  findings: findings.map(findingView),
});

const pointView = ({ at, medianMs, slowMs, ...counts }: HistoryPoint): Answer.Point => ({
  ...{ at: iso(at), median_ms: medianMs, slow_ms: slowMs },
  ...counts,
});

const issuerView = (one: IssuerOverview): Answer.Issuer => ({
  ...{ id: one.id, role: one.role, state: one.state, subject: one.subject, purposes: one.purposes },
  ...{ key_type: one.keyType, has_key: isKeyHere(one), not_after: iso(one.notAfter), fingerprint: one.fingerprint },
  ...{ issued: one.issued, revoked: one.revoked, responder_not_after: moment(one.responderNotAfter) },
  crls: one.crls.map(({ shard, number, entries, thisUpdate, nextUpdate }) => ({
    ...{ shard, number, entries, this_update: iso(thisUpdate), next_update: iso(nextUpdate) },
  })),
});
