// The audit over all accounts, the newest first, with filters that stay in the address.
import { useState } from 'preact/hooks';
import { operator } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import { empty, field, link, page, pager, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { go, href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import { detailsOf, tableOf } from './parts.ts';
import type { Audit, Entry } from './wire.ts';

const { a, button, code, form, input, p } = tags;

const t = texts({
  en: {
    title: 'Audit',
    filters: 'Filter the audit',
    account: 'Account id',
    order: 'Order id',
    certificate: 'Certificate id',
    request: 'Request id',
    actor: 'Actor',
    since: 'From',
    until: 'Until',
    apply: 'Filter',
    clear: 'Clear',
    none: 'No entry matches. An actor is a key id, the name of an operator, a user of the command line, or “service”.',
    at: 'Time',
    action: 'Act',
    by: 'by',
    subject: 'What',
    details: 'Details',
  },
  zh: {
    title: '审计',
    filters: '筛选审计',
    account: '账户 ID',
    order: '订单 ID',
    certificate: '证书 ID',
    request: '请求 ID',
    actor: '操作者',
    since: '起始',
    until: '截止',
    apply: '筛选',
    clear: '清除',
    none: '没有匹配的记录。操作者为密钥 ID、运维人员名称、命令行用户或 “service”。',
    at: '时间',
    action: '操作',
    by: '操作者',
    subject: '对象',
    details: '详情',
  },
});

const TEXTS = ['account', 'order', 'certificate', 'request', 'actor'] as const;
const TIMES = ['since', 'until'] as const;
type Filter = Record<(typeof TEXTS)[number] | (typeof TIMES)[number], string>;

export function Page({ query }: PageProps): View {
  const given = Object.fromEntries([...TEXTS, ...TIMES].map((name) => [name, query.get(name) ?? ''])) as Filter;
  const after = query.get('after') ?? '';
  const [filter, setFilter] = useState(given);
  const audit = useResource(
    (signal) =>
      operator<Audit>('GET', 'audit', {
        query: { ...given, since: utc(given.since), until: utc(given.until), after },
        signal,
      }),
    [given, after],
  );
  const apply = (event: Event) => {
    event.preventDefault();
    go(['audit'], filter);
  };
  const entered = (name: keyof Filter) => (event: Event & { currentTarget: HTMLInputElement }) =>
    setFilter({ ...filter, [name]: event.currentTarget.value });
  return page(
    t('title'),
    form(
      { class: 'filters', role: 'search', 'aria-label': t('filters'), onSubmit: apply },
      TEXTS.map((name) =>
        field(t(name), (attributes) =>
          input({ ...attributes, maxLength: 100, spellcheck: false, value: filter[name], onInput: entered(name) }),
        ),
      ),
      TIMES.map((name) =>
        field(t(name), (attributes) =>
          input({ ...attributes, type: 'datetime-local', value: filter[name], onInput: entered(name) }),
        ),
      ),
      button({ class: 'main' }, t('apply')),
      a({ class: 'button', href: href(['audit']), onClick: () => setFilter(blank()) }, t('clear')),
    ),
    shown(audit, ({ audit: rows, next_after: next }) => [
      rows.length === 0 ? empty(t('none')) : listOf(rows),
      pager(
        next === null ? undefined : href(['audit'], { ...given, after: next }),
        after === '' ? undefined : href(['audit'], given),
      ),
    ]),
  );
}

const blank = (): Filter => Object.fromEntries([...TEXTS, ...TIMES].map((name) => [name, ''])) as Filter;

/** Entered in the reader's zone. */
function utc(local: string): string {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? '' : at.toISOString();
}

const listOf = (entries: readonly Entry[]): View =>
  tableOf(entries, ({ id }) => id, [
    [t('at'), ({ at }) => moment(at)],
    [
      t('action'),
      ({ action, actor }) => [
        action,
        p(
          { class: 'quiet' },
          t('by'),
          ' ',
          link(href(['audit'], { actor: actor.replace(/^(operator|console|cli):/, '') }), word(actor)),
        ),
      ],
    ],
    [t('subject'), ({ subject }) => link(href(['find'], { text: subject }), word(subject))],
    [
      t('details'),
      ({ account_id: account, subject, request_id: request, details }) =>
        detailsOf({ ...details, ...(account !== subject && { account }), request }),
    ],
  ]);

/** Ids stay in one line; names may be of any length. */
const word = (text: string): View => code({ class: text.length <= 34 ? 'id' : '' }, text);
