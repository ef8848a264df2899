// The frame around every page: the rail, who is signed in, language, theme.
import { h } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { tags, type View } from './html.ts';
import { chooseLanguage, language, texts } from './language.ts';
import { type Match, matchPage, PAGES, type PageModule, railText } from './pages.ts';
import { empty, page, problem } from './parts.ts';
import { useAction } from './resource.ts';
import { address, href } from './router.ts';
import { type Session, signOut } from './session.ts';
import { chooseTheme, theme } from './theme.ts';

const { a, button, div, header, main, nav, p, span } = tags;

const t = texts({
  en: {
    skip: 'Skip to the content',
    pages: 'Pages',
    signOut: 'Sign out',
    other: '中文',
    dark: 'Dark',
    light: 'Light',
    reference: 'API reference',
    missing: 'There is no such page',
    missingText: 'The address leads nowhere. The pages are listed in the menu.',
    loading: 'Loading…',
    operator: 'operator, may {role}',
    view: 'look',
    act: 'act',
  },
  zh: {
    skip: '跳到正文',
    pages: '页面',
    signOut: '退出',
    other: 'English',
    dark: '深色',
    light: '浅色',
    reference: 'API 参考',
    missing: '没有这个页面',
    missingText: '该地址不存在。可用页面见菜单。',
    loading: '加载中…',
    operator: '运维人员，权限：{role}',
    view: '查看',
    act: '操作',
  },
});

/** Language and theme: also on the sign-in page. */
export const preferences = (): View =>
  div(
    { class: 'preferences' },
    button(
      {
        type: 'button',
        class: 'small',
        lang: language.value === 'en' ? 'zh-CN' : 'en',
        onClick: () => chooseLanguage(language.value === 'en' ? 'zh' : 'en'),
      },
      t('other'),
    ),
    button(
      { type: 'button', class: 'small', onClick: () => chooseTheme(theme.value === 'dark' ? 'light' : 'dark') },
      theme.value === 'dark' ? t('light') : t('dark'),
    ),
  );

export function Layout({ session }: { session: Session }): View {
  const { path, query } = address.value;
  const first = PAGES.find(({ who }) => who === session.kind);
  const match = path.length === 0 && first ? { row: first, parameters: [] } : matchPage(path, session.kind);
  return div(
    { class: 'frame' },
    a({ class: 'skip', href: '#title', onClick: focusTitle }, t('skip')),
    h(Rail, { session, current: match }),
    main(
      { id: 'content' },
      match
        ? h(Loaded, { key: `${match.row.path}/${match.parameters.join('/')}`, match, query })
        : page(t('missing'), empty(t('missingText'))),
    ),
  );
}

/** For a link that skips to the content. */
export function focusTitle(event: Event): void {
  event.preventDefault();
  document.getElementById('title')?.focus();
}

function Rail({ session, current }: { session: Session; current: Match | undefined }): View {
  const leaving = useAction(signOut);
  const section = current?.row.path.split('/')[0];
  return header(
    { class: 'rail' },
    p({ class: 'brand' }, 'Reseal'),
    nav(
      { 'aria-label': t('pages') },
      PAGES.filter(({ who, rail }) => who === session.kind && rail).map(({ path, rail }) =>
        a(
          { key: path, href: href([path]), ...(section === path && { 'aria-current': 'page' as const }) },
          rail && railText(rail),
        ),
      ),
    ),
    div(
      { class: 'who' },
      session.account && p(span(session.account.name), span({ class: 'quiet' }, session.key_id)),
      session.operator &&
        p(span(session.operator.name), span({ class: 'quiet' }, t('operator', { role: t(session.operator.role) }))),
      p(a({ href: '../docs' }, t('reference'))),
      preferences(),
      button(
        { type: 'button', class: 'small', disabled: leaving.isRunning, onClick: () => leaving.run() },
        t('signOut'),
      ),
      leaving.error && problem(leaving.error),
    ),
  );
}

/** Shows a page once its module is there, and moves the focus to its title, as a browser does for a new document. */
function Loaded({ match, query }: { match: Match; query: URLSearchParams }): View {
  const [module, setModule] = useState<PageModule | undefined>();
  const [error, setError] = useState<Error | undefined>();
  useEffect(() => {
    match.row.load().then((loaded) => setModule(() => loaded), setError);
  }, [match.row]);
  useEffect(() => {
    if (module) document.getElementById('title')?.focus({ preventScroll: true });
  }, [module]);
  if (error) return problem(error, () => location.reload());
  return module
    ? h(module.Page, { parameters: match.parameters, query })
    : p({ class: 'quiet loading', role: 'status' }, t('loading'));
}
