// Strangers attack the service, in one way after another, while another account reissues and reads and a probe asks for
// readiness. Every one of its requests must be answered, in a time close to that under the same load of well-behaved
// callers. The attacker has a process of its own, of lowest priority; the service has few descriptors.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { body, type PlacedOrder } from '../test/support/orders.ts';
import type { Campaign } from './campaign.ts';
import { placeOrders } from './reissues.ts';
import { startService } from './service.ts';
import { ATTACKS, POLITE_NAME } from './strangers-attacks.ts';

/** More than RESEAL_MAX_REQUESTS, and more than the descriptors that are left for connections. */
const CONNECTIONS = 700;
const DESCRIPTORS = 1_024;
const ACCOUNTS = 8;
const EVERY_MS = 25;
const PROBE_EVERY_MS = 250;
const ANSWER_MS = 15_000;
const MOST_MS = 250;
const MOST_TIMES = 3;
const PROCESS = fileURLToPath(new URL('./strangers-process.ts', import.meta.url));
const BODY = JSON.stringify(body());

export const strangers: Campaign = {
  about: 'attacks of strangers on a service that another account uses; N = seconds for each',
  defaultN: 20,
  async run(seconds, print) {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-strangers-'));
    const settings = { RESEAL_DATA_DIR: join(folder.path, 'data'), RESEAL_MAX_REQUESTS: '512' };
    const orders = await placeOrders(settings, ACCOUNTS);
    const service = await startService(settings, fewDescriptors(folder.path));
    const broken: string[] = [];
    try {
      const look = (name: string) => during(service.url, name, () => use(service.url, orders, seconds * 1_000));
      await use(service.url, orders, 2_000);
      const quiet = await use(service.url, orders, seconds * 1_000);
      print(`quiet: ${textOf(quiet)}`);
      // A machine that is busy with other things proves nothing about milliseconds.
      const isJudged = p99(quiet.times) * MOST_TIMES <= MOST_MS;
      if (!isJudged) print(`the machine is busy: ${MOST_MS} ms are not judged`);
      for (const name of Object.keys(ATTACKS)) {
        const polite = await look(POLITE_NAME);
        const attacked = await look(name);
        print(`polite: ${textOf(polite.use)}, ${polite.seen}`);
        print(`${name}: ${textOf(attacked.use)}, ${attacked.seen}`);
        for (const failure of attacked.use.failures.slice(0, 3)) broken.push(`${name}: ${failure}`);
        const [slow, usual] = [p99(attacked.use.times), p99(polite.use.times)];
        if (slow > MOST_TIMES * usual) broken.push(`${name}: p99 ${slow} ms, ${usual} ms with polite callers`);
        if (isJudged && slow > MOST_MS) broken.push(`${name}: p99 ${slow} ms, at most ${MOST_MS}`);
      }
      if (/"event":"error"/.test(service.process.output)) broken.push('the service logged an error');
    } finally {
      await service.process.end('SIGTERM');
    }
    return broken;
  },
};

/** A runtime that may open few files. */
function fewDescriptors(folder: string): string {
  const program = join(folder, 'node');
  writeFileSync(program, `#!/bin/sh\nulimit -n ${DESCRIPTORS}\nexec '${process.execPath}' "$@"\n`);
  chmodSync(program, 0o700);
  return program;
}

async function during<T>(url: string, name: string, work: () => Promise<T>): Promise<{ use: T; seen: string }> {
  const child = spawn(process.execPath, [PROCESS, url, name, String(CONNECTIONS)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let seen = '';
  child.stdout.on('data', (chunk) => (seen += chunk));
  // The attack is in full swing.
  await sleep(2_000);
  const use = await work();
  const closed = once(child, 'close');
  child.stdin.end();
  await closed;
  return { use, seen: seen.trim() };
}

interface Use {
  /** Milliseconds of each answer. */
  readonly times: number[];
  readonly failures: string[];
}

/** Requests at a steady rate, whether or not earlier ones are answered: three reads for each reissue, and probes. */
async function use(url: string, orders: readonly PlacedOrder[], ms: number): Promise<Use> {
  const seen: Use = { times: [], failures: [] };
  using agent = disposable(new Agent({ keepAlive: true }));
  const sent: Promise<void>[] = [];
  const end = performance.now() + ms;
  for (let count = 0; performance.now() < end; count += 1) {
    const order = orders[count % orders.length]!;
    const path = `/openapi/v3/orders/${order.id}`;
    if (count % (PROBE_EVERY_MS / EVERY_MS) === 0) sent.push(ask(`${url}/readyz`, agent.value, seen));
    sent.push(
      count % 4 === 0
        ? ask(`${url}${path}/reissue`, agent.value, seen, { order, json: BODY })
        : ask(`${url}${path}`, agent.value, seen, { order }),
    );
    await sleep(EVERY_MS);
  }
  await Promise.all(sent);
  return seen;
}

const disposable = (value: Agent) => ({ value, [Symbol.dispose]: () => value.destroy() });

function ask(
  url: string,
  agent: Agent,
  seen: Use,
  { order, json }: { order?: PlacedOrder; json?: string } = {},
): Promise<void> {
  const headers = {
    ...(order && { 'X-CC-Key-ID': order.key.keyId, 'X-CC-Auth-Key': order.key.authKey }),
    ...(json && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(json) }),
  };
  const began = performance.now();
  const { promise, resolve } = Promise.withResolvers<void>();
  const sent = request(url, { method: json ? 'POST' : 'GET', agent, headers, timeout: ANSWER_MS }, (response) => {
    response.resume().once('end', () => {
      seen.times.push(performance.now() - began);
      if (response.statusCode !== 200) seen.failures.push(`${response.statusCode} for ${url}`);
      resolve();
    });
  });
  sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
  sent.on('error', (error) => {
    seen.failures.push(`${error.message} for ${url}`);
    resolve();
  });
  sent.end(json);
  return promise;
}

function p99(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.floor(sorted.length * 0.99)] ?? 0);
}

const textOf = ({ times, failures }: Use): string =>
  `${times.length} answers, ${failures.length} failures, p50 ${Math.round(times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0)} ms, p99 ${p99(times)} ms`;
