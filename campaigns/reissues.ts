// Orders to reissue, and an HTTP client that reissues them.
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

/** Uses node:http, which never retries by itself: a reissue without an answer stays in doubt. */
export class ReissueClient implements Disposable {
  readonly #agent: Agent;

  constructor(maxSockets: number) {
    this.#agent = new Agent({ keepAlive: true, maxSockets });
  }

  /** Resolves with undefined if there was no answer or only part of one, as the id is in the body. */
  reissue(url: string, order: PlacedOrder, json: string, key?: string): Promise<ReissueAnswer | undefined> {
    const headers = {
      'X-CC-Key-ID': order.key.keyId,
      'X-CC-Auth-Key': order.key.authKey,
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(json),
      ...(key !== undefined && { 'Idempotency-Key': key }),
    };
    const options = { method: 'POST', agent: this.#agent, timeout: ANSWER_MS, headers };
    return new Promise((resolve) => {
      const sent = request(`${url}/openapi/v3/orders/${order.id}/reissue`, options, (response) => {
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
