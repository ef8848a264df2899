// Counts the round trips of PostgreSQL clients on the wire. A round trip begins when a client that waits for nothing sends
// Sync or Query; what it sends before the server is ready again is pipelined and belongs to the same round trip.
import type { Tap } from './tcp-proxy.ts';

export class RoundTrips {
  count = 0;

  /** Of one connection, from its first byte on. TLS is not understood. */
  readonly tap = (): Tap => {
    let waiting = 0;
    return {
      sent: readMessages('untyped', (type) => {
        if (type !== 'S' && type !== 'Q') return;
        if (waiting === 0) this.count += 1;
        waiting += 1;
      }),
      received: readMessages('typed', (type) => {
        // The first ReadyForQuery ends the start of the session, which is no round trip.
        if (type === 'Z') waiting = Math.max(0, waiting - 1);
      }),
    };
  };
}

/** The first message of a client, and no other, has no type before its length. */
function readMessages(first: 'typed' | 'untyped', onMessage: (type: string) => void): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let typeBytes = first === 'typed' ? 1 : 0;
  return (bytes) => {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    while (rest.length >= typeBytes + 4) {
      const end = typeBytes + rest.readUInt32BE(typeBytes);
      if (rest.length < end) return;
      if (typeBytes === 1) onMessage(String.fromCharCode(rest[0] ?? 0));
      rest = rest.subarray(end);
      typeBytes = 1;
    }
  };
}
