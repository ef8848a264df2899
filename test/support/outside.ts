// The network outside the service, on loopback: a name server, a CA for receivers, receivers, and the real egress
// function. Nothing leaves the machine.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { callOut, DEFAULT_LIMITS, type EgressLimits } from '../../src/adapters/egress/call-out.ts';
import { type KeepLimits, KeptConnections } from '../../src/adapters/egress/kept-connections.ts';
import { parseAddress, parseAddressRule } from '../../src/domain/egress/addresses.ts';
import type { CallOut, OutboundUrl, Outcome } from '../../src/domain/egress/outbound.ts';
import { type DnsServer, startDnsServer } from '../../src/sandbox/dns-server.ts';
import { Receiver, type ReceiverOptions } from './receiver.ts';
import { TestCa } from './receiver-certificates.ts';

export const HOST = 'hooks.example.test';
export const USER_AGENT = 'Reseal/test';

export interface CallOptions {
  readonly method?: 'POST' | 'GET';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly totalMs?: number;
  readonly signal?: AbortSignal;
  readonly limits?: Partial<EgressLimits>;
  readonly dnsServers?: readonly string[];
  readonly keptFor?: string;
  readonly keep?: Partial<KeepLimits>;
}

/** Ample, so that each test sets only the limit it is about. */
const KEEP: KeepLimits = { idleMs: 60_000, ageMs: 60_000, exchanges: 1_000, perAccount: 100, total: 100 };

export class Outside implements AsyncDisposable {
  readonly dns: DnsServer;
  readonly ca = new TestCa('Throw-away Root');
  readonly #receivers: Receiver[] = [];
  readonly #made = new Map<string, CallOut>();
  readonly #kept = new DisposableStack();

  private constructor(dns: DnsServer) {
    this.dns = dns;
  }

  static async open(): Promise<Outside> {
    const outside = new Outside(await startDnsServer({ host: '127.0.0.1', port: 0 }));
    outside.dns.set(HOST, 'A', ['127.0.0.1']);
    return outside;
  }

  /** Speaks TLS as HOST by default. */
  async receiver(options: ReceiverOptions = {}): Promise<Receiver> {
    const receiver = await Receiver.start({ identity: this.ca.identity([HOST]), ...options });
    this.#receivers.push(receiver);
    return receiver;
  }

  /** All of loopback is allowed by default. */
  call(url: string, options: CallOptions = {}): Promise<Outcome> {
    const { allow = ['127.0.0.0/8', '::1'], deny = [], totalMs = 10_000 } = options;
    return this.#callOut(options)({
      url: outboundUrl(url),
      method: options.method ?? 'POST',
      headers: options.headers ?? { 'Content-Type': 'application/json' },
      body: options.body ?? (options.method === 'GET' ? '' : '{"a":1}'),
      policy: { allow: rules(allow), deny: rules(deny), totalMs },
      keptFor: options.keptFor,
      signal: options.signal,
    });
  }

  /** One instance per set of options, as in the service. */
  #callOut({ dnsServers = [`127.0.0.1:${this.dns.port}`], limits = {}, keep = {} }: CallOptions): CallOut {
    const key = JSON.stringify([dnsServers, limits, keep]);
    const made =
      this.#made.get(key) ??
      callOut({
        dnsServers,
        extraRoots: [this.ca.root],
        userAgent: USER_AGENT,
        limits: { ...DEFAULT_LIMITS, ...limits },
        kept: this.#kept.use(new KeptConnections({ ...KEEP, ...keep })),
      });
    this.#made.set(key, made);
    return made;
  }

  /** Closes kept connections of all accounts; none is kept from then on. */
  closeKept(): void {
    this.#kept.dispose();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.closeKept();
    for (const receiver of this.#receivers) await receiver[Symbol.asyncDispose]();
    await this.dns.close();
  }
}

const rules = (texts: readonly string[]) => texts.map((text) => parseAddressRule(text)!);

/** Parses a URL that is known to be valid, and keeps its path verbatim. Rejecting invalid URLs is tested elsewhere. */
function outboundUrl(text: string): OutboundUrl {
  const [, scheme = '', name = '', port, target = ''] =
    /^(https?):\/\/(\[[^\]]*\]|[^:/?]*)(?::(\d+))?(.*)$/.exec(text) ?? [];
  assert.ok(scheme === 'http' || scheme === 'https', text);
  const host = name.replace(/^\[|\]$/g, '');
  const defaultPort = { http: 80, https: 443 }[scheme];
  return { scheme, host, literal: parseAddress(host) ?? null, port: Number(port ?? defaultPort), target };
}

/** `answered 200`, `failed connect connection_refused` or `private`: an outcome in one line, for tables of cases. */
export function verdict(outcome: Outcome): string {
  if (outcome.kind === 'private') return 'private';
  if (outcome.kind === 'failed') return `failed ${outcome.seen.stage} ${outcome.reason}`;
  return `answered ${outcome.status}`;
}

/** Linux has all of 127/8; other systems may have 127.0.0.1 only, and tests adapt. */
export async function isLocalAddress(address: string): Promise<boolean> {
  const server = net.createServer().listen(0, address);
  return once(server, 'listening').then(
    () => {
      server.close();
      return true;
    },
    () => false,
  );
}
