// Keyset paging of lists: `after` is the last id of the previous page.
import Type from 'typebox';
import { invalid } from '../../domain/errors.ts';
import type { Page } from '../../domain/page.ts';
import { nullable } from './values.ts';

const DEFAULT_PAGE = 50;
const MAX_PAGE = 200;
const MAX_NAME = 64;
/** Printable ASCII: the engines compare other bytes differently. */
const CURSOR = /^[!-~]*$/;

export const PageQuery = Type.Object({
  after: Type.Optional(
    Type.String({
      pattern: CURSOR.source,
      description: '`next_after` of the page before; empty is the same as left out.',
    }),
  ),
  limit: Type.Optional(
    Type.String({
      description: 'Entries per page.',
      meaning: { type: 'integer', minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE },
    }),
  ),
});

export const NextAfter = nullable(Type.String({ description: '`after` of the next page; null on the last.' }));

/** Refuses a parameter that the list does not have: one that is misspelt and ignored would list what was not asked for. */
export function requireKnown(query: object, { properties }: Type.TObject): void {
  const known = Object.keys(properties);
  const unknown = Object.keys(query).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const names = known.join(', ') || '-';
  throw invalid(
    unknown.slice(0, MAX_NAME),
    `This list has no such parameter. It has: ${names}.`,
    `该列表没有此参数，可用参数：${names}。`,
  );
}

export function pageOf(query: Type.Static<typeof PageQuery>, schema: Type.TObject): Page {
  requireKnown(query, schema);
  const { after, limit: text } = query;
  if (after !== undefined && !CURSOR.test(after)) {
    throw invalid(
      'after',
      'after is the next_after of the page before. Leave it out for the first page.',
      'after 须为上一页的 next_after；第一页请不发送。',
    );
  }
  if (text === undefined) return { after, limit: DEFAULT_PAGE };
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MAX_PAGE) return { after, limit };
  throw invalid('limit', `limit is a number from 1 to ${MAX_PAGE}.`, `limit 须为 1 至 ${MAX_PAGE} 的整数。`);
}

/** The `after` of the next page; null when this page is not full and so the last. */
export const nextAfter = (ids: readonly string[], { limit }: Page): string | null =>
  ids.length === limit ? (ids.at(-1) ?? null) : null;
