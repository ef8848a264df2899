// The callbacks of the account, the newest first, with how each of them fared.
import { h } from 'preact';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { useChanges } from '../../shell/live.ts';
import type { PageProps } from '../../shell/pages.ts';
import { empty, field, link, page, pager, problem, shown } from '../../shell/parts.ts';
import { type Action, useAction, useResource } from '../../shell/resource.ts';
import { go, href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { ResendRange } from './resend-range.ts';
import { tabs } from './tabs.ts';
import { ACTION_IDS, actionWord, deliveryBadge, failureWord, STATES, stateWord, whyWord } from './words.ts';

const { a, button, code, div, form, option, p, select, span, table, tbody, td, th, thead, tr } = tags;

const t = texts({
  en: {
    title: 'Callbacks',
    state: 'State',
    action: 'Event',
    any: 'Any',
    of: 'Of order',
    clear: 'Clear',
    event: 'Event',
    order: 'Order',
    happened: 'Happened',
    last: 'Last attempt',
    attempts: '{count} attempts',
    answered: 'answered {status}',
    resend: 'Send again',
    none: 'No callback yet. One is sent when a certificate is issued, revoked, or about to end.',
    noMatch: 'No callback matches.',
    further: 'Nothing on this page. Go on to the next page.',
  },
  zh: {
    title: '回调',
    state: '状态',
    action: '事件',
    any: '不限',
    of: '订单',
    clear: '清除',
    event: '事件',
    order: '订单',
    happened: '发生时间',
    last: '最近一次尝试',
    attempts: '{count} 次尝试',
    answered: '返回 {status}',
    resend: '重新发送',
    none: '还没有回调。证书签发、吊销或即将到期时会发送回调。',
    noMatch: '没有匹配的回调。',
    further: '本页没有匹配项，请查看下一页。',
  },
});

const LIMIT = 25;
const PATH = ['callbacks', 'deliveries'];

export function Page({ query }: PageProps): View {
  const { state, action, order_id, after } = Object.fromEntries(query);
  const filters = { state, action, order_id };
  const read = useResource(
    (signal) =>
      account<Data<'DeliveryListResponse'>>('GET', 'account/callback/deliveries', {
        query: { ...filters, after, limit: LIMIT },
        signal,
      }),
    [filters, after],
  );
  useChanges(read.reload);
  const resend = useAction(async (id: string) => {
    await account('POST', `account/callback/deliveries/${id}/resend`);
    read.reload();
  });
  return page(
    t('title'),
    tabs('deliveries'),
    filterForm(filters),
    h(ResendRange, { key: `${state} ${order_id}`, state, orderId: order_id, onChange: read.reload }),
    resend.error && problem(resend.error),
    shown(read, ({ deliveries, next_after }) => [
      deliveries.length === 0 && empty(t(next_after ? 'further' : state || action || order_id ? 'noMatch' : 'none')),
      deliveries.length > 0 && deliveryTable(deliveries, resend),
      pager(
        next_after ? href(PATH, { ...filters, after: next_after }) : undefined,
        after ? href(PATH, filters) : undefined,
      ),
    ]),
  );
}

type Filters = Readonly<Record<'state' | 'action' | 'order_id', string | undefined>>;

function filterForm(filters: Filters): View {
  const choose = (more: Partial<Filters>) => go(PATH, { ...filters, ...more });
  return form(
    { class: 'filters', onSubmit: (event: Event) => event.preventDefault() },
    field(t('state'), (attributes) =>
      select(
        {
          ...attributes,
          value: filters.state ?? '',
          onChange: (event) => choose({ state: event.currentTarget.value }),
        },
        option({ value: '' }, t('any')),
        STATES.map((one) => option({ key: one, value: one }, stateWord(one))),
      ),
    ),
    field(t('action'), (attributes) =>
      select(
        {
          ...attributes,
          value: filters.action ?? '',
          onChange: (event) => choose({ action: event.currentTarget.value }),
        },
        option({ value: '' }, t('any')),
        ACTION_IDS.map((one) => option({ key: one, value: one }, actionWord(one))),
      ),
    ),
    filters.order_id && p(t('of'), ' ', code(filters.order_id)),
    (filters.state || filters.action || filters.order_id) && p(a({ href: href(PATH) }, t('clear'))),
  );
}

const deliveryTable = (deliveries: readonly Schema<'Delivery'>[], resend: Action<[string]>): View =>
  div(
    { class: 'table' },
    table(
      { class: 'cards' },
      thead(
        tr(
          th(t('event')),
          th(t('state')),
          th(t('last')),
          th(t('happened')),
          th(t('order')),
          th(span({ class: 'heard' }, t('resend'))),
        ),
      ),
      tbody(deliveries.map((one) => deliveryRow(one, resend))),
    ),
  );

function deliveryRow(one: Schema<'Delivery'>, resend: Action<[string]>): View {
  const last = one.attempts.at(-1);
  const said = last && (last.reason ? failureWord(last.reason) : t('answered', { status: last.http_status ?? '–' }));
  return tr(
    { key: one.id },
    td({ class: 'name' }, link(href(['callbacks', 'deliveries', one.id]), actionWord(one.action))),
    td(deliveryBadge(one.state)),
    td(
      said ?? (one.reason && whyWord(one.reason)),
      one.attempts.length > 1 && [' ', span({ class: 'quiet' }, t('attempts', { count: one.attempts.length }))],
    ),
    td(moment(one.created_at)),
    td({ class: 'serial' }, link(href(['orders', one.order_id]), one.order_id)),
    td(
      one.state !== 'pending' &&
        button(
          {
            type: 'button',
            class: 'small',
            'aria-label': `${t('resend')}: ${actionWord(one.action)}, ${one.order_id}`,
            disabled: resend.isRunning,
            onClick: () => resend.run(one.id),
          },
          t('resend'),
        ),
    ),
  );
}
