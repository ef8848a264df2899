// The second write of an issuance: ends the lease, and with it records order, certificate, audit row, idempotency key and
// event, or nothing.
import { type RawBuilder, sql } from 'kysely';
import type { Signings } from '../../../domain/issuance/ports.ts';
import { auditRow } from '../access/audit.ts';
import { eventRow, insertEvent } from '../callbacks/outbox.ts';
import { runBatch } from '../engine/batch.ts';
import { assigned } from '../engine/columns.ts';
import { type Engine, perEngine } from '../engine/engine.ts';
import { prepared, preparedInsert, statement } from '../engine/prepared.ts';
import type { Db, Schema } from '../engine/schema.ts';
import { halfRowOf, rowOf } from './certificate-rows.ts';
import { isBlocked, orderAsRead, type Unblocked, unblocked } from './holds.ts';
import { type SavedOrder, savedRow, saving } from './orders.ts';

interface Release extends Unblocked {
  readonly order_id: string;
  readonly revision: number;
  readonly certificate_id: string;
}

/**
 * The first statement decides. The lease is deleted under the order's lock: that loses against a process that has voided
 * it, or reported its key, at the same moment.
 */
const release = ({ locksRows, batches }: Engine, unless: (slot: Release) => RawBuilder<unknown>) =>
  prepared((db, slot: Release) =>
    statement(
      db,
      sql`delete from signing ${batches.members('using')} where order_id = (${orderAsRead(slot, locksRows)})
        and certificate_id = ${slot.certificate_id} ${unless(slot)} ${batches.returning(KEY)}`,
    ),
  );
const unlessReported = (slot: Release) => sql`and key_reported = 0 and not ${isBlocked(slot)}`;

/** A certificate is finished by one process at a time: the one that has its lease. */
const KEY = 'certificate_id';

/** What a batch is made of. In what follows the first statement, `isDecided` is true if that has returned a row. */
const stepsOf = perEngine((engine) => {
  const { isDecided, row, members } = engine.batches;
  return {
    releaseUnlessReported: release(engine, unlessReported),
    release: release(engine, () => sql``),
    saveOrder: prepared((db, slot: SavedOrder) =>
      statement(db, sql`${saving(slot, members('from'))} and ${isDecided}`),
    ),
    insertCertificate: preparedInsert('certificate', row),
    issuePending: prepared((db, slot: Schema['certificate']) =>
      statement(
        db,
        sql`update certificate set ${assigned(ISSUED_COLUMNS, slot)} ${members('from')}
          where id = ${slot.id} and account_id = ${slot.account_id} and state = 'pending' and ${isDecided}`,
      ),
    ),
    insertHalf: preparedInsert('encryption_certificate', row),
    insertAudit: preparedInsert('audit', row),
    putIdempotencyKey: prepared((db, slot: Schema['idempotency_key']) =>
      statement(
        db,
        sql`insert into idempotency_key (account_id, order_id, key, request_hash, certificate_id, created_at)
          select ${slot.account_id}, ${slot.order_id}, ${slot.key}, ${slot.request_hash}, ${slot.certificate_id},
            ${slot.created_at} ${members('from')} where ${isDecided}
          on conflict (account_id, order_id, key) do update set request_hash = excluded.request_hash,
            certificate_id = excluded.certificate_id, created_at = excluded.created_at`,
      ),
    ),
    insertEvent: insertEvent(engine.batches),
  };
});

/** What a certificate that waited gets when it is issued. */
const ISSUED_COLUMNS = [
  ...(['state', 'spki', 'key_type', 'key_bits', 'key_fingerprint', 'cloud_key_id', 'issuer_id', 'serial'] as const),
  ...(['not_before', 'not_after', 'prepared_at', 'lease_ends_at', 'der', 'issued_at', 'version'] as const),
  'replaces_id' as const,
];

export const finishIn =
  (db: Db, engine: Engine, onEvents: () => void): Signings['finish'] =>
  async ({ order, certificate, event, audit, idempotency }, { evenIfReported }) => {
    const steps = stepsOf(engine);
    const { id: certificate_id, orderId: order_id, accountId: account_id, publicKey } = certificate;
    const lease = { order_id, account_id, certificate_id, revision: order.revision, ...unblocked(publicKey) };
    const half = halfRowOf(certificate);
    const statements = [
      steps[evenIfReported ? 'release' : 'releaseUnlessReported'].compiled(db, lease),
      steps.saveOrder.compiled(db, savedRow(order)),
      steps[certificate.pendingSince === null ? 'insertCertificate' : 'issuePending'].compiled(db, rowOf(certificate)),
      steps.insertAudit.compiled(db, auditRow(audit)),
    ];
    if (half) statements.push(steps.insertHalf.compiled(db, half));
    if (idempotency) {
      const { key, requestHash: request_hash } = idempotency;
      const row = { account_id, order_id, key, request_hash, certificate_id, created_at: event.createdAt };
      statements.push(steps.putIdempotencyKey.compiled(db, row));
    }
    statements.push(steps.insertEvent.compiled(db, eventRow(event)));
    const added = await runBatch<Pick<Schema['outbox'], 'state'>>(db, engine, { statements, key: KEY });
    if (added?.state === 'pending') onEvents();
    return added !== undefined;
  };
