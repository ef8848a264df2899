// Runs a command in the test's process: what src/main.ts does, with captured output, without the start-up time of a
// process. test/journeys/commands.test.ts proves that a spawned process gives the same results.
import { readFileSync } from 'node:fs';
import { runCommand } from '../../src/cli/run.ts';
import { messageOf } from '../../src/http/front/error-table.ts';
import { commandContext } from '../../src/wiring/context.ts';
import { type Finished, type Settings, withNameServer } from './process.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

// As in src/main.ts. Never restored: commands may run concurrently.
process.umask(0o077);

/** The line on stderr that names the store. */
export const withoutStore = (err: string): string => err.replace(/^reseal: store .*\n/, '');

/** Runs a command to its end. Commands that serve until a signal need a process: startReseal. */
export async function reseal(
  args: readonly string[],
  settings: Settings = {},
  now = Date.now,
  isTerminal = false,
): Promise<Finished> {
  if (/^(serve|sandbox)$/.test(args.filter((one) => !one.startsWith('-')).join(' ')) && !args.includes('--help')) {
    throw new Error(`${args.join(' ')} serves: use startReseal or spawnReseal`);
  }
  let [out, err] = ['', ''];
  const locale = settings.LANG?.startsWith('zh') ? 'zh-CN' : 'en';
  const code = await runCommand(args, commandContext({ ...withNameServer(args, settings) }, now), {
    version,
    program: 'reseal',
    isTerminal,
    out: (text) => {
      out += `${text}\n`;
    },
    err: (text) => {
      err += `${text}\n`;
    },
    explain: (refusal) => messageOf(refusal, locale),
  });
  return { code, out, err };
}
