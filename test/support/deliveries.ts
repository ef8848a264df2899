// Real events delivered to a real receiver: issued orders, received callbacks, and the deliveries as the account sees
// them. The clock is manual, so a retry happens only when a test advances it.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Key, TestApp } from './app.ts';
import { type CallbackApp, callbackIn, type ReceivedCallback, SETTINGS } from './callback-app.ts';
import { body, newOrder, type PlacedOrder, reissue } from './orders.ts';
import type { Script } from './receiver.ts';

export const DELIVERIES = `${SETTINGS}/deliveries`;
export const ACCESS_KEY = 'the-access-key';
const PATIENCE_MS = 20_000;

/** Polls: the dispatcher runs concurrently and signals no completion to the test. */
export async function waitFor<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
): Promise<T> {
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await sleep(10)) {
    const found = await look();
    if (found) return found;
  }
  assert.fail(`timed out waiting for: ${what}`);
}

/** Answers each request with the next status; the last one repeats. */
export const answerWith = (...statuses: readonly number[]): Script => {
  const left = [...statuses];
  return (socket) => {
    const status = left.length > 1 ? left.shift() : left[0];
    socket.end(`HTTP/1.1 ${status} Whatever\r\nContent-Length: 2\r\n\r\nok`);
  };
};

/** Holds responses until `count` requests have arrived, then answers all of them: independent of timing. */
export const answerTogether = (count: number, status: number): Script => {
  const waiting: (() => void)[] = [];
  return (socket, request) => {
    waiting.push(() => answerWith(status)(socket, request));
    if (waiting.length === count) for (const answer of waiting.splice(0)) answer();
  };
};

/** Sets a script per path; other paths answer 200, because events of earlier tests may still arrive. */
export function routeByPath({ receiver }: CallbackApp): (path: string, script: Script) => void {
  const scripts = new Map<string, Script>();
  const fine = answerWith(200);
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

/** Creates an account with callback settings for the receiver, and an order whose first event was attempted. */
export async function newSubscriber(
  world: CallbackApp,
  change: Record<string, unknown> = {},
  path = '/',
): Promise<PlacedOrder> {
  const { app } = world;
  const key = await app.newKey();
  const saved = await world.save(key, { url: world.url(path), access_key: ACCESS_KEY, ...change });
  assert.equal(saved.status, 200, saved.text);
  const order = await newOrder(app, {}, key);
  await waitFor('the first event is settled', async () => {
    const [first] = await deliveriesOf(app, key);
    return first && (first.state !== 'pending' || first.attempts.length > 0);
  });
  return order;
}

/** Returns the id of the new certificate. */
export async function reissueOnce(app: TestApp, order: PlacedOrder): Promise<string> {
  const answer = await reissue(app, order, body());
  assert.equal(answer.status, 200, answer.text);
  return answer.body.data.certificate.id;
}

/** Callbacks received about a certificate, in order of arrival. */
export const receivedAbout = ({ receiver }: CallbackApp, certificateId: string): ReceivedCallback[] =>
  receiver.requests.map((_, index) => callbackIn(receiver, index)).filter(({ body }) => body.cert_id === certificateId);

export const waitForCallbacks = (world: CallbackApp, certificateId: string, count = 1): Promise<ReceivedCallback[]> =>
  waitFor(`${count} callbacks about ${certificateId}`, () => {
    const found = receivedAbout(world, certificateId);
    return found.length >= count && found;
  });

/** Waits until the delivery about a certificate matches. */
export const deliveryOf = (
  { app }: CallbackApp,
  order: PlacedOrder,
  certificateId: string,
  matches: (delivery: ShownDelivery) => boolean,
): Promise<ShownDelivery> =>
  waitFor(`the delivery about ${certificateId}`, async () => {
    const all = await deliveriesOf(app, order.key);
    const found = all.find(({ cert_id }) => cert_id === certificateId);
    return found && matches(found) && found;
  });

/** Advances the clock and polls the dispatcher. */
export async function advanceAndPoll(app: TestApp, ms: number): Promise<void> {
  app.advance(ms);
  await app.callbacks.dispatcher.poll();
}
