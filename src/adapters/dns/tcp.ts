// Questions to one resolver over TCP (RFC 7766), for what UDP could not carry or might have been forged: a connection per
// question, closed with its outcome. Callers limit the time and the number; a message has at most 65,535 bytes.
import net from 'node:net';
import { randomBytes } from '../seal/random.ts';
import { type Ask, type Outcome, outcomeOf, type ServerAddress } from './exchange.ts';
import { encodeQuery, isResponseTo } from './message.ts';

/** Each message is prefixed with its length. */
const PREFIX_BYTES = 2;
const LOWER_CASE = new Uint8Array();
const EMPTY = Buffer.alloc(0);

export const tcpExchange =
  ({ host, port }: ServerAddress): Ask =>
  (question, settle) => {
    const [high = 0, low = 0] = randomBytes(2);
    const query = encodeQuery(question, (high << 8) | low, LOWER_CASE);
    const socket = net.connect({ host, port });
    let isSettled = false;
    const end = (outcome?: Outcome) => {
      if (isSettled) return;
      isSettled = true;
      socket.destroy();
      if (outcome) settle(outcome);
    };
    const prefix = Buffer.alloc(PREFIX_BYTES);
    prefix.writeUInt16BE(query.message.length);
    socket.write(Buffer.concat([prefix, query.message]));
    // At the end of the stream, socket.read() returns what is left.
    const read = (count: number): Buffer | undefined => {
      const bytes: Buffer | null = socket.read(count);
      return bytes?.length === count ? bytes : undefined;
    };
    let length: number | undefined;
    socket.on('readable', () => {
      length ??= read(PREFIX_BYTES)?.readUInt16BE(0);
      const message = length === 0 ? EMPTY : length && read(length);
      if (message) end(isResponseTo(query, message, true) ? outcomeOf(query, message) : { kind: 'odd' });
    });
    socket.on('error', () => end({ kind: 'unreachable' }));
    socket.on('close', () => end({ kind: 'unreachable' }));
    return { withdraw: () => end() };
  };
