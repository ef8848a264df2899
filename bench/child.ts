// Processes beside the one that measures: callers, the outside world, the floor server. Each answers a message with one
// message.
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Starts `file` of this folder; it is killed with the stack. */
export function startChild(file: string, stack: AsyncDisposableStack, args: readonly string[] = []): ChildProcess {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), [...args], { execArgv: [] });
  stack.defer(() => void child.kill());
  return child;
}

/** Resolves with the next message; rejects if the child ends instead. */
export function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const onExit = () => reject(new Error(`${child.spawnargs.at(1)} has ended`));
    child.once('exit', onExit).once('message', (message) => {
      child.off('exit', onExit);
      resolve(message as T);
    });
  });
}
