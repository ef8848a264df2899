// Real events on their way to a real receiver: issued orders, what arrives, and what the account is shown of it. The
// clock stands still, so a repetition comes when a test moves it, and not before.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Key, TestApp } from './app.ts';
import { type CallbackApp, callbackIn, type ReceivedCallback, SETTINGS } from './callback-app.ts';
import { body, newOrder, type PlacedOrder, reissue } from './orders.ts';
import type { Script } from './receiver.ts';

export const DELIVERIES = `${SETTINGS}/deliveries`;
export const ACCESS_KEY = 'the-access-key';
const PATIENCE_MS = 20_000;

/** Asked again and again: what another thread of work does is no event of ours. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
): Promise<T> {
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await sleep(10)) {
    const found = await look();
    if (found) return found;
  }
  assert.fail(`in vain: ${what}`);
}

/** Answers each request with the next of these statuses, and the last one from then on. */
export const answering = (...statuses: readonly number[]): Script => {
  const left = [...statuses];
  return (socket) => {
    const status = left.length > 1 ? left.shift() : left[0];
    socket.end(`HTTP/1.1 ${status} Whatever\r\nContent-Length: 2\r\n\r\nok`);
  };
};

/** Keeps everybody waiting until so many are there, and then answers all of them alike: no matter how fast each came. */
export const answeringTogether = (count: number, status: number): Script => {
  const waiting: (() => void)[] = [];
  return (socket, request) => {
    waiting.push(() => answering(status)(socket, request));
    if (waiting.length === count) for (const answer of waiting.splice(0)) answer();
  };
};

/** Each path of the receiver answers in its own way, and 200 unless told: what another test left behind comes too. */
export function routed({ receiver }: CallbackApp): (path: string, script: Script) => void {
  const scripts = new Map<string, Script>();
  const fine = answering(200);
  receiver.script = (socket, request) => (scripts.get(request.split(' ', 2)[1] ?? '') ?? fine)(socket, request);
  return (path, script) => void scripts.set(path, script);
}

export const withHeaders =
  (status: number, ...headers: readonly string[]): Script =>
  (socket) =>
    socket.end([`HTTP/1.1 ${status} Whatever`, 'Content-Length: 0', ...headers, '', ''].join('\r\n'));

export interface ShownDelivery {
  readonly id: string;
  readonly state: string;
  readonly reason: string | null;
  readonly order_id: string;
  readonly cert_id: string;
  readonly order_status: string;
  readonly action: string;
  readonly created_at: string;
  readonly next_attempt_at: string | null;
  readonly settled_at: string | null;
  readonly attempts: readonly {
    readonly number: number;
    readonly at: string;
    readonly ms: number;
    readonly http_status: number | null;
    readonly reason: string | null;
    readonly excerpt: string | null;
  }[];
}

export async function deliveriesOf(app: TestApp, key: Key, query = ''): Promise<ShownDelivery[]> {
  const answer = await app.call('GET', `${DELIVERIES}${query}`, { key });
  assert.equal(answer.status, 200, answer.text);
  return answer.body.data.deliveries;
}

/** With settings that lead to the receiver, and an order whose first event has arrived. */
export async function subscribed(
  world: CallbackApp,
  change: Record<string, unknown> = {},
  path = '/',
): Promise<PlacedOrder> {
  const { app } = world;
  const key = await app.newKey();
  const saved = await world.save(key, { url: world.url(path), access_key: ACCESS_KEY, ...change });
  assert.equal(saved.status, 200, saved.text);
  const order = await newOrder(app, {}, key);
  await until('the first event is settled', async () => {
    const [first] = await deliveriesOf(app, key);
    return first && (first.state !== 'pending' || first.attempts.length > 0);
  });
  return order;
}

/** Answers with the id of the new certificate. */
export async function reissued(app: TestApp, order: PlacedOrder): Promise<string> {
  const answer = await reissue(app, order, body());
  assert.equal(answer.status, 200, answer.text);
  return answer.body.data.certificate.id;
}

/** What the receiver got about a certificate, in the order in which it came. */
export const receivedAbout = ({ receiver }: CallbackApp, certificateId: string): ReceivedCallback[] =>
  receiver.requests.map((_, index) => callbackIn(receiver, index)).filter(({ body }) => body.cert_id === certificateId);

export const arrived = (world: CallbackApp, certificateId: string, count = 1): Promise<ReceivedCallback[]> =>
  until(`${count} callbacks about ${certificateId}`, () => {
    const found = receivedAbout(world, certificateId);
    return found.length >= count && found;
  });

/** The delivery about a certificate, once it is as wished. */
export const deliveryOf = (
  { app }: CallbackApp,
  order: PlacedOrder,
  certificateId: string,
  wish: (delivery: ShownDelivery) => boolean,
): Promise<ShownDelivery> =>
  until(`the delivery about ${certificateId}`, async () => {
    const all = await deliveriesOf(app, order.key);
    const found = all.find(({ cert_id }) => cert_id === certificateId);
    return found && wish(found) && found;
  });

/** Moves the clock, and has the service look at once. */
export async function later(app: TestApp, ms: number): Promise<void> {
  app.advance(ms);
  await app.callbacks.dispatcher.poll();
}
