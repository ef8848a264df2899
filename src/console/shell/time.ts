// Times in the reader's zone, with UTC on hover and for screen readers.
import { tags, type View } from './html.ts';
import { language, languageTag } from './language.ts';

const { time } = tags;

/** Dates as the reader's system writes them, if it speaks the language of the page. */
export const dateLocale = (): string =>
  navigator.language.startsWith(language.value) ? navigator.language : languageTag();

/** Takes what the interface says: ISO 8601, or seconds since 1970. */
export const parseTime = (value: string | number): Date => new Date(typeof value === 'number' ? value * 1000 : value);

export function moment(value: string | number | null | undefined): View | null {
  if (value === null || value === undefined) return null;
  const at = parseTime(value);
  if (Number.isNaN(at.getTime())) return null;
  const local = at.toLocaleString(dateLocale(), { dateStyle: 'medium', timeStyle: 'short' });
  return time(
    {
      dateTime: at.toISOString(),
      title: `${at
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, '')} UTC`,
    },
    local,
  );
}

const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
];

/** Such as "in 3 days". */
export function distance(value: string | number, now = Date.now()): string {
  const ms = parseTime(value).getTime() - now;
  const [unit, size] = UNITS.find(([, length]) => Math.abs(ms) >= length) ?? (['second', 1000] as const);
  return new Intl.RelativeTimeFormat(languageTag(), { numeric: 'auto' }).format(Math.round(ms / size), unit);
}
