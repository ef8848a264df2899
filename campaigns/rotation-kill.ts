// Rotation of an issuer under load and SIGKILL: once `ca rotate` has answered, no certificate of a retired issuer is issued
// any more, by no process on the store; and the retired ones keep their certificates, lists and answers. Reissues run all
// the time. What is killed: the service after the answer, the service while the command runs, or the command itself.
import { randomInt, X509Certificate } from 'node:crypto';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../src/adapters/store/engine/schema.ts';
import { reseal } from '../test/support/in-process.ts';
import { body, type PlacedOrder } from '../test/support/orders.ts';
import { startReseal } from '../test/support/process.ts';
import { crlOf, ocspStatus, partsOf } from '../test/support/status.ts';
import type { Campaign, Print } from './campaign.ts';
import { ENGINES, type EngineName } from './kill.ts';
import { fraction } from './random.ts';
import { expireLeases, faultsIn, readTables, untilQuiet } from './reissue-kill.ts';
import { placeOrders, ReissueClient } from './reissues.ts';
import { ready, type Service, type Settings, startService, withTables } from './service.ts';
import { kill, workersFor } from './victims.ts';

interface RotationKillPlan {
  readonly rounds: number;
  readonly workers: number;
  readonly orders: number;
  /** Acknowledgements before the rotation, and again after it. */
  readonly warm: number;
  /** Seeds the timing of the kills. A run is not reproducible, because scheduling varies. */
  readonly seed: number;
  readonly print: Print;
}

interface RotationKillReport {
  readonly broken: string[];
  /** Rotations that were answered. */
  rotations: number;
  kills: number;
  acknowledged: number;
  /** Acknowledged after a rotation was answered. */
  later: number;
}

/** What is killed, in turns. */
const KILLED = ['the service, after the answer', 'the service, while the command runs', 'the command'] as const;
const ROTATE = ['ca', 'rotate', 'public-tls', '--key-type', 'p256', '--json'];
const BODY = JSON.stringify(body());
const MAX_DELAY_MS = 40;
const MAX_COMMAND_DELAY_MS = 900;
const WAIT_MS = 60_000;

/** Issuers without a purpose, and how much each has issued or is signing. */
async function retiredIn(db: Db): Promise<Map<string, number>> {
  const purposes = db.selectFrom('issuer_purpose').select('issuer_id');
  const retired = await db
    .selectFrom('issuer')
    .select('id')
    .where('role', '=', 'issuing')
    .where('id', 'not in', purposes)
    .execute();
  const counts = new Map<string, number>();
  for (const { id } of retired) {
    const issued = db.selectFrom('certificate').select('id').where('issuer_id', '=', id).where('state', '=', 'issued');
    const signing = db.selectFrom('signing').select('order_id').where('issuer_id', '=', id);
    counts.set(id, (await issued.execute()).length + (await signing.execute()).length);
  }
  return counts;
}

/** Reissues every order again and again, until it is stopped. */
class Load {
  acknowledged = 0;
  readonly unexpected: string[] = [];
  readonly #stop = new AbortController();
  readonly #client: ReissueClient;
  readonly #writers: Promise<unknown>;

  constructor(url: string, orders: readonly PlacedOrder[]) {
    this.#client = new ReissueClient(orders.length);
    this.#writers = Promise.all(orders.map((order) => this.#write(url, order)));
  }

  async #write(url: string, order: PlacedOrder): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const answer = await this.#client.reissue(url, order, BODY);
      if (answer?.status === 200) this.acknowledged += 1;
      else if (!answer) await sleep(5);
      // A rotation must not be noticed by callers; a kill is.
      else if (answer.status !== 503) this.unexpected.push(`answered ${answer.status} ${JSON.stringify(answer.body)}`);
    }
  }

  async until(count: number): Promise<void> {
    for (const end = Date.now() + WAIT_MS; this.acknowledged < count; await sleep(2)) {
      if (Date.now() > end) throw new Error(`only ${this.acknowledged} of ${count} reissues were answered`);
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#writers;
    this.#client[Symbol.dispose]();
  }
}

