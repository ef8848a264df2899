// Reissues from a key that cannot leave its token (SoftHSM, where it is installed), beside the same from a software key. In
// the middle the signer processes are killed, the token's folder is taken away and returned, and the processes are stopped
// as a module that hangs would stop them. Every reissue must succeed in the end, nothing may be lost or signed twice, and
// every refusal must come within bounds.
import { X509Certificate } from 'node:crypto';
import { mkdtempDisposableSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readImportedIssuer } from '../src/adapters/ca/imported-issuer.ts';
import { bytesFrom } from '../src/adapters/store/engine/columns.ts';
import { readConfig } from '../src/config/config.ts';
import { parseKeyUri } from '../src/domain/certificate/key-uri.ts';
import { mapLimit } from '../src/kernel/concurrency.ts';
import { provenKey, withToken } from '../src/wiring/hsm.ts';
import { caChain } from '../test/support/authority.ts';
import { body, type PlacedOrder } from '../test/support/orders.ts';
import { newSoftToken, SOFTHSM, type SoftToken } from '../test/support/softhsm.ts';
import type { Campaign, Print } from './campaign.ts';
import { faultsIn, readTables } from './reissue-kill.ts';
import { placeOrders, ReissueClient } from './reissues.ts';
import { type Service, type Settings, startService, withStore, withTables } from './service.ts';

const ORDERS = 64;
const AT_ONCE = 16;
/** Those from the software key, at least. */
const MIN_COMPARED = 200;
const AWAY_MS = 5_000;
const RETRY_MS = 50;
/** A reissue waits for a session, and for its answer; beyond that the service has answered late. */
const LATEST_MS = 9_000;
const GIVE_UP_MS = 120_000;
const TAKEN_UP_MS = 30_000;
const BODY = JSON.stringify(body());

interface Tally {
  issued: number;
  /** By code. */
  readonly refused: Map<string, number>;
  slowestMs: number;
  lastIssuedAt: number;
  /** Between two certificates, of anyone. */
  longestPauseMs: number;
  readonly ids: string[];
}

const newTally = (): Tally => ({
  ...{ issued: 0, refused: new Map(), slowestMs: 0, lastIssuedAt: performance.now(), longestPauseMs: 0, ids: [] },
});

export const hsm: Campaign = {
  about: 'N reissues from a key in SoftHSM, with killed, lost and hanging tokens, beside a software key',
  defaultN: 10_000,
  async run(n, print) {
    if (SOFTHSM === undefined) {
      print('SoftHSM is not installed: nothing ran against a real token');
      return [];
    }
    const token = newSoftToken(SOFTHSM);
    using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-hsm-'));
    const settings: Settings = {
      ...{ RESEAL_DATA_DIR: folder.path, RESEAL_WORKERS: '2', RESEAL_PUBLIC_URL: 'http://127.0.0.1:8080' },
      ...{ RESEAL_HSM_PIN_FILE: token.pinFile, SOFTHSM2_CONF: process.env.SOFTHSM2_CONF ?? '' },
    };
    const orders = await placeOrders(settings, ORDERS);
    const service = await startService(settings);
    try {
      return await judge({ n, print, token, settings, orders, service });
    } finally {
      await service.process.end('SIGTERM');
    }
  },
};

interface Run {
  readonly n: number;
  readonly print: Print;
  readonly token: SoftToken;
  readonly settings: Settings;
  readonly orders: readonly PlacedOrder[];
  readonly service: Service;
}

