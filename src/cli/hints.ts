// Commands in messages, as the reader can type them. Messages say `reseal doctor`; that works where `reseal` is on the PATH.
// Elsewhere the words are replaced by how this program was started. Never by `npx reseal`: in a folder without it, npx would
// download whatever package has that name.
import { basename, delimiter, dirname, isAbsolute, relative, resolve } from 'node:path';
import { COMMANDS } from './commands.ts';

interface Start {
  /** Path of the running script, as it was typed or found: argv[1]. */
  readonly script: string;
  readonly path: string | undefined;
  readonly folder: string;
}

/** What to type for `reseal`. */
export function programOf({ script, path = '', folder }: Start): string {
  const where = resolve(folder, script);
  // npm puts node_modules/.bin on the PATH of what it runs, but not on the reader's.
  const isOwn = /[\\/]node_modules[\\/]\.bin$/.test(dirname(where));
  const isOnPath = path.split(delimiter).some((entry) => resolve(folder, entry) === dirname(where));
  if (basename(where).replace(/\.cmd$/, '') === 'reseal' && isOnPath && !isOwn) return 'reseal';
  const short = relative(folder, where);
  const typed = short.startsWith('..') || isAbsolute(short) ? where : short;
  return /\.m?[jt]s$/.test(typed) || isOwn ? `node ${typed}` : typed;
}

const WORDS = [...new Set(Object.keys(COMMANDS).map((name) => name.split(' ')[0]))].join('|');
const COMMAND = new RegExp(`\\breseal (?=(?:${WORDS}|--help)\\b)`, 'g');

export const hintsFor =
  (program: string): ((text: string) => string) =>
  (text) =>
    text.replace(COMMAND, `${program.replaceAll('$', '$$$$')} `);
