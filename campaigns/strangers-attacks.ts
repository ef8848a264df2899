// What strangers do to a service, as data: the bytes that each connection sends, and how it goes on. Connections that the
// service closes are opened again, a few times a second each. `polite` is the same number of connections that send a
// complete request and read the answer.
import { connect, type Socket } from 'node:net';

export interface Attack {
  /** Sent on each connection at once; an attack with several sends them in turn. */
  readonly send: readonly string[];
  /** Sent every second after that. */
  readonly drip?: string;
  /** Leaves answers unread. */
  readonly isDeaf?: true;
}

const HOST = 'Host: x\r\n';
const OCSP = `POST /ocsp HTTP/1.1\r\n${HOST}Content-Type: application/ocsp-request\r\n`;
const CHUNKED = 'Transfer-Encoding: chunked\r\n';

/** Messages that two HTTP programs could read differently. Each ends, for some reader, within another request. */
export const SMUGGLING: Readonly<Record<string, string>> = {
  'two hosts': `GET /healthz HTTP/1.1\r\n${HOST}Host: y\r\n\r\n`,
  'the same host twice': `GET /healthz HTTP/1.1\r\n${HOST}${HOST}\r\n`,
  'hosts in a list': 'GET /healthz HTTP/1.1\r\nHost: x, y\r\n\r\n',
  'no host': 'GET /healthz HTTP/1.1\r\n\r\n',
  'chunks in HTTP/1.0': `POST /ocsp HTTP/1.0\r\n${HOST}${CHUNKED}\r\n0\r\n\r\n`,
  'length before chunks': `${OCSP}Content-Length: 5\r\n${CHUNKED}\r\n0\r\n\r\n`,
  'length after chunks': `${OCSP}${CHUNKED}Content-Length: 5\r\n\r\n0\r\n\r\n`,
  'two lengths': `${OCSP}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`,
  'the same length twice': `${OCSP}Content-Length: 1\r\nContent-Length: 1\r\n\r\nx`,
  'lengths in a list': `${OCSP}Content-Length: 1, 1\r\n\r\nx`,
  'a length with a sign': `${OCSP}Content-Length: +1\r\n\r\nx`,
  'an unknown encoding': `${OCSP}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
  'no encoding': `${OCSP}Transfer-Encoding: identity\r\n\r\n`,
  'two encodings': `${OCSP}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  'an encoding after chunks': `${OCSP}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
  'chunks twice': `${OCSP}${CHUNKED}${CHUNKED}\r\n0\r\n\r\n`,
  'a blank before the colon': `${OCSP}Content-Length : 1\r\n\r\nx`,
  'a folded header': `GET /healthz HTTP/1.1\r\n${HOST}X-Folded: a\r\n b\r\n\r\n`,
  'bare line feeds': 'GET /healthz HTTP/1.1\nHost: x\n\n',
  'a NUL': `GET /healthz HTTP/1.1\r\n${HOST}X-Nul: \0\r\n\r\n`,
  'HTTP/0.9': 'GET /healthz\r\n\r\n',
  'HTTP/2.0': `GET /healthz HTTP/2.0\r\n${HOST}\r\n`,
};

export const NOT_HTTP: Readonly<Record<string, string>> = {
  DESCRIBE: 'DESCRIBE rtsp://x/ RTSP/1.0\r\nCSeq: 1\r\n\r\n',
  SETUP: `SETUP / HTTP/1.1\r\n${HOST}\r\n`,
  PLAY: `PLAY / RTSP/1.0\r\n${HOST}\r\n`,
  RECORD: `RECORD / RTSP/1.0\r\n${HOST}\r\n`,
  SOURCE: `SOURCE /x ICE/1.0\r\n${HOST}\r\n`,
  'HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  TLS: '\x16\x03\x01\x00\x05hello\r\n\r\n',
};

export const ATTACKS = {
  'slow bodies': { send: [`${OCSP}Content-Length: 100\r\n\r\nx`], drip: 'x' },
  'slow bodies without a key': {
    send: [
      `PUT /openapi/v3/account HTTP/1.1\r\n${HOST}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`,
      `PUT /openapi/v3/account HTTP/1.1\r\n${HOST}${CHUNKED}\r\n1\r\n{\r\n`,
    ],
    drip: ' ',
  },
  'slow headers': { send: ['GET /readyz HTTP/1.1\r\nX-Slow: '], drip: 'x' },
  idle: { send: [''] },
  'unread answers': { send: [`GET /openapi.json HTTP/1.1\r\n${HOST}\r\n`], isDeaf: true },
  RTSP: { send: Object.values(NOT_HTTP) },
  smuggling: { send: Object.values(SMUGGLING) },
} as const satisfies Record<string, Attack>;
export type AttackName = keyof typeof ATTACKS;

const POLITE: Attack = { send: [`${OCSP}Connection: close\r\nContent-Length: 1\r\n\r\nx`] };

/** The load of an attack, spread over well-behaved callers. */
export const POLITE_NAME = 'polite';
export const attackOf = (name: string): Attack => (name === POLITE_NAME ? POLITE : ATTACKS[name as AttackName]);

/** Give or take a half, so that the connections do not keep step. */
const AGAIN_MS = 1_000;
const DRIP_MS = 1_000;

export interface Held extends Disposable {
  /** Connections made, and connections closed by the service. */
  readonly seen: { opened: number; closed: number };
}

/** Keeps `count` connections open. Those that end are opened again after a second. */
export function attack(url: string, { send, drip, isDeaf }: Attack, count: number): Held {
  const { hostname, port } = new URL(url);
  const seen = { opened: 0, closed: 0 };
  const sockets = new Set<Socket>();
  let isOver = false;

  function open(number: number): void {
    if (isOver) return;
    const socket = connect({ port: Number(port), host: hostname });
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('connect', () => {
      seen.opened += 1;
      socket.write(send[number % send.length] ?? '');
    });
    if (isDeaf) socket.pause();
    else socket.resume();
    socket.once('close', () => {
      sockets.delete(socket);
      seen.closed += 1;
      setTimeout(open, AGAIN_MS * (0.5 + Math.random()), number).unref();
    });
  }
  for (let number = 0; number < count; number += 1) setTimeout(open, AGAIN_MS * (number / count), number);
  const dripping = setInterval(() => {
    if (drip !== undefined) for (const socket of sockets) if (socket.writable) socket.write(drip);
  }, DRIP_MS).unref();

  return {
    seen,
    [Symbol.dispose]() {
      isOver = true;
      clearInterval(dripping);
      for (const socket of sockets) socket.destroy();
    },
  };
}
