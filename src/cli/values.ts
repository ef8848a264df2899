// Parsers of command-line values. Strict: an invalid value is an error that shows a valid one. Also formats tables.
import { readFileSync, rmSync } from 'node:fs';
import { createFile } from '../kernel/durable-file.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../kernel/durations.ts';
import { EXIT, Problem } from '../kernel/problem.ts';

/** Reads a secret from a file, or from standard input as -. Excludes the newline that editors append. */
export function firstLineOf(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8').replace(/\r?\n[\s\S]*$/, '');
  } catch (error) {
    throw new Problem(EXIT.usage, `${file} cannot be read`, 'Give the path of a file you may read.', { cause: error });
  }
}

/** The value of an option that must be given. */
export function required<T>(option: string, value: T | undefined): T {
  if (value !== undefined) return value;
  throw new Problem(EXIT.usage, `--${option} is missing`, 'See the examples: --help');
}

/** Runs what writes a new file. If it fails after that, the file is removed again. */
export async function newFile<T>(
  file: string,
  perform: (write: (content: string | Uint8Array) => void) => Promise<T>,
): Promise<T> {
  let isWritten = false;
  try {
    return await perform((content) => {
      createFile(file, content);
      isWritten = true;
    });
  } catch (error) {
    if (isWritten) rmSync(file, { force: true });
    throw error;
  }
}

export function oneOf<T extends string, Default extends T | undefined>(
  option: string,
  given: unknown,
  allowed: readonly T[],
  defaultValue: Default,
): T | Default {
  if (given === undefined) return defaultValue;
  const value = allowed.find((one) => one === given);
  if (value !== undefined) return value;
  throw new Problem(EXIT.usage, `--${option} ${String(given)} is not known`, `Use one of: ${allowed.join(', ')}.`);
}

const UNIT_MS = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS } as const;
const MAX_AMOUNT = 100_000;

/** Milliseconds of a duration such as 90s, 15m, 24h or 30d. */
export function duration(option: string, given: unknown): number {
  const [, amount, unit] = /^(\d{1,6})([smhd])$/.exec(String(given)) ?? [];
  if (amount !== undefined && Number(amount) <= MAX_AMOUNT)
    return Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
  throw new Problem(
    EXIT.usage,
    `--${option} ${String(given)} is not a duration`,
    `Write it like 90s, 15m, 24h or 30d.`,
  );
}

const DEFAULT_PAGE = 100;
const MAX_PAGE = 1_000;

export function pageSize(given: unknown): number {
  if (given === undefined) return DEFAULT_PAGE;
  const size = /^\d{1,4}$/.test(String(given)) ? Number(given) : 0;
  if (size >= 1 && size <= MAX_PAGE) return size;
  throw new Problem(EXIT.usage, `--limit ${String(given)} is out of range`, `Use a number from 1 to ${MAX_PAGE}.`);
}

/** Aligns the columns. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export const time = (ms: number | null): string => (ms === null ? '-' : new Date(ms).toISOString());

/** The option --crl, of every command that reads CRLs. */
export const CRL = {
  type: 'string',
  multiple: true,
  about: 'file, folder or URL of CRLs published last; repeatable',
} as const;

/** The values of a repeatable option. */
export const listOf = (given: unknown): readonly string[] => (Array.isArray(given) ? given.map(String) : []);
