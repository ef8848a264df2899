// Domain validation through real resolvers, BIND and unbound with the shipped settings, if they are found on the PATH: broken
// DNSSEC is refused, each failure has its diagnosis, a record that is published is issued within 20 s, and one that is deleted
// stops authorizing within the TTL bound.
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Key } from '../test/support/app.ts';
import { body, csrFor } from '../test/support/orders.ts';
import { spawnReseal } from '../test/support/process.ts';
import type { Campaign, Print } from './campaign.ts';
import { Internet, isInstalled, type Resolver, silentPort } from './name-servers.ts';
import { makeKeys, type Service, type Settings, startService } from './service.ts';

const PROGRAMS = ['named', 'unbound', 'dnssec-keygen', 'dnssec-signzone', 'dnssec-dsfromkey'];
const PUBLISH_AFTER_MS = 5_000;
const ISSUED_WITHIN_MS = 20_000;
/** cache-max-ttl, and the pause between two reissues. */
const REFUSED_WITHIN_MS = 30_000 + 3_000;
const POLL_MS = 1_000;
const PERSIST = { dcv_method: 'dns-persist' };

export const resolvers: Campaign = {
  about: 'validates names through BIND and unbound, with N records published and deleted each',
  defaultN: 2,
  async run(n, print) {
    const missing = PROGRAMS.filter((program) => !isInstalled(program));
    if (missing.length > 0) {
      print(`not installed, nothing was asked: ${missing.join(', ')}`);
      return [];
    }
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-resolvers-'));
    await using internet = await Internet.start(folder.path);
    const broken: string[] = [];
    const expect = (what: string, isTrue: boolean, seen: unknown) => {
      print(`${isTrue ? 'ok  ' : 'FAIL'} ${what}: ${typeof seen === 'string' ? seen : JSON.stringify(seen)}`);
      if (!isTrue) broken.push(`${what}: ${JSON.stringify(seen)}`);
    };
    const unbound = await internet.unbound();
    const bind = await internet.bind();
    const careless = await internet.unbound((text) => text.replace('"validator iterator"', '"iterator"'));
    const settingsFor = (address: string): Settings => ({
      ...{ RESEAL_DATA_DIR: join(folder.path, address.replaceAll(/\W/g, '-')), RESEAL_WORKERS: '0' },
      ...{ RESEAL_DNS_SERVERS: address, RESEAL_DNSSEC_TEST_NAME: 'bogus.com', RESEAL_ISSUER_NAMES: 'ca.example.net' },
    });
    for (const [name, resolver] of Object.entries({ unbound, bind })) {
      const experiment = new Experiment({ name, resolver, internet, expect, print });
      await experiment.run(settingsFor(resolver.address), n);
    }
    const { out } = await spawnReseal(['doctor', '--json'], settingsFor(careless.address));
    const finding = resolverFinding(out);
    expect('without validation: doctor', finding?.state === 'problem', finding?.text);
    using silent = await silentPort();
    await silentFirst(settingsFor(`127.0.0.1:${silent.port},${unbound.address}`), internet, expect);
    return broken;
  },
};

type Expect = (what: string, isTrue: boolean, seen: unknown) => void;

const resolverFinding = (out: string): { state: string; text: string } | undefined =>
  JSON.parse(out).findings.find(({ check }: { check: string }) => check === 'resolver');

interface Parts {
  readonly name: string;
  readonly resolver: Resolver;
  readonly internet: Internet;
  readonly expect: Expect;
  readonly print: Print;
}

/** A service with one resolver. */
class Experiment {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async run(settings: Settings, n: number): Promise<void> {
    const { name, expect } = this.#parts;
    const finding = resolverFinding((await spawnReseal(['doctor', '--json'], settings)).out);
    expect(`${name}: doctor`, finding?.state === 'ok', finding?.text);
    const client = await Client.start(settings);
    try {
      await this.#diagnoses(client);
      for (let round = 0; round < n; round += 1) await this.#publishAndDelete(client, `r${round}-${name}.sound.com`);
      await this.#outage(client);
    } finally {
      await client.service.process.end('SIGTERM');
    }
  }

