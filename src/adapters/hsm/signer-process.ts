// Entry point of a signer process: loads one PKCS#11 module, logs in to one token, and signs what it is sent. The PIN
// arrives on standard input. It ends with its parent: standard input ends then.
import { createWriteStream } from 'node:fs';
import { ANSWER_FD, type Answer, type Opening, onLines, type Request } from './protocol.ts';
import { failureOf, type OpenToken, openToken } from './token-session.ts';

const answers = createWriteStream('', { fd: ANSWER_FD });
const say = (answer: Answer): void => void answers.write(`${JSON.stringify(answer)}\n`);
/** Not process.exit, which waits for a module that hangs in a thread. */
const end = (): void => void process.kill(process.pid, 'SIGKILL');
let token: Promise<OpenToken> | undefined;

async function perform(request: Request): Promise<void> {
  try {
    const open = await token;
    if (open) say({ ...(await open.perform(request)), id: request.id });
  } catch (error) {
    say({ kind: 'failed', id: request.id, failure: failureOf(error) });
  }
}

answers.on('error', end);
process.stdin.on('end', end).on('error', end);
// The service decides when this process ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
onLines(process.stdin, (line) => {
  if (line === undefined) end();
  else if (token) void perform(JSON.parse(line) as Request);
  else {
    token = openToken(JSON.parse(line) as Opening);
    token.then(
      () => say({ kind: 'ready' }),
      (error) => say({ kind: 'refused', failure: failureOf(error) }),
    );
  }
});
