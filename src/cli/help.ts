// Help, from the table of commands: all of them by noun, one noun, or one command; as text within 80 columns, or as JSON.
import { EXIT } from '../kernel/problem.ts';
import type { Command, Output } from './command.ts';
import { COMMANDS } from './commands.ts';

const WIDTH = 80;
const COLUMN = 32;

export const GLOBAL_OPTIONS = {
  json: { type: 'boolean', about: 'print JSON, for programs' },
  'env-file': { type: 'string', about: 'read variables from this file, e.g. that of the service' },
  help: { type: 'boolean', short: 'h', about: 'print help' },
} as const;

type Entry = readonly [name: string, command: Command];

/** Commands that begin with these words; undefined if there are none. No words: all of them. */
export function helpFor(words: readonly string[]): Output | undefined {
  const named = words.map((_, index) => words.slice(0, words.length - index).join(' '));
  const entries = Object.entries(COMMANDS);
  // `order show ID --help` is help for `order show`.
  const matches = named.map((name) => entries.filter(([one]) => one === name || one.startsWith(`${name} `)));
  const found = words.length === 0 ? entries : matches.find((one) => one.length > 0);
  if (!found) return undefined;
  const exact = found.length === 1 ? found[0] : found.find(([name]) => named.includes(name));
  const others = found.filter((entry) => entry !== exact);
  const text = exact ? commandText(exact) + moreText(others) : groupsText(found);
  return { json: { commands: found.map(view), exit_codes: EXIT }, text };
}

const view = ([name, { about, positionals, options, examples }]: Entry) => ({
  name,
  about,
  arguments: positionals,
  options: Object.fromEntries(
    Object.entries({ ...options, ...GLOBAL_OPTIONS }).map(([option, { type, about }]) => [option, { type, about }]),
  ),
  examples: examples.map((example) => `reseal ${example}`),
});

const signature = ([name, { positionals }]: Entry): string => [name, ...positionals].join(' ');

function groupsText(entries: readonly Entry[]): string {
  const groups = Map.groupBy(entries, ([name]) => name.split(' ')[0]);
  const sections = [...groups.values()].map((group) =>
    group.map((entry) => columns(signature(entry), entry[1].about)).join('\n'),
  );
  return `Reseal, a certificate order service.

Usage: reseal COMMAND [OPTIONS]

${sections.join('\n\n')}

Options of every command
${optionsText(GLOBAL_OPTIONS)}

reseal ${groups.size === 1 ? signature(entries[0]!).split(' ')[0] : 'NOUN'} COMMAND --help shows options and examples of one command.
Exit codes: 0 done, 1 refused, 2 wrong usage, 3 configuration,
4 store unavailable, 70 a bug in Reseal.`;
}

function commandText(entry: Entry): string {
  const [, { about, examples, options }] = entry;
  const own = Object.keys(options).length === 0 ? '' : `Options\n${optionsText(options)}\n\n`;
  return `reseal ${signature(entry)}
${wrapped(about, '  ')}

${own}Options of every command
${optionsText(GLOBAL_OPTIONS)}

Examples
${examples.map((example) => exampleText(`reseal ${example}`)).join('\n')}`;
}

/** Commands that begin with the name of another. */
const moreText = (entries: readonly Entry[]): string =>
  entries.length === 0
    ? ''
    : `\n\nMore commands\n${entries.map((entry) => columns(signature(entry), entry[1].about)).join('\n')}`;

const optionsText = (options: Command['options']): string =>
  Object.entries(options)
    .map(([name, { type, about }]) => columns(`--${name}${type === 'string' ? ' VALUE' : ''}`, about))
    .join('\n');

/** The description beside its subject, or below it if the subject is long. */
function columns(subject: string, about: string): string {
  const text = wrapped(about, ' '.repeat(COLUMN));
  return subject.length + 4 > COLUMN ? `  ${subject}\n${text}` : `  ${subject}`.padEnd(COLUMN) + text.slice(COLUMN);
}

const wrapped = (text: string, indent: string): string => lines(text.split(' '), indent, indent, '').join('\n');

/** A long command continues after a backslash. Quoted arguments stay whole. */
const exampleText = (example: string): string =>
  lines(example.match(/'[^']*'|\S+(?: {2,}#.*)?/g) ?? [], '  ', '    ', ' \\').join('\n');

function lines(words: readonly string[], first: string, further: string, mark: string): string[] {
  const done: string[] = [];
  let line = first;
  for (const word of words) {
    const isStart = line.trim() === '';
    if (!isStart && line.length + 1 + word.length + mark.length > WIDTH) {
      done.push(line + mark);
      line = further + word;
    } else line += isStart ? word : ` ${word}`;
  }
  return [...done, line];
}
