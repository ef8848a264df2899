// Orders of all accounts that wait for the validation of their names, those that wait longest first.
import type { WaitingList, WaitingOrder } from '../../../http/console/operator-schemas.ts';
import { operator } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import { badge, empty, link, page, pager, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { distance, moment } from '../../shell/time.ts';
import { accountLink, orderStatus, problemsOf, useEvery } from './parts.ts';

const { div, p, span, table, tbody, td, th, thead, tr } = tags;

const t = texts({
  en: {
    title: 'Waiting orders',
    none: 'No order waits for validation. Orders whose names are not proven yet appear here, with the result of their last check.',
    order: 'Order',
    account: 'Account',
    since: 'Waits since',
    next: 'Next check',
    finding: 'Last check',
    suspended: 'suspended',
    unchecked: 'not checked yet',
    tries: '{count} checks so far',
    until: 'waits until {when} at most',
    further: 'and {count} more names',
  },
  zh: {
    title: '等待中的订单',
    none: '没有等待验证的订单。名称尚未验证的订单会连同上次检查结果显示在此处。',
    order: '订单',
    account: '账户',
    since: '等待起始',
    next: '下次检查',
    finding: '上次检查',
    suspended: '已停用',
    unchecked: '尚未检查',
    tries: '已检查 {count} 次',
    until: '最迟等待至 {when}',
    further: '另有 {count} 个名称',
  },
});

const REFRESH_MS = 15_000;
/** Of one order; its story has all. */
const MAX_PROBLEMS = 3;

export function Page({ query }: PageProps): View {
  const after = query.get('after') ?? '';
  const waiting = useResource(
    (signal) => operator<WaitingList>('GET', 'waiting', { query: { after }, signal }),
    [after],
  );
  useEvery(REFRESH_MS, waiting.reload);
  return page(
    t('title'),
    shown(waiting, ({ waiting: rows, next_after: next }) => [
      rows.length === 0 ? empty(t('none')) : listOf(rows),
      pager(
        next === null ? undefined : href(['waiting'], { after: next }),
        after === '' ? undefined : href(['waiting']),
      ),
    ]),
  );
}

const listOf = (orders: readonly WaitingOrder[]): View =>
  div(
    { class: 'table' },
    table(
      { class: 'cards' },
      thead(
        tr(
          ...(['order', 'account', 'since', 'next', 'finding'] as const).map((key) =>
            th({ key, scope: 'col' }, t(key)),
          ),
        ),
      ),
      tbody(orders.map(row)),
    ),
  );

const row = (one: WaitingOrder): View =>
  tr(
    { key: one.certificate_id },
    td(
      link(href(['story', one.order_id]), one.common_name ?? one.names[0] ?? one.order_id),
      p({ class: 'quiet' }, one.product),
      orderStatus(one.status),
    ),
    td(accountLink(one.account.id, one.account.name), one.account.is_suspended && [' ', badge('bad', t('suspended'))]),
    td(moment(one.since), p({ class: 'quiet' }, distance(one.since))),
    td(
      moment(one.next_check_at),
      p({ class: 'quiet' }, t('tries', { count: one.tries })),
      p({ class: 'quiet' }, t('until', { when: new Date(one.expires_at).toLocaleDateString() })),
    ),
    td(
      problemsOf(one.problems.slice(0, MAX_PROBLEMS)) ?? span({ class: 'quiet' }, t('unchecked')),
      one.problems.length > MAX_PROBLEMS &&
        p({ class: 'quiet' }, t('further', { count: one.problems.length - MAX_PROBLEMS })),
    ),
  );
