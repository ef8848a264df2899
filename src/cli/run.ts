// Runs a command: parses argv, prints its output or error, returns the exit code.
import { parseArgs } from 'node:util';
import { Refusal } from '../domain/errors.ts';
import { EXIT, type ExitCode, Problem } from '../kernel/problem.ts';
import type { Arguments, Command, Context, Invocation } from './command.ts';
import { COMMANDS } from './commands.ts';
import { GLOBAL_OPTIONS, helpFor } from './help.ts';
import { hintsFor } from './hints.ts';

interface Terminal {
  readonly version: string;
  /** What the reader types for `reseal`. */
  readonly program: string;
  /** Of `out`. */
  readonly isTerminal: boolean;
  out(text: string): void;
  err(text: string): void;
  /** The message of a refusal, as in the API. */
  explain(refusal: Refusal): string;
}

type OpenContext = (invocation: Invocation) => Context;

export async function runCommand(argv: readonly string[], open: OpenContext, terminal: Terminal): Promise<ExitCode> {
  const hints = hintsFor(terminal.program);
  const isJson = argv.includes('--json');
  try {
    if (argv[0] === '--version') {
      terminal.out(terminal.version);
      return EXIT.ok;
    }
    const words = argv.filter((word) => !word.startsWith('-'));
    const isHelp = argv.includes('--help') || argv.includes('-h') || words.length === 0 || words[0] === 'help';
    const found = isHelp ? undefined : findCommand(argv);
    const help = isHelp ? helpFor(words[0] === 'help' ? words.slice(1) : words) : undefined;
    if (help) terminal.out(isJson ? JSON.stringify(help.json, null, 2) : help.text);
    if (help) return EXIT.ok;
    if (!found) throw unknownCommand(words);
    const { command } = found;
    const given = parse(found.name, command, found.rest);
    const context = open({
      mustExist: command.store === 'existing',
      envFile: given.options['env-file']?.toString(),
      isTerminal: terminal.isTerminal,
      report: (text) => terminal.err(`reseal: ${text}`),
      hints,
    });
    const output = await command.run(given, context);
    if (output) terminal.out(isJson ? JSON.stringify(output.json, null, 2) : hints(output.text));
    return output?.exitCode ?? EXIT.ok;
  } catch (error) {
    const { code, text: plain, details, exitCode } = failureOf(error, terminal);
    const text = hints(plain);
    if (isJson) terminal.out(JSON.stringify({ error: { code, message: text, ...(details && { details }) } }, null, 2));
    else terminal.err(`reseal: ${text}${details ? `\n${JSON.stringify(details, null, 2)}` : ''}`);
    return exitCode;
  }
}

/** Matches the longest name first: `sandbox reset` before `sandbox`. */
function findCommand(argv: readonly string[]): { name: string; command: Command; rest: string[] } | undefined {
  for (const words of [3, 2, 1]) {
    const name = argv.slice(0, words).join(' ');
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (command) return { name, command, rest: argv.slice(words) };
  }
  return undefined;
}

function parse(name: string, command: Command, rest: string[]): Arguments {
  const usage = `See: reseal ${name} --help`;
  try {
    const options = { ...command.options, ...GLOBAL_OPTIONS };
    const { values, positionals } = parseArgs({ args: rest, options, allowPositionals: true, strict: true });
    const expected = command.positionals;
    const min = expected.filter((one) => !one.startsWith('[')).length;
    const max = expected.some((one) => one.includes('…')) ? Number.POSITIVE_INFINITY : expected.length;
    if (positionals.length < min || positionals.length > max) {
      const given = positionals.length === 0 ? 'none' : String(positionals.length);
      const signature = expected.length === 0 ? 'no arguments' : expected.join(' ');
      throw new Problem(EXIT.usage, `${name} takes ${signature}, given: ${given}`, usage);
    }
    return { positionals, options: values as Arguments['options'] };
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem(EXIT.usage, (error as Error).message, usage, { cause: error });
  }
}

interface Failure {
  readonly code: string;
  readonly text: string;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  readonly exitCode: ExitCode;
}

function failureOf(error: unknown, terminal: Terminal): Failure {
  if (error instanceof Problem) {
    const code = Object.entries(EXIT).find(([, value]) => value === error.exitCode)?.[0] ?? 'problem';
    return { code, text: `${error.message}\nWhat to do: ${error.remedy}`, exitCode: error.exitCode };
  }
  if (error instanceof Refusal) {
    const exitCode = error.code === 'service_busy' ? EXIT.store : EXIT.refused;
    return { code: error.code, text: terminal.explain(error), details: error.facts.details, exitCode };
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: 'bug', text: `this is a bug, please report it\n${text}`, exitCode: EXIT.bug };
}

function unknownCommand(words: readonly string[]): Problem {
  const [noun = ''] = words;
  const remedy = helpFor([noun]) ? `See: reseal ${noun} --help` : 'See all of them: reseal --help';
  return new Problem(EXIT.usage, `there is no command "${words.slice(0, 2).join(' ')}"`, remedy);
}
