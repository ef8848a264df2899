// The sandbox's HTTPS receiver of callbacks. It keeps the last ones for users and scripts, and injects faults by path
// (receiver-behaviour.ts), so that every outcome of the callback test can be seen offline. Connections are bounded in
// number and lifetime.
import { once } from 'node:events';
import https from 'node:https';
import type net from 'node:net';
import type { Readable } from 'node:stream';
import tls from 'node:tls';
import { answer, behave, type Exchange, type Outgoing } from './receiver-behaviour.ts';

/** PEM. `cert` includes the chain. */
interface PemKeyPair {
  readonly cert: string;
  readonly key: string;
}

/** Selected by SNI: `untrusted.…` gets `untrusted`, every other name `good`. */
interface ReceiverCertificates {
  readonly good: PemKeyPair;
  readonly untrusted: PemKeyPair;
}

interface ReceiverOptions {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly certificates: ReceiverCertificates;
  /** Called after each callback. Must not throw. */
  readonly onCallback: () => void;
  /** Callbacks received by earlier runs, newest first. */
  readonly earlier?: readonly ReceivedCallback[];
}

export interface ReceivedCallback {
  readonly at: string;
  readonly method: string;
  /** Including the query. */
  readonly path: string;
  /** Only the headers in KEPT_HEADERS. */
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed if it is JSON. */
  readonly body: unknown;
  /** What the receiver did: `200`, `reset`, `200 after 12 s`. */
  readonly answer: string;
}

const KEPT = 50;
const KEPT_HEADERS = [
  'x-cc-callback-auth',
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
  'content-type',
  'user-agent',
];
const MAX_BODY_BYTES = 16 * 1024;
/** Drained, so that the 413 arrives: a peer that is still sending does not read it. */
const MAX_DISCARDED_BYTES = 4 * 1024 * 1024;
/** Maximum depth of a parsed body. Deeper ones are kept as text: JSON.stringify would overflow the stack. */
const MAX_DEPTH = 8;
const MAX_CONNECTIONS = 64;
/** The longest behaviour takes a minute. */
const MAX_CONNECTION_MS = 90_000;
const LIMITS = {
  handshakeTimeout: 5_000,
  headersTimeout: 5_000,
  requestTimeout: 5_000,
  connectionsCheckingInterval: 500,
  maxHeaderSize: 8 * 1024,
};

/** The part of Node's IncomingMessage that is used here. */
interface Incoming extends Readable {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: Exchange['headers'];
  readonly socket: net.Socket;
}

export class Receiver implements AsyncDisposable {
  readonly #server: https.Server;
  readonly #onCallback: () => void;
  readonly #open = new Set<net.Socket>();
  #untrusted: tls.SecureContext | undefined;
  #callbacks: readonly ReceivedCallback[] = [];
  #port = 0;

  constructor({ certificates, onCallback, earlier = [] }: Omit<ReceiverOptions, 'host' | 'port'>) {
    this.#onCallback = onCallback;
    this.#callbacks = earlier.slice(0, KEPT);
    const isUntrusted = (name: string) => name.toLowerCase().startsWith('untrusted.');
    // Undefined selects the server's default context, as for a client without SNI.
    const server = https.createServer({
      ...LIMITS,
      SNICallback: (name, done) => done(null, isUntrusted(name) ? this.#untrusted : undefined),
    });
    this.#server = server;
    this.replaceCertificates(certificates);
    server.maxConnections = MAX_CONNECTIONS;
    server.maxRequestsPerSocket = 1;
    server.on('connection', (socket: net.Socket) => this.#track(socket));
    server.on('request', (request, response) => void this.#receive(request, response));
  }

  get port(): number {
    return this.#port;
  }

  /** Applies to new connections. */
  replaceCertificates({ good, untrusted }: ReceiverCertificates): void {
    const context = tls.createSecureContext({ ...untrusted });
    this.#server.setSecureContext({ ...good });
    this.#untrusted = context;
  }

  /** Newest first. */
  callbacks(): readonly ReceivedCallback[] {
    return this.#callbacks;
  }

  async listen(host: string, port: number): Promise<void> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as net.AddressInfo).port;
  }

  /** Closes immediately, without waiting for open requests. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #track(socket: net.Socket): void {
    const lifetime = setTimeout(() => socket.destroy(), MAX_CONNECTION_MS);
    this.#open.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => {
      clearTimeout(lifetime);
      this.#open.delete(socket);
    });
  }

  /** Returns the TCP connection below a TLS socket, which Node does not expose. */
  #connectionOf({ remoteAddress, remotePort }: net.Socket): net.Socket | undefined {
    return [...this.#open].find((one) => one.remotePort === remotePort && one.remoteAddress === remoteAddress);
  }

  async #receive(request: Incoming, response: Outgoing): Promise<void> {
    const { method = '', url: path = '', headers, socket } = request;
    const body = await bodyOf(request);
    if (!body) return;
    const did = body.isComplete
      ? behave({ path, headers, body: body.text, response, socket, connection: this.#connectionOf(socket) })
      : answer(response, 413, { received: false });
    const callback = { at: new Date().toISOString(), method, path, headers: keptOf(headers) };
    this.#callbacks = [{ ...callback, body: parsedBody(body.text), answer: did }, ...this.#callbacks].slice(0, KEPT);
    this.#onCallback();
  }
}

export async function startReceiver({ host, port, ...options }: ReceiverOptions): Promise<Receiver> {
  const receiver = new Receiver(options);
  await receiver.listen(host, port);
  return receiver;
}

/** Returns undefined if the peer disconnected, or was disconnected because it sent too much. */
async function bodyOf(request: Incoming): Promise<{ text: string; isComplete: boolean } | undefined> {
  const kept: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of request as AsyncIterable<Uint8Array>) {
      if (length < MAX_BODY_BYTES) kept.push(chunk);
      length += chunk.length;
      if (length > MAX_DISCARDED_BYTES) request.socket.destroy();
    }
  } catch {
    return undefined;
  }
  const text = Buffer.concat(kept).subarray(0, MAX_BODY_BYTES).toString();
  return { text, isComplete: length <= MAX_BODY_BYTES };
}

const keptOf = (headers: Exchange['headers']): Record<string, string> =>
  Object.fromEntries(
    KEPT_HEADERS.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
  );

function parsedBody(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isShallow(value, MAX_DEPTH) ? value : text;
  } catch {
    return text;
  }
}

const isShallow = (value: unknown, levels: number): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((one) => isShallow(one, levels - 1)));
