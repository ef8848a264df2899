// Reads a file of NAME=value lines: the subset that systemd and shells read alike. Anything else is an error: a line that
// is read differently here would give a command other settings than its service.
import { readFileSync } from 'node:fs';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { Environment } from './config.ts';

const MAX_BYTES = 1024 * 1024;
const OURS = /^RESEAL_/;

/** Variables of the file that the environment lacks. Throws a Problem if both have one of ours, with different values. */
export function readEnvFile(file: string, environment: Environment): Record<string, string> {
  const values = parseEnvFile(file, textOf(file));
  const differing = Object.keys(values).filter(
    (name) => OURS.test(name) && environment[name] !== undefined && environment[name] !== values[name],
  );
  if (differing.length > 0) {
    throw new Problem(
      EXIT.configuration,
      `${differing.join(', ')} in the environment differs from ${file}`,
      `Unset it, or leave --env-file and RESEAL_ENV_FILE away.`,
    );
  }
  return Object.fromEntries(Object.entries(values).filter(([name]) => environment[name] === undefined));
}

function textOf(file: string): string {
  try {
    const text = readFileSync(file, 'utf8');
    if (text.length <= MAX_BYTES) return text;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Problem(
      EXIT.configuration,
      `the settings file ${file} cannot be read (${code})`,
      'Name the file of the service, and run this as the user of the service.',
      { cause: error },
    );
  }
  throw new Problem(EXIT.configuration, `${file} is too large for a file of settings`, 'Name another file.');
}

function parseEnvFile(file: string, text: string): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (/^\s*([#;].*)?$/.test(line)) continue;
    const [, name, bare, single, double] =
      /^\s*([A-Za-z_]\w*)=(?:([^\s'"\\$`]*)|'([^']*)'|"([^"\\$`]*)")\s*$/.exec(line) ?? [];
    if (name === undefined) {
      throw new Problem(
        EXIT.configuration,
        `line ${index + 1} of ${file} is not NAME=value`,
        'Write one variable per line, without export; put single quotes around a value with blanks or any of $ ` " \\.',
      );
    }
    values[name] = bare ?? single ?? double ?? '';
  }
  return values;
}
