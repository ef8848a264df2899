// The callers of a service, in a process of their own: one order and one kept connection per lane, each of which sends its
// next reissue when the last is answered. They write bytes to a socket, because an HTTP client would take as much of the
// machine as the service does.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import type { PlacedOrder } from '../test/support/orders.ts';
import { nextMessage } from './child.ts';

interface Load {
  readonly url: string;
  /** One lane each, so that lanes do not contend for an order's lock. */
  readonly orders: readonly PlacedOrder[];
  readonly json: string;
  readonly until: { readonly requests: number } | { readonly ms: number };
}

interface LoadResult {
  readonly ms: number;
  /** Milliseconds from request to answer, ascending. */
  readonly latencies: readonly number[];
}
type Outcome = LoadResult | { readonly trouble: string };

const ANSWER_MS = 15_000;

/** Sends a load to the callers' process. Rejects if any answer is not 200. */
export async function runLoad(callers: ChildProcess, load: Load): Promise<LoadResult> {
  callers.send(load);
  const outcome = await nextMessage<Outcome>(callers);
  if ('trouble' in outcome) throw new Error(outcome.trouble);
  return outcome;
}

class Lane implements Disposable {
  readonly #socket: net.Socket;
  readonly #request: string;
  #received = '';
  #answered: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(socket: net.Socket, request: string) {
    this.#socket = socket;
    this.#request = request;
    socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error(`no answer within ${ANSWER_MS} ms`)));
    socket.on('error', (error) => this.#answered.reject(error));
    socket.on('close', () => this.#answered.reject(new Error('the service has closed the connection')));
    socket.setEncoding('latin1').on('data', (text) => this.#read(String(text)));
  }

  send(): Promise<void> {
    this.#answered = Promise.withResolvers();
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
    else this.#answered.reject(new Error(`a reissue was answered with ${answer}`));
  }

  [Symbol.dispose](): void {
    this.#answered.promise.catch(() => {});
    this.#socket.destroy();
  }
}

async function openLane({ url, json }: Load, { id, key }: PlacedOrder): Promise<Lane> {
  const { hostname, port, host } = new URL(url);
  const socket = net.connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, 'connect');
  const head = [
    `POST /openapi/v3/orders/${id}/reissue HTTP/1.1`,
    `Host: ${host}`,
    `X-CC-Key-ID: ${key.keyId}`,
    `X-CC-Auth-Key: ${key.authKey}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(json)}`,
  ];
  return new Lane(socket, `${head.join('\r\n')}\r\n\r\n${json}`);
}

async function call(load: Load): Promise<LoadResult> {
  using stack = new DisposableStack();
  const lanes = await Promise.all(load.orders.map((order) => openLane(load, order)));
  for (const lane of lanes) stack.use(lane);
  const begun = performance.now();
  const { requests, ms } = { requests: Number.POSITIVE_INFINITY, ms: Number.POSITIVE_INFINITY, ...load.until };
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

if (import.meta.main) {
  process.on('message', async (load: Load) => {
    const trouble = (error: unknown): Outcome => ({ trouble: String(error) });
    process.send?.(await call(load).catch(trouble));
  });
}
