// Orders of the account: what needs attention, then search, filters, and pages of the list by cursor.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { useChanges } from '../../shell/live.ts';
import type { PageProps } from '../../shell/pages.ts';
import { empty, field, link, page, pager, problem, shown } from '../../shell/parts.ts';
import { useAction, useResource } from '../../shell/resource.ts';
import { go, href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { Attention } from './attention.ts';
import { orderNamed, searchOf } from './search.ts';
import { calledBy, ORDER_STATUSES, orderBadge, orderWord } from './states.ts';

const { a, button, div, form, h2, input, option, select, span, table, tbody, td, th, thead, tr } = tags;

const t = texts({
  en: {
    title: 'Orders',
    place: 'Place an order',
    all: 'All orders',
    search: 'Search',
    searchHint: 'A name, a domain, a serial number, an order id, or your own id.',
    status: 'State',
    any: 'Any',
    product: 'Product',
    find: 'Search',
    clear: 'Clear',
    name: 'Name',
    placed: 'Placed',
    term: 'Term ends',
    more: 'and {count} more',
    none: 'There are no orders yet. An order is a certificate and all its reissues.',
    noMatch: 'No order matches. A domain finds all names below it; a name with an asterisk finds exactly that one.',
    further: 'Nothing on this page of the search. Go on to the next page.',
  },
  zh: {
    title: '订单',
    place: '下单',
    all: '全部订单',
    search: '搜索',
    searchHint: '名称、域名、序列号、订单 ID 或您自己的编号。',
    status: '状态',
    any: '不限',
    product: '产品',
    find: '搜索',
    clear: '清除',
    name: '名称',
    placed: '下单时间',
    term: '期限截止',
    more: '及其他 {count} 个',
    none: '还没有订单。一个订单包含一张证书及其所有重签。',
    noMatch: '没有匹配的订单。输入域名可查到其下所有名称；带星号的名称仅查到其本身。',
    further: '本页没有匹配项，请查看下一页。',
  },
});

const LIMIT = 25;

export function Page({ query }: PageProps): View {
  const { q = '', status, product, after } = Object.fromEntries(query);
  const orders = useResource(
    (signal) =>
      account<Data<'OrderListResponse'>>('GET', 'orders', {
        query: { ...searchOf(q), status, product, after, limit: LIMIT },
        signal,
      }),
    [q, status, product, after],
  );
  useChanges(orders.reload);
  const isFiltered = Boolean(q || status || product);
  const filters = { q, status, product };
  return page(
    t('title'),
    !isFiltered && !after && h(Attention, {}),
    div({ class: 'headed' }, h2(t('all')), a({ class: 'button', href: href(['orders', 'new']) }, t('place'))),
    h(Filters, { key: String(query), given: filters }),
    shown(orders, ({ orders: found, next_after }) => [
      found.length === 0 &&
        (next_after
          ? empty(t('further'))
          : empty(t(isFiltered ? 'noMatch' : 'none'), !isFiltered && link(href(['orders', 'new']), t('place')))),
      found.length > 0 && orderTable(found),
      pager(
        next_after ? href(['orders'], { ...filters, after: next_after }) : undefined,
        after ? href(['orders'], filters) : undefined,
      ),
    ]),
  );
}

interface Given {
  readonly q: string;
  readonly status: string | undefined;
  readonly product: string | undefined;
}

function Filters({ given }: { given: Given }): View {
  const [values, setValues] = useState(given);
  const products = useResource((signal) => account<Data<'ProductListResponse'>>('GET', 'products', { signal }), []);
  const change = (more: Partial<Given>) => setValues((before) => ({ ...before, ...more }));
  const search = useAction(async (wanted: Given) => {
    const id = wanted.q === given.q ? undefined : await orderNamed(wanted.q);
    if (id) go(['orders', id]);
    else go(['orders'], { ...wanted, q: wanted.q.trim() });
  });
  const choose = (more: Partial<Given>) => {
    change(more);
    search.run({ ...values, ...more });
  };
  const submit = (event: Event) => {
    event.preventDefault();
    search.run(values);
  };
  return form(
    { class: 'filters', role: 'search', onSubmit: submit },
    field(
      t('search'),
      (attributes) =>
        input({
          ...attributes,
          type: 'search',
          value: values.q,
          maxLength: 255,
          spellcheck: false,
          onInput: (event) => change({ q: event.currentTarget.value }),
        }),
      t('searchHint'),
    ),
    field(t('status'), (attributes) =>
      select(
        {
          ...attributes,
          value: values.status ?? '',
          onChange: (event) => choose({ status: event.currentTarget.value || undefined }),
        },
        option({ value: '' }, t('any')),
        ORDER_STATUSES.map((one) => option({ value: one, key: one }, orderWord(one))),
      ),
    ),
    field(t('product'), (attributes) =>
      select(
        {
          ...attributes,
          value: values.product ?? '',
          onChange: (event) => choose({ product: event.currentTarget.value || undefined }),
        },
        option({ value: '' }, t('any')),
        (products.data?.products ?? []).map(({ id, name }) => option({ value: id, key: id }, name)),
      ),
    ),
    div(
      { class: 'buttons' },
      button({ type: 'submit', disabled: search.isRunning }, t('find')),
      (given.q || given.status || given.product) && a({ href: href(['orders']) }, t('clear')),
    ),
    search.error && problem(search.error),
  );
}

const orderTable = (orders: readonly Schema<'OrderSummary'>[]): View =>
  div(
    { class: 'table' },
    table(
      { class: 'cards' },
      thead(tr(th(t('name')), th(t('status')), th(t('product')), th(t('placed')), th(t('term')))),
      tbody(orders.map(orderRow)),
    ),
  );

function orderRow(order: Schema<'OrderSummary'>): View {
  const further = order.dns_names.filter((name) => name !== order.common_name).length;
  return tr(
    { key: order.id },
    td(
      { class: 'name' },
      link(href(['orders', order.id]), calledBy(order)),
      further > 0 && [' ', span({ class: 'quiet' }, t('more', { count: further }))],
      order.alternative_order_id !== null && span({ class: 'quiet own' }, order.alternative_order_id),
    ),
    td(orderBadge(order.status)),
    td(order.product),
    td({ 'data-name': t('placed') }, moment(order.created_at)),
    td({ 'data-name': t('term') }, moment(order.term_ends_at)),
  );
}
