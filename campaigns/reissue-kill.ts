// Issuance under SIGKILL: every acknowledged certificate must be present and complete, every one that was being signed must
// be voided and never signed again, and every order must accept reissues. Reissues of several orders run concurrently, the
// service or one of its processes is killed (with PostgreSQL, often together with the database), and the tables are read while no
// writer runs. Then the leases of the killed signers are expired, and every order is reissued once more.
import { randomInt, X509Certificate } from 'node:crypto';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Db } from '../src/adapters/store/engine/schema.ts';
import { body, type PlacedOrder } from '../test/support/orders.ts';
import type { Campaign, Print } from './campaign.ts';
import { ENGINES, type EngineName } from './kill.ts';
import { fraction } from './random.ts';
import { placeOrders, ReissueClient } from './reissues.ts';
import { ready, type Service, startService, withTables } from './service.ts';
import { kill, type Victim, victimOf, workersFor } from './victims.ts';

interface ReissueKillPlan {
  readonly kills: number;
  /** Processes that answer requests; 0 for a service in one process. With several, single ones are killed too. */
  readonly workers: number;
  readonly orders: number;
  readonly writersEach: number;
  /** The kill comes after this many acknowledgements, at least and at most. */
  readonly least: number;
  readonly most: number;
  /** Seeds the timing of the kills. A run is not reproducible, because scheduling varies. */
  readonly seed: number;
  readonly print: Print;
}

interface ReissueKillReport {
  readonly broken: string[];
  kills: number;
  acknowledged: number;
  /** Sent, but not answered because of a kill. */
  inDoubt: number;
  /** Of those in doubt, the ones that were issued. */
  kept: number;
  /** Being signed when the kill came, and voided afterwards. */
  voided: number;
}

const ROUND_MS = 120_000;
const MAX_DELAY_MS = 12;
const MAX_BROKEN = 20;
const QUIET_MS = 10_000;
/** The same bytes for all requests, because an idempotency key is bound to a body. */
const BODY = JSON.stringify(body());

/** Waits until no other client is at work: PostgreSQL may still complete statements of a killed process. */
export async function untilQuiet(db: Db): Promise<void> {
  for (const end = Date.now() + QUIET_MS; Date.now() < end; await sleep(10)) {
    const { rows } = await sql<{ others: number }>`select cast(count(*) as integer) as others from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
      and state <> 'idle'`.execute(db);
    if (rows[0]?.others === 0) return;
  }
  throw new Error('another client is still at work in the database');
}

type Tables = Awaited<ReturnType<typeof readTables>>;

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
    .execute();
  const signings = await db
    .selectFrom('signing')
    .select(['order_id', 'certificate_id', 'serial', 'half_serial', 'to_be_signed', 'lease_ends_at'])
    .execute();
  const halves = await db.selectFrom('encryption_certificate').select('serial').execute();
  const events = await db.selectFrom('outbox').select(['certificate_id']).execute();
  const answers = await db.selectFrom('idempotency_key').select(['key', 'certificate_id']).execute();
  return { certificates, orders, signings, halves, events, answers };
}

/** Violated invariants: half of a transaction, a gap or fork in a chain, a duplicate serial number. */
export function faultsIn({ certificates, orders, signings, halves, events }: Tables): string[] {
  const faults: string[] = [];
  const must = (isSo: boolean, fault: string) => void (isSo || faults.push(fault));
  const issued = certificates.filter(({ state }) => state === 'issued');
  const serials = [
    ...[...certificates, ...signings, ...halves].map(({ serial }) => serial),
    ...signings.map(({ half_serial }) => half_serial),
  ].filter((serial) => serial !== null);
  must(new Set(serials).size === serials.length, 'a serial number is used twice');
  for (const { id, state, serial, version, has_der, has_to_be_signed } of certificates) {
    const isIssued = state === 'issued';
    must((has_der === 1) === isIssued && (version !== null) === isIssued, `${id} is ${state}, with der: ${has_der}`);
    must((serial !== null) === (isIssued || state === 'voided'), `${id} is ${state}, with serial number: ${serial}`);
    must((has_to_be_signed === 1) === (state === 'voided'), `${id} is ${state}, with bytes: ${has_to_be_signed}`);
    must(['pending', 'issued', 'voided', 'canceled'].includes(state), `${id} is ${state}`);
  }
  must(
    events.length === issued.length && new Set(events.map((event) => event.certificate_id)).size === issued.length,
    `${issued.length} certificates were issued, and ${events.length} events are to be sent`,
  );
  for (const order of orders) {
    const own = certificates.filter(({ order_id }) => order_id === order.id);
    const chain = own
      .filter(({ state }) => state === 'issued')
      .sort((one, other) => (one.version ?? 0) - (other.version ?? 0));
    for (const [index, { id, version, replaces_id }] of chain.entries()) {
      must(version === index + 1, `${id} is version ${version} of ${order.id}, not ${index + 1}`);
      must(replaces_id === (chain[index - 1]?.id ?? null), `${id} replaces ${replaces_id}, not the version before`);
    }
    must(
      order.current_certificate_id === (chain.at(-1)?.id ?? null),
      `${order.id}: the newest certificate is not the current one`,
    );
    const signed = signings.filter(({ order_id }) => order_id === order.id);
    must(signed.length <= 1, `${order.id} is being signed ${signed.length} times`);
    for (const { certificate_id: id, to_be_signed, lease_ends_at } of signed) {
      must(to_be_signed !== '' && lease_ends_at > 0, `${id} is being signed without bytes or without a lease`);
      // One whose id was answered waits meanwhile; any other has no record yet.
      const { state = 'not stored' } = own.find((one) => one.id === id) ?? {};
      must(state === 'not stored' || state === 'pending', `${id} is being signed, and is ${state}`);
    }
  }
  return faults;
}

