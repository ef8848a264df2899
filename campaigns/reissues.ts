// Orders to reissue, and an HTTP client that reissues them, and places and finds others.
import { Agent, request } from 'node:http';
import { readConfig } from '../src/config/config.ts';
import { openIssuance } from '../src/wiring/issuance.ts';
import type { Key } from '../test/support/app.ts';
import type { KeyKind } from '../test/support/csr.ts';
import { csrFor, type PlacedOrder } from '../test/support/orders.ts';
import { makeKeys, offline, type Settings, withStore } from './service.ts';

const ANSWER_MS = 15_000;

/** Places orders with one validated name each, every order in its own account. */
export async function placeOrders(settings: Settings, count: number, kind: KeyKind = 'p256'): Promise<PlacedOrder[]> {
  const keys = await makeKeys(settings, count);
  const place = async (issuance: Awaited<ReturnType<typeof openIssuance>>, key: Key): Promise<PlacedOrder> => {
    const { orderId, certificateId } = await issuance.placeOrder({
      ...{ accountId: key.accountId, productId: 'ssl-dv', alternativeId: null, actor: 'cli', vouchesForNames: true },
      request: {
        ...{ commonName: 'www.example.com', csr: csrFor(kind), keySource: 'caller', signHash: 'sha256' },
        keepsEncryptionKey: false,
      },
    });
    return { key, id: orderId, certificateId };
  };
  return await withStore(settings, async (app) => {
    const issuance = await openIssuance(app, readConfig(await offline(settings)).config, Date.now);
    return await Promise.all(keys.map((key) => place(issuance, key)));
  });
}

export interface ReissueAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers differ in shape; each caller knows which it expects.
  readonly body: any;
}

interface Sent {
  /** Left out for a look-up. */
  readonly json?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Uses node:http, which never retries by itself: a reissue without an answer stays in doubt. */
export class ReissueClient implements Disposable {
  readonly #agent: Agent;

  constructor(maxSockets: number) {
    this.#agent = new Agent({ keepAlive: true, maxSockets });
  }

  reissue(url: string, order: PlacedOrder, json: string, key?: string): Promise<ReissueAnswer | undefined> {
    const headers = key === undefined ? {} : { 'Idempotency-Key': key };
    return this.#send(`${url}/openapi/v3/orders/${order.id}/reissue`, order.key, { json, headers });
  }

  place(url: string, key: Key, json: string): Promise<ReissueAnswer | undefined> {
    return this.#send(`${url}/openapi/v3/orders/ssl-dv`, key, { json });
  }

  findByAlternative(url: string, key: Key, alternativeId: string): Promise<ReissueAnswer | undefined> {
    return this.#send(`${url}/openapi/v3/orders/alternate/${alternativeId}`, key, {});
  }

  /** Resolves with undefined if there was no answer or only part of one, as the id is in the body. */
  #send(url: string, key: Key, { json, headers = {} }: Sent): Promise<ReissueAnswer | undefined> {
    const options = {
      method: json === undefined ? 'GET' : 'POST',
      agent: this.#agent,
      timeout: ANSWER_MS,
      headers: {
        ...{ 'X-CC-Key-ID': key.keyId, 'X-CC-Auth-Key': key.authKey },
        ...(json !== undefined && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(json) }),
        ...headers,
      },
    };
    return new Promise((resolve) => {
      const sent = request(url, options, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk) => (text += chunk));
        response.on('error', () => {});
        response.on('close', () =>
          resolve(response.complete ? { status: response.statusCode ?? 0, body: JSON.parse(text) } : undefined),
        );
      });
      sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
      sent.on('error', () => resolve(undefined));
      sent.end(json);
    });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
