// Durability under SIGKILL. Concurrent writers load a real service, which is killed (with PostgreSQL, every second time
// together with the database) and restarted; the store must hold every acknowledged write. A kill loses only what the
// process had not handed to the kernel; whether the kernel wrote it to disk is the fsync campaign's subject.
import { randomInt } from 'node:crypto';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AuditEntry } from '../src/domain/access/ports.ts';
import type { Store } from '../src/domain/store.ts';
import type { Key } from '../test/support/app.ts';
import { startPostgres } from '../test/support/postgres.ts';
import type { Campaign, Print } from './campaign.ts';
import { Ledger, sum, type Verdict } from './ledger.ts';
import { seededRandom } from './random.ts';
import { makeKeys, type Service, type Settings, startService, withStore } from './service.ts';
import { writeUntilSilence } from './writers.ts';

interface KillPlan {
  readonly rounds: number;
  readonly writers: number;
  /** The kill comes after this many acknowledgements, at least and at most. */
  readonly least: number;
  readonly most: number;
  /** Seeds the timing of the kills. A run is not reproducible, because scheduling varies. */
  readonly seed: number;
  readonly print: Print;
}

interface KillReport extends Verdict {
  acknowledged: number;
  refused: number;
  serviceKills: number;
  databaseKills: number;
}

interface Database extends AsyncDisposable {
  readonly settings: Settings;
  kill?(): Promise<void>;
  start?(): Promise<void>;
}

export const ENGINES = {
  SQLite: async (): Promise<Database> => ({ settings: {}, async [Symbol.asyncDispose]() {} }),
  PostgreSQL: async (): Promise<Database> => {
    const server = await startPostgres();
    return { ...server, settings: { RESEAL_DATABASE_URL: await server.createDatabase() } };
  },
} as const;
export type EngineName = keyof typeof ENGINES;

const ROUND_MS = 120_000;
const MAX_DELAY_MS = 5;
const PAGE = 1_000;

export async function killRepeatedly(engine: EngineName, plan: KillPlan): Promise<KillReport> {
  const { rounds, print } = plan;
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-kill-'));
  await using database = await ENGINES[engine]();
  const settings = { RESEAL_DATA_DIR: folder.path, ...database.settings };
  const keys = await makeKeys(settings, plan.writers);
  const ledger = new Ledger();
  const random = seededRandom(plan.seed);
  const report = { ...sum([]), acknowledged: 0, refused: 0, serviceKills: 0, databaseKills: 0 };
  let service = await startService(settings);
  try {
    for (let round = 1; round <= rounds; round += 1) {
      const isPowerCut = database.kill !== undefined && round % 2 === 0;
      const acknowledged = await writeUntilKilled({
        ...{ service, keys, ledger, plan, random },
        database: isPowerCut ? database : {},
      });
      service = await startService(settings);
      const verdict = await withStore(settings, ({ store }) => judge(store, ledger));
      report.acknowledged += acknowledged;
      report.serviceKills += 1;
      report.databaseKills += isPowerCut ? 1 : 0;
      Object.assign(report, sum([report, verdict]));
      print(
        `${engine} ${round}/${rounds}: killed ${isPowerCut ? 'with its database ' : ''}after ${acknowledged}; ${textOf(verdict)}`,
      );
    }
  } finally {
    await service.process.end('SIGKILL');
  }
  report.refused = ledger.count('refused');
  return report;
}

interface Round {
  readonly service: Service;
  readonly keys: readonly Key[];
  readonly ledger: Ledger;
  readonly plan: KillPlan;
  readonly random: () => number;
  /** Killed and restarted with the service. */
  readonly database: Pick<Database, 'kill' | 'start'>;
}

/** Returns the number of acknowledged writes; the last are still in the sockets when the service is dead. */
async function writeUntilKilled({ service, keys, ledger, plan, random, database }: Round): Promise<number> {
  const { url, process } = service;
  const { least, most } = plan;
  const target = least + Math.floor(random() * (most - least + 1));
  // A kill right at an acknowledgement reveals a premature one; a moment later it hits the next commit anywhere.
  const delayMs = random() < 0.5 ? 0 : random() * MAX_DELAY_MS;
  let deaths: Promise<unknown> | undefined;
  const kill = () => {
    deaths = Promise.all([process.end('SIGKILL'), database.kill?.()]);
    // Awaited later; until then a rejection must not end this process as unhandled.
    deaths.catch(() => {});
  };
  const acknowledged = await writeUntilSilence({
    url,
    keys,
    ledger,
    signal: AbortSignal.timeout(ROUND_MS),
    onAcknowledged(count) {
      if (count !== target) return;
      if (delayMs === 0) kill();
      else setTimeout(kill, delayMs);
    },
  });
  if (!deaths)
    throw new Error(`only ${acknowledged} of ${target} writes were acknowledged: ${process.output.slice(-2_000)}`);
  await deaths;
  await database.start?.();
  return acknowledged;
}

async function judge(store: Store, ledger: Ledger): Promise<Verdict> {
  const verdicts = ledger.attempts().map(async ([accountId, attempts]) => {
    const trail = await trailOf(store, accountId, attempts);
    return ledger.compare(accountId, (await store.accounts.find(accountId))?.name, trail);
  });
  return sum(await Promise.all(verdicts));
}

/** Reads page by page; stops at more than two rows per attempt, which is wrong in any case. */
async function trailOf(store: Store, accountId: string, attempts: number): Promise<AuditEntry[]> {
  const rows: AuditEntry[] = [];
  while (rows.length <= 2 * attempts + PAGE) {
    const page = await store.audit.listOf(accountId, { after: rows.at(-1)?.id, limit: PAGE });
    rows.push(...page);
    if (page.length < PAGE) break;
  }
  return rows;
}

const textOf = ({ lost, phantom, torn, inDoubt, kept }: Verdict): string =>
  `${inDoubt} in doubt (${kept} kept), ${lost} lost, ${phantom} phantom, ${torn} torn`;

export const kill: Campaign = {
  about: 'SIGKILL under 64 writers, N rounds per engine: no acknowledged write is lost',
  defaultN: 20,
  async run(rounds, print) {
    const seed = Number(process.env.CAMPAIGN_SEED ?? randomInt(2 ** 31));
    print(`seed ${seed} (CAMPAIGN_SEED sets it)`);
    const broken: string[] = [];
    for (const engine of Object.keys(ENGINES) as EngineName[]) {
      const report = await killRepeatedly(engine, { rounds, writers: 64, least: 200, most: 1_200, seed, print });
      const { acknowledged, refused, serviceKills, databaseKills } = report;
      print(
        `${engine}: ${acknowledged} acknowledged, ${refused} refused, ${textOf(report)}; kills: ${serviceKills} of the service, ${databaseKills} of the database`,
      );
      if (report.lost + report.phantom + report.torn > 0) broken.push(`${engine}: ${textOf(report)}`);
    }
    return broken;
  },
};
