// A command of the program, run in the process of the test: what src/main.ts does, with its output kept. It saves the
// start of a process. test/journeys/commands.test.ts proves that a process of its own says the same.
import { readFileSync } from 'node:fs';
import { runCommand } from '../../src/cli/run.ts';
import { messageOf } from '../../src/http/front/error-table.ts';
import { commandContext } from '../../src/wiring/context.ts';
import { type Finished, type Settings, withNames } from './process.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

// As in src/main.ts, and for good: commands may run at the same time.
process.umask(0o077);

/** Runs a command to its end. Commands that serve until a signal comes need a process of their own. */
export async function reseal(args: readonly string[], settings: Settings = {}): Promise<Finished> {
  if (/^(serve|sandbox)$/.test(args.filter((one) => !one.startsWith('-')).join(' ')) && !args.includes('--help')) {
    throw new Error(`${args.join(' ')} serves: use startReseal or spawnReseal`);
  }
  let [out, err] = ['', ''];
  const locale = settings.LANG?.startsWith('zh') ? 'zh-CN' : 'en';
  const code = await runCommand(args, commandContext(withNames(args, settings)), {
    version,
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
