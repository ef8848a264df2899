// Backup and restore for the command line. What a file is decides what is done with it: an SQLite file with a manifest in
// it, or the manifest of a PostgreSQL snapshot. Nothing here opens issuers or creates a seal key.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { type FoundCrl, readCrlSources } from '../adapters/backup/crl-source.ts';
import { describeStore, examineStore, sha256, unreadable } from '../adapters/backup/describe.ts';
import { inSnapshot } from '../adapters/backup/postgres-snapshot.ts';
import { backUp, install, isDatabaseFile, manifestIn, reading, unpack } from '../adapters/backup/sqlite-file.ts';
import { longDue } from '../adapters/ca/status/crl-publisher.ts';
import { CrlRejected, readCrl } from '../adapters/ca/status/crl-reader.ts';
import { forgetRollback, SERVED_NUMBERS_FILES } from '../adapters/ca/status/served-numbers.ts';
import { checkPublishedCrls } from '../adapters/doctor/published-crls.ts';
import { randomBytes } from '../adapters/seal/random.ts';
import { type SealKey, sealerWith } from '../adapters/seal/seal.ts';
import { sealKeysOf } from '../adapters/seal/seal-check.ts';
import { settingsIn } from '../adapters/store/access/settings.ts';
import { type Engine, openEngine } from '../adapters/store/engine/engine.ts';
import type { Db } from '../adapters/store/engine/schema.ts';
import { takenBackupsIn } from '../adapters/store/issuance/custody.ts';
import { publicIssuersIn } from '../adapters/store/issuance/issuers.ts';
import { type DatabaseLocation, engineAt, type OpenStore, openStore } from '../adapters/store/store.ts';
import type { BackupCommands, Hold, RestoreReport } from '../cli/command.ts';
import type { Config } from '../config/config.ts';
import { type Manifest, parseManifest } from '../domain/backup.ts';
import type { PublicIssuer } from '../domain/certificate/authority.ts';
import type { Clock } from '../domain/clock.ts';
import { idMaker } from '../domain/ids.ts';
import { crlKey } from '../domain/revocation/revocation.ts';
import { type Diagnostic, EXIT, Problem } from '../kernel/problem.ts';
import { type RestoredRevocations, restoreRevocations } from '../usecases/revocation/restore-revocations.ts';
import { makeFolder, requireAnyStore, storeProblem } from './start-up.ts';

