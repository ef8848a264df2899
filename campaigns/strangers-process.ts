// The attacker's process: `strangers-process.ts URL ATTACK CONNECTIONS`, at the lowest priority, so that it does not take the
// processor from the service it attacks. Ends when its standard input does, and prints what it saw.
import { setPriority } from 'node:os';
import { attack, attackOf } from './strangers-attacks.ts';

const LOWEST = 19;

setPriority(LOWEST);
const [url = '', name = '', count = ''] = process.argv.slice(2);
const held = attack(url, attackOf(name), Number(count));
process.stdin.resume().once('end', () => {
  held[Symbol.dispose]();
  process.stdout.write(`${JSON.stringify(held.seen)}\n`, () => process.exit());
});
