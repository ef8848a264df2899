// Entry point: argv in, exit code out.
import { readFileSync } from 'node:fs';
import { programOf } from './cli/hints.ts';
import { runCommand } from './cli/run.ts';
import { messageOf } from './http/front/error-table.ts';
import { commandContext } from './wiring/context.ts';

// Files created from here on are private to this user: databases, key files, sandbox.json.
process.umask(0o077);

// The reader of a pipe may exit early, as head does (EPIPE); that is not an error.
process.stdout.on('error', () => process.exit());

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const locale = process.env.LANG?.startsWith('zh') ? 'zh-CN' : 'en';

process.exitCode = await runCommand(process.argv.slice(2), commandContext(process.env), {
  version,
  program: programOf({ script: process.argv[1] ?? '', path: process.env.PATH, folder: process.cwd() }),
  isTerminal: process.stdout.isTTY === true,
  out: (text) => process.stdout.write(`${text}\n`),
  err: (text) => process.stderr.write(`${text}\n`),
  explain: (refusal) => messageOf(refusal, locale),
});