async function judge(run: Run): Promise<string[]> {
  const { n, print, settings, service } = run;
  const compared = Math.max(MIN_COMPARED, Math.ceil(n / 10));
  await reissueAll(run, compared, newTally());
  print(`software key: ${await timed(run, compared)}`);
  const issuer = await importToken(run);
  await untilTakenUp(run, issuer.id);
  await reissueAll(run, compared, newTally());
  print(`key in the token: ${await timed(run, compared)}`);
  const tally = newTally();
  const faults = injectFaults(run, tally);
  await reissueAll(run, n, tally);
  await faults;
  const told = [...tally.refused].map(([code, count]) => `${count} × ${code}`).join(', ');
  print(`${tally.issued} of ${n} reissues issued over ${ORDERS} orders; refused meanwhile: ${told || 'none'}`);
  print(
    `slowest answer ${Math.round(tally.slowestMs)} ms; ${signersOf(service).length} signer processes for 3 processes`,
  );
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  print(
    metrics
      .split('\n')
      .filter((line) => /^reseal_hsm_(restarts|failures|unavail)/.test(line))
      .join(', '),
  );
  const broken = [...tally.refused.keys()]
    .filter((code) => code !== '503 service_busy')
    .map((code) => `a reissue was answered ${code}`);
  if (tally.issued !== n) broken.push(`${n - tally.issued} reissues were never issued`);
  if (tally.slowestMs > LATEST_MS) broken.push(`an answer took ${Math.round(tally.slowestMs)} ms`);
  await service.process.end('SIGTERM');
  return [...broken, ...(await withTables(settings, (db) => examine(db, tally, issuer, print)))];
}

async function examine(
  db: Parameters<typeof readTables>[0],
  tally: Tally,
  issuer: { readonly id: string; readonly certificate: Uint8Array },
  print: Print,
): Promise<string[]> {
  const tables = await readTables(db);
  const rows = await db
    .selectFrom('certificate')
    .select(['id', 'state', 'der'])
    .where('issuer_id', '=', issuer.id)
    .execute();
  const issued = new Map(rows.filter(({ state }) => state === 'issued').map(({ id, der }) => [id, der]));
  const { publicKey } = new X509Certificate(issuer.certificate);
  const unverified = [...issued.values()].filter((der) => !new X509Certificate(bytesFrom(der ?? '')).verify(publicKey));
  const lost = tally.ids.filter((id) => !issued.has(id));
  const voided = rows.filter(({ state }) => state === 'voided').length;
  print(`in the store: ${issued.size} of the token's issuer, all verified by its certificate; ${voided} voided`);
  return [
    ...faultsIn(tables),
    ...(unverified.length > 0 ? [`${unverified.length} certificates do not verify`] : []),
    ...(lost.length > 0 ? [`${lost.length} answered certificates are not in the store`] : []),
    ...(tables.signings.length > 0 ? [`${tables.signings.length} leases were left behind`] : []),
  ];
}

async function timed(run: Run, count: number): Promise<string> {
  const begun = performance.now();
  await reissueAll(run, count, newTally());
  const ms = performance.now() - begun;
  return `${(ms / count).toFixed(2)} ms a reissue with ${AT_ONCE} at once, ${Math.round((1000 * count) / ms)} a second`;
}

/** Each until it is issued, as a caller that heeds Retry-After would, only faster. */
async function reissueAll({ orders, service }: Run, count: number, tally: Tally): Promise<void> {
  using client = new ReissueClient(AT_ONCE);
  const numbers = Array.from({ length: count }, (_, index) => index);
  await mapLimit(AT_ONCE, numbers, async (index) => {
    const order = orders[index % orders.length];
    const end = performance.now() + GIVE_UP_MS;
    while (order && performance.now() < end) {
      const begun = performance.now();
      const answer = await client.reissue(service.url, order, BODY);
      const now = performance.now();
      tally.slowestMs = Math.max(tally.slowestMs, now - begun);
      if (answer?.status === 200) {
        tally.issued += 1;
        tally.ids.push(answer.body.data.certificate.id);
        tally.longestPauseMs = Math.max(tally.longestPauseMs, now - tally.lastIssuedAt);
        tally.lastIssuedAt = now;
        return;
      }
      const code = answer ? `${answer.status} ${answer.body.code}` : 'no answer';
      tally.refused.set(code, (tally.refused.get(code) ?? 0) + 1);
      await sleep(RETRY_MS);
    }
  });
}

