// Rotation of the seal key under load and SIGKILL. In each round a new key is put first, the service is restarted with both,
// and values are written, signed with and re-sealed at the same time, while the rotation (and in every second round the
// service, too) is killed in the middle; the rotation is then repeated, and the old key removed. In the end everything
// that was sealed must work with the last key alone, and no acknowledged change may be lost.
import { cpSync, mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { newSealKey, type SealKey } from '../src/adapters/seal/seal.ts';
import { countSealed } from '../src/adapters/store/engine/sealed.ts';
import { ISSUERS_FOLDER, type Key, TestApp } from '../test/support/app.ts';
import { environmentFor, SETTINGS } from '../test/support/callback-app.ts';
import { type CloudKey, digest, newCloudKey, sign } from '../test/support/cloud-keys.ts';
import { newDualOrder, newSm2Csr, openEnvelope, type Sm2Key } from '../test/support/dual.ts';
import { body, certificate, newOrder, type PlacedOrder, reissue } from '../test/support/orders.ts';
import { HOST, Outside } from '../test/support/outside.ts';
import { spawnReseal, startReseal } from '../test/support/process.ts';
import { derOf, ocspStatus, partsOf, pems } from '../test/support/status.ts';
import type { Campaign, Print } from './campaign.ts';
import { ENGINES, type EngineName } from './kill.ts';
import { type Service, type Settings, startService, withTables } from './service.ts';

interface SealKillPlan {
  readonly rounds: number;
  /** Accounts with callback settings: two sealed values each. */
  readonly accounts: number;
  /** Whether every second kill hits the service, too. It counts as running for half a minute, which takes as long. */
  readonly killsService: boolean;
  readonly print: Print;
}

interface SealKillReport {
  readonly broken: string[];
  kills: number;
  /** Changes of settings, reissues and signatures that were acknowledged meanwhile. */
  acknowledged: number;
  /** Kills that came when some values, and not all, were under the new key. */
  inTheMiddle: number;
}

interface World {
  readonly settings: Settings;
  readonly keys: readonly Key[];
  readonly order: PlacedOrder;
  readonly dual: PlacedOrder;
  readonly signingKey: Sm2Key;
  /** One that signs under load, up to its rate, and one that signs at the end. */
  readonly busyKey: CloudKey;
  readonly quietKey: CloudKey;
  /** By account: the access keys that may be stored, the last of which were not acknowledged. */
  readonly accessKeys: Map<string, string[]>;
}

const KILL_MS = 60_000;
const POLL_MS = 5;

export async function rotateUnderKills(engine: EngineName, plan: SealKillPlan): Promise<SealKillReport> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'reseal-seal-'));
  await using outside = await Outside.open();
  await using database = await ENGINES[engine]();
  const environment = { ...environmentFor(outside), ...database.settings };
  const settings: Settings = { ...definedIn(environment), RESEAL_DATA_DIR: folder.path };
  // Issuers that a test run has made already: they take seconds.
  const prepared = engine === 'SQLite' ? process.env[ISSUERS_FOLDER] : undefined;
  if (prepared) cpSync(prepared, folder.path, { recursive: true });
  const receiver = await outside.receiver();
  const url = `https://${HOST}:${receiver.port}/`;
  const world = await prepare(settings, plan.accounts, url);
  const report: SealKillReport = { broken: [], kills: 0, acknowledged: 0, inTheMiddle: 0 };
  for (let round = 1; round <= plan.rounds; round += 1) {
    const key = putKeyFirst(folder.path);
    await rotateOnce(world, key, { plan, report, killsService: plan.killsService && round % 2 === 0, url });
    writeKeys(folder.path, [key.bytes.toString('base64')]);
    plan.print(
      `${engine} ${round}/${plan.rounds}: ${report.acknowledged} acknowledged, ${report.inTheMiddle} in the middle`,
    );
  }
  const received = receiver.requests.length;
  await useEverything(world, report.broken);
  if (receiver.requests.length <= received) report.broken.push('no callback arrived with the last key');
  return report;
}

const definedIn = (environment: Readonly<Record<string, string | undefined>>): Settings =>
  Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );

const keysIn = (folder: string): string[] => readFileSync(join(folder, 'seal.key'), 'utf8').split('\n').filter(Boolean);
const writeKeys = (folder: string, keys: readonly string[]) =>
  writeFileSync(join(folder, 'seal.key'), `${keys.join('\n')}\n`, { mode: 0o600 });

