// The outside world of a service, in a process of its own: a name server that knows no CAA record, and a receiver that is
// fast on one path and never answers on another.
import type { Settings } from '../campaigns/service.ts';
import { environmentFor } from '../test/support/callback-app.ts';
import { Outside } from '../test/support/outside.ts';
import { nextMessage, startChild } from './child.ts';

export interface OutsideProcess {
  readonly port: number;
  /** The root that the receiver's certificate is from, in PEM. */
  readonly root: string;
  /** What a service has to know about this world. */
  readonly settings: Settings;
}

export const startOutside = (stack: AsyncDisposableStack): Promise<OutsideProcess> =>
  nextMessage<OutsideProcess>(startChild('./outside.ts', stack));

async function open(): Promise<OutsideProcess> {
  const outside = await Outside.open();
  const fast = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
  const receiver = await outside.receiver({
    script(socket, head) {
      // It keeps what it receives, for tests; here that would grow without bound.
      for (const kept of [receiver.requests, receiver.connections, receiver.serverNames]) kept.length = 0;
      if (head.startsWith('POST /hangs')) return;
      if (/^connection: close/im.test(head)) socket.end(fast);
      else socket.write(fast);
    },
  });
  return { port: receiver.port, root: outside.ca.root, settings: environmentFor(outside) as Settings };
}

if (import.meta.main) process.send?.(await open());