export async function killDuringRotation(engine: EngineName, plan: RotationKillPlan): Promise<RotationKillReport> {
  const { rounds, print, workers, warm, seed } = plan;
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-rotation-kill-'));
  await using database = await ENGINES[engine]();
  const settings = { RESEAL_DATA_DIR: folder.path, ...database.settings };
  const orders = await placeOrders(settings, plan.orders);
  const report: RotationKillReport = { broken: [], rotations: 0, kills: 0, acknowledged: 0, later: 0 };
  const start = () => startService(settings, undefined, ['--workers', String(workers)]);
  let service = await start();
  try {
    for (let round = 1; round <= rounds; round += 1) {
      const killed = KILLED[(round - 1) % KILLED.length] ?? KILLED[0];
      const at = fraction(`${seed} ${round}`);
      const load = new Load(service.url, orders);
      await load.until(warm);
      let isKilled = false;
      if (killed === 'the command') {
        const command = startReseal(ROTATE, settings);
        await sleep(at * MAX_COMMAND_DELAY_MS);
        await command.end('SIGKILL');
        report.kills += 1;
      }
      const rotating = reseal(ROTATE, settings);
      if (killed === 'the service, while the command runs') {
        await sleep(at * MAX_DELAY_MS);
        await kill(service, 'everything', '');
        isKilled = true;
        // The command waits for the leases of signers that are dead.
        const expiry = setInterval(() => void withTables(settings, expireLeases).catch(() => {}), 200);
        await rotating.finally(() => clearInterval(expiry));
      }
      const { code, out } = await rotating;
      if (code !== 0) report.broken.push(`the rotation failed: ${out}`);
      const answered = await withTables(settings, retiredIn);
      report.rotations += 1;
      const before = load.acknowledged;
      if (!isKilled) {
        await load.until(before + warm);
        report.later += load.acknowledged - before;
        await kill(service, 'everything', '');
      }
      report.kills += 1;
      await load.stop();
      report.broken.push(...load.unexpected);
      report.acknowledged += load.acknowledged;
      await withTables(settings, async (db) => {
        if (engine === 'PostgreSQL') await untilQuiet(db);
        report.broken.push(...faultsIn(await readTables(db)), ...(await retiredSince(db, answered)));
        await expireLeases(db);
      });
      service = await start();
      await ready(service.url);
      report.broken.push(...(await retiredFaults(service, settings, answered)));
      print(
        `${engine} ${round}/${rounds}: killed ${killed}; ${load.acknowledged} acknowledged, ${answered.size} retired`,
      );
    }
  } finally {
    await kill(service, 'everything', '');
  }
  return report;
}

/** What retired issuers have issued since a rotation was answered. */
async function retiredSince(db: Db, answered: ReadonlyMap<string, number>): Promise<string[]> {
  const now = await retiredIn(db);
  return [...answered].flatMap(([id, count]) =>
    now.get(id) === count ? [] : [`retired issuer ${id} has issued ${now.get(id)} certificates, and ${count} before`],
  );
}

/** Each retired issuer: its certificate, a list and an answer for a certificate of its own. */
async function retiredFaults(
  { url }: Service,
  settings: Settings,
  answered: ReadonlyMap<string, number>,
): Promise<string[]> {
  const faults: string[] = [];
  const newest = [...answered.keys()].sort().slice(-2);
  for (const id of newest) {
    const found = await withTables(settings, async (db) => ({
      issuer: await db.selectFrom('issuer').select('certificate').where('id', '=', id).executeTakeFirstOrThrow(),
      leaf: await db
        .selectFrom('certificate')
        .select(['der'])
        .where('issuer_id', '=', id)
        .where('state', '=', 'issued')
        .limit(1)
        .executeTakeFirst(),
    }));
    if (!found.leaf?.der) continue;
    const issuer = Buffer.from(found.issuer.certificate, 'base64');
    const leaf = Buffer.from(found.leaf.der, 'base64');
    if (!new X509Certificate(leaf).verify(new X509Certificate(issuer).publicKey)) faults.push(`${id}: signature`);
    const served = await fetch(`${url}/ca/${id}.crt`);
    if (!Buffer.from(await served.arrayBuffer()).equals(issuer)) faults.push(`${id}: its certificate is not served`);
    await crlOf({ url }, leaf, issuer).catch((error) => faults.push(`${id}: its list: ${error}`));
    const { status } = await ocspStatus({ url }, partsOf(leaf).serial, issuer);
    if (status !== 'good') faults.push(`${id}: OCSP says ${status}`);
  }
  return faults;
}

export const rotationKill: Campaign = {
  about: 'N rotations per engine under load and SIGKILL: a retired issuer issues nothing after the answer',
  defaultN: 60,
  async run(rounds, print) {
    const seed = Number(process.env.CAMPAIGN_SEED ?? randomInt(2 ** 31));
    print(`seed ${seed} (CAMPAIGN_SEED sets it)`);
    const broken: string[] = [];
    for (const engine of Object.keys(ENGINES) as EngineName[]) {
      const workers = workersFor(engine);
      const report = await killDuringRotation(engine, { rounds, workers, orders: 12, warm: 60, seed, print });
      const { rotations, kills, acknowledged, later } = report;
      print(
        `${engine}, ${workers} workers: ${rotations} rotations, ${kills} kills, ${acknowledged} acknowledged, ${later} of them after the answer`,
      );
      broken.push(...report.broken.map((one) => `${engine}: ${one}`));
    }
    return broken;
  },
};
