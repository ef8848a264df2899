// Tables of fields: of parameters, of request bodies, of answers.
import { tags, type View } from '../shell/html.ts';
import { texts } from '../shell/language.ts';
import { type Body, contentOf, type Parameter, resolved, type Schema } from './document.ts';
import { place } from './place.ts';
import { breakable, prose } from './prose.ts';
import { type Fact, factsOf, fieldsOf, overall, type Row, typeOf, unfold } from './schema.ts';

const { caption, code, h2, li, small, span, table, tbody, td, th, thead, tr, ul } = tags;

const t = texts({
  en: {
    field: 'Field',
    type: 'Type',
    description: 'Description',
    required: 'required',
    optional: 'optional',
    alternative: 'Alternative {name}',
    again: 'The same fields again.',
    each: 'each: ',
    oneOf: 'one of',
    always: 'always',
    path: 'Path parameters',
    query: 'Query parameters',
    header: 'Headers',
    withoutBody: 'no body',
  },
  zh: {
    field: '字段',
    type: '类型',
    description: '说明',
    required: '必填',
    optional: '可选',
    alternative: '形式 {name}',
    again: '字段同上。',
    each: '每项：',
    oneOf: '取值',
    always: '固定为',
    path: '路径参数',
    query: '查询参数',
    header: '请求头',
    withoutBody: '无内容',
  },
});

/** In a request the fields that are required are labelled, in an answer those that are optional: the exceptions. */
export type Label = 'required' | 'optional';

export const dataTable = (name: string, titles: readonly string[], rows: readonly View[]): View =>
  table(
    { class: 'fields' },
    caption({ class: 'heard' }, name),
    thead(tr(...titles.map((title) => th({ scope: 'col' }, title)))),
    tbody(...rows),
  );

/** `id` of a row of the section, which an address can name. */
export const rowId = (name: string): string => `row-${name}`;

function fieldTable(name: string, rows: readonly Row[], label: Label): View {
  return dataTable(
    name,
    [t('field'), t('type'), t('description')],
    rows.map((row) => tableRow(row, label)),
  );
}

function tableRow(row: Row, label: Label): View {
  const style = { '--depth': String(row.depth) };
  if (row.kind !== 'field') {
    const note = row.kind === 'again' ? t('again') : titleOf(row.name);
    return tr({ style }, td({ colSpan: 3, class: 'quiet' }, note));
  }
  const { parent, name, schema, isRequired } = row;
  const path = `${parent}${name}`;
  const isNamed = place.value.row === path;
  return tr(
    { style, id: rowId(path), class: isNamed ? 'named' : '' },
    th(
      { scope: 'row' },
      // An indent is not heard: the whole path is there to be read out, its last name to be seen.
      span({ class: 'heard' }, parent),
      code(...breakable(name)),
      ' ',
      isRequired === (label === 'required') && small({ class: label }, t(label)),
    ),
    td({ class: 'type' }, typeOf(schema)),
    td(...prose(overall(schema).description), facts(schema)),
  );
}

const titleOf = (name: string | number): string => (typeof name === 'number' ? t('alternative', { name }) : name);

function facts(schema: Schema): View | null {
  const known = factsOf(schema);
  return known.length > 0 ? ul(...known.map(fact)) : null;
}

const spaced = (key: string): string => key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function fact({ name, values, isEach }: Fact): View {
  const word = name === 'oneOf' || name === 'always' ? t(name) : spaced(name);
  const shown = (value: unknown) => (typeof value === 'string' && value !== '' ? value : JSON.stringify(value));
  return li(isEach && t('each'), word, ...values.map((value) => [' ', code(shown(value))]));
}

export function bodyPart(title: string, body: Body, label: Label): View[] {
  const [mediaType] = Object.keys(resolved(body).content ?? {});
  const schema = contentOf(body)?.schema;
  const shape = mediaType === undefined ? t('withoutBody') : mediaType === 'application/json' ? typeOf(schema) : mediaType;
  const rows = [...fieldsOf(schema)];
  return [
    h2(title, shape !== 'object' && [' ', span({ class: 'type' }, shape)]),
    ...prose(overall(schema).description),
    ...(rows.length > 0 ? [fieldTable(title, rows, label)] : []),
  ];
}

export function parameterParts(parameters: readonly Parameter[]): View[] {
  return (['path', 'query', 'header'] as const).flatMap((where) => {
    const rows = parameters
      .filter((one) => one.in === where)
      .map(({ name, schema, description = overall(schema).description, required = false }): Row => {
        const described = { ...unfold(schema), ...(description !== undefined && { description }) };
        return { kind: 'field', depth: 0, parent: '', name, schema: described, isRequired: required };
      });
    return rows.length > 0 ? [h2(t(where)), fieldTable(t(where), rows, 'required')] : [];
  });
}
