// The store: one set of repositories over the configured engine.
import type { Clock } from '../../domain/clock.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import type { ClockFacts } from '../../domain/support/clock-facts.ts';
import type { Sealer } from '../seal/seal.ts';
import { accessTokensIn } from './access/access-tokens.ts';
import { accountsIn } from './access/accounts.ts';
import { auditIn } from './access/audit.ts';
import { credentialsIn } from './access/credentials.ts';
import { rateLimitsIn } from './access/rate-limits.ts';
import { type Sealing, sealingIn } from './access/sealing.ts';
import { secretsIn } from './access/secrets.ts';
import { settingsIn } from './access/settings.ts';
import { acmeAccountsIn, acmeBindingsIn } from './acme/accounts.ts';
import { acmeOrdersIn } from './acme/acme-orders.ts';
import { authorizationsIn } from './acme/authorizations.ts';
import { usedNoncesIn } from './acme/used-nonces.ts';
import { callbackLanesIn } from './callbacks/callback-lanes.ts';
import { callbacksIn } from './callbacks/callbacks.ts';
import { deliveriesIn } from './callbacks/deliveries.ts';
import { deliveryQueueIn } from './callbacks/delivery-queue.ts';
import { expiryNoticesIn } from './callbacks/expiry-notices.ts';
import { outboxIn } from './callbacks/outbox.ts';
import { cloudKeysIn, escrowedKeysIn } from './cloud-keys/held-keys.ts';
import { signingGrantsIn } from './cloud-keys/signing-grants.ts';
import { loginLinksIn, operatorsIn } from './console/operators.ts';
import { sessionsIn } from './console/sessions.ts';
import { requireFinishedCopy } from './engine/copy.ts';
import { type Engine, openEngine, useConnection } from './engine/engine.ts';
import { migrate, previewMigrations, readMigrations } from './engine/migrations.ts';
import { postgresEngine } from './engine/postgres.ts';
import type { Db } from './engine/schema.ts';
import { sharedClock } from './engine/shared-clock.ts';
import { sqliteEngine } from './engine/sqlite.ts';
import { strayTimes } from './engine/times.ts';
import { certificatesIn } from './issuance/certificates.ts';
import { alternateChainsIn, pendingIssuersIn, takenBackupsIn } from './issuance/custody.ts';
import { idempotencyKeysIn } from './issuance/idempotency-keys.ts';
import { inventoryIn } from './issuance/inventory.ts';
import { issuersIn } from './issuance/issuers.ts';
import { lintResultsIn } from './issuance/lint-results.ts';
import { ordersIn } from './issuance/orders.ts';
import { placementKeysIn } from './issuance/placement-keys.ts';
import { signingsIn } from './issuance/signings.ts';
import { blockedKeysIn } from './revocation/blocklist.ts';
import { crlsIn, pkiAddressesIn } from './revocation/crls.ts';
import { ocspRespondersIn } from './revocation/ocsp-responders.ts';
import { revocationsIn } from './revocation/revocations.ts';
import { revokedSerialsIn } from './revocation/revoked-serials.ts';
import { allAccountsIn } from './support/all-accounts.ts';
import { factsIn } from './support/facts.ts';
import { finderIn } from './support/finder.ts';
import { proofsIn } from './validation/proofs.ts';
import { waitingIn } from './validation/waiting.ts';

export type DatabaseLocation =
  | { readonly kind: 'sqlite'; readonly file: string; readonly walLimitBytes?: number }
  | { readonly kind: 'postgresql'; readonly url: string; readonly maxConnections: number };

interface StoreOptions {
  /** The machine's clock, which the database's is compared with. Tests replace it to be a machine whose clock is wrong. */
  readonly machineNow?: Clock;
  /** A group of transactions was committed with one fsync. SQLite only: PostgreSQL does its own group commit. */
  onCommit?(groupSize: number): void;
  /** The database failed; the caller got `service_busy`. `isDamage`: its files are damaged, and no retry succeeds. */
  onUnavailable?(error: unknown, isDamage: boolean): void;
}

export interface OpenStore extends Store {
  readonly engine: Engine;
  readonly sealing: Sealing;
  /** Sets the listener that is called after each commit that added events to the outbox. One listener. */
  onEventsCommitted(listener: () => void): void;
  /** Resolves once a write was made durable. */
  probeWrite(): Promise<void>;
  /** Compares the clocks again: how far this machine's is ahead of the database's; 0 where they agree. */
  measureClock(): Promise<number>;
  /** Reads instances, stray times and when the store was last used. */
  clockFacts(): Promise<ClockFacts>;
  /** Settings of the database under which an acknowledged commit could be lost. */
  durabilityGaps(): Promise<string[]>;
  /** Removes deleted content from the database's files. Returns where it may still be, in words. */
  purge(): Promise<string[]>;
  close(): Promise<void>;
}

const MIGRATION_MS = 600_000;

export function engineAt(location: DatabaseLocation, events: StoreOptions = {}, isMigrating = false): Engine {
  switch (location.kind) {
    case 'sqlite': {
      const { file, walLimitBytes } = location;
      return sqliteEngine({ file, walLimitBytes, onCommit: (size) => events.onCommit?.(size), isMigrating });
    }
    case 'postgresql': {
      const { url, maxConnections } = location;
      // A migration may rewrite a large table, hence its own timeout.
      return isMigrating
        ? postgresEngine({ url, maxConnections: 1, statementMs: MIGRATION_MS })
        : postgresEngine({ url, maxConnections });
    }
  }
}

