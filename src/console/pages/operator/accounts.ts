// Accounts: search, and create one.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import { operator } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import { badge, empty, field, group, page, pager, problem, shown } from '../../shell/parts.ts';
import { useAction, useResource } from '../../shell/resource.ts';
import { go, href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import { accountLink, mayAct, tableOf, viewOnly } from './parts.ts';
import type { Account, AccountList } from './wire.ts';

const { button, code, div, form, input, option, select } = tags;

const t = texts({
  en: {
    title: 'Accounts',
    search: 'Search',
    searchHint: 'Part of a name, or the id of an account or a key',
    find: 'Search',
    name: 'Name',
    id: 'Id',
    kind: 'Kind',
    locale: 'Language',
    created: 'Created',
    state: 'State',
    active: 'active',
    suspended: 'suspended',
    none: 'There are no accounts yet. Create the first one below; then it needs a key.',
    noMatch: 'No account matches. Search by a part of its name, or by a whole id.',
    add: 'New account',
    create: 'Create the account',
    nameHint: 'As you know the customer or the team. Its holders see it too.',
    standard: 'standard',
    managed_pki: 'managed PKI',
    en: 'English',
    'zh-CN': 'Chinese',
  },
  zh: {
    title: '账户',
    search: '搜索',
    searchHint: '名称的一部分，或账户、密钥的 ID',
    find: '搜索',
    name: '名称',
    id: 'ID',
    kind: '类型',
    locale: '语言',
    created: '创建时间',
    state: '状态',
    active: '正常',
    suspended: '已停用',
    none: '还没有账户。请在下方创建第一个账户，然后为其创建密钥。',
    noMatch: '没有匹配的账户。请按名称的一部分或完整 ID 搜索。',
    add: '新建账户',
    create: '创建账户',
    nameHint: '您所熟知的客户或团队名称，其持有人也能看到。',
    standard: '标准',
    managed_pki: '托管 PKI',
    en: '英语',
    'zh-CN': '中文',
  },
});

const KINDS = ['standard', 'managed_pki'] as const;
const LOCALES = ['en', 'zh-CN'] as const;

export function Page({ query }: PageProps): View {
  const [given, after] = [query.get('query') ?? '', query.get('after') ?? ''];
  const [text, setText] = useState(given);
  const accounts = useResource(
    (signal) => operator<AccountList>('GET', 'accounts', { query: { query: given, after }, signal }),
    [given, after],
  );
  const search = (event: Event) => {
    event.preventDefault();
    go(['accounts'], { query: text.trim() });
  };
  return page(
    t('title'),
    form(
      { class: 'filters', role: 'search', onSubmit: search },
      field(
        t('search'),
        (attributes) =>
          input({
            ...attributes,
            type: 'search',
            value: text,
            maxLength: 200,
            onInput: (event) => setText(event.currentTarget.value),
          }),
        t('searchHint'),
      ),
      button(t('find')),
    ),
    shown(accounts, ({ accounts: rows, next_after: next }) => [
      rows.length === 0 ? empty(given === '' && after === '' ? t('none') : t('noMatch')) : listOf(rows),
      pager(
        next === null ? undefined : href(['accounts'], { query: given, after: next }),
        after === '' ? undefined : href(['accounts'], { query: given }),
      ),
    ]),
    mayAct() ? h(NewAccount, {}) : viewOnly(),
  );
}

const listOf = (accounts: readonly Account[]): View =>
  tableOf(accounts, ({ id }) => id, [
    [t('name'), ({ id, name }) => accountLink(id, name)],
    [t('state'), ({ suspended_at: at }) => (at === null ? badge('good', t('active')) : badge('bad', t('suspended')))],
    [t('kind'), ({ kind }) => t(kind)],
    [t('created'), ({ created_at: at }) => moment(at)],
    [t('id'), ({ id }) => code({ class: 'id' }, id)],
  ]);

function NewAccount(): View {
  const [name, setName] = useState('');
  const [kind, setKind] = useState<string>('standard');
  const [locale, setLocale] = useState<string>('en');
  const action = useAction(async () => {
    const { id } = await operator<Account>('POST', 'accounts', { body: { name, kind, locale } });
    go(['accounts', id]);
  });
  const submit = (event: Event) => {
    event.preventDefault();
    action.run();
  };
  return form(
    { onSubmit: submit },
    group(
      t('add'),
      field(
        t('name'),
        (attributes) =>
          input({
            ...attributes,
            required: true,
            maxLength: 200,
            autocomplete: 'off',
            value: name,
            onInput: (event) => setName(event.currentTarget.value),
          }),
        t('nameHint'),
      ),
      field(t('kind'), (attributes) =>
        select(
          { ...attributes, value: kind, onChange: (event) => setKind(event.currentTarget.value) },
          KINDS.map((one) => option({ key: one, value: one }, t(one))),
        ),
      ),
      field(t('locale'), (attributes) =>
        select(
          { ...attributes, value: locale, onChange: (event) => setLocale(event.currentTarget.value) },
          LOCALES.map((one) => option({ key: one, value: one }, t(one))),
        ),
      ),
      div({ class: 'actions' }, button({ class: 'main', disabled: action.isRunning }, t('create'))),
      action.error && problem(action.error),
    ),
  );
}
