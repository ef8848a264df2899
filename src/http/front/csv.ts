// Lists as CSV (RFC 4180) for those who ask for it by Accept. The page is the same as in JSON; the next one is in a Link header.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type Type from 'typebox';

/** Whether CSV is preferred: named, and above JSON, which wildcards stand for. */
export function prefersCsv(accept = ''): boolean {
  const qualities = new Map(accept.split(',').map(rangeOf));
  const [csv, json] = [qualities.get('text/csv') ?? 0, qualities.get('application/json')];
  if (json !== undefined) return csv > json;
  return csv > 0 && csv >= (qualities.get('application/*') ?? qualities.get('*/*') ?? 0);
}

function rangeOf(range: string): [type: string, quality: number] {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
  const quality = parameters.find((one) => one.startsWith('q='))?.slice(2);
  return [type, quality === undefined ? 1 : Number(quality) || 0];
}

type Cell = string | number | boolean | null | readonly string[];

/** One line per view, with the columns of its schema. */
export function sendCsv(
  { request, reply }: { readonly request: FastifyRequest; readonly reply: unknown },
  { properties }: Type.TObject,
  views: readonly Readonly<Record<string, Cell>>[],
  nextAfter: string | null,
): never {
  const columns = Object.keys(properties);
  const lines = [columns, ...views.map((view) => columns.map((column) => cellOf(view[column] ?? null)))];
  const answer = reply as FastifyReply;
  if (nextAfter !== null) answer.header('link', `<${nextPage(request.query as Query, nextAfter)}>; rel="next"`);
  // Fastify's types know one content type per status.
  return answer
    .type('text/csv; charset=utf-8; header=present')
    .send(lines.map((line) => `${line.join(',')}\r\n`).join('')) as never;
}

type Query = Readonly<Record<string, string>>;

/** Relative to the request, so that it holds behind any proxy. */
const nextPage = (query: Query, after: string): string => `?${new URLSearchParams({ ...query, after })}`;

function cellOf(value: Cell): string {
  const text = harmless(Array.isArray(value) ? value.join(' ') : String(value ?? ''));
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Spreadsheets calculate what begins with these signs: names and ids of callers must not become formulas. Where a semicolon
 * separates cells, as in many languages, so does what follows one.
 */
const harmless = (text: string): string =>
  text.replace(/^(?=[\t\r\n])|(^|[;\t\r\n])(?=["\s]*[=+\-@\uff1d\uff0b\uff0d\uff20])/g, "$1'");