/** Migrates and opens the store. Throws a Problem if this version must not use the database. */
export async function openStore(
  location: DatabaseLocation,
  sealer: Sealer,
  now: Clock,
  events: StoreOptions = {},
): Promise<OpenStore> {
  const onUnavailable = (error: unknown, isDamage: boolean) => events.onUnavailable?.(error, isDamage);
  const migrator = engineAt(location, {}, true);
  const migrating = openEngine(migrator, onUnavailable);
  try {
    await migrate(migrating, migrator, now);
  } finally {
    await migrating.destroy();
  }
  const engine = engineAt(location, events);
  const db = openEngine(engine, onUnavailable);
  const clock = sharedClock(engine, now, events.machineNow ?? Date.now);
  try {
    await requireFinishedCopy({ engine, db });
    await clock.measure(db);
  } catch (error) {
    await db.destroy();
    throw error;
  }
  let notify = () => {};
  const shared = { sealer, engine, sharedNow: clock.now };
  const repositories = repositoriesIn(db, shared, () => notify());
  const sealing = sealingIn(db, sealer, engine, now);
  return {
    ...repositories,
    engine,
    sealing,
    async transaction(work) {
      let hasEvents = false;
      const noteEvents = () => {
        hasEvents = true;
      };
      const result = await db.transaction().execute(async (transaction) => {
        await useConnection(transaction);
        return await work(repositoriesIn(transaction, shared, noteEvents));
      });
      if (hasEvents) notify();
      return result;
    },
    onEventsCommitted(listener) {
      notify = listener;
    },
    probeWrite: () => repositories.settings.put('last_write_probe', String(now())),
    async measureClock() {
      await clock.measure(db);
      return clock.skewMs();
    },
    clockFacts: async () => ({
      aheadMs: clock.skewMs(),
      instances: await sealing.liveInstances(),
      stray: await strayTimes(db, clock.now()),
      lastUsedAt: Number((await repositories.settings.get('last_write_probe')) ?? 0),
    }),
    durabilityGaps: () => engine.durabilityGaps(db),
    purge: () => engine.purge(db),
    close: () => db.destroy(),
  };
}

/** Whether a service has worked with the store: there is an account or an issuer. False for an empty database. */
export async function isInUse(location: DatabaseLocation): Promise<boolean> {
  const engine = engineAt(location);
  const db = openEngine(engine, () => {});
  try {
    const tables = new Set((await engine.columns(db)).map(({ table }) => table));
    for (const table of ['issuer', 'account'] as const) {
      if (tables.has(table) && (await db.selectFrom(table).select('id').limit(1).executeTakeFirst())) return true;
    }
    return false;
  } finally {
    await db.destroy();
  }
}

/** How many migrations the next start would apply; undefined for an empty database. Writes nothing. */
export async function pendingMigrationsAt(location: DatabaseLocation): Promise<number | undefined> {
  const engine = engineAt(location);
  const db = openEngine(engine, () => {});
  try {
    return (await previewMigrations(db, readMigrations(engine.name)))?.length;
  } finally {
    await db.destroy();
  }
}

/** What is damaged in the files of the database, as far as that is found without holding up a service. */
export async function quickFaultsAt(location: DatabaseLocation): Promise<string[]> {
  const engine = engineAt(location);
  const db = openEngine(engine, () => {});
  try {
    return await engine.quickFaults(db);
  } finally {
    await db.destroy();
  }
}

interface Shared {
  readonly sealer: Sealer;
  readonly engine: Engine;
  readonly sharedNow: Clock;
}

const repositoriesIn = (db: Db, { sealer, engine, sharedNow }: Shared, onEvents: () => void): Repositories => ({
  sharedNow,
  accounts: accountsIn(db, engine),
  credentials: credentialsIn(db),
  accessTokens: accessTokensIn(db, engine),
  audit: auditIn(db),
  operators: operatorsIn(db),
  loginLinks: loginLinksIn(db, engine),
  sessions: sessionsIn(db, engine),
  secrets: secretsIn(db, sealer),
  settings: settingsIn(db),
  issuers: issuersIn(db, sealer),
  pendingIssuers: pendingIssuersIn(db, sealer),
  alternateChains: alternateChainsIn(db),
  takenBackups: takenBackupsIn(db),
  orders: ordersIn(db, engine),
  certificates: certificatesIn(db),
  inventory: inventoryIn(db),
  signings: signingsIn(db, engine, onEvents),
  lintResults: lintResultsIn(db),
  proofs: proofsIn(db),
  waiting: waitingIn(db, engine),
  acmeOrders: acmeOrdersIn(db),
  authorizations: authorizationsIn(db, engine),
  revocations: revocationsIn(db),
  revokedSerials: revokedSerialsIn(db),
  crls: crlsIn(db),
  pkiAddresses: pkiAddressesIn(db),
  ocspResponders: ocspRespondersIn(db, sealer),
  outbox: outboxIn(db, onEvents),
  deliveryQueue: deliveryQueueIn(db, engine),
  callbackLanes: callbackLanesIn(db, engine),
  deliveries: deliveriesIn(db, engine, onEvents),
  expiryNotices: expiryNoticesIn(db, engine),
  callbacks: callbacksIn(db, sealer, engine),
  rateLimits: rateLimitsIn(db),
  escrowedKeys: escrowedKeysIn(db, sealer),
  cloudKeys: cloudKeysIn(db, sealer, engine),
  signingGrants: signingGrantsIn(db, sealer),
  idempotencyKeys: idempotencyKeysIn(db),
  placementKeys: placementKeysIn(db),
  blockedKeys: blockedKeysIn(db),
  acmeBindings: acmeBindingsIn(db, sealer),
  acmeAccounts: acmeAccountsIn(db),
  usedNonces: usedNoncesIn(db),
  finder: finderIn(db),
  facts: factsIn(db, engine),
  allAccounts: allAccountsIn(db),
});
