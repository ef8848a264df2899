// The service with the DNS and web servers it validates against: scripted name servers, and a web server on the port
// that replaces 80. Orders are placed over HTTP, published as instructed, and completed. Nothing leaves the machine.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Environment } from '../../src/config/config.ts';
import { type AddressRule, network } from '../../src/domain/egress/addresses.ts';
import { type DnsServer, startDnsServer } from '../../src/sandbox/dns-server.ts';
import { type Answer, type Key, startApp, type TestApp } from './app.ts';
import { csrFor, type PlacedOrder, show } from './orders.ts';
import { Receiver, type Script } from './receiver.ts';

/** The first one is used in records. */
export const ISSUERS = ['ca.example.net', 'old-ca.example.net'] as const;
export const FILE = '/.well-known/pki-validation/fileauth.txt';
export const SECOND = 1_000;
export const DAY = 86_400 * SECOND;

/** A raw response of the web server. */
export const page = (body: string, status = 200, headers = ''): string =>
  `HTTP/1.1 ${status} Said\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
export const redirect = (location: string, status = 302): string => page('', status, `Location: ${location}\r\n`);

export interface NameEntry {
  readonly domain: string;
  readonly dcv_method: string;
  readonly auth_path: string;
  readonly auth_val: string;
  readonly approval_email: string;
  readonly verified: boolean;
  readonly problem: {
    readonly result: string;
    readonly message: string;
    readonly checked_at: string | null;
    readonly cached_until: string | null;
  } | null;
}

export interface OrderFields {
  readonly key?: Key;
  readonly product?: string;
  readonly certificate?: Record<string, unknown>;
}

export type DomainApp = Awaited<ReturnType<typeof startDomainApp>>;

/** The web server stands for the public internet. */
const OUTSIDE: readonly AddressRule[] = [{ ...network('127.0.0.1'), port: null }];

/** `further`: number of resolvers in addition to the primary one. */
export async function startDomainApp(environment: Environment = {}, further = 0, outside = OUTSIDE) {
  await using unlessStarted = new AsyncDisposableStack();
  const resolvers: DnsServer[] = [];
  for (let count = 0; count <= further; count += 1) {
    resolvers.push(unlessStarted.use(await startDnsServer({ host: '127.0.0.1', port: 0 })));
  }
  /** Responses of the web server by host and path; 404 otherwise. */
  const files = new Map<string, string | Script>();
  const web = unlessStarted.use(await Receiver.start({ script: answerFrom(files) }));
  const [primary = '', ...others] = resolvers.map(({ port }) => `127.0.0.1:${port}`);
  const app = unlessStarted.use(
    await startApp(
      {
        ...{ RESEAL_DNS_SERVERS: primary, RESEAL_ISSUER_NAMES: ISSUERS.join() },
        ...(others.length > 0 && { RESEAL_DNS_PERSPECTIVES: others.join() }),
        ...{ RESEAL_DCV_HTTP_PORT: String(web.port), ...environment },
      },
      outside,
    ),
  );
  const opened = unlessStarted.move();
  const [dns] = resolvers as [DnsServer, ...DnsServer[]];
  const operation = (order: PlacedOrder, method: string, name: string, json?: unknown) =>
    app.call(method, `/openapi/v3/orders/${order.id}/${name}`, { key: order.key, json });
  const entries = async (order: PlacedOrder): Promise<NameEntry[]> => (await show(app, order)).dcv_val;

  /** Publishes the order's instructions on the given resolvers, by default all. */
  async function publish(order: PlacedOrder, which: readonly DnsServer[] = resolvers): Promise<void> {
    for (const { domain, dcv_method, auth_path, auth_val } of await entries(order)) {
      if (auth_val === '') continue;
      if (dcv_method === 'file') files.set(domain + auth_path, page(auth_val));
      for (const one of which) {
        if (dcv_method === 'file') one.set(domain, 'A', ['127.0.0.1']);
        else one.set(auth_path, 'TXT', [auth_val]);
      }
    }
  }

  return {
    ...{ app, dns, resolvers, web, files, publish, entries },
    /** A registrable domain that no other test uses. */
    newDomain: () => `name${++domains}.com`,
    place: (names: readonly string[], top: object = {}, wanted: OrderFields = {}) => place(app, names, top, wanted),
    /** Reports the validation as published. */
    complete: (order: PlacedOrder): Promise<Answer> => operation(order, 'PUT', 'dcv-completed'),
    changeMethod: (order: PlacedOrder, json: unknown): Promise<Answer> => operation(order, 'PUT', 'dcv-method', json),
    /** What DNS and web servers answer now, by name. */
    async check(order: PlacedOrder): Promise<Record<string, Checked>> {
      const { status, body, text } = await operation(order, 'GET', 'dcv-check');
      assert.equal(status, 200, text);
      return Object.fromEntries(body.data.checks.map((one: Checked & { domain: string }) => [one.domain, one]));
    },
    /** `issued`, or the problems of its names: a result in one line, for tables of cases. */
    async outcome(order: PlacedOrder): Promise<string> {
      const { status, dcv_val } = await show(app, order);
      const seen = (dcv_val as NameEntry[]).flatMap(({ problem }) => (problem ? [problem.result] : []));
      return [status, ...new Set(seen)].join(' ');
    },
    workerChecks: (order: PlacedOrder) => workerChecks(app, order),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

interface Checked {
  readonly dcv_method: string;
  readonly auth_path: string;
  readonly auth_val: string;
  readonly result: string;
  readonly message: string;
  readonly cached_until: string | null;
  readonly perspectives: readonly { readonly result: string; readonly message: string }[];
  readonly caa: { readonly result: string; readonly message: string };
}

let domains = 0;

async function place(app: TestApp, names: readonly string[], top: object, wanted: OrderFields): Promise<PlacedOrder> {
  const { key = await app.newKey(), product = 'ssl-dv', certificate = {} } = wanted;
  const [common_name, ...dns_names] = names;
  const request = { csr: csrFor(), common_name, dns_names, sign_hash: 'sha256', ...certificate };
  const path = `/openapi/v3/orders/${product}`;
  const { status, body, text } = await app.call('POST', path, { key, json: { certificate: request, ...top } });
  assert.equal(status, 200, text);
  return { key, id: body.data.id, certificateId: body.data.certificate.id };
}

export const pendingRowOf = async (app: TestApp, { key: { accountId }, id }: PlacedOrder) => {
  const { pendingCertificateId } = (await app.app.store.orders.find(accountId, id))!;
  return pendingCertificateId === null ? undefined : await app.app.store.waiting.find(accountId, pendingCertificateId);
};

const MOST_MS = 30_000;

/**
 * Advances the clock until the order is due, and waits until a worker has checked it: the one called here, or the
 * service's own. Returns at once if the order is no longer pending.
 */
async function workerChecks(app: TestApp, order: PlacedOrder): Promise<void> {
  const before = await pendingRowOf(app, order);
  if (!before) return;
  app.advance(Math.max(0, before.dueAt - app.now()));
  const end = performance.now() + MOST_MS;
  for (;;) {
    await app.issuance.proveDomains.proveDue();
    const now = await pendingRowOf(app, order);
    if (!now || now.certificateId !== before.certificateId || now.tries > before.tries) return;
    assert.ok(performance.now() < end, 'the worker did not check the order');
    await sleep(5);
  }
}

const answerFrom =
  (files: ReadonlyMap<string, string | Script>): Script =>
  (socket, request) => {
    const [, path = '', host = ''] = /^GET (\S+) HTTP[\s\S]*?\r\nHost: ([^:\r]*)/.exec(request) ?? [];
    const answer = files.get(host + path) ?? page('nothing here', 404);
    if (typeof answer === 'string') socket.end(answer, 'latin1');
    else answer(socket, request);
  };
