// Who did what to an order, the newest first.
import { useState } from 'preact/hooks';
import { account, Problem } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { copyable, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { moment } from '../../shell/time.ts';
import type { Data, Schema } from '../../shell/wire.ts';

const { button, code, details, div, dd, dl, dt, h2, li, ol, p, section, span, summary } = tags;

const t = texts({
  en: {
    title: 'Audit',
    none: 'Nothing is recorded any more: the audit is kept for a limited time.',
    notYet: 'Nothing about this order among the entries looked at so far.',
    denied: 'This key may not read the audit. Sign in with a standard key of the account to see who did what.',
    operator: 'the operator',
    service: 'the service',
    request: 'Request',
    about: 'About',
    older: 'Look further back',
    newest: 'Newest',
  },
  zh: {
    title: '审计',
    none: '没有记录：审计记录只保留一段时间。',
    notYet: '已查看的记录中没有该订单的内容。',
    denied: '该密钥无权查看审计。请使用账户的标准密钥登录。',
    operator: '运维人员',
    service: '服务',
    request: '请求',
    about: '对象',
    older: '查看更早的记录',
    newest: '最新',
  },
});

const LIMIT = 30;

export function OrderAudit({ orderId, round }: { orderId: string; round: string }): View {
  const [after, setAfter] = useState<string | undefined>();
  const audit = useResource(
    (signal) =>
      account<Data<'AuditListResponse'>>('GET', `orders/${orderId}/audit`, { query: { limit: LIMIT, after }, signal }),
    [orderId, after],
    round,
  );
  const isDenied = audit.error instanceof Problem && audit.error.code === 'permission_denied';
  return section(
    { class: 'audit', 'aria-label': t('title') },
    h2(t('title')),
    isDenied
      ? p({ class: 'quiet' }, t('denied'))
      : shown(audit, ({ audit: entries, next_after }) => [
          entries.length === 0 && p({ class: 'quiet' }, t(next_after || after ? 'notYet' : 'none')),
          ol(entries.map(entryView)),
          div(
            { class: 'buttons' },
            after && button({ type: 'button', class: 'small', onClick: () => setAfter(undefined) }, t('newest')),
            next_after && button({ type: 'button', class: 'small', onClick: () => setAfter(next_after) }, t('older')),
          ),
        ]),
  );
}

const actor = (name: string): string => (name === 'operator' || name === 'service' ? t(name) : name);

const entryView = ({ id, at, actor: by, action, subject, request_id, details: more }: Schema<'AuditEntry'>): View =>
  li(
    { key: id },
    details(
      summary(code(action), ' ', span({ class: 'quiet' }, moment(at), ' · ', actor(by))),
      dl(
        { class: 'wide' },
        div(dt(t('about')), dd(code(subject))),
        request_id && div(dt(t('request')), dd(copyable(request_id, t('request')))),
        Object.entries(more).map(([name, value]) => div({ key: name }, dt(name), dd(code(String(value ?? '–'))))),
      ),
    ),
  );
