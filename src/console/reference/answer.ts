// The answer to a request that was sent: status, headers that matter, body.
import { h } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { tags, type View } from '../shell/html.ts';
import { texts } from '../shell/language.ts';
import { badge, fact, link, listing } from '../shell/parts.ts';
import type { Exchange } from './exchange.ts';
import { hrefOf } from './place.ts';

const { code, dl, h3, p, section } = tags;

const t = texts({
  en: { title: 'Answer', body: 'Body', cut: 'The rest is not shown.', remedy: 'What to do about {code}' },
  zh: { title: '响应', body: '内容', cut: '其余内容未显示。', remedy: '如何处理 {code}' },
});

export const answerView = (exchange: Exchange): View => h(Answer, exchange);

function Answer({ status, headers, body, isCut, code: name, ms }: Exchange): View {
  const answer = useRef<HTMLElement>(null);
  // On a narrow screen it is below what was filled in.
  useEffect(() => answer.current?.scrollIntoView({ block: 'nearest' }), []);
  return section(
    { class: 'answer', ref: answer },
    h3(t('title')),
    p(badge(status < 300 ? 'good' : 'bad', `HTTP ${status}`), ` · ${ms} ms`),
    name !== undefined && p(link(hrefOf('errors', name), t('remedy', { code: name }))),
    body !== '' && listing(t('body'), body),
    isCut && p({ class: 'quiet' }, t('cut')),
    dl(...headers.map(([header, value]) => fact(header, code(value)))),
  );
}
