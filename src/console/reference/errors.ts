// Error codes: all of them with meaning and remedy, and those of one operation.
import { tags, type View } from '../shell/html.ts';
import { language, texts } from '../shell/language.ts';
import { page } from '../shell/parts.ts';
import { type Body, contentOf, type Operation, type Reference, resolved } from './document.ts';
import { bodyPart, dataTable, rowId } from './field-table.ts';
import { hrefOf, place } from './place.ts';
import { breakable, prose } from './prose.ts';
import { unfold, valuesOf, variantsOf } from './schema.ts';

const { a, code, details, h2, li, p, summary, td, th, tr, ul } = tags;

const t = texts({
  en: {
    title: 'Error codes',
    meaning:
      'What does not succeed is answered with a status other than 200 and this body. Programs decide by the code.',
    body: 'Error body',
    all: 'All codes',
    code: 'Code',
    status: 'Status',
    remedy: 'Meaning and remedy',
    errors: 'Errors',
    operations: 'Operations that answer it: {count}',
  },
  zh: {
    title: '错误码',
    meaning: '未成功的请求会返回非 200 状态及以下内容。程序应依据 code 判断。',
    body: '错误内容',
    all: '全部错误码',
    code: '错误码',
    status: '状态',
    remedy: '含义与处理方法',
    errors: '错误',
    operations: '可能返回此错误的接口：{count}',
  },
});

interface DeclaredError {
  readonly code: string;
  readonly status: string;
  readonly meaning: string;
}

/** The codes that an operation declares. Of the signing API, in its own words. */
export function declaredErrors({ document }: Reference, { responses }: Operation): DeclaredError[] {
  const failures = Object.entries(responses).filter(([status]) => /^[45]/.test(status));
  return failures.flatMap(([status, response]) =>
    variantsOf(contentOf(response)?.schema).map(({ properties = {}, description = '' }) => {
      const name = valuesOf(unfold(properties.code ?? properties.error)).join(', ');
      const shared = response.$ref === undefined ? undefined : resolved(response).description;
      return {
        code: name,
        status,
        meaning: shared ?? document['x-error-codes'][name]?.[language.value] ?? description,
      };
    }),
  );
}

export const errorPart = (reference: Reference, operation: Operation): View[] => [
  h2(t('errors')),
  dataTable(
    t('errors'),
    [t('code'), t('status'), t('remedy')],
    declaredErrors(reference, operation).map(({ code: name, status, meaning }) =>
      tr(
        th({ scope: 'row' }, a({ href: hrefOf('errors', name) }, code(...breakable(name)))),
        td({ class: 'type' }, status),
        td(...prose(meaning)),
      ),
    ),
  ),
];

export function ErrorPage({ reference }: { reference: Reference }): View {
  const { document, operations } = reference;
  const envelope: Body | undefined = operations[0]?.responses.default;
  const answering = new Map<string, Operation[]>();
  for (const operation of operations) {
    for (const name of new Set(declaredErrors(reference, operation).map((one) => one.code))) {
      answering.set(name, [...(answering.get(name) ?? []), operation]);
    }
  }
  return page(
    t('title'),
    p(t('meaning')),
    ...(envelope ? bodyPart(t('body'), envelope, 'optional') : []),
    h2(t('all')),
    dataTable(
      t('all'),
      [t('code'), t('status'), t('remedy')],
      Object.entries(document['x-error-codes']).map(([name, meaning]) =>
        tr(
          { id: rowId(name), class: place.value.row === name ? 'named' : '' },
          th({ scope: 'row' }, code(...breakable(name))),
          td({ class: 'type' }, meaning.status),
          td(...prose(meaning[language.value]), operationList(answering.get(name) ?? [])),
        ),
      ),
    ),
  );
}

const operationList = (found: readonly Operation[]): View | null =>
  found.length === 0
    ? null
    : details(
        summary(t('operations', { count: found.length })),
        ul(...found.map(({ id, summary: words }) => li(a({ href: hrefOf(id) }, words)))),
      );
