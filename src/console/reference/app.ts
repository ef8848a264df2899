// The entry of the reference page: reads the document and the session, then shows one section at a time.
import { effect } from '@preact/signals';
import { h, render } from 'preact';
import { useEffect } from 'preact/hooks';
import { tags, type View } from '../shell/html.ts';
import { languageTag, texts } from '../shell/language.ts';
import { focusTitle } from '../shell/layout.ts';
import { empty, page, shown } from '../shell/parts.ts';
import { useResource } from '../shell/resource.ts';
import { readSession } from '../shell/session.ts';
import { Contents } from './contents.ts';
import { type Reference, readDocument } from './document.ts';
import { ErrorPage } from './errors.ts';
import { rowId } from './field-table.ts';
import { EventPage, OperationPage } from './operation.ts';
import { Overview } from './overview.ts';
import { place } from './place.ts';

const { a, div, main } = tags;

const t = texts({
  en: {
    skip: 'Skip to the reference',
    missing: 'There is no such section',
    missingText: 'The address leads nowhere. Search for what you need, or use the contents.',
  },
  zh: {
    skip: '跳到正文',
    missing: '没有这一节',
    missingText: '该地址不存在。请搜索，或使用目录。',
  },
});

function App(): View {
  const reference = useResource(readDocument, []);
  useEffect(() => {
    // Without a session, or with the console out of reach, the page is one to read.
    readSession().catch(() => {});
  }, []);
  return div(
    { class: 'frame reference' },
    a({ class: 'skip', href: '#title', onClick: focusTitle }, t('skip')),
    reference.data && h(Contents, { reference: reference.data }),
    main(
      { id: 'content' },
      shown(reference, (data) => h(Section, { reference: data, key: place.value.section })),
    ),
  );
}

/** Places inside of the overview. */
const IN_OVERVIEW = /^(|authentication|events|tag-.*)$/;

let isFirst = true;

function Section({ reference }: { reference: Reference }): View {
  const { section, row } = place.value;
  useEffect(() => {
    const target = row === undefined ? section : rowId(row);
    const element = target === '' ? null : document.getElementById(target);
    if (element) element.scrollIntoView({ block: row === undefined ? 'start' : 'center' });
    else if (!isFirst) scrollTo(0, 0);
    // A browser moves the focus to a new document by itself.
    if (!isFirst) document.getElementById('title')?.focus({ preventScroll: true });
    isFirst = false;
    document.title = `${document.getElementById('title')?.textContent} · Reseal`;
  }, [section, row]);
  if (IN_OVERVIEW.test(section)) return h(Overview, { reference });
  if (section === 'errors') return h(ErrorPage, { reference });
  const operation = reference.operations.find(({ id }) => id === section);
  if (operation) return h(OperationPage, { reference, operation });
  const event = reference.events.find(({ id }) => id === section);
  return event ? h(EventPage, { event }) : page(t('missing'), empty(t('missingText')));
}

effect(() => {
  document.documentElement.lang = languageTag();
});
const root = document.getElementById('app');
if (root) {
  root.replaceChildren();
  render(h(App, {}), root);
}
