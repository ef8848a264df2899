// Placing under SIGKILL: an alternative id whose placement was interrupted can be used again, one whose placement was
// finished is found by the look-up, and no order is rejected for a crash. Orders are placed concurrently, the service or one of its
// processes is killed (with PostgreSQL, sometimes together with the database), and every placement without an answer is
// repeated under its alternative id: while the lease of the killed signer lasts, or after it was expired.
import { randomInt } from 'node:crypto';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Db } from '../src/adapters/store/engine/schema.ts';
import type { Key } from '../test/support/app.ts';
import { body } from '../test/support/orders.ts';
import type { Campaign, Print } from './campaign.ts';
import { ENGINES, type EngineName } from './kill.ts';
import { fraction } from './random.ts';
import { expireLeases, faultsIn, readTables, untilQuiet } from './reissue-kill.ts';
import { placeOrders, ReissueClient } from './reissues.ts';
import { ready, type Service, startService, withTables } from './service.ts';
import { kill, type Victim, victimOf, workersFor } from './victims.ts';

interface PlacingKillPlan {
  readonly kills: number;
  /** Processes that answer requests; 0 for a service in one process. With several, single ones are killed too. */
  readonly workers: number;
  readonly accounts: number;
  readonly writersEach: number;
  /** The kill comes after this many acknowledgements, at least and at most. */
  readonly least: number;
  readonly most: number;
  /** Every so many rounds the leases of killed signers are left to run out, which takes ten seconds. 0 for never. */
  readonly waitsEvery: number;
  /** Seeds the timing of the kills. A run is not reproducible, because scheduling varies. */
  readonly seed: number;
  readonly print: Print;
}

interface PlacingKillReport {
  readonly broken: string[];
  kills: number;
  acknowledged: number;
  /** Sent, but not answered because of a kill. */
  inDoubt: number;
  /** Of those in doubt, the ones that were placed, and found by the look-up. */
  found: number;
  /** Being signed when the kill came. */
  interrupted: number;
}

const ROUND_MS = 120_000;
const MAX_DELAY_MS = 12;
const MAX_BROKEN = 20;

/** One placement, by an alternative id of its own. */
interface Placement {
  readonly key: Key;
  readonly alternativeId: string;
}

interface Acknowledged extends Placement {
  readonly orderId: string;
}

interface Answers {
  readonly acknowledged: Acknowledged[];
  readonly doubts: Placement[];
  readonly unexpected: string[];
}

const bodyOf = ({ alternativeId }: Placement): string =>
  JSON.stringify(body({}, { alternative_order_id: alternativeId }));

