// Search over operations, fields, error codes and events. A word also finds what other people call the same thing.
import { language } from '../shell/language.ts';
import { contentOf, type Operation, type Reference, shortPath, successOf } from './document.ts';
import { hrefOf } from './place.ts';
import { type FieldRow, fieldsOf, overall, valuesOf, variantsOf } from './schema.ts';

export type HitKind = 'operation' | 'code' | 'field' | 'event';
export interface Hit {
  readonly kind: HitKind;
  readonly href: string;
  readonly title: string;
  readonly detail: string;
}

/** Beginnings of words with one meaning. */
const SYNONYMS: readonly (readonly string[])[] = [
  ['revok', 'revoc', '吊销', '撤销'],
  ['reissu', 'renew', 'replac', '重签', '续期'],
  ['cancel', 'abort', '取消'],
  ['delet', 'remov', 'destroy', '删除', '移除', '销毁'],
  ['callback', 'webhook', 'deliver', 'notif', '回调', '通知'],
  ['certificate', 'cert', '证书'],
  ['order', '订单'],
  ['domain', 'dns', 'hostname', '域名'],
  ['valid', 'verif', 'prove', 'proof', 'dcv', '验证'],
  ['pin', 'access code', 'passcode', '访问控制码'],
  ['auth', 'credential', 'sign in', 'login', '认证', '登录'],
  ['expir', 'not after', 'term', '到期', '过期'],
  ['idempoten', 'retry', 'again', '重试'],
  ['quota', 'limit', 'too many', 'throttl', '配额', '频繁'],
  ['product', 'catalog', '产品'],
  ['account', 'customer', '账户'],
  ['csr', 'signing request', 'pkcs10'],
  ['audit', 'history', 'log', '审计'],
];

interface Entry extends Hit {
  /** Title and names, as words between blanks. */
  readonly strong: string;
  readonly weak: string;
}

const wordsOf = (text: string): string =>
  ` ${text
    .replace(/([a-z])(?=[A-Z])/g, '$1 ')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()} `;

/** Chinese has no blanks between words. */
const begins = (text: string, stem: string): boolean =>
  /^[a-z]/.test(stem) ? text.includes(` ${stem}`) : text.includes(stem);

const alternativesOf = (word: string): readonly string[] =>
  SYNONYMS.find((stems) => stems.some((stem) => word.startsWith(stem) || (word.length > 3 && stem.startsWith(word)))) ??
  [];

function score({ strong, weak }: Entry, word: string): number {
  if (begins(strong, word)) return 8;
  const others = alternativesOf(word);
  if (others.some((other) => begins(strong, other))) return 6;
  if (strong.includes(word)) return 4;
  if (weak.includes(word)) return 2;
  return others.some((other) => begins(weak, other)) ? 1 : 0;
}

export type Search = (query: string) => Hit[];

/** In the language of the moment. The best first; every word must be found. */
export function searchOf(reference: Reference): Search {
  // Made at the first search: the page is there before it.
  let entries: readonly Entry[] | undefined;
  return (query) => {
    const words = wordsOf(query).split(' ').filter(Boolean).slice(0, MAX_WORDS);
    if (words.length === 0) return [];
    entries ??= entriesOf(reference);
    return entries
      .map((one) => ({ one, scores: words.map((word) => score(one, word)) }))
      .filter(({ scores }) => scores.every((points) => points > 0))
      .map(({ one, scores }) => ({ one, points: scores.reduce((sum, points) => sum + points, 0) }))
      .sort((a, b) => b.points - a.points)
      .map(({ one }) => one);
  };
}
const MAX_WORDS = 8;

const entriesOf = (reference: Reference): Entry[] => [
  ...reference.operations.map(operationEntry),
  ...codeEntries(reference),
  ...reference.events.map(({ id, name, post }) =>
    entry({ kind: 'event', href: hrefOf(id), title: name, detail: post.summary ?? '' }),
  ),
  ...fieldEntries(reference),
];

const entry = (hit: Hit, also = ''): Entry => ({
  ...hit,
  strong: wordsOf(hit.title),
  weak: wordsOf(`${hit.detail} ${also}`),
});

function operationEntry({ id, method, path, summary = '', description = '', operationId, tag }: Operation): Entry {
  const detail = `${method.toUpperCase()} ${shortPath(path)}`;
  const hit = { kind: 'operation', href: hrefOf(id), title: summary, detail } as const;
  return { ...entry(hit, `${description} ${tag}`), strong: wordsOf(`${summary} ${path} ${operationId}`) };
}

const codeEntries = ({ document }: Reference): Entry[] =>
  Object.entries(document['x-error-codes']).map(([code, { status, en, zh }]) =>
    entry(
      { kind: 'code', href: hrefOf('errors', code), title: code, detail: language.value === 'zh' ? zh : en },
      `${en} ${zh} ${status}`,
    ),
  );

/** A field that many operations share is found once, in the first of them. */
function fieldEntries({ operations }: Reference): Entry[] {
  const found = new Map<string, Entry>();
  for (const operation of operations) {
    const places = [operation.requestBody, successOf(operation)[1]].map((body) => contentOf(body)?.schema);
    const parameters = (operation.parameters ?? []).map(
      ({ name, schema, description }): FieldRow => ({
        ...{ kind: 'field', depth: 0, parent: '', name, isRequired: false },
        schema: { ...schema, ...(description !== undefined && { description }) },
      }),
    );
    for (const row of [...parameters, ...places.flatMap((schema) => [...fieldsOf(schema)])]) {
      if (row.kind !== 'field') continue;
      const { description = '' } = overall(row.schema);
      const key = `${row.name}\0${description}`;
      if (found.has(key)) continue;
      const values = variantsOf(row.schema).flatMap(valuesOf).join(' ');
      const detail = description || (operation.summary ?? '');
      const path = `${row.parent}${row.name}`;
      const hit = {
        kind: 'field',
        href: hrefOf(operation.id, path),
        title: path.replace(/^data\./, ''),
        detail,
      } as const;
      found.set(key, entry(hit, values));
    }
  }
  return [...found.values()];
}
