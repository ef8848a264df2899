// How the sandbox's receiver misbehaves, told by the path of the URL: no state, nothing to set up or to put back, and a
// temporary url of the callback test shows each. A path that names nothing here is answered with 200.
import type net from 'node:net';
import type { Writable } from 'node:stream';

/** Of Node's own response, what is used here. */
export interface Outgoing extends Writable {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
}

/** A request that was read to its end, and the means of answering it. */
export interface Exchange {
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
  readonly response: Outgoing;
  /** Encrypted; what is written to it goes around the response. */
  readonly socket: net.Socket;
  /** The connection under it. Undefined when the peer has left already. */
  readonly connection: net.Socket | undefined;
}

/** Gets the second segment of the path, and returns in a few words what it did. */
type Behaviour = (exchange: Exchange, argument: string) => string;

const DRIP_MS = 100;
const DRIP = `${'.'.repeat(63)}\n`;
const MAX_DELAY_SECONDS = 60;

/** By the first segment of the path. */
const BEHAVIOURS = {
  // Below 200 is no answer: the peer would go on waiting for one.
  status: ({ response }, argument) => {
    const status = wholeNumber(argument, 200, 599);
    return status === undefined
      ? answer(response, 400, { received: false, use: '/status/503, with a status from 200 to 599' })
      : answer(response, status, { received: status === 200 });
  },
  delay: ({ response }, argument) => {
    const seconds = wholeNumber(argument, 0, MAX_DELAY_SECONDS);
    if (seconds === undefined) {
      const use = `/delay/12, in whole seconds, at most ${MAX_DELAY_SECONDS}`;
      return answer(response, 400, { received: false, use });
    }
    const later = setTimeout(() => answer(response, 200, { received: true }), 1_000 * seconds);
    whileOpen(response, later);
    return `200 after ${seconds} s`;
  },
  reset: ({ connection }) => {
    connection?.resetAndDestroy();
    return 'reset';
  },
  endless: ({ response }) => {
    response.setHeader('Content-Type', 'text/plain');
    response.write(DRIP);
    const dripping = setInterval(() => response.write(DRIP), DRIP_MS);
    whileOpen(response, dripping);
    return '200 without an end';
  },
  redirect: ({ response }) => {
    response.setHeader('Location', '/');
    return answer(response, 302, { received: false });
  },
  garbage: ({ socket }) => {
    socket.end('This is not HTTP.\r\n');
    return 'garbage';
  },
  silent: () => 'nothing',
  echo: ({ response, headers, body }) => answer(response, 200, { received: true, headers, body }),
} as const satisfies Readonly<Record<string, Behaviour>>;

const isBehaviour = (segment: string): segment is keyof typeof BEHAVIOURS => Object.hasOwn(BEHAVIOURS, segment);

/** Answers, or does what is there in place of an answer; returns in a few words what it did. */
export function behave(exchange: Exchange): string {
  const [, segment = '', argument = ''] = pathOnly(exchange.path).split('/');
  const behaviour: Behaviour = isBehaviour(segment)
    ? BEHAVIOURS[segment]
    : ({ response }) => answer(response, 200, { received: true });
  return behaviour(exchange, argument);
}

export function answer(response: Outgoing, status: number, body: Readonly<Record<string, unknown>>): string {
  response.statusCode = status;
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify(body));
  return String(status);
}

export const pathOnly = (target: string): string => target.replace(/\?.*$/s, '');

function wholeNumber(text: string, min: number, max: number): number | undefined {
  const value = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
}

/** No timer outlives the connection that it is for, not even one that was over before. */
function whileOpen(response: Outgoing, timer: NodeJS.Timeout): void {
  if (response.destroyed) clearTimeout(timer);
  response.once('close', () => clearTimeout(timer));
}
