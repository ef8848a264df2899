// Is every certificate that was answered still there, and complete, after the service is killed in the middle of
// reissues? And what was only written down: is it left in a state from which nobody signs it again, and does its order
// go on? Reissues of several orders run side by side, the service dies by SIGKILL (with PostgreSQL, every second time
// the database dies with it), and the tables are read while nobody writes. Then the leases of the dead are moved into
// the past, so that nobody has to wait for their end, and every order is reissued once more.
import { hash, randomInt, X509Certificate } from 'node:crypto';
import { mkdtempDisposableSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { openEngine } from '../src/adapters/store/engine/engine.ts';
import type { Db } from '../src/adapters/store/engine/schema.ts';
import { engineAt } from '../src/adapters/store/store.ts';
import { readConfig } from '../src/config/config.ts';
import { openIssuance } from '../src/wiring/issuance.ts';
import type { Key } from '../test/support/app.ts';
import type { KeyKind } from '../test/support/csr.ts';
import { body, csrFor, type PlacedOrder } from '../test/support/orders.ts';
import type { Campaign, Print } from './campaign.ts';
import { ENGINES, type EngineName } from './kill.ts';
import { makeKeys, offline, type Service, type Settings, startService, withStore } from './service.ts';

export interface ReissueKillPlan {
  readonly kills: number;
  readonly orders: number;
  readonly writersEach: number;
  /** The kill comes after a number of acknowledgements between these two. */
  readonly least: number;
  readonly most: number;
  /** Decides when the kills come. The same seed does not repeat a run: the machine has its say. */
  readonly seed: number;
  readonly print: Print;
}

export interface ReissueKillReport {
  readonly broken: string[];
  kills: number;
  acknowledged: number;
  /** Sent, and not answered because of a kill. */
  inDoubt: number;
  /** Of those in doubt, the ones that turned out to be issued. */
  kept: number;
  /** Written down, not finished when the kill came, and voided afterwards. */
  voided: number;
}

const ROUND_MS = 120_000;
const ANSWER_MS = 15_000;
const MAX_DELAY_MS = 12;
const MAX_BROKEN = 20;
const QUIET_MS = 10_000;
/** One for all, byte for byte: an idempotency key belongs to a body. */
const BODY = JSON.stringify(body());

/** Orders with one validated name each, every one of an account of its own. */
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
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape, looked into by those who know which they expect.
  readonly body: any;
}

/** node:http, because it never sends a request twice by itself: a reissue without an answer stays in doubt. */
export class ReissueClient implements Disposable {
  readonly #agent: Agent;

  constructor(maxSockets: number) {
    this.#agent = new Agent({ keepAlive: true, maxSockets });
  }

