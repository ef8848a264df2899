// The certificates of the account: those that end first come first.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { useChanges } from '../../shell/live.ts';
import type { PageProps } from '../../shell/pages.ts';
import { empty, field, link, page, pager, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { go, href } from '../../shell/router.ts';
import { distance, moment } from '../../shell/time.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { SOON_DAYS, soon } from './attention.ts';
import { searchOf } from './search.ts';
import { calledBy, certificateBadge } from './states.ts';

const { a, button, code, div, form, input, option, p, select, span, table, tbody, td, th, thead, tr } = tags;

const t = texts({
  en: {
    title: 'Certificates',
    lead: 'Everything that was issued, the next to end first.',
    search: 'Search',
    searchHint: 'A name, a domain or a serial number.',
    ends: 'Which',
    valid: 'Valid',
    soon: 'Ending within {days} days',
    ended: 'Ended',
    revoked: 'Revoked',
    any: 'All',
    find: 'Search',
    clear: 'Clear',
    name: 'Name',
    state: 'State',
    end: 'Ends',
    serial: 'Serial number',
    version: 'Version',
    current: 'current',
    replaced: 'replaced',
    none: 'No certificate here. Certificates appear when an order is issued.',
    place: 'Place an order',
    further: 'Nothing on this page of the search. Go on to the next page.',
  },
  zh: {
    title: '证书',
    lead: '所有已签发的证书，最先到期的在前。',
    search: '搜索',
    searchHint: '名称、域名或序列号。',
    ends: '范围',
    valid: '有效',
    soon: '{days} 天内到期',
    ended: '已到期',
    revoked: '已吊销',
    any: '全部',
    find: '搜索',
    clear: '清除',
    name: '名称',
    state: '状态',
    end: '到期时间',
    serial: '序列号',
    version: '版本',
    current: '当前',
    replaced: '已被取代',
    none: '这里没有证书。订单签发后，证书会显示在此。',
    place: '下单',
    further: '本页没有匹配项，请查看下一页。',
  },
});

const LIMIT = 25;
const WHICH = ['valid', 'soon', 'ended', 'revoked', 'any'] as const;
type Which = (typeof WHICH)[number];

/** Each is a range of an index. */
const RANGES: Readonly<Record<Which, () => Readonly<Record<string, string>>>> = {
  valid: () => ({ status: 'issued', expires_after: soon().expires_after }),
  soon: () => ({ status: 'issued', ...soon() }),
  ended: () => ({ expires_before: soon().expires_after }),
  revoked: () => ({ status: 'revoked' }),
  any: () => ({}),
};

export function Page({ query }: PageProps): View {
  const { q = '', ends, after } = Object.fromEntries(query);
  const which = WHICH.find((one) => one === ends) ?? 'valid';
  const certificates = useResource(
    (signal) =>
      account<Data<'CertificateListResponse'>>('GET', 'certs', {
        query: { ...RANGES[which](), ...searchOf(q), after, limit: LIMIT },
        signal,
      }),
    [q, which, after],
  );
  useChanges(certificates.reload);
  const filters = { q, ends };
  return page(
    t('title'),
    p({ class: 'quiet' }, t('lead')),
    h(Filters, { key: String(query), q, which }),
    shown(certificates, ({ certificates: found, next_after }) => [
      found.length === 0 &&
        (next_after ? empty(t('further')) : empty(t('none'), link(href(['orders', 'new']), t('place')))),
      found.length > 0 && certificateTable(found),
      pager(
        next_after ? href(['certificates'], { ...filters, after: next_after }) : undefined,
        after ? href(['certificates'], filters) : undefined,
      ),
    ]),
  );
}

function Filters({ q, which }: { q: string; which: Which }): View {
  const [text, setText] = useState(q);
  const search = (wanted: Which) => go(['certificates'], { q: text.trim(), ends: wanted });
  return form(
    {
      class: 'filters',
      role: 'search',
      onSubmit: (event: Event) => {
        event.preventDefault();
        search(which);
      },
    },
    field(
      t('search'),
      (attributes) =>
        input({
          ...attributes,
          type: 'search',
          value: text,
          maxLength: 255,
          spellcheck: false,
          onInput: (event) => setText(event.currentTarget.value),
        }),
      t('searchHint'),
    ),
    field(t('ends'), (attributes) =>
      select(
        {
          ...attributes,
          value: which,
          onChange: (event) => search(WHICH.find((one) => one === event.currentTarget.value) ?? 'valid'),
        },
        WHICH.map((one) => option({ key: one, value: one }, t(one, { days: SOON_DAYS }))),
      ),
    ),
    div(
      { class: 'buttons' },
      button({ type: 'submit' }, t('find')),
      (q !== '' || which !== 'valid') && a({ href: href(['certificates']) }, t('clear')),
    ),
  );
}

const certificateTable = (certificates: readonly Schema<'CertificateEntry'>[]): View =>
  div(
    { class: 'table' },
    table(
      { class: 'cards' },
      thead(tr(th(t('name')), th(t('state')), th(t('end')), th(t('version')), th(t('serial')))),
      tbody(certificates.map(certificateRow)),
    ),
  );

const certificateRow = (one: Schema<'CertificateEntry'>): View =>
  tr(
    { key: one.id },
    td({ class: 'name' }, link(href(['certificates', one.id]), calledBy(one))),
    td(certificateBadge(one.status, one.not_after)),
    td(
      { 'data-name': t('end') },
      moment(one.not_after),
      one.not_after !== null && [' ', span({ class: 'quiet' }, distance(one.not_after))],
    ),
    td(
      { 'data-name': t('version') },
      one.version,
      ' ',
      span({ class: 'quiet' }, t(one.is_current ? 'current' : 'replaced')),
    ),
    td({ class: 'serial' }, code(one.serial_number)),
  );
