// ACME under SIGKILL: clients order, prove by dns-01, finalize and download concurrently; the service or one of its
// processes is killed (with PostgreSQL, sometimes together with the database), and started again. Every client goes on where
// it was, by what its resources say: every order that was answered becomes valid, and every certificate that was downloaded
// is there, byte for byte.
import { createHash, randomInt } from 'node:crypto';
import { mkdtempDisposableSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../src/adapters/store/engine/schema.ts';
import { type DnsServer, startDnsServer } from '../src/sandbox/dns-server.ts';
import { type AcmeAnswer, AcmeClient, type Json, newEab } from '../test/support/acme.ts';
import { acmeCsr, dnsIdentifiers, keyAuthorization } from '../test/support/acme-orders.ts';
import type { Campaign, Print } from './campaign.ts';
import { ENGINES, type EngineName } from './kill.ts';
import { fraction } from './random.ts';
import { expireLeases, faultsIn, readTables, untilQuiet } from './reissue-kill.ts';
import { makeKeys, ready, type Settings, startService, withStore, withTables } from './service.ts';
import { kill, victimOf, workersFor } from './victims.ts';

interface AcmeKillPlan {
  readonly kills: number;
  readonly workers: number;
  readonly clients: number;
  /** The kill comes after this many downloads, at least and at most. */
  readonly least: number;
  readonly most: number;
  /** Seeds the timing of the kills. A run is not reproducible, because scheduling varies. */
  readonly seed: number;
  readonly print: Print;
}

interface AcmeKillReport {
  readonly broken: string[];
  kills: number;
  /** Certificates downloaded before a kill. */
  downloaded: number;
  /** Orders that were answered and not downloaded when the kill came. */
  resumed: number;
}

const ROUND_MS = 120_000;
const FINISH_MS = 60_000;
const MAX_DELAY_MS = 40;
const POLL_MS = 5;
const MAX_BROKEN = 20;

/** No answer: the connection ended with the process. */
class Lost extends Error {}

/** A client and what it knows: its orders, and the certificates that it has. */
class Ordering {
  readonly client: AcmeClient;
  readonly dns: DnsServer;
  readonly open: string[] = [];
  readonly certificates = new Map<string, string>();
  #orders = 0;

  constructor(client: AcmeClient, dns: DnsServer) {
    this.client = client;
    this.dns = dns;
  }

  /** Busy and a used nonce are answers to come back after. */
  async #post(url: string, payload?: unknown): Promise<AcmeAnswer> {
    for (;;) {
      const answer = await this.client.post(url, payload).catch((cause) => {
        throw new Lost(url, { cause });
      });
      const isPassing = answer.status === 503 || answer.body?.type?.endsWith(':badNonce');
      if (!isPassing) return answer;
      await sleep(POLL_MS);
    }
  }

  async place(origin: string, prefix: string): Promise<void> {
    this.#orders += 1;
    const identifiers = dnsIdentifiers([`o${this.#orders}.${prefix}.com`]);
    const answer = await this.#post(`${origin}/acme/new-order`, { identifiers });
    if (answer.status !== 201) throw new Error(`newOrder: ${answer.text}`);
    this.open.push(answer.headers.get('location') ?? '');
  }

  /** Brings the oldest open order to its end, from wherever it is. */
  async finish(): Promise<void> {
    const [url = ''] = this.open;
    const end = performance.now() + FINISH_MS;
    for (;;) {
      const { body } = await this.#post(url);
      if (performance.now() > end) throw new Error(`${url} is stuck: ${JSON.stringify(body)}`);
      if (body.status === 'valid') {
        const { status, text } = await this.#post(body.certificate);
        if (status !== 200) throw new Error(`${body.certificate}: ${text}`);
        this.certificates.set(body.certificate, text);
        this.open.shift();
        return;
      }
      if (body.status === 'pending') await this.#prove(body.authorizations[0]);
      else if (body.status === 'ready') {
        const names = body.identifiers.map(({ value }: { value: string }) => value);
        const answer = await this.#post(body.finalize, { csr: acmeCsr(names) });
        // An earlier request may have been taken whose answer was lost.
        if (answer.status !== 200 && !answer.body.type.endsWith(':orderNotReady'))
          throw new Error(`finalize: ${answer.text}`);
      } else if (body.status !== 'processing') throw new Error(`${url} is ${JSON.stringify(body)}`);
      await sleep(POLL_MS);
    }
  }

  async #prove(authorization: string): Promise<void> {
    const { body } = await this.#post(authorization);
    const challenge = body.challenges.find(({ type }: Json) => type === 'dns-01');
    if (challenge?.status !== 'pending') return;
    const text = keyAuthorization(this.client, challenge.token);
    const digest = createHash('sha256').update(text).digest('base64url');
    this.dns.set(`_acme-challenge.${body.identifier.value}`, 'TXT', [digest]);
    await this.#post(challenge.url, {});
  }

  /** What was downloaded before and is not there now. */
  async missing(): Promise<string[]> {
    const missing: string[] = [];
    for (const [url, text] of this.certificates) if ((await this.#post(url)).text !== text) missing.push(url);
    return missing;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address ? address.port : 0;
}

/** Leases last minutes; the processes that held them are dead. */
const expireAll = async (db: Db): Promise<void> => {
  await expireLeases(db);
  await db.updateTable('acme_authorization').set({ due_at: 1 }).where('due_at', 'is not', null).execute();
  await db.updateTable('waiting_certificate').set({ due_at: 1 }).execute();
};

export async function killDuringAcme(engine: EngineName, plan: AcmeKillPlan): Promise<AcmeKillReport> {
  const { kills, print, seed } = plan;
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-acme-kill-'));
  await using database = await ENGINES[engine]();
  await using dns = await startDnsServer({ host: '127.0.0.1', port: 0 });
  // The same address after a restart: it is in every URL that the clients know.
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const settings: Settings = {
    ...{ RESEAL_DATA_DIR: folder.path, RESEAL_PORT: String(port), RESEAL_PUBLIC_URL: origin },
    ...{ RESEAL_DNS_SERVERS: `127.0.0.1:${dns.port}`, ...database.settings },
  };
  const keys = await makeKeys(settings, plan.clients);
  const eabs = await withStore(settings, (app) => Promise.all(keys.map(({ accountId }) => newEab({ app }, accountId))));
  const report: AcmeKillReport = { broken: [], kills: 0, downloaded: 0, resumed: 0 };
  const start = () => startService(settings, undefined, ['--workers', String(plan.workers)]);
  let service = await start();
  try {
    const all: Ordering[] = [];
    for (const eab of eabs) {
      const client = new AcmeClient(origin);
      await client.register(eab);
      all.push(new Ordering(client, dns));
    }
    for (let round = 1; round <= kills && report.broken.length < MAX_BROKEN; round += 1) {
      const victim = victimOf(plan.workers, `${seed} ${round}`);
      const killDatabase = victim === 'everything' && round % 2 === 0 ? database.kill : undefined;
      const before = all.reduce((sum, { certificates }) => sum + certificates.size, 0);
      const target =
        before + plan.least + Math.floor(fraction(`${seed} ${round} count`) * (plan.most - plan.least + 1));
      let deaths: Promise<[boolean, unknown]> | undefined;
      const killNow = () => {
        deaths = Promise.all([kill(service, victim, `${seed} ${round}`), killDatabase?.()]);
        deaths.catch(() => {});
      };
      let isTimed = false;
      const signal = AbortSignal.timeout(ROUND_MS);
      const orderOn = async (one: Ordering, lane: number) => {
        try {
          while (!signal.aborted && !deaths) {
            if (one.open.length === 0) await one.place(origin, `r${round}l${lane}`);
            await one.finish();
            const downloaded = all.reduce((sum, { certificates }) => sum + certificates.size, 0);
            if (downloaded < target || isTimed) continue;
            isTimed = true;
            setTimeout(killNow, fraction(`${seed} ${round} delay`) * MAX_DELAY_MS);
          }
        } catch (error) {
          if (!(error instanceof Lost)) report.broken.push(String(error));
        }
      };
      await Promise.all(all.map(orderOn));
      if (!deaths)
        throw new Error(`the round ended before its kill: ${report.broken.join('; ')} ${service.process.output}`);
      const [isOver] = await deaths;
      if (killDatabase) await database.start?.();
      const resumed = all.reduce((sum, { open }) => sum + open.length, 0);
      await withTables(settings, async (db) => {
        if (engine === 'PostgreSQL') await untilQuiet(db);
        if (isOver) await expireAll(db);
      });
      if (isOver) service = await start();
      await ready(service.url);
      await Promise.all(
        all.map(async (one) => {
          try {
            while (one.open.length > 0) await one.finish();
            report.broken.push(...(await one.missing()).map((url) => `${url} is not what was downloaded`));
          } catch (error) {
            report.broken.push(`after kill ${round}: ${error}`);
          }
        }),
      );
      report.broken.push(...faultsIn(await withTables(settings, readTables)));
      report.kills += 1;
      report.downloaded = all.reduce((sum, { certificates }) => sum + certificates.size, 0);
      report.resumed += resumed;
      print(
        `${engine} ${round}/${kills}: killed ${victim}${killDatabase ? ' with the database' : ''}; ${resumed} orders resumed, ${report.downloaded} certificates in all`,
      );
    }
  } finally {
    await kill(service, 'everything', '');
  }
  return report;
}

const PLAN = { clients: 12, least: 1, most: 60 };

export const acmeKill: Campaign = {
  about: 'N kills under concurrent ACME orders, half on each engine: every order that was answered is finished',
  defaultN: 40,
  async run(n, print) {
    const seed = Number(process.env.CAMPAIGN_SEED ?? randomInt(2 ** 31));
    print(`seed ${seed} (CAMPAIGN_SEED sets it)`);
    const broken: string[] = [];
    for (const engine of Object.keys(ENGINES) as EngineName[]) {
      const workers = workersFor(engine);
      const report = await killDuringAcme(engine, { ...PLAN, kills: Math.ceil(n / 2), workers, seed, print });
      print(
        `${engine}, ${workers} workers: ${report.kills} kills, ${report.downloaded} downloaded, ${report.resumed} resumed`,
      );
      broken.push(...report.broken.map((one) => `${engine}: ${one}`));
    }
    return broken;
  },
};
