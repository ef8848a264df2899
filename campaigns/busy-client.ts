// A client with one kept connection, which never retries and reports every failure by its code.
import { Agent, request } from 'node:http';
import type { Key } from '../test/support/app.ts';

export interface Exchange {
  /** Undefined if there was no complete answer. */
  readonly status?: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers differ in shape; each caller knows which it expects.
  readonly body?: any;
  /** ECONNREFUSED, ECONNRESET and the like. */
  readonly error?: string;
}

const ANSWER_MS = 15_000;

export class BusyClient implements Disposable {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #url: string;
  readonly #key: Key;

  constructor(url: string, key: Key) {
    this.#url = url;
    this.#key = key;
  }

  /** POST with a body, otherwise GET. */
  exchange(path: string, json?: string): Promise<Exchange> {
    const headers = {
      ...{ 'X-CC-Key-ID': this.#key.keyId, 'X-CC-Auth-Key': this.#key.authKey },
      ...(json !== undefined && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(json) }),
    };
    const method = json === undefined ? 'GET' : 'POST';
    return new Promise((resolve) => {
      const sent = request(`${this.#url}${path}`, { method, agent: this.#agent, timeout: ANSWER_MS, headers });
      const fail = (error: NodeJS.ErrnoException) =>
        resolve({ error: `${error.code ?? error.message}${sent.reusedSocket ? ' on a kept connection' : ''}` });
      sent.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk) => (text += chunk));
        response.on('error', fail);
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) }));
      });
      sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
      sent.on('error', fail);
      sent.end(json);
    });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