function putKeyFirst(folder: string): SealKey {
  const key = newSealKey();
  writeKeys(folder, [key.bytes.toString('base64'), ...keysIn(folder)]);
  return key;
}

/** The service in this process, on the real clock. */
async function startHere(settings: Settings): Promise<TestApp> {
  const app = new TestApp(settings.RESEAL_DATA_DIR ?? '');
  app.advance(Date.now() - app.now());
  await app.start(settings);
  return app;
}

async function prepare(settings: Settings, accounts: number, url: string): Promise<World> {
  await using app = await startHere(settings);
  const keys: Key[] = [];
  const accessKeys = new Map<string, string[]>();
  const signingKey = await newSm2Csr();
  const order = await newOrder(app);
  for (let count = 0; count < accounts; count += 1) keys.push(count === 0 ? order.key : await app.newKey());
  for (const key of keys) {
    const { status, text } = await app.call('PUT', SETTINGS, { key, json: { url, access_key: 'first-access-key' } });
    if (status !== 200) throw new Error(text);
    accessKeys.set(key.accountId, ['first-access-key']);
  }
  const dual = await newDualOrder(app, signingKey);
  return {
    settings,
    keys,
    order,
    dual,
    signingKey,
    busyKey: await newCloudKey(app),
    quietKey: await newCloudKey(app),
    accessKeys,
  };
}

async function rotateOnce(
  world: World,
  key: SealKey,
  { report, killsService, url }: { plan: SealKillPlan; report: SealKillReport; killsService: boolean; url: string },
): Promise<void> {
  const { settings } = world;
  let service = await startService({ ...settings, RESEAL_PORT: '0' });
  const stopping = new AbortController();
  const load = [0, 1].map((part) =>
    changeSettings(world, () => service, { part, url, report, signal: stopping.signal }),
  );
  load.push(useKeys(world, () => service, report, stopping.signal));
  const rotation = startReseal(['seal', 'rotate'], settings);
  await untilInTheMiddle(settings, key.id, rotation);
  await rotation.end('SIGKILL', 'group');
  report.kills += 1;
  const share = await shareUnder(settings, key.id);
  if (share > 0 && share < 1) report.inTheMiddle += 1;
  if (killsService) {
    await service.process.end('SIGKILL', 'group');
    report.kills += 1;
    service = await startService({ ...settings, RESEAL_PORT: '0' });
  }
  const { code, out, err } = await spawnReseal(['seal', 'rotate'], settings);
  if (code !== 0) report.broken.push(`the repeated rotation failed: ${out}${err}`);
  stopping.abort();
  await Promise.all(load);
  await service.process.end('SIGTERM');
  const left = await shareUnder(settings, key.id);
  if (left !== 1) report.broken.push(`${((1 - left) * 100).toFixed(2)}% of the values are not under the new key`);
}

/** The share of sealed values that a key has sealed. */
const shareUnder = (settings: Settings, keyId: string): Promise<number> =>
  withTables(settings, async (db) => {
    const counts = await countSealed(db);
    const sum = (list: typeof counts) => list.reduce((total, { values }) => total + values, 0);
    return sum(counts.filter((one) => one.keyId === keyId)) / sum(counts);
  });

/** Resolves when a tenth of the values is under the new key, or the rotation has ended. */
async function untilInTheMiddle(settings: Settings, keyId: string, rotation: ReturnType<typeof startReseal>) {
  const deadline = performance.now() + KILL_MS;
  await withTables(settings, async (db) => {
    while (rotation.child.exitCode === null && performance.now() < deadline) {
      const counts = await countSealed(db);
      const total = counts.reduce((sum, { values }) => sum + values, 0);
      const done = counts.filter((one) => one.keyId === keyId).reduce((sum, { values }) => sum + values, 0);
      if (done > total / 10) return;
      await sleep(POLL_MS);
    }
  });
}

interface Load {
  readonly part: number;
  readonly url: string;
  readonly report: SealKillReport;
  readonly signal: AbortSignal;
}

const headersOf = ({ keyId, authKey }: Key) => ({
  'X-CC-Key-ID': keyId,
  'X-CC-Auth-Key': authKey,
  'Content-Type': 'application/json',
});

