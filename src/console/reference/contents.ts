// The rail of the reference: search, contents, who is signed in.
import { h } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { serviceUrl, signedOut } from '../shell/api.ts';
import { tags, type View } from '../shell/html.ts';
import { language, texts } from '../shell/language.ts';
import { preferences } from '../shell/layout.ts';
import { field, problem } from '../shell/parts.ts';
import { useAction } from '../shell/resource.ts';
import { session, signOut } from '../shell/session.ts';
import type { Reference } from './document.ts';
import { hrefOf, place } from './place.ts';
import { capitalized } from './prose.ts';
import { type Hit, type HitKind, searchOf } from './search.ts';

const { a, button, details, div, h2, header, input, li, nav, p, small, span, summary, ul } = tags;

const t = texts({
  en: {
    name: 'API reference',
    search: 'Search',
    hint: 'Such as revoke or csr',
    contents: 'Contents',
    overview: 'Overview',
    errors: 'Error codes',
    operation: 'Operations',
    code: 'Error codes',
    field: 'Fields',
    event: 'Events',
    none: 'Nothing found. Try another word, such as revoke, csr or callback.',
    found: '{count} found',
    more: 'and {count} more',
    console: 'Console',
    signOut: 'Sign out',
  },
  zh: {
    name: 'API 参考',
    search: '搜索',
    hint: '例如 吊销 或 csr',
    contents: '目录',
    overview: '概览',
    errors: '错误码',
    operation: '接口',
    code: '错误码',
    field: '字段',
    event: '事件',
    none: '没有找到。请换一个词，例如 吊销、csr 或 回调。',
    found: '找到 {count} 项',
    more: '另有 {count} 项',
    console: '控制台',
    signOut: '退出',
  },
});

const KINDS: readonly HitKind[] = ['operation', 'code', 'field', 'event'];
/** Of each kind; more words narrow it down. */
const SHOWN = 12;

const wide = matchMedia('(min-width: 56rem)');

export function Contents({ reference }: { reference: Reference }): View {
  const [query, setQuery] = useState('');
  const [isOpen, setOpen] = useState(wide.matches);
  useEffect(() => {
    const fold = () => setOpen(wide.matches);
    wide.addEventListener('change', fold);
    return () => wide.removeEventListener('change', fold);
  }, []);
  const search = useMemo(() => searchOf(reference), [reference, language.value]);
  const hits = query.trim() === '' ? undefined : search(query);
  // On a narrow screen the contents are a menu: closed again after a choice.
  const onChoice = () => {
    if (!wide.matches) {
      setOpen(false);
      setQuery('');
    }
  };
  return header(
    { class: 'rail' },
    p({ class: 'brand' }, 'Reseal ', span({ class: 'quiet' }, t('name'))),
    field(t('search'), (attributes) =>
      input({
        ...attributes,
        type: 'search',
        placeholder: t('hint'),
        autocomplete: 'off',
        spellcheck: false,
        value: query,
        onInput: (event) => setQuery(event.currentTarget.value),
      }),
    ),
    p({ class: 'heard', role: 'status' }, hits && t('found', { count: hits.length })),
    hits
      ? results(hits, onChoice)
      : details(
          { open: isOpen, onToggle: (event) => setOpen(event.currentTarget.open) },
          summary(t('contents')),
          contents(reference, onChoice),
        ),
    who(),
  );
}

const results = (hits: readonly Hit[], onChoice: () => void): View =>
  nav(
    { 'aria-label': t('search'), onClick: onChoice },
    hits.length === 0 && p({ class: 'quiet' }, t('none')),
    KINDS.map((kind) => {
      const found = hits.filter((hit) => hit.kind === kind);
      if (found.length === 0) return null;
      return div(
        { key: kind },
        h2(t(kind)),
        ul(
          found.slice(0, SHOWN).map(({ href, title, detail }) => li({ key: href }, a({ href }, title, small(detail)))),
          found.length > SHOWN && li(small(t('more', { count: found.length - SHOWN }))),
        ),
      );
    }),
  );

function contents({ groups, events }: Reference, onChoice: () => void): View {
  const { section } = place.value;
  const entry = (id: string, ...label: Parameters<typeof a>) =>
    li({ key: id }, a({ href: hrefOf(id), ...(section === id && { 'aria-current': 'page' as const }) }, ...label));
  return nav(
    { 'aria-label': t('contents'), onClick: (event) => event.target instanceof HTMLAnchorElement && onChoice() },
    ul(entry('', t('overview')), entry('errors', t('errors'))),
    groups.map(({ tag, members }) =>
      div({ key: tag }, h2(capitalized(tag)), ul(members.map(({ id, summary: words }) => entry(id, words)))),
    ),
    h2(t('event')),
    ul(events.map(({ id, name }) => entry(id, name))),
  );
}

function who(): View {
  return div(
    { class: 'who' },
    p(a({ href: serviceUrl('console/').href }, t('console'))),
    preferences(),
    h(SignedIn, {}),
  );
}

function SignedIn(): View | null {
  const leaving = useAction(signOut);
  const current = session.value;
  if (!current || signedOut.value) return null;
  const { account, operator, key_id: keyId } = current;
  return div(
    p(span(account?.name ?? operator?.name), span({ class: 'quiet' }, keyId)),
    button({ type: 'button', class: 'small', disabled: leaving.isRunning, onClick: () => leaving.run() }, t('signOut')),
    leaving.error && problem(leaving.error),
  );
}
