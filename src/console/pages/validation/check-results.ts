// What DNS and web servers answer now: a row for each name, a column for each perspective, and CAA.
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { caaBadge, resultBadge } from './check-words.ts';

const { code, div, p, table, tbody, td, th, thead, tr } = tags;

const t = texts({
  en: {
    name: 'Name',
    primary: 'Primary resolver',
    other: 'Resolver {number}',
    all: 'Together',
    proven: 'proven before',
    caa: 'CAA',
  },
  zh: {
    name: '名称',
    primary: '主解析器',
    other: '解析器 {number}',
    all: '综合',
    proven: '此前已验证',
    caa: 'CAA',
  },
});

type Check = Schema<'DcvCheck'>;

export function CheckResults({ checks }: Data<'DcvCheckListResponse'>): View {
  const perspectives = Math.max(0, ...checks.map((one) => one.perspectives.length));
  const columns = Array.from({ length: perspectives }, (_, index) => index);
  return div(
    { class: 'table', role: 'status' },
    table(
      { class: 'cards checks' },
      thead(
        tr(
          th(t('name')),
          columns.map((index) => th({ key: index }, index === 0 ? t('primary') : t('other', { number: index + 1 }))),
          perspectives !== 1 && th(t('all')),
          th(t('caa')),
        ),
      ),
      tbody(checks.map((check) => row(check, columns))),
    ),
    checks.flatMap(messages),
  );
}

const row = (check: Check, columns: readonly number[]): View =>
  tr(
    { key: check.domain },
    td(code(check.domain)),
    columns.map((index) => {
      const view = check.perspectives[index];
      const name = index === 0 ? t('primary') : t('other', { number: index + 1 });
      return td({ key: index, 'data-name': name }, view ? resultBadge(view.result) : t('proven'));
    }),
    // One resolver and all of them say the same.
    columns.length !== 1 && td({ 'data-name': t('all') }, resultBadge(check.result)),
    td({ 'data-name': t('caa') }, caaBadge(check.caa.result)),
  );

/** Each sentence once, however many perspectives say it. */
const messages = (check: Check): View[] =>
  [...new Set([...check.perspectives, check, check.caa].map(({ message }) => message))]
    .filter(Boolean)
    .map((message) => p({ key: message }, code(check.domain), ' ', message));