export function backupCommands(config: Config, now: Clock): BackupCommands {
  const { database, dataDir } = config;

  async function take(file: string, hold: Hold | undefined, progress: (part: number) => void): Promise<Manifest> {
    if (database.kind === 'postgresql') return await takeSnapshot(database.url, file, hold);
    if (hold) throw new Problem(EXIT.usage, '--hold is for PostgreSQL', 'Leave it out: the file is the whole backup.');
    return await backUp(database.file, file, now, progress);
  }

  async function takeSnapshot(url: string, file: string, hold: Hold | undefined): Promise<Manifest> {
    if (existsSync(file)) throw new Problem(EXIT.usage, `${file} exists already`, 'Name a new file.');
    await requireAnyStore(config);
    const manifest = await inSnapshot(url, async (snapshot) => {
      const takenAt = now();
      hold?.announce(await snapshot.export());
      const described = await describeStore(snapshot.db, snapshot.engine, takenAt);
      await hold?.released();
      return described;
    });
    writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`, { flag: 'wx', flush: true });
    return manifest;
  }

  /** Opens the bare tables, without migrating them. */
  async function withTables<T>(work: (db: Db, engine: Engine) => Promise<T>): Promise<T> {
    const engine = engineAt(database);
    const db = openEngine(engine, () => {});
    try {
      return await work(db, engine);
    } catch (error) {
      throw storeProblem(error, config);
    } finally {
      await db.destroy();
    }
  }

  /** For metrics, and for those who remove a key. A store that is busy now has been backed up all the same. */
  const recordBackup = ({ taken_at, digest }: Manifest, file: string): Promise<void> =>
    withTables(async (db, engine) => {
      const takenAt = Date.parse(taken_at);
      await settingsIn(db).put('last_backup_at', String(takenAt));
      // A store of an earlier version, which is backed up before its upgrade, has no such table.
      if (!(await engine.columns(db)).some(({ table }) => table === 'taken_backup')) return;
      await takenBackupsIn(db).insert({ digest, takenAt, file: resolve(file) });
    }).catch((error) => {
      if (!(error instanceof Problem)) throw error;
    });

  const keysAtHand = (): SealKey[] | undefined => sealKeysOf(config.sealKey);

  async function verify(file: string | undefined): Promise<Diagnostic[]> {
    const keys = keysAtHand();
    try {
      if (file !== undefined && isDatabaseFile(file)) {
        const manifest = manifestIn(file);
        return [
          described(file, manifest),
          ...(await reading(file, (db, engine) => examineStore(db, engine, { manifest, keys }))),
        ];
      }
      const manifest = file === undefined ? undefined : manifestFrom(file);
      const { url } = requirePostgres(database, file);
      const findings = await inSnapshot(url, ({ db, engine }) => examineStore(db, engine, { manifest, keys }));
      return [...(file !== undefined && manifest ? [described(file, manifest)] : []), ...findings];
    } catch (error) {
      if (error instanceof Problem && error.exitCode === EXIT.usage) throw error;
      if (!(error instanceof Problem)) return [unreadable(error)];
      return [{ check: 'backup', state: 'problem', text: error.message, remedy: error.remedy }];
    }
  }

  async function requireVerified(file: string): Promise<SealKey[]> {
    const problems = (await verify(file)).filter(({ state }) => state === 'problem');
    const keys = keysAtHand();
    if (problems.length === 0 && keys) return keys;
    const reasons = problems.map(({ text }) => text).join('\n  ') || 'there is no seal key';
    const remedy = problems[0]?.remedy ?? 'Put the seal key in its place first.';
    throw new Problem(EXIT.refused, `${file} is not restored:\n  ${reasons}`, remedy);
  }

  async function restore(file: string, sources: readonly string[], acceptsLoss: boolean): Promise<RestoreReport> {
    const isFile = isDatabaseFile(file);
    if (isFile && database.kind !== 'sqlite') {
      throw new Problem(
        EXIT.configuration,
        `${file} is a backup of the embedded database, and RESEAL_DATABASE_URL is set`,
        'Unset RESEAL_DATABASE_URL to restore it into the data folder.',
      );
    }
    if (isFile) requireEmpty(config);
    const keys = await requireVerified(file);
    const manifest = isFile ? manifestIn(file) : manifestFrom(file);
    if (manifest.crls.length > 0 && sources.length === 0 && !acceptsLoss) {
      throw new Problem(
        EXIT.refused,
        `without the CRLs published last, certificates revoked since ${manifest.taken_at} would be valid again`,
        'Give them with --crl FILE|FOLDER|URL, or accept it with --without-crl.',
      );
    }
    const found = await readCrlSources(sources, config.dnsServers);
    if (!isFile) return { takenAt: manifest.taken_at, ...(await intoStore(database, keys, found, true)) };
    makeFolder(dataDir);
    const target = join(dataDir, 'reseal.db');
    const draft = `${target}${DRAFT}`;
    try {
      unpack(file, draft);
      const report = await intoStore({ kind: 'sqlite', file: draft }, keys, found, true);
      install(draft, target);
      return { takenAt: manifest.taken_at, ...report };
    } finally {
      for (const suffix of ['', '-wal', '-shm', '-journal', '-turn']) rmSync(draft + suffix, { force: true });
    }
  }

  /** Migrates the store, and brings its revocations up to the CRLs. In a restored one, sessions of the console end. */
  async function intoStore(
    location: DatabaseLocation,
    keys: readonly SealKey[],
    found: readonly FoundCrl[],
    isRestored = false,
  ) {
    const store = await openStore(location, sealerWith(keys), now).catch((error) => {
      throw storeProblem(error, config);
    });
    try {
      if (isRestored) await store.transaction((tx) => tx.sessions.deleteAll());
      return await applyCrls(store, now, found);
    } finally {
      await store.close();
    }
  }

  return {
    async take(file, hold, progress) {
      const manifest = await take(file, hold, progress);
      // A manifest alone is no backup yet, and a write now would make the database differ from it.
      if (database.kind === 'sqlite' || hold) await recordBackup(manifest, file);
      return manifest;
    },
    verify,
    restore,
    async compareCrls(sources) {
      const found = await readCrlSources(sources, config.dnsServers);
      return await withTables(async (db) => {
        const lists = readAll(found, await publicIssuersIn(db));
        return await checkPublishedCrls(
          db,
          lists.map(({ crl }) => crl),
        );
      });
    },
    async importCrls(sources) {
      const keys = keysAtHand();
      if (!keys) throw new Problem(EXIT.configuration, 'there is no seal key', 'Name the store in RESEAL_DATA_DIR.');
      await requireAnyStore(config);
      const imported = await intoStore(database, keys, await readCrlSources(sources, config.dnsServers));
      forgetRollback(dataDir);
      return imported;
    },
  };
}

const DRAFT = '.restoring';

const readAll = (found: readonly FoundCrl[], issuers: readonly PublicIssuer[]) =>
  found.map(({ source, bytes }) => {
    try {
      return { source, crl: readCrl(bytes, issuers) };
    } catch (error) {
      if (!(error instanceof CrlRejected)) throw error;
      throw new Problem(
        EXIT.refused,
        `--crl ${source} is not used: ${error.message}`,
        'Give CRLs of this authority only, complete and unaltered.',
        { cause: error },
      );
    }
  });

async function applyCrls(store: OpenStore, now: Clock, found: readonly FoundCrl[]) {
  // All are verified before the first is applied.
  const lists = readAll(found, await store.issuers.listPublic());
  const published = await store.crls.heads();
  const restoreFrom = restoreRevocations({ store, now, newId: idMaker(now, randomBytes) });
  const restored: RestoredRevocations[] = [];
  for (const { crl } of lists) restored.push(await restoreFrom(crl));
  // Published anew before any is served: whatever was published since the backup, the number then counts milliseconds.
  await store.crls.makeDue(longDue(now()));
  const given = new Set(lists.map(({ crl: { issuerId, shard } }) => crlKey({ issuerId, shard: shard ?? -1 })));
  return {
    revoked: restored.flatMap(({ revoked }) => revoked),
    withoutCertificate: restored.flatMap(({ withoutCertificate }) => withoutCertificate),
    lists: lists.map(({ source, crl: { issuerId, shard, number, thisUpdate, entries } }) => ({
      ...{ source, issuerId, shard, number, thisUpdate, entries: entries.length },
    })),
    missing: published.filter((one) => !given.has(crlKey(one))),
  };
}

const described = (file: string, { taken_at, schema, seal_key_ids, crls }: Manifest): Diagnostic => ({
  check: 'backup',
  state: 'ok',
  text: `${file}, taken at ${taken_at}, schema ${schema}, seal keys ${seal_key_ids.join(', ') || 'none'}, ${crls.length} CRLs`,
});

function manifestFrom(file: string): Manifest {
  const manifest = parseManifest(readText(file), sha256);
  if (manifest) return manifest;
  throw new Problem(
    EXIT.refused,
    `${file} is neither a backup nor a manifest, or was altered`,
    'Make backups with: reseal backup FILE',
  );
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Problem(EXIT.usage, `${file} cannot be read (${code})`, 'Name a file that this user may read.');
  }
}

function requirePostgres(database: Config['database'], file: string | undefined) {
  if (database.kind === 'postgresql') return database;
  throw file === undefined
    ? new Problem(EXIT.usage, 'no backup is named', 'See: reseal backup verify --help')
    : new Problem(
        EXIT.usage,
        `${file} is the manifest of a PostgreSQL database, and RESEAL_DATABASE_URL is not set`,
        'Set RESEAL_DATABASE_URL to the database that the dump was restored into.',
      );
}

/** Only the seal key, and the numbers of CRLs that were served, may be there already. A draft of a restore that was interrupted is replaced. */
function requireEmpty({ dataDir, sealKey }: Config): void {
  if (!existsSync(dataDir)) return;
  const key = sealKey.kind === 'file' && dirname(sealKey.file) === dataDir ? basename(sealKey.file) : '';
  const others = readdirSync(dataDir).filter(
    (name) => ![key, 'lost+found', ...SERVED_NUMBERS_FILES].includes(name) && !name.startsWith(`reseal.db${DRAFT}`),
  );
  if (others.length === 0) return;
  throw new Problem(
    EXIT.refused,
    `the data folder ${dataDir} is not empty: ${others.slice(0, 5).join(', ')}`,
    'Name an empty folder in RESEAL_DATA_DIR, with nothing but the seal key in it.',
  );
}
