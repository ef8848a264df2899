// The callers of a service, in a process of their own: kept connections, one per lane, each of which sends its next request
// when the last is answered. They write bytes to a socket, because an HTTP client would take as much of the machine as the
// service does.
import type { ChildProcess } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import { nextMessage } from './child.ts';

/** What a lane sends again and again. */
export interface LaneRequest {
  /** Method and path. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Base64. */
  readonly body: string;
  /** So many bytes at the end are random each time, such as a nonce. */
  readonly freshBytes?: number;
}

interface Lanes {
  readonly url: string;
  /** One per lane. */
  readonly requests: readonly LaneRequest[];
}

type Until = { readonly requests: number } | { readonly ms: number };
interface Load extends Lanes {
  readonly until: Until;
}

interface LoadResult {
  readonly ms: number;
  /** Milliseconds from request to answer, ascending. */
  readonly latencies: readonly number[];
}
type Order = { readonly open: Lanes } | { readonly send: Until };
type Outcome = LoadResult | { readonly trouble: string };

const ANSWER_MS = 15_000;

/**
 * Sends a load to the callers' process. Rejects if any answer is not 200. Every lane has been answered once before `begin`
 * is awaited and the load begins: a busy server takes a new connection per turn of its event loop, and until it has taken
 * all of them, fewer requests than lanes are under way.
 */
export async function runLoad(
  callers: ChildProcess,
  { until, ...lanes }: Load,
  begin = async (): Promise<void> => {},
): Promise<LoadResult> {
  await carryOut(callers, { open: lanes });
  await begin();
  return await carryOut(callers, { send: until });
}

async function carryOut(callers: ChildProcess, order: Order): Promise<LoadResult> {
  callers.send(order);
  const outcome = await nextMessage<Outcome>(callers);
  if ('trouble' in outcome) throw new Error(outcome.trouble);
  return outcome;
}

class Lane implements Disposable {
  readonly #socket: net.Socket;
  readonly #request: Buffer;
  readonly #fresh: Buffer;
  #received = '';
  #answered: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(socket: net.Socket, request: Buffer, freshBytes: number) {
    this.#socket = socket;
    this.#request = request;
    this.#fresh = request.subarray(request.length - freshBytes);
    socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error(`no answer within ${ANSWER_MS} ms`)));
    socket.on('error', (error) => this.#answered.reject(error));
    socket.on('close', () => this.#answered.reject(new Error('the service has closed the connection')));
    socket.setEncoding('latin1').on('data', (text) => this.#read(String(text)));
  }

  send(): Promise<void> {
    this.#answered = Promise.withResolvers();
    if (this.#fresh.length > 0) randomFillSync(this.#fresh);
    this.#socket.write(this.#request);
    return this.#answered.promise;
  }

  #read(text: string): void {
    this.#received += text;
    const end = this.#received.indexOf('\r\n\r\n') + 4;
    if (end < 4) return;
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(this.#received)?.[1]);
    if (this.#received.length < end + length) return;
    const answer = this.#received;
    this.#received = '';
    if (answer.length === end + length && answer.startsWith('HTTP/1.1 200 ')) this.#answered.resolve();
    else this.#answered.reject(new Error(`a request was answered with ${answer}`));
  }

  [Symbol.dispose](): void {
    this.#answered.promise.catch(() => {});
    this.#socket.destroy();
  }
}

async function openLane(url: string, request: LaneRequest): Promise<Lane> {
  const { hostname, port, host } = new URL(url);
  const socket = net.connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, 'connect');
  const body = Buffer.from(request.body, 'base64');
  const fields = { Host: host, ...request.headers, 'Content-Length': body.length };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `${request.target} HTTP/1.1\r\n${lines.join('')}\r\n`;
  return new Lane(socket, Buffer.concat([Buffer.from(head), body]), request.freshBytes ?? 0);
}

let lanes: readonly Lane[] = [];

/** Of the first request of each lane. */
async function open({ url, requests }: Lanes): Promise<LoadResult> {
  lanes = await Promise.all(requests.map((request) => openLane(url, request)));
  return await send({ requests: lanes.length });
}

async function send(until: Until): Promise<LoadResult> {
  const begun = performance.now();
  const { requests, ms } = { requests: Number.POSITIVE_INFINITY, ms: Number.POSITIVE_INFINITY, ...until };
  const latencies: number[] = [];
  let sent = 0;
  const run = async (lane: Lane) => {
    for (let now = performance.now(); sent < requests && now < begun + ms; now = performance.now()) {
      sent += 1;
      await lane.send();
      latencies.push(performance.now() - now);
    }
  };
  await Promise.all(lanes.map(run));
  return { ms: performance.now() - begun, latencies: latencies.sort((one, other) => one - other) };
}

async function sendAndClose(until: Until): Promise<LoadResult> {
  using stack = new DisposableStack();
  for (const lane of lanes) stack.use(lane);
  return await send(until);
}

if (import.meta.main) {
  process.on('message', async (order: Order) => {
    const trouble = (error: unknown): Outcome => ({ trouble: String(error) });
    process.send?.(await ('open' in order ? open(order.open) : sendAndClose(order.send)).catch(trouble));
  });
}
