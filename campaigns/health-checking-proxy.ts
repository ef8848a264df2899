// A reverse proxy with kept connections and a health check, as load balancers have them. It tries each request once: a
// failure is the caller's to see.
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const CHECK_EVERY_MS = 200;
const CHECK_MS = 5_000;
const HEALTHY_MS = 60_000;

interface Proxy extends AsyncDisposable {
  readonly url: string;
  /** Resolves once the instance is sent requests again. */
  healthy(url: string): Promise<void>;
}

export async function startProxy(urls: readonly string[]): Promise<Proxy> {
  const agent = new Agent({ keepAlive: true });
  const isHealthy = new Map(urls.map((url) => [url, true]));
  let turn = 0;

  function forward(incoming: IncomingMessage, response: ServerResponse): void {
    const candidates = urls.filter((url) => isHealthy.get(url));
    const chosen = candidates[turn++ % Math.max(1, candidates.length)];
    const fail = (why: string) => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end(JSON.stringify({ proxy: why, healthy: candidates.length }));
    };
    if (chosen === undefined) {
      fail('no instance is healthy');
      return;
    }
    const { method, headers, url = '/' } = incoming;
    const { connection: _, ...forwarded } = headers;
    const sent = request(new URL(url, chosen), { method, headers: forwarded, agent });
    sent.on('error', (error: NodeJS.ErrnoException) =>
      fail(`${chosen}: ${error.code ?? error.message}${sent.reusedSocket ? ' on a kept connection' : ''}`),
    );
    sent.on('response', (answer) => {
      const { connection: __, 'keep-alive': ___, ...passed } = answer.headers;
      response.writeHead(answer.statusCode ?? 502, passed);
      answer.on('error', () => response.destroy()).pipe(response);
    });
    incoming.pipe(sent);
  }

  const stopping = new AbortController();
  async function check(url: string): Promise<void> {
    while (!stopping.signal.aborted) {
      const signal = AbortSignal.timeout(CHECK_MS);
      const answer = await fetch(`${url}/readyz`, { signal, headers: { connection: 'close' } }).catch(() => undefined);
      await answer?.arrayBuffer().catch(() => {});
      isHealthy.set(url, answer?.status === 200);
      await sleep(CHECK_EVERY_MS, undefined, stopping).catch(() => {});
    }
  }
  const checks = urls.map(check);

  const server = createServer(forward).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async healthy(url) {
      for (const end = Date.now() + HEALTHY_MS; !isHealthy.get(url); await sleep(CHECK_EVERY_MS / 4))
        if (Date.now() > end) throw new Error(`${url} never became healthy`);
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all(checks);
      server.closeAllConnections();
      server.close();
      agent.destroy();
    },
  };
}