  async #diagnoses(client: Client): Promise<void> {
    const { name, internet } = this.#parts;
    const expect = (what: string, found: Found, result: string, message: RegExp) =>
      this.#parts.expect(`${name}: ${what}`, found.result === result && message.test(found.message), found);
    // Of BIND 9.18 there is no extended error for it.
    const bogus = await client.check(await client.place('bogus.com', PERSIST));
    expect(
      'broken DNSSEC',
      bogus,
      'dns_failure',
      name === 'unbound' ? /DNSSEC does not verify\. Correct .*EDE/ : /DNSSEC/,
    );
    expect('servers that fail', await client.check(await client.place('dead.com')), 'dns_failure', /name servers fail/);
    const wrong = await client.place(`wrong-${name}.plain.com`);
    expect('no record', await client.check(wrong), 'no_record', /no TXT record/);
    await internet.set(`_dnsauth.other-${name}.plain.com`, 'TXT "not this one"');
    const other = await client.place(`other-${name}.plain.com`);
    expect('another value', await client.check(other), 'wrong_value', /Found: "not this one"/);
    await internet.set(`target-${name}.plain.com`, 'CAA 0 issue "other-ca.example"');
    await internet.set(`alias-${name}.plain.com`, `CNAME target-${name}.plain.com.`);
    const { caa } = await client.check(await client.place(`alias-${name}.plain.com`));
    expect('CAA through a CNAME', caa, 'caa_forbidden', new RegExp(`by CNAME target-${name}`));
  }

  /** The first look, at placing, is before the record is there. */
  async #publishAndDelete(client: Client, domain: string): Promise<void> {
    const { name, internet, expect } = this.#parts;
    const order = await client.place(domain, PERSIST);
    const [{ auth_path, auth_val, problem }] = (await client.show(order)).dcv_val;
    expect(`${name}: the early look says how long it is cached`, problem?.cached_until != null, problem);
    await sleep(PUBLISH_AFTER_MS);
    await internet.set(auth_path, `TXT "${auth_val}"`);
    const issuedMs = await untilTrue(ISSUED_WITHIN_MS, async () => (await client.show(order)).status === 'issued');
    expect(`${name}: issued after publication`, issuedMs !== undefined, `${issuedMs} ms`);
    if (issuedMs === undefined) return;
    const fields = body({ common_name: domain }, PERSIST);
    await client.call('POST', `orders/${order}/reissue`, fields);
    await internet.set(auth_path, undefined);
    const refusedMs = await untilTrue(REFUSED_WITHIN_MS, async () => {
      await client.call('POST', `orders/${order}/reissue`, body({ common_name: domain }, PERSIST));
      return (await client.show(order)).status === 'reissuing';
    });
    expect(`${name}: refused after deletion`, refusedMs !== undefined, `${refusedMs} ms`);
  }

  async #outage(client: Client): Promise<void> {
    const { name, resolver, expect } = this.#parts;
    const order = await client.place(`outage-${name}.plain.com`);
    resolver.signal('SIGSTOP');
    const found = await client.check(order);
    expect(`${name}: a silent resolver`, found.result === 'resolver_unreachable', found);
    const ready: Json = await (await fetch(`${client.service.url}/readyz`)).json();
    expect(`${name}: readiness`, ready.data?.resolvers?.unreachable?.[0] === resolver.address, ready);
    const { output } = client.service.process;
    expect(`${name}: log line`, output.includes('resolver_unreachable'), resolver.address);
    resolver.signal('SIGCONT');
    const after = await client.check(order);
    expect(`${name}: back again`, after.result === 'no_record', after);
  }
}

/** Of two resolvers the first does not answer: a record that is there is found before the answer. */
async function silentFirst(settings: Settings, internet: Internet, expect: Expect): Promise<void> {
  const client = await Client.start(settings);
  try {
    for (const domain of ['first.plain.com', 'second.plain.com']) {
      const value = `ca.example.net; accounturi=http://127.0.0.1:0/accounts/${client.key.accountId}`;
      await internet.set(`_validation-persist.${domain}`, `TXT "${value}"`);
      const begun = performance.now();
      const order = await client.place(domain, PERSIST);
      const { status, dcv_val } = await client.show(order);
      const ms = Math.round(performance.now() - begun);
      expect(`silent first resolver, ${domain}`, status === 'issued', [status, `${ms} ms`, dcv_val[0].problem]);
    }
  } finally {
    await client.service.process.end('SIGTERM');
  }
}

interface Found {
  readonly result: string;
  readonly message: string;
}

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
type Json = any;

class Client {
  readonly service: Service;
  readonly key: Key;

  constructor(service: Service, key: Key) {
    this.service = service;
    this.key = key;
  }

  static async start(settings: Settings): Promise<Client> {
    const [key] = await makeKeys(settings, 1);
    return new Client(await startService(settings), key!);
  }

  async call(method: string, path: string, json?: unknown): Promise<Json> {
    const response = await fetch(`${this.service.url}/openapi/v3/${path}`, {
      method,
      headers: {
        ...{ 'X-CC-Key-ID': this.key.keyId, 'X-CC-Auth-Key': this.key.authKey },
        ...(json !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
    return await response.json();
  }

  async place(name: string, top: object = {}): Promise<string> {
    const certificate = { csr: csrFor(), common_name: name, sign_hash: 'sha256' };
    const { data, ...rest } = await this.call('POST', 'orders/ssl-dv', { certificate, ...top });
    if (!data) throw new Error(JSON.stringify(rest));
    return data.id;
  }

  async show(order: string): Promise<Json> {
    return (await this.call('GET', `orders/${order}`)).data;
  }

  async check(order: string): Promise<Found & { readonly caa: Found }> {
    const { data, ...rest } = await this.call('GET', `orders/${order}/dcv-check`);
    if (!data) throw new Error(JSON.stringify(rest));
    return data.checks[0];
  }
}

/** How long it took; undefined if it did not come true in time. */
async function untilTrue(mostMs: number, isTrue: () => Promise<boolean>): Promise<number | undefined> {
  const begun = performance.now();
  while (performance.now() - begun < mostMs) {
    if (await isTrue()) return Math.round(performance.now() - begun);
    await sleep(POLL_MS);
  }
  return undefined;
}