/** At a quarter, half and three quarters of the reissues. */
async function injectFaults(run: Run, tally: Tally): Promise<void> {
  const { n, print, token, service } = run;
  const signal = (name: NodeJS.Signals) => {
    const pids = signersOf(service);
    for (const pid of pids) process.kill(pid, name);
    return pids.length;
  };
  const faults: readonly [string, () => Promise<unknown> | unknown][] = [
    ['the signer processes were killed', () => signal('SIGKILL')],
    [
      `the token was away for ${AWAY_MS / 1000} s`,
      async () => {
        renameSync(token.tokens, `${token.tokens}.away`);
        await sleep(AWAY_MS);
        renameSync(`${token.tokens}.away`, token.tokens);
      },
    ],
    ['the signer processes hung', () => signal('SIGSTOP')],
  ];
  for (const [index, [name, inject]] of faults.entries()) {
    while (tally.issued < ((index + 1) * n) / 4) await sleep(5);
    const [refusedBefore, issuedBefore] = [total(tally.refused), tally.issued];
    await inject();
    const over = performance.now();
    tally.longestPauseMs = 0;
    tally.lastIssuedAt = over;
    // What was on its way when the fault came may still be issued: recovered is who issues a second round.
    while (tally.issued < issuedBefore + 2 * AT_ONCE + 4 && tally.issued < n) await sleep(5);
    const recovered = Math.round(performance.now() - over);
    const refused = total(tally.refused) - refusedBefore;
    print(`${name}: ${refused} refusals, issuing again after ${recovered} ms`);
  }
}

const total = (counts: ReadonlyMap<string, number>): number => [...counts.values()].reduce((sum, one) => sum + one, 0);

async function importToken({ token, settings }: Run) {
  const uri = token.uriOf('issuing');
  const { config } = readConfig(settings);
  const { spki, isExtractable } = await withToken(config, uri, (keys) => keys.generate(parseKeyUri(uri), 'p256'));
  if (isExtractable || spki === null) throw new Error('the key can leave the token');
  const { chain } = caChain([{}, { spki: Buffer.from(spki, 'hex') }]);
  const key = await provenKey(config, uri);
  return await withStore(settings, async ({ store, newId }) => {
    const own = { chain: chain.join('\n'), key, purposes: ['public-tls'], policy: null } as const;
    const imported = readImportedIssuer(own, Date.now(), newId);
    return await store.transaction((tx) => tx.issuers.adopt(imported));
  });
}

/** Every process of the service looks for new issuers every ten seconds. */
async function untilTakenUp({ orders, settings, service }: Run, issuerId: string): Promise<void> {
  using client = new ReissueClient(1);
  const [order] = orders;
  let inARow = 0;
  for (const end = performance.now() + TAKEN_UP_MS; order && performance.now() < end; await sleep(250)) {
    const answer = await client.reissue(service.url, order, BODY);
    const id: string = answer?.body.data?.certificate?.id ?? '';
    const found = await withTables(settings, (db) =>
      db.selectFrom('certificate').select('issuer_id').where('id', '=', id).executeTakeFirst(),
    );
    inARow = found?.issuer_id === issuerId ? inARow + 1 : 0;
    // Connections are dealt out in turn.
    if (inARow >= 8) return;
  }
  throw new Error('the service did not take up the issuer');
}

/** Processes of signers below the service, by its own process id. */
function signersOf({ process: { child } }: Service): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    try {
      const [, after = ''] = readFileSync(`/proc/${name}/stat`, 'utf8').split(/\) (?=[^)]*$)/);
      parents.set(Number(name), Number(after.split(' ')[1]));
    } catch {
      // It has ended.
    }
  }
  const isBelow = (pid: number | undefined): boolean =>
    pid !== undefined && (parents.get(pid) === child.pid || isBelow(parents.get(pid)));
  return [...parents.keys()].filter((pid) => isBelow(pid) && commandOf(pid).includes('hsm/signer-process'));
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
