// Values of filters in a query. What a filter does not know is refused, with what it knows.
import { parseDateTime } from '../../domain/certificate/validity.ts';
import { invalid } from '../../domain/errors.ts';

export function wordOf<Word extends string>(field: string, text: string, known: readonly Word[]): Word {
  const word = known.find((one) => one === text);
  if (word !== undefined) return word;
  throw invalid(field, `${field} is one of ${known.join(', ')}.`, `${field} 须为以下之一：${known.join('、')}。`);
}

export function timeOf(field: string, text: string): number {
  // parseDateTime() drops milliseconds, which certificates do not have but events do.
  if (parseDateTime(text) !== undefined) return Date.parse(text.toUpperCase());
  throw invalid(
    field,
    `${field} is a date and time with its zone, such as 2026-11-15T12:00:00Z.`,
    `${field} 须为带时区的日期时间，例如 2026-11-15T12:00:00Z。`,
  );
}
