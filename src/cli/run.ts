// Runs a command: parses argv, prints its output or error, returns the exit code.
import { parseArgs } from 'node:util';
import { Refusal } from '../domain/errors.ts';
import { EXIT, type ExitCode, Problem } from '../kernel/problem.ts';
import type { Arguments, Command, Context } from './command.ts';
import { COMMANDS } from './commands.ts';

interface Terminal {
  readonly version: string;
  out(text: string): void;
  err(text: string): void;
  /** The message of a refusal, as in the API. */
  explain(refusal: Refusal): string;
}

export async function runCommand(argv: readonly string[], context: Context, terminal: Terminal): Promise<ExitCode> {
  const isJson = argv.includes('--json');
  try {
    if (argv[0] === '--version') {
      terminal.out(terminal.version);
      return EXIT.ok;
    }
    const found = findCommand(argv);
    if (!found || argv.includes('--help') || argv.includes('-h')) {
      const isHelpRequest = argv.length === 0 || argv.includes('--help') || argv.includes('-h') || argv[0] === 'help';
      if (!isHelpRequest) throw unknownCommand(argv);
      terminal.out(found ? helpFor(found.name, found.command) : help());
      return EXIT.ok;
    }
    const output = await found.command.run(parse(found.name, found.command, found.rest), context);
    if (output) terminal.out(isJson ? JSON.stringify(output.json, null, 2) : output.text);
    return output?.exitCode ?? EXIT.ok;
  } catch (error) {
    const { code, text, details, exitCode } = failureOf(error, terminal);
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
    const options = { ...command.options, json: { type: 'boolean' as const } };
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

const unknownCommand = (argv: readonly string[]): Problem =>
  new Problem(EXIT.usage, `there is no command "${argv.slice(0, 2).join(' ')}"`, 'See all of them: reseal --help');

function help(): string {
  const width = Math.max(...Object.values(COMMANDS).map(({ examples }) => examples[0]?.length ?? 0));
  const lines = Object.values(COMMANDS).map(
    ({ examples, about }) => `  reseal ${(examples[0] ?? '').padEnd(width)}   ${about}`,
  );
  return `Reseal, a certificate order service.\n\n${lines.join('\n')}\n
Every command takes --json for machines and --help for more examples.
Exit codes: 0 done, 1 refused, 2 wrong usage, 3 configuration, 4 store unavailable, 70 a bug in Reseal.`;
}

function helpFor(name: string, { about, examples, options }: Command): string {
  const described = Object.entries(options).map(([option, { about }]) => `  --${option.padEnd(12)} ${about}`);
  const section = described.length === 0 ? '' : `\n\n${described.join('\n')}`;
  return `reseal ${name}: ${about}\n\n${examples.map((example) => `  reseal ${example}`).join('\n')}${section}`;
}