  /** Resolves without an answer when there was none, or only a part of one: the id is in its body. */
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

/** The bare tables, for as long as the work takes. On PostgreSQL not before the connections of the dead are gone. */
export async function withTables<T>(settings: Settings, work: (db: Db) => Promise<T>): Promise<T> {
  const { database } = readConfig(settings).config;
  const isServer = database.kind === 'postgresql';
  const db = openEngine(engineAt(isServer ? { ...database, maxConnections: 1 } : database), () => {});
  try {
    return await work(db);
  } finally {
    await db.destroy();
  }
}

/** A server may finish what a killed service sent it. */
async function untilNobodyElse(db: Db): Promise<void> {
  for (const end = Date.now() + QUIET_MS; Date.now() < end; await sleep(10)) {
    const { rows } = await sql<{ others: number }>`select cast(count(*) as integer) as others from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`.execute(db);
    if (rows[0]?.others === 0) return;
  }
  throw new Error('somebody is still connected to the database');
}

export type Tables = Awaited<ReturnType<typeof readTables>>;

export async function readTables(db: Db) {
  const has = (column: string) => sql<number>`case when ${sql.ref(column)} is null then 0 else 1 end`;
  const certificates = await db
    .selectFrom('certificate')
    .select(['id', 'order_id', 'state', 'serial', 'version', 'replaces_id'])
    .select([has('der').as('has_der'), has('to_be_signed').as('has_to_be_signed')])
    .execute();
  const orders = await db
    .selectFrom('certificate_order')
    .select(['id', 'status', 'current_certificate_id', 'pending_certificate_id'])
    .select(['signing_certificate_id', 'signing_until'])
    .execute();
  const events = await db.selectFrom('outbox').select(['certificate_id']).execute();
  const answers = await db.selectFrom('idempotency_key').select(['key', 'certificate_id']).execute();
  return { certificates, orders, events, answers };
}

/** What is wrong whatever happened before: half of a transaction, a gap or a fork in a chain, a serial number twice. */
export function faultsIn({ certificates, orders, events }: Tables): string[] {
  const faults: string[] = [];
  const must = (isSo: boolean, fault: string) => void (isSo || faults.push(fault));
  const issued = certificates.filter(({ state }) => state === 'issued');
  const serials = certificates.map(({ serial }) => serial).filter((serial) => serial !== null);
  must(new Set(serials).size === serials.length, 'a serial number is there twice');
  for (const { id, state, serial, version, has_der, has_to_be_signed } of certificates) {
    const isIssued = state === 'issued';
    must((has_der === 1) === isIssued && (version !== null) === isIssued, `${id} is ${state}, with der: ${has_der}`);
    must((serial !== null) === (state !== 'pending'), `${id} is ${state}, with serial number: ${serial}`);
    must((has_to_be_signed === 1) === (state === 'prepared' || state === 'voided'), `${id}: bytes to be signed`);
  }
  must(
    events.length === issued.length && new Set(events.map((event) => event.certificate_id)).size === issued.length,
    `${issued.length} certificates were issued, and ${events.length} events are to be sent`,
  );
  for (const order of orders) {
    const own = certificates.filter(({ order_id }) => order_id === order.id);
    const chain = own.filter(({ state }) => state === 'issued').sort((one, other) => one.version! - other.version!);
    for (const [index, { id, version, replaces_id }] of chain.entries()) {
      must(version === index + 1, `${id} is version ${version} of ${order.id}, not ${index + 1}`);
      must(replaces_id === (chain[index - 1]?.id ?? null), `${id} replaces ${replaces_id}, not the version before`);
    }
    must(order.current_certificate_id === (chain.at(-1)?.id ?? null), `${order.id}: the newest is not the current one`);
    const unfinished = own.filter(({ state }) => state === 'prepared').map(({ id }) => id);
    const signing = order.signing_certificate_id === null ? [] : [order.signing_certificate_id];
    must(unfinished.join() === signing.join(), `${order.id} signs ${signing}, and ${unfinished} is prepared`);
    must((order.signing_until === null) === (signing.length === 0), `${order.id}: a lease without an end`);
  }
  return faults;
}

/** As if everybody had waited for the leases of the dead to end. */
const endLeases = (db: Db) =>
  db.updateTable('certificate_order').set({ signing_until: 1 }).where('signing_until', '>', 1).execute();

/** Parsed, signed by its issuer, and with the serial number that was written down. */
async function incomplete(db: Db, ids: readonly string[]): Promise<string[]> {
  const faults: string[] = [];
  const issuers = new Map<string, X509Certificate>();
  for (const { id, certificate } of await db.selectFrom('issuer').select(['id', 'certificate']).execute()) {
    issuers.set(id, new X509Certificate(Buffer.from(certificate, 'base64')));
  }
  for (const id of ids) {
    const columns = ['der', 'serial', 'issuer_id'] as const;
    const row = await db.selectFrom('certificate').select(columns).where('id', '=', id).executeTakeFirst();
    try {
      const parsed = new X509Certificate(Buffer.from(row?.der ?? '', 'base64'));
      const isSound = parsed.verify(issuers.get(row?.issuer_id ?? '')!.publicKey);
      if (!isSound || parsed.serialNumber.toLowerCase() !== row?.serial) faults.push(`${id} is not what was prepared`);
    } catch (error) {
      faults.push(`${id} cannot be read: ${error}`);
    }
  }
  return faults;
}

interface Doubt {
  readonly order: PlacedOrder;
  readonly key: string;
}

/** What the writers of one round were told. */
interface Told {
  readonly acknowledged: string[];
  readonly doubts: Doubt[];
  readonly strange: string[];
}

export async function killDuringReissues(engine: EngineName, plan: ReissueKillPlan): Promise<ReissueKillReport> {
  const { kills, print } = plan;
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-reissue-kill-'));
  await using database = await ENGINES[engine]();
  const settings = { RESEAL_DATA_DIR: folder.path, ...database.settings };
  const orders = await placeOrders(settings, plan.orders);
  const report: ReissueKillReport = { broken: [], kills: 0, acknowledged: 0, inDoubt: 0, kept: 0, voided: 0 };
  const everAcknowledged = new Set(orders.map(({ certificateId }) => certificateId));
  let service = await startService(settings);
  try {
    for (let round = 1; round <= kills && report.broken.length < MAX_BROKEN; round += 1) {
      const isPowerCut = database.kill !== undefined && round % 2 === 0;
      const told = await reissueUntilKilled(service, orders, plan, round, isPowerCut ? database.kill : undefined);
      if (isPowerCut) await database.start?.();
      for (const id of told.acknowledged) everAcknowledged.add(id);
      const before = await withTables(settings, async (db) => {
        if (engine === 'PostgreSQL') await untilNobodyElse(db);
        const tables = await readTables(db);
        report.broken.push(...told.strange, ...faultsIn(tables), ...(await incomplete(db, told.acknowledged)));
        return tables;
      });
      // What is overdue is found by whoever starts, or by the next reissue of the order: each has its turn.
      if (round % 3 === 0) await withTables(settings, endLeases);
      service = await startService(settings);
      if (round % 3 !== 0) await withTables(settings, endLeases);
      const again = await reissueOnceMore(service, orders, told.doubts, before);
      const after = await withTables(settings, readTables);
      const states = new Map(after.certificates.map(({ id, state }) => [id, state]));
      const unfinished = before.certificates.filter(({ state }) => state === 'prepared');
      report.broken.push(...again.strange, ...faultsIn(after));
      for (const id of again.acknowledged) everAcknowledged.add(id);
      for (const id of everAcknowledged) if (states.get(id) !== 'issued') report.broken.push(`${id} was lost`);
      for (const { id } of unfinished) if (states.get(id) !== 'voided') report.broken.push(`${id} was not voided`);
      for (const order of after.orders) if (order.signing_until !== null) report.broken.push(`${order.id} is locked`);
      const kept = told.doubts.filter(({ key }) => before.answers.some((answer) => answer.key === key)).length;
      report.kills += 1;
      report.acknowledged += told.acknowledged.length;
      report.inDoubt += told.doubts.length;
      report.kept += kept;
      report.voided += unfinished.length;
      print(
        `${engine} ${round}/${kills}: killed ${isPowerCut ? 'with its database ' : ''}after ${told.acknowledged.length}; ` +
          `${told.doubts.length} in doubt (${kept} kept), ${unfinished.length} unfinished and voided`,
      );
    }
  } finally {
    await service.process.end('SIGKILL');
  }
  return report;
}

async function reissueUntilKilled(
  { url, process }: Service,
  orders: readonly PlacedOrder[],
  { writersEach, least, most, seed }: ReissueKillPlan,
  round: number,
  killDatabase: (() => Promise<void>) | undefined,
): Promise<Told> {
  const target = least + Math.floor(fraction(`${seed} ${round} count`) * (most - least + 1));
  const delayMs = fraction(`${seed} ${round} delay`) * MAX_DELAY_MS;
  using client = new ReissueClient(orders.length * writersEach);
  const told: Told = { acknowledged: [], doubts: [], strange: [] };
  const signal = AbortSignal.timeout(ROUND_MS);
  let deaths: Promise<unknown> | undefined;
  const kill = () => {
    deaths = Promise.all([process.end('SIGKILL'), killDatabase?.()]);
    // Awaited once the writers have noticed; until then a failure must not end this process.
    deaths.catch(() => {});
  };
  const writer = async (order: PlacedOrder, lane: number) => {
    for (let count = 0; !signal.aborted; count += 1) {
      const key = `${round}-${lane}-${count}`;
      const answer = await client.reissue(url, order, BODY, key);
      // Busy says "made or not, look which": the database may have died first.
      if (!answer || answer.status === 503) told.doubts.push({ order, key });
      if (!answer) return;
      if (answer.status === 200) {
        told.acknowledged.push(answer.body.data.certificate.id);
        if (told.acknowledged.length === target) setTimeout(kill, delayMs);
      } else if (answer.status !== 503) told.strange.push(`answered ${answer.status} ${JSON.stringify(answer.body)}`);
    }
  };
  const lanes = Array.from({ length: orders.length * writersEach }, (_, lane) => lane);
  await Promise.all(lanes.map((lane) => writer(orders[lane % orders.length]!, lane)));
  if (!deaths) throw new Error(`only ${told.acknowledged.length} of ${target} were answered: ${process.output}`);
  await deaths;
  return told;
}

/** Those in doubt with the key they had, which must find what was issued; and every order anew. */
async function reissueOnceMore({ url }: Service, orders: readonly PlacedOrder[], doubts: Doubt[], before: Tables) {
  using client = new ReissueClient(orders.length * 2);
  const told: Omit<Told, 'doubts'> = { acknowledged: [], strange: [] };
  const once = async ({ order, key }: { order: PlacedOrder; key?: string }) => {
    const answer = await client.reissue(url, order, BODY, key);
    const id = answer?.body.data?.certificate?.id;
    const expected = before.answers.find((one) => key !== undefined && one.key === key)?.certificate_id ?? id;
    if (answer?.status === 200 && id === expected) told.acknowledged.push(id);
    else told.strange.push(`after the restart: ${JSON.stringify(answer)} instead of ${expected ?? 'a certificate'}`);
  };
  await Promise.all([...doubts, ...orders.map((order) => ({ order }))].map(once));
  return told;
}

/** Seeded, and good enough to scatter kills. */
const fraction = (text: string): number => Number.parseInt(hash('sha256', text).slice(0, 8), 16) / 2 ** 32;

export const reissueKill: Campaign = {
  about: 'N kills under concurrent reissues, half of them on each engine: certificates are whole, and orders go on',
  defaultN: 500,
  async run(n, print) {
    const seed = Number(process.env.CAMPAIGN_SEED ?? randomInt(2 ** 31));
    print(`seed ${seed} (CAMPAIGN_SEED sets it)`);
    const broken: string[] = [];
    for (const engine of Object.keys(ENGINES) as EngineName[]) {
      const plan = { kills: Math.ceil(n / 2), orders: 8, writersEach: 3, least: 1, most: 80, seed, print };
      const report = await killDuringReissues(engine, plan);
      const { kills, acknowledged, inDoubt, kept, voided } = report;
      print(
        `${engine}: ${kills} kills, ${acknowledged} acknowledged, ${inDoubt} in doubt (${kept} kept), ${voided} voided`,
      );
      broken.push(...report.broken.map((one) => `${engine}: ${one}`));
    }
    return broken;
  },
};