export async function killDuringPlacing(engine: EngineName, plan: PlacingKillPlan): Promise<PlacingKillReport> {
  const { kills, print } = plan;
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-placing-kill-'));
  await using database = await ENGINES[engine]();
  const settings = { RESEAL_DATA_DIR: folder.path, ...database.settings };
  // The first order of each account validates its name.
  const keys = (await placeOrders(settings, plan.accounts)).map(({ key }) => key);
  const report: PlacingKillReport = { broken: [], kills: 0, acknowledged: 0, inDoubt: 0, found: 0, interrupted: 0 };
  const start = () => startService(settings, undefined, ['--workers', String(plan.workers)]);
  let service = await start();
  try {
    for (let round = 1; round <= kills && report.broken.length < MAX_BROKEN; round += 1) {
      const victim = victimOf(plan.workers, `${plan.seed} ${round}`);
      const isPowerCut = database.kill !== undefined && victim === 'everything' && round % 2 === 0;
      const killDatabase = isPowerCut ? database.kill : undefined;
      const answered = await placeUntilKilled({ number: round, service, keys, plan, victim, killDatabase });
      if (isPowerCut) await database.start?.();
      const before = await withTables(settings, async (db) => {
        if (engine === 'PostgreSQL') await untilQuiet(db);
        return await readTables(db);
      });
      const isPatient = plan.waitsEvery > 0 && round % plan.waitsEvery === 0;
      if (!isPatient) await withTables(settings, expireLeases);
      if (answered.isOver) service = await start();
      await ready(service.url);
      const again = await placeAgain(service, answered);
      const after = await withTables(settings, readTables);
      report.broken.push(
        ...answered.unexpected,
        ...faultsIn(before),
        ...again.unexpected,
        ...faultsIn(after),
        ...(await withTables(settings, faultsOfPlacing)),
      );
      for (const { serial } of before.signings) {
        const left = after.certificates.find((one) => one.serial === serial);
        if (left?.state !== 'voided') report.broken.push(`${serial} is ${left?.state ?? 'unknown'}, not voided`);
      }
      report.kills += 1;
      report.acknowledged += answered.acknowledged.length;
      report.inDoubt += answered.doubts.length;
      report.found += again.found;
      report.interrupted += before.signings.length;
      print(
        `${engine} ${round}/${kills}: killed ${victim}${isPowerCut ? ' with the database' : ''} after ${answered.acknowledged.length}; ` +
          `${answered.doubts.length} in doubt: ${again.found} found, the others placed again${isPatient ? ' behind the lease' : ''}; ` +
          `${before.signings.length} serial numbers voided`,
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
  readonly keys: readonly Key[];
  readonly plan: PlacingKillPlan;
  readonly victim: Victim;
  readonly killDatabase: (() => Promise<void>) | undefined;
}

/** `isOver`: the service must be started again. */
async function placeUntilKilled(round: Round): Promise<Answers & { isOver: boolean }> {
  const { number, service, keys, plan, victim, killDatabase } = round;
  const { writersEach, least, most, seed } = plan;
  const target = least + Math.floor(fraction(`${seed} ${number} count`) * (most - least + 1));
  const delayMs = fraction(`${seed} ${number} delay`) * MAX_DELAY_MS;
  using client = new ReissueClient(keys.length * writersEach);
  const answered: Answers = { acknowledged: [], doubts: [], unexpected: [] };
  const signal = AbortSignal.timeout(ROUND_MS);
  let deaths: Promise<[boolean, unknown]> | undefined;
  const killNow = () => {
    deaths = Promise.all([kill(service, victim, `${seed} ${number}`), killDatabase?.()]);
    // Awaited later; until then a rejection must not end this process as unhandled.
    deaths.catch(() => {});
  };
  const writer = async (key: Key, lane: number) => {
    for (let count = 0; !signal.aborted && !deaths; count += 1) {
      const placement = { key, alternativeId: `${number}-${lane}-${count}` };
      const answer = await client.place(service.url, key, bodyOf(placement));
      // service_busy leaves the outcome open: the database may have died first.
      if (!answer || answer.status === 503) answered.doubts.push(placement);
      if (!answer) return;
      if (answer.status === 200) {
        answered.acknowledged.push({ ...placement, orderId: answer.body.data.id });
        if (answered.acknowledged.length === target) setTimeout(killNow, delayMs);
      } else if (answer.status !== 503)
        answered.unexpected.push(`answered ${answer.status} ${JSON.stringify(answer.body)}`);
    }
  };
  await Promise.all(
    Array.from({ length: writersEach }, () => keys)
      .flat()
      .map(writer),
  );
  if (!deaths)
    throw new Error(`only ${answered.acknowledged.length} of ${target} were answered: ${service.process.output}`);
  const [isOver] = await deaths;
  return { ...answered, isOver };
}

/** Places again what is in doubt. Then every alternative id of the round must be found, as the order that was answered. */
async function placeAgain({ url }: Service, { acknowledged, doubts }: Answers) {
  using client = new ReissueClient(acknowledged.length + doubts.length);
  const unexpected: string[] = [];
  let found = 0;
  const repeat = async (placement: Placement): Promise<Acknowledged[]> => {
    const answer = await client.place(url, placement.key, bodyOf(placement));
    if (answer?.status === 200) return [{ ...placement, orderId: answer.body.data.id }];
    if (answer?.body.code === 'duplicate_alternative_order_id') {
      found += 1;
      return [{ ...placement, orderId: answer.body.details.order_id }];
    }
    unexpected.push(`${placement.alternativeId} is stuck: ${JSON.stringify(answer)}`);
    return [];
  };
  const repeated = (await Promise.all(doubts.map(repeat))).flat();
  const lookUp = async ({ key, alternativeId, orderId }: Acknowledged) => {
    const answer = await client.findByAlternative(url, key, alternativeId);
    const { id, status } = answer?.body.data ?? {};
    if (id !== orderId || status !== 'issued') unexpected.push(`${alternativeId}: ${JSON.stringify(answer)}`);
  };
  await Promise.all([...acknowledged, ...repeated].map(lookUp));
  return { found, unexpected };
}

/** Traces of a crash that a customer would see. */
async function faultsOfPlacing(db: Db): Promise<string[]> {
  const orders = await db
    .selectFrom('certificate_order')
    .select(['id', 'status', 'alternative_id'])
    .where('status', '!=', 'issued')
    .execute();
  const events = await db.selectFrom('outbox').select('order_id').where('action', '!=', 'order:issued').execute();
  return [
    ...orders
      .filter(({ status, alternative_id }) => status !== 'canceled' || alternative_id !== null)
      .map(({ id, status, alternative_id }) => `order ${id} is ${status}, with alternative id: ${alternative_id}`),
    ...events.map(({ order_id }) => `an event other than order:issued is to be sent about ${order_id}`),
  ];
}

const PLAN = { accounts: 8, writersEach: 3, least: 1, most: 80, waitsEvery: 10 };

export const placingKill: Campaign = {
  about: 'N kills under concurrent placements, half on each engine: no alternative id is stuck, no order is rejected',
  defaultN: 60,
  async run(n, print) {
    const seed = Number(process.env.CAMPAIGN_SEED ?? randomInt(2 ** 31));
    print(`seed ${seed} (CAMPAIGN_SEED sets it)`);
    const broken: string[] = [];
    for (const engine of Object.keys(ENGINES) as EngineName[]) {
      const kills = Math.ceil(n / 2);
      const workers = workersFor(engine);
      const report = await killDuringPlacing(engine, { ...PLAN, kills, workers, seed, print });
      const { acknowledged, inDoubt, found, interrupted } = report;
      print(
        `${engine}, ${workers} workers: ${report.kills} kills, ${acknowledged} acknowledged, ${inDoubt} in doubt (${found} found), ${interrupted} interrupted`,
      );
      broken.push(...report.broken.map((one) => `${engine}: ${one}`));
    }
    return broken;
  },
};
