// Concurrent writers over HTTP. Each renames its own account repeatedly, one request at a time, until no answer comes. The
// ledger interprets the answers.
import { Agent, request } from 'node:http';
import type { Key } from '../test/support/app.ts';
import type { Answer, Ledger } from './ledger.ts';

const ANSWER_MS = 15_000;
const MAX_WRITES_EACH = 100_000;

interface Load {
  readonly url: string;
  readonly keys: readonly Key[];
  readonly ledger: Ledger;
  /** Writers start no new request once it is aborted, which ends them if no kill does. */
  readonly signal: AbortSignal;
  /** Called with the number of acknowledgements, in the tick in which one arrives. */
  onAcknowledged?(count: number): void;
}

/** Resolves with the number of acknowledgements once all writers have stopped. */
export async function writeUntilSilence({ url, keys, ledger, signal, onAcknowledged }: Load): Promise<number> {
  using client = new Client(url, keys.length);
  let acknowledged = 0;
  const writer = async (key: Key) => {
    for (let count = 0; count < MAX_WRITES_EACH && !signal.aborted; count += 1) {
      const write = ledger.begin(key.accountId);
      const answer = await client.rename(key, write.name, (answer) => {
        ledger.settle(write, answer);
        if (answer.status !== 200) return;
        acknowledged += 1;
        onAcknowledged?.(acknowledged);
      });
      if (!answer) return;
    }
  };
  await Promise.all(keys.map(writer));
  return acknowledged;
}

/** Uses node:http, which never retries by itself: a write without an answer stays in doubt. */
export class Client implements Disposable {
  readonly #url: string;
  readonly #agent: Agent;

  constructor(baseUrl: string, maxSockets: number) {
    this.#url = `${baseUrl}/openapi/v3/account`;
    this.#agent = new Agent({ keepAlive: true, maxSockets });
  }

  /**
   * Resolves when the exchange ends, with undefined if there was no answer. The response head is the acknowledgement, so
   * `onAnswer` is called on it: the body may still be cut off.
   */
  rename({ keyId, authKey }: Key, name: string, onAnswer?: (answer: Answer) => void): Promise<Answer | undefined> {
    const body = JSON.stringify({ name });
    const headers = {
      'X-CC-Key-ID': keyId,
      'X-CC-Auth-Key': authKey,
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
    };
    return new Promise((resolve) => {
      const sent = request(this.#url, { method: 'PUT', agent: this.#agent, timeout: ANSWER_MS, headers });
      sent.on('response', (response) => {
        const answer = { status: response.statusCode ?? 0, requestId: String(response.headers['x-request-id']) };
        onAnswer?.(answer);
        response.on('error', () => {});
        response.on('close', () => resolve(answer));
        response.resume();
      });
      sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
      sent.on('error', () => resolve(undefined));
      sent.end(body);
    });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}