/** Expires the leases of killed signers, instead of waiting for them. */
export const expireLeases = (db: Db) => db.updateTable('signing').set({ lease_ends_at: 1 }).execute();

/** Certificates that do not parse, are not signed by their issuer, or have another serial number than prepared. */
async function invalidCertificates(db: Db, ids: readonly string[]): Promise<string[]> {
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
      const issuer = issuers.get(row?.issuer_id ?? '');
      if (!issuer || !parsed.verify(issuer.publicKey) || parsed.serialNumber.toLowerCase() !== row?.serial)
        faults.push(`${id} is not what was prepared`);
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

/** Answers that the writers of one round received. */
interface Answers {
  readonly acknowledged: string[];
  readonly doubts: Doubt[];
  readonly unexpected: string[];
}

export async function killDuringReissues(engine: EngineName, plan: ReissueKillPlan): Promise<ReissueKillReport> {
  const { kills, print } = plan;
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-reissue-kill-'));
  await using database = await ENGINES[engine]();
  const settings = { RESEAL_DATA_DIR: folder.path, ...database.settings };
  const orders = await placeOrders(settings, plan.orders);
  const report: ReissueKillReport = { broken: [], kills: 0, acknowledged: 0, inDoubt: 0, kept: 0, voided: 0 };
  const everAcknowledged = new Set(orders.map(({ certificateId }) => certificateId));
  const start = () => startService(settings, undefined, ['--workers', String(plan.workers)]);
  let service = await start();
  try {
    for (let round = 1; round <= kills && report.broken.length < MAX_BROKEN; round += 1) {
      const victim = victimOf(plan.workers, `${plan.seed} ${round}`);
      const isPowerCut = database.kill !== undefined && victim === 'everything' && round % 2 === 0;
      const answered = await reissueUntilKilled({
        ...{ number: round, service, orders, plan, victim },
        killDatabase: isPowerCut ? database.kill : undefined,
      });
      if (isPowerCut) await database.start?.();
      for (const id of answered.acknowledged) everAcknowledged.add(id);
      const before = await withTables(settings, async (db) => {
        if (engine === 'PostgreSQL') await untilQuiet(db);
        const tables = await readTables(db);
        report.broken.push(
          ...answered.unexpected,
          ...faultsIn(tables),
          ...(await invalidCertificates(db, answered.acknowledged)),
        );
        return tables;
      });
      // Expired leases are detected at start-up or by the next reissue of the order; alternate between both.
      if (round % 3 === 0) await withTables(settings, expireLeases);
      if (answered.isOver) service = await start();
      if (round % 3 !== 0) await withTables(settings, expireLeases);
      await ready(service.url);
      const again = await reissueAgain(service, orders, answered.doubts, before);
      const after = await withTables(settings, readTables);
      const states = new Map(after.certificates.map(({ id, state }) => [id, state]));
      const unfinished = before.signings;
      report.broken.push(...again.unexpected, ...faultsIn(after));
      for (const id of again.acknowledged) everAcknowledged.add(id);
      for (const id of everAcknowledged) if (states.get(id) !== 'issued') report.broken.push(`${id} was lost`);
      for (const { serial } of unfinished) {
        const voided = after.certificates.find((one) => one.serial === serial);
        if (voided?.state !== 'voided') report.broken.push(`${serial} was not voided`);
      }
      for (const { order_id } of after.signings) report.broken.push(`${order_id} is locked`);
      const kept = answered.doubts.filter(({ key }) => before.answers.some((answer) => answer.key === key)).length;
      report.kills += 1;
      report.acknowledged += answered.acknowledged.length;
      report.inDoubt += answered.doubts.length;
      report.kept += kept;
      report.voided += unfinished.length;
      print(
        `${engine} ${round}/${kills}: killed ${victim}${isPowerCut ? ' with the database' : ''} after ${answered.acknowledged.length}; ` +
          `${answered.doubts.length} in doubt (${kept} kept), ${unfinished.length} unfinished and voided`,
      );
    }
  } finally {
    await kill(service, 'everything', '');
  }
  return report;
}

interface Round {
  readonly number: number;
  readonly service: Service;
  readonly orders: readonly PlacedOrder[];
  readonly plan: ReissueKillPlan;
  readonly victim: Victim;
  readonly killDatabase: (() => Promise<void>) | undefined;
}

/** `isOver`: the service must be started again. */
async function reissueUntilKilled(round: Round): Promise<Answers & { isOver: boolean }> {
  const { number, service, orders, plan, victim, killDatabase } = round;
  const { url, process } = service;
  const { writersEach, least, most, seed } = plan;
  const target = least + Math.floor(fraction(`${seed} ${number} count`) * (most - least + 1));
  const delayMs = fraction(`${seed} ${number} delay`) * MAX_DELAY_MS;
  using client = new ReissueClient(orders.length * writersEach);
  const answered: Answers = { acknowledged: [], doubts: [], unexpected: [] };
  const signal = AbortSignal.timeout(ROUND_MS);
  let deaths: Promise<[boolean, unknown]> | undefined;
  const killNow = () => {
    deaths = Promise.all([kill(service, victim, `${seed} ${number}`), killDatabase?.()]);
    // Awaited later; until then a rejection must not end this process as unhandled.
    deaths.catch(() => {});
  };
  const writer = async (order: PlacedOrder, lane: number) => {
    for (let count = 0; !signal.aborted && !deaths; count += 1) {
      const key = `${number}-${lane}-${count}`;
      const answer = await client.reissue(url, order, BODY, key);
      // service_busy leaves the outcome open: the database may have died first.
      if (!answer || answer.status === 503) answered.doubts.push({ order, key });
      if (!answer) return;
      if (answer.status === 200) {
        answered.acknowledged.push(answer.body.data.certificate.id);
        if (answered.acknowledged.length === target) setTimeout(killNow, delayMs);
      } else if (answer.status !== 503)
        answered.unexpected.push(`answered ${answer.status} ${JSON.stringify(answer.body)}`);
    }
  };
  const writers = Array.from({ length: writersEach }, () => orders).flat();
  await Promise.all(writers.map(writer));
  if (!deaths) throw new Error(`only ${answered.acknowledged.length} of ${target} were answered: ${process.output}`);
  const [isOver] = await deaths;
  return { ...answered, isOver };
}

/** Repeats the reissues in doubt with their idempotency keys, which must return what was issued; then each order anew. */
async function reissueAgain({ url }: Service, orders: readonly PlacedOrder[], doubts: Doubt[], before: Tables) {
  using client = new ReissueClient(orders.length * 2);
  const answered: Omit<Answers, 'doubts'> = { acknowledged: [], unexpected: [] };
  const once = async ({ order, key }: { order: PlacedOrder; key?: string }) => {
    const answer = await client.reissue(url, order, BODY, key);
    const id = answer?.body.data?.certificate?.id;
    const expected = before.answers.find((one) => key !== undefined && one.key === key)?.certificate_id ?? id;
    if (answer?.status === 200 && id === expected) answered.acknowledged.push(id);
    else
      answered.unexpected.push(
        `after the restart: ${JSON.stringify(answer)} instead of ${expected ?? 'a certificate'}`,
      );
  };
  await Promise.all([...doubts, ...orders.map((order) => ({ order }))].map(once));
  return answered;
}

const PLAN = { orders: 8, writersEach: 3, least: 1, most: 80 };

export const reissueKill: Campaign = {
  about: 'N kills under concurrent reissues, half on each engine: certificates are complete, and orders stay usable',
  defaultN: 500,
  async run(n, print) {
    const seed = Number(process.env.CAMPAIGN_SEED ?? randomInt(2 ** 31));
    print(`seed ${seed} (CAMPAIGN_SEED sets it)`);
    const broken: string[] = [];
    for (const engine of Object.keys(ENGINES) as EngineName[]) {
      const kills = Math.ceil(n / 2);
      const workers = workersFor(engine);
      const report = await killDuringReissues(engine, { ...PLAN, kills, workers, seed, print });
      const { acknowledged, inDoubt, kept, voided } = report;
      print(
        `${engine}, ${workers} workers: ${report.kills} kills, ${acknowledged} acknowledged, ${inDoubt} in doubt (${kept} kept), ${voided} voided`,
      );
      broken.push(...report.broken.map((one) => `${engine}: ${one}`));
    }
    return broken;
  },
};
