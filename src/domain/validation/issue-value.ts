// Parser for issue-values (RFC 8659, section 4.2), the grammar of CAA properties and persistent DNS records. Callers
// decide what a value permits. Input is untrusted: work and messages are bounded, and nothing throws.
import type { Localized } from '../../kernel/locale.ts';
import { withoutFinalDot } from '../certificate/names.ts';

/** Longer than any legitimate value. */
const MAX_LENGTH = 4_096;
const MAX_EXCERPT = 60;

export interface Parameter {
  /** As sent; compare tags case-insensitively. */
  readonly tag: string;
  readonly value: string;
}

export interface IssueValue {
  /** Trimmed, otherwise as sent. May be empty or not a domain name. */
  readonly issuer: string;
  readonly parameters: readonly Parameter[];
  /** The first syntax error after the issuer; the issuer is valid to read regardless. */
  readonly fault: Localized | null;
}

export function readIssueValue(text: string): IssueValue {
  const [issuer = '', ...parts] = text.slice(0, MAX_LENGTH).split(';').map(trimmed);
  if (text.length > MAX_LENGTH) return { issuer, parameters: [], fault: TOO_LONG };
  // A single semicolon without parameters is valid, as in the ";" that forbids every issuer.
  if (parts.length === 1 && parts[0] === '') return { issuer, parameters: [], fault: null };
  const parameters: Parameter[] = [];
  for (const part of parts) {
    const parameter = parameterOf(part);
    const why = FAULTS.find(([isAtFault]) => isAtFault(part, parameter))?.[1];
    if (why) return { issuer, parameters: [], fault: quote(part, why) };
    parameters.push(parameter);
  }
  return { issuer, parameters, fault: null };
}

/** Splits at the first equals sign only: values such as URLs may contain more. */
function parameterOf(part: string): Parameter {
  const [tag = ''] = part.split('=', 1);
  return { tag: trimmed(tag), value: trimmed(part.slice(tag.length + 1)) };
}

const TOO_LONG: Localized = {
  en: `it is longer than ${MAX_LENGTH} characters. Shorten it.`,
  zh: `长度超过 ${MAX_LENGTH} 个字符，请缩短。`,
};

const FAULTS: readonly (readonly [isAtFault: (part: string, parameter: Parameter) => boolean, why: Localized])[] = [
  [
    (part) => part === '',
    { en: 'a semicolon has no parameter after it. Remove the semicolon.', zh: '分号之后没有参数，请去掉多余的分号。' },
  ],
  [
    (part) => !part.includes('='),
    { en: 'a parameter is written tag=value. Add the equals sign.', zh: '参数须写作 tag=value，请补上等号。' },
  ],
  [
    (_, { tag }) => tag === '',
    { en: 'there is no tag before the equals sign. Add it.', zh: '等号之前缺少标签，请补上。' },
  ],
  [
    (_, { value }) => /[^\x21-\x3a\x3c-\x7e]/.test(value),
    {
      en: 'a value is plain ASCII without blanks and control characters. Remove them.',
      zh: '参数值只能是 ASCII 可见字符，请去掉空白、控制字符和其他字符。',
    },
  ],
];

export const valuesOf = (parameters: readonly Parameter[], tag: string): string[] =>
  parameters.filter((parameter) => parameter.tag.toLowerCase() === tag).map(({ value }) => value);

/** A loop, because `/[ \t]+$/` backtracks over every inner run of blanks: quadratic on hostile input. */
function trimmed(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isBlank(text[start])) start++;
  while (start < end && isBlank(text[end - 1])) end--;
  return text.slice(start, end);
}
const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t';

const LABEL = '[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*';
const TAG = new RegExp(`^${LABEL}$`);
const DOMAIN = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);

export const isTag = (text: string): boolean => TAG.test(text);

/** Tests the characters before lower-casing, which maps the Kelvin sign (U+212A) to an ASCII k. */
export const isOurIssuer = (issuer: string, ours: readonly string[]): boolean =>
  DOMAIN.test(issuer) && ours.some((one) => withoutFinalDot(one).toLowerCase() === issuer.toLowerCase());

/** Untrusted DNS text made safe to display: bounded, printable ASCII only (no forged lines, no bidi overrides). */
const excerptOf = (text: string): string =>
  text.slice(0, MAX_EXCERPT).replace(/[^\x20-\x7e]/g, '?') + (text.length > MAX_EXCERPT ? '…' : '');

/** Some of the texts that were found, for a person who expected another. */
export function quoteSome(texts: readonly string[]): Localized {
  const more = texts.length - MAX_QUOTED;
  const shown = texts
    .slice(0, MAX_QUOTED)
    .map((text) => `"${excerptOf(text)}"`)
    .join(', ');
  return more > 0
    ? { en: `${shown} and ${more} more`, zh: `${shown} 等 ${texts.length} 条` }
    : { en: shown, zh: shown };
}
const MAX_QUOTED = 3;

export const quote = (text: string, why: Localized): Localized => ({
  en: `"${excerptOf(text)}": ${why.en}`,
  zh: `“${excerptOf(text)}”：${why.zh}`,
});

export type Obstacle<Item> = readonly [stops: (item: Item) => boolean, why: (item: Item) => Localized];

/**
 * Returns the items that pass all obstacles, and the reason of the item that got furthest: the record that fails the
 * last check is the one to fix, not an unrelated record beside it.
 */
export function partition<Item>(items: readonly Item[], obstacles: readonly Obstacle<Item>[]) {
  const passed: Item[] = [];
  let furthest = -1;
  let why: Localized | null = null;
  for (const item of items) {
    const reached = obstacles.findIndex(([stops]) => stops(item));
    if (reached === -1) passed.push(item);
    if (reached <= furthest) continue;
    furthest = reached;
    why = obstacles[reached]?.[1](item) ?? null;
  }
  return { passed, why };
}
