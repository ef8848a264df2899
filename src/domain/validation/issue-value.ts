// The grammar of issue-values (RFC 8659, section 4.2), in which CAA properties and persistent DNS records are written:
// whom a text addresses, its parameters, and what keeps it from being read. What follows from them is decided by those
// who ask. Everything here comes from strangers: work and messages are bounded, and nothing throws.
import type { Localized } from '../../kernel/locale.ts';

/** Longer than any honest value. */
const MAX_LENGTH = 4_096;
const MAX_EXCERPT = 60;

export interface Parameter {
  /** As it was sent: tags are read in any case of letters. */
  readonly tag: string;
  readonly value: string;
}

export interface IssueValue {
  /** Without the blanks around it, else as it was sent: it may be empty, or no domain name. */
  readonly issuer: string;
  readonly parameters: readonly Parameter[];
  /** What breaks the grammar after the issuer, who is known all the same. */
  readonly fault: Localized | null;
}

export function readIssueValue(text: string): IssueValue {
  const [issuer = '', ...parts] = text.slice(0, MAX_LENGTH).split(';').map(trimmed);
  if (text.length > MAX_LENGTH) return { issuer, parameters: [], fault: TOO_LONG };
  // One semicolon may stand after an issuer without parameters, as in the ";" that forbids everybody.
  if (parts.length === 1 && parts[0] === '') return { issuer, parameters: [], fault: null };
  const parameters = parts.map(parameterOf);
  for (const [index, part] of parts.entries()) {
    const why = FAULTS.find(([isAtFault]) => isAtFault(part, parameters[index]!))?.[1];
    if (why) return { issuer, parameters: [], fault: quoting(part, why) };
  }
  return { issuer, parameters, fault: null };
}

/** A value may itself contain equals signs, as addresses do. */
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

/** By a loop: a pattern for blanks before the end tries every run of blanks in the middle as well. */
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
export const withoutFinalDot = (domain: string): string => (domain.endsWith('.') ? domain.slice(0, -1) : domain);

/** The letters are looked at before they are lower-cased, which would turn the Kelvin sign into an innocent k. */
export const isOneOf = (issuer: string, ours: readonly string[]): boolean =>
  DOMAIN.test(issuer) && ours.some((one) => withoutFinalDot(one).toLowerCase() === issuer.toLowerCase());

/** Text from DNS as a person may see it: bounded, and unable to forge a line or to turn the text around. */
const excerptOf = (text: string): string =>
  text.slice(0, MAX_EXCERPT).replace(/[^\x20-\x7e]/g, '?') + (text.length > MAX_EXCERPT ? '…' : '');

export const quoting = (text: string, why: Localized): Localized => ({
  en: `"${excerptOf(text)}": ${why.en}`,
  zh: `“${excerptOf(text)}”：${why.zh}`,
});

export type Obstacle<Item> = readonly [stops: (item: Item) => boolean, why: (item: Item) => Localized];

/**
 * The items that nothing stops, and what stopped the one that came furthest: a record that fails the last check is the
 * one its author has to mend, and not the one beside it that was never meant for us.
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
