// Asks a person at the terminal for a secret, without showing it.
import { EXIT, Problem } from '../kernel/problem.ts';

const ENTER = /[\r\n]/;
const INTERRUPT = '\u0003';
const ERASE = /[\b\u007f]/;
const MAX_CHARACTERS = 1_000;

/** `instead` names the way for those without a terminal. Throws a Problem. */
export async function askSecret(question: string, instead: string): Promise<string> {
  const { stdin, stderr } = process;
  if (!stdin.isTTY) throw new Problem(EXIT.usage, 'there is no terminal to ask for the passphrase', instead);
  stderr.write(question);
  stdin.setRawMode(true).setEncoding('utf8').resume();
  try {
    let text = '';
    for await (const typed of stdin.iterator({ destroyOnReturn: false })) {
      for (const character of String(typed)) {
        if (ENTER.test(character)) return text;
        if (character === INTERRUPT) throw new Problem(EXIT.refused, 'interrupted', 'Nothing was changed.');
        if (ERASE.test(character)) text = text.slice(0, -1);
        else if (text.length < MAX_CHARACTERS) text += character;
      }
    }
    return text;
  } finally {
    stdin.setRawMode(false).pause();
    stderr.write('\n');
  }
}
