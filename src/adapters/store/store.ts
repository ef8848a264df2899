// The store: one set of repositories over whichever engine the configuration names.
import type { Clock, Repositories, Store } from '../../domain/ports.ts';
import type { Sealer } from '../seal.ts';
import { accountsIn } from './accounts.ts';
import { auditIn } from './audit.ts';
import { callbackLanesIn } from './callback-lanes.ts';
import { callbacksIn } from './callbacks.ts';
import { certificatesIn } from './certificates.ts';
import { credentialsIn } from './credentials.ts';
import { pkiAddressesIn, revocationListsIn } from './crls.ts';
import { deliveriesIn } from './deliveries.ts';
import { deliveryQueueIn } from './delivery-queue.ts';
import { type Engine, openEngine } from './engine.ts';
import { cloudKeysIn, escrowedKeysIn } from './held-keys.ts';
import { blockedKeysIn, idempotencyKeysIn, proofsIn } from './issuance.ts';
import { issuersIn } from './issuers.ts';
import { migrate } from './migrations.ts';
import { ocspRespondersIn } from './ocsp-responders.ts';
import { ordersIn } from './orders.ts';
import { outboxIn } from './outbox.ts';
import { postgresEngine } from './postgres.ts';
import { rateLimitsIn } from './rate-limits.ts';
import { revocationsIn } from './revocations.ts';
import { revokedSerialsIn } from './revoked-serials.ts';
import type { Db } from './schema.ts';
import { secretsIn } from './secrets.ts';
import { settingsIn } from './settings.ts';
import { signingGrantsIn } from './signing-grants.ts';
import { sqliteEngine } from './sqlite.ts';
import { waitingIn } from './waiting.ts';

export type DatabaseLocation =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgresql'; readonly url: string; readonly maxConnections: number };

export interface StoreEvents {
  /** A group of transactions reached the disk with one fsync (SQLite only: PostgreSQL groups by itself). */
  onCommit?(groupSize: number): void;
  /** The database failed us; what was under way was refused with `service_busy`. */
  onUnavailable?(error: unknown): void;
}

export interface OpenStore extends Store {
  readonly engine: Engine;
  /** Called whenever a commit has left events to deliver, for whoever wants to begin at once. One listener. */
  whenEventsWait(listener: () => void): void;
  /** Resolves when a write was made durable just now. */
  probeWrite(): Promise<void>;
  /** Settings of the database under which an acknowledged commit could be lost. */
  durabilityGaps(): Promise<string[]>;
  close(): Promise<void>;
}

const MIGRATION_MS = 600_000;

export function engineAt(location: DatabaseLocation, events: StoreEvents = {}, isMigrating = false): Engine {
  switch (location.kind) {
    case 'sqlite':
      return sqliteEngine({ file: location.file, onCommit: (size) => events.onCommit?.(size), isMigrating });
    case 'postgresql': {
      const { url, maxConnections } = location;
      // A migration may rewrite a large table: it alone is allowed to take long.
      return isMigrating
        ? postgresEngine({ url, maxConnections: 1, statementMs: MIGRATION_MS })
        : postgresEngine({ url, maxConnections });
    }
  }
}

/** Migrates, then opens. Throws a Problem when the database is not one this version may use. */
export async function openStore(
  location: DatabaseLocation,
  sealer: Sealer,
  now: Clock,
  events: StoreEvents = {},
): Promise<OpenStore> {
  const onUnavailable = (error: unknown) => events.onUnavailable?.(error);
  const migrator = engineAt(location, {}, true);
  const migrating = openEngine(migrator, onUnavailable);
  try {
    await migrate(migrating, migrator, now);
  } finally {
    await migrating.destroy();
  }
  const engine = engineAt(location, events);
  const db = openEngine(engine, onUnavailable);
  let wake = () => {};
  const repositories = repositoriesIn(db, sealer, engine, () => wake());
  return {
    ...repositories,
    engine,
    async transaction(work) {
      let hasEvents = false;
      const note = () => {
        hasEvents = true;
      };
      const result = await db
        .transaction()
        .execute((transaction) => work(repositoriesIn(transaction, sealer, engine, note)));
      if (hasEvents) wake();
      return result;
    },
    whenEventsWait(listener) {
      wake = listener;
    },
    probeWrite: () => repositories.settings.put('last_write_probe', String(now())),
    durabilityGaps: () => engine.durabilityGaps(db),
    close: () => db.destroy(),
  };
}

const repositoriesIn = (db: Db, sealer: Sealer, engine: Engine, onEvents: () => void): Repositories => ({
  accounts: accountsIn(db),
  credentials: credentialsIn(db),
  audit: auditIn(db),
  secrets: secretsIn(db, sealer),
  settings: settingsIn(db),
  issuers: issuersIn(db, sealer),
  orders: ordersIn(db, engine),
  certificates: certificatesIn(db),
  proofs: proofsIn(db),
  waiting: waitingIn(db, engine),
  revocations: revocationsIn(db),
  revokedSerials: revokedSerialsIn(db),
  revocationLists: revocationListsIn(db),
  pkiAddresses: pkiAddressesIn(db),
  ocspResponders: ocspRespondersIn(db, sealer),
  outbox: outboxIn(db, onEvents),
  deliveryQueue: deliveryQueueIn(db, engine),
  callbackLanes: callbackLanesIn(db, engine),
  deliveries: deliveriesIn(db, engine, onEvents),
  callbacks: callbacksIn(db, sealer, engine),
  rateLimits: rateLimitsIn(db),
  escrowedKeys: escrowedKeysIn(db, sealer),
  cloudKeys: cloudKeysIn(db, sealer, engine),
  signingGrants: signingGrantsIn(db, sealer),
  idempotencyKeys: idempotencyKeysIn(db),
  blockedKeys: blockedKeysIn(db),
});
