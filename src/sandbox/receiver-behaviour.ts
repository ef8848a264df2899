// Fault injection of the sandbox's receiver, selected by the path of the URL: stateless, so that a callback test with a
// temporary URL can show each fault. Any other path is answered with 200.
import type net from 'node:net';
import type { Writable } from 'node:stream';

/** The part of Node's ServerResponse that is used here. */
export interface Outgoing extends Writable {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
}

/** A request, read completely, and its response. */
export interface Exchange {
  /** Including the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
  readonly response: Outgoing;
  /** The TLS socket; writing to it bypasses the response. */
  readonly socket: net.Socket;
  /** The TCP connection below. Undefined if the peer has disconnected. */
  readonly connection: net.Socket | undefined;
}

/** `argument` is the second segment of the path. Returns a short description of what it did. */
type Behaviour = (exchange: Exchange, argument: string) => string;

const DRIP_MS = 100;
const DRIP = `${'.'.repeat(63)}\n`;
const MAX_DELAY_SECONDS = 60;

/** Keyed by the first segment of the path. */
const BEHAVIOURS = {
  // 1xx is not a final response: the peer would keep waiting.
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

/** Answers or misbehaves. Returns a short description of what it did. */
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

const pathOnly = (target: string): string => target.replace(/\?.*$/s, '');

function wholeNumber(text: string, min: number, max: number): number | undefined {
  const value = /^\d{1,3}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
}

/** Clears the timer when the response closes, or at once if it is closed already. */
function whileOpen(response: Outgoing, timer: NodeJS.Timeout): void {
  if (response.destroyed) clearTimeout(timer);
  response.once('close', () => clearTimeout(timer));
}
