// Orders of all accounts that wait for the validation of their names, those that wait longest first.

import { operator } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { languageTag, texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import { badge, empty, link, page, pager, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { distance, moment, parseTime } from '../../shell/time.ts';
import { accountLink, orderStatus, problemsOf, tableOf, useEvery } from './parts.ts';
import type { WaitingList, WaitingOrder } from './wire.ts';

const { p } = tags;

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
    tries: 'checks so far: {count}',
    until: 'waits until {when} at most',
    further: 'further names: {count}',
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

const quiet = (text: string): View => p({ class: 'quiet' }, text);

const listOf = (orders: readonly WaitingOrder[]): View =>
  tableOf(orders, ({ certificate_id: id }) => id, [
    [
      t('order'),
      ({ order_id: id, common_name: name, names, product, status }) => [
        link(href(['story', id]), name ?? names[0] ?? id),
        quiet(product),
        orderStatus(status),
      ],
    ],
    [
      t('account'),
      ({ account }) => [
        accountLink(account.id, account.name),
        account.is_suspended && [' ', badge('bad', t('suspended'))],
      ],
    ],
    [t('since'), ({ since }) => [moment(since), quiet(distance(since))]],
    [
      t('next'),
      ({ next_check_at: next, tries, expires_at: end }) => [
        moment(next),
        quiet(t('tries', { count: tries })),
        quiet(t('until', { when: parseTime(end).toLocaleDateString(languageTag()) })),
      ],
    ],
    [
      t('finding'),
      ({ problems }) => [
        problemsOf(problems.slice(0, MAX_PROBLEMS)) ?? quiet(t('unchecked')),
        problems.length > MAX_PROBLEMS && quiet(t('further', { count: problems.length - MAX_PROBLEMS })),
      ],
    ],
  ]);