/** Changes the settings of every second account, again and again. */
async function changeSettings(
  world: World,
  service: () => Service,
  { part, url, report, signal }: Load,
): Promise<void> {
  for (let count = part; !signal.aborted; count += 2) {
    const key = world.keys[count % world.keys.length];
    if (!key) return;
    const known = world.accessKeys.get(key.accountId) ?? [];
    const accessKey = `access-key-${count}-${part}`;
    known.push(accessKey);
    const json = JSON.stringify({ url, access_key: accessKey });
    const request = { method: 'PUT', headers: headersOf(key), body: json };
    const answer = await fetch(service().url + SETTINGS, request).catch(() => undefined);
    await answer?.arrayBuffer().catch(() => {});
    if (answer?.status === 200) {
      known.splice(0, known.length, accessKey);
      report.acknowledged += 1;
    } else if (answer && answer.status !== 503) {
      report.broken.push(`a change of settings was answered ${answer.status}`);
    } else {
      await sleep(POLL_MS);
    }
  }
}

/** Reissues and signs, again and again. */
async function useKeys(world: World, service: () => Service, report: SealKillReport, signal: AbortSignal) {
  const caller = {
    call: async (method: string, path: string, given: { key?: Key; json?: unknown }) => {
      const headers = given.key ? headersOf(given.key) : {};
      const response = await fetch(service().url + path, { method, headers, body: JSON.stringify(given.json) });
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, body: JSON.parse(text) };
    },
  } as unknown as TestApp;
  while (!signal.aborted) {
    try {
      for (const answer of [
        await sign(caller, world.busyKey, [digest('sha256', 'message')]),
        await reissue(caller, world.order, body()),
      ]) {
        if (answer.status === 200) report.acknowledged += 1;
        // Busy, too fast, or an order whose signer was killed and whose lease has not ended.
        else if (![503, 429, 409].includes(answer.status))
          report.broken.push(`a use of a key was answered ${answer.text}`);
      }
    } catch {
      await sleep(POLL_MS);
    }
  }
}

/** Everything that is sealed is used, with the last key alone. */
async function useEverything(world: World, broken: string[]): Promise<void> {
  await using app = await startHere(world.settings);
  const expect = (what: string, holds: boolean, seen: unknown = '') => {
    if (!holds) broken.push(`${what} failed with the last key: ${JSON.stringify(seen)}`);
  };
  for (const [accountId, allowed] of world.accessKeys) {
    const stored = (await app.app.store.callbacks.find(accountId))?.accessKey.reveal() ?? '';
    expect('a callback secret', allowed.includes(stored), { stored, allowed });
  }
  const signed = await sign(app, world.quietKey, [digest('sha256', 'message')]);
  expect('a cloud-held key', signed.status === 200, signed.text);
  const other = await newSm2Csr();
  const request = {
    certificate: { csr: other.csr, common_name: 'www.example.com', sign_hash: 'sm3', un_modify_key: true },
  };
  const before = await certificate(app, world.dual, world.dual.certificateId);
  const kept = await reissue(app, world.dual, request);
  expect('an escrowed key', kept.status === 200, kept.text);
  const after = await certificate(app, world.dual, kept.body.data.certificate.id);
  const escrowed = [
    openEnvelope(before.encryption_key_envelope, world.signingKey),
    openEnvelope(after.encryption_key_envelope, other),
  ];
  expect('an escrowed key', escrowed[0]?.scalar === escrowed[1]?.scalar);
  const fresh = await newOrder(app, {}, world.order.key);
  const shown = await certificate(app, fresh, fresh.certificateId);
  const [issuer = ''] = pems(shown.ica_pem);
  const { serial } = partsOf(derOf(shown.pem));
  const status = await ocspStatus(app, serial, derOf(issuer));
  expect('a responder', status.status === 'good', status);
  for (const { id, privateKey } of await app.app.store.issuers.list()) expect(`issuer ${id}`, privateKey !== null);
  await app.callbacks.dispatcher.stop(10_000);
}

export const sealKill: Campaign = {
  about:
    'seal key rotated under load with SIGKILL in the middle, N rounds per engine; then all works without the old keys',
  defaultN: 5,
  async run(rounds, print) {
    const broken: string[] = [];
    for (const engine of Object.keys(ENGINES) as EngineName[]) {
      const report = await rotateUnderKills(engine, { rounds, accounts: 1_000, killsService: true, print });
      const { kills, acknowledged, inTheMiddle } = report;
      print(
        `${engine}: ${kills} kills, ${inTheMiddle} of ${rounds} in the middle, ${acknowledged} acknowledged meanwhile`,
      );
      broken.push(...report.broken.map((one) => `${engine}: ${one}`));
    }
    return broken;
  },
};
