// Every numeric column, by what a clock that was ahead may do to it. The compiler asks for a line for each new column.
import { sql } from 'kysely';
import { TOKEN_MS } from '../../../domain/access/credential.ts';
import { NONCE_MS } from '../../../domain/acme/nonce.ts';
import { DELIVERY_LEASE_MS, MAX_OPEN_MS } from '../../../domain/callbacks/delivery.ts';
import { NOTICE_CLOCK_MS } from '../../../domain/callbacks/expiry.ts';
import { latestAhead } from '../../../domain/clock.ts';
import { GRANT_MS } from '../../../domain/cloud-keys/cloud-key.ts';
import { LINK_MS, SESSION_MS } from '../../../domain/console/session.ts';
import { SIGNING_LEASE_MS } from '../../../domain/issuance/ports.ts';
import type { StrayTimes } from '../../../domain/support/clock-facts.ts';
import { CHECK_LEASE_MS, MAX_CHECK_DELAY_MS } from '../../../domain/validation/check-result.ts';
import { DAY_MS, MINUTE_MS } from '../../../kernel/durations.ts';
import type { Db, Schema } from './schema.ts';

interface VoidableTime {
  readonly kind: 'lease' | 'next attempt';
  readonly lengthMs: number;
  /** Stray ones are counted: the table is small, or the column has an index. */
  readonly isCounted: boolean;
}

/**
 * - `number`: no time.
 * - `fact`: what happened, or what was promised, at that time. Never changed by this.
 * - `lease`, `next attempt`: void if further ahead than `lengthMs` and the tolerance.
 * - `limit`: a lock or a rate; clamped to its length from now, never dropped.
 */
type Kind = 'number' | 'fact' | 'limit' | VoidableTime;

type NumericColumns<Row> = { [Column in keyof Row as number extends Row[Column] ? Column : never]: Kind };

const lease = (lengthMs: number, isCounted = false) => ({ kind: 'lease', lengthMs, isCounted }) as const;
const next = (lengthMs: number, isCounted = false) => ({ kind: 'next attempt', lengthMs, isCounted }) as const;

/** Delays of up to seven days can be configured; the jitter lengthens them. */
const LONGEST_RETRY_MS = 9 * DAY_MS;

export const TIMES = {
  account: {
    ...{ created_at: 'fact', suspended_at: 'fact' },
    ...{ open_orders_limit: 'number', stored_bytes_limit: 'number', stored_bytes: 'number' },
  },
  credential: { created_at: 'fact', expires_at: 'fact', disabled_at: 'fact', last_used_at: next(MINUTE_MS) },
  access_token: { created_at: 'fact', expires_at: lease(TOKEN_MS, true) },
  console_operator: { created_at: 'fact', disabled_at: 'fact' },
  console_link: { created_at: 'fact', expires_at: lease(LINK_MS, true) },
  console_session: { created_at: 'fact', last_seen_at: next(0), expires_at: lease(SESSION_MS, true) },
  audit: { at: 'fact' },
  issuer: { created_at: 'fact' },
  issuer_purpose: {},
  pending_issuer: { created_at: 'fact' },
  alternate_chain: { created_at: 'fact' },
  taken_backup: { taken_at: 'fact' },
  certificate_order: { persist_until: 'fact', term_ends_at: 'fact', created_at: 'fact', revision: 'number' },
  order_name: {},
  certificate: {
    ...{ created_at: 'fact', pending_since: 'fact', not_before: 'fact', not_after: 'fact', prepared_at: 'fact' },
    // Of a lease that has ended.
    lease_ends_at: 'fact',
    ...{ issued_at: 'fact', key_bits: 'number', validity_days: 'number', version: 'number' },
    keeps_encryption_key: 'number',
  },
  signing: {
    ...{ created_at: 'fact', not_before: 'fact', not_after: 'fact', prepared_at: 'fact' },
    lease_ends_at: lease(SIGNING_LEASE_MS, true),
    ...{ key_bits: 'number', key_reported: 'number' },
  },
  lint_result: { at: 'fact' },
  encryption_certificate: {},
  escrowed_key: { created_at: 'fact' },
  cloud_key: {
    ...{ created_at: 'fact', destroyed_at: 'fact', locked_until: 'limit' },
    ...{ key_bits: 'number', wrong_codes: 'number' },
  },
  signing_grant: { expires_at: lease(GRANT_MS, true) },
  waiting_certificate: { due_at: next(MAX_CHECK_DELAY_MS, true), expires_at: 'fact', tries: 'number' },
  acme_order: {
    ...{ expires_at: 'fact', keep_until: 'fact', is_open: 'number', revokes_replaced: 'number' },
  },
  acme_authorization: { due_at: lease(CHECK_LEASE_MS, true), validated_at: 'fact', expires_at: 'fact' },
  domain_authorization: { validated_at: 'fact' },
  idempotency_key: { created_at: 'fact' },
  placement_key: { created_at: 'fact' },
  rate_limit: { full_at: 'limit' },
  reported_key: { created_at: 'fact' },
  blocked_key: { created_at: 'fact' },
  sealed_secret: {},
  setting: {},
  instance: { seen_at: lease(0, true), clock_ahead_ms: 'number' },
  migration: { number: 'number', applied_at: 'fact' },
  callback_settings: { updated_at: 'fact', former_until: 'fact', disabled: 'number' },
  outbox: {
    ...{ created_at: 'fact', begun_at: 'fact', settled_at: 'fact' },
    due_at: next(LONGEST_RETRY_MS),
    ...{ is_new: 'number', in_order: 'number', attempts: 'number', tries: 'number' },
  },
  delivery_attempt: { at: 'fact', number: 'number', ms: 'number', http_status: 'number' },
  callback_lane: {
    due_at: next(LONGEST_RETRY_MS, true),
    closed_until: next(MAX_OPEN_MS),
    in_order_until: lease(DELIVERY_LEASE_MS),
    ...{ ailing_since: 'fact', failures: 'number', trips: 'number' },
  },
  expiry_notice: { days: 'number', written_through: next(NOTICE_CLOCK_MS, true) },
  cancellation: { at: 'fact' },
  revocation: { due_at: 'fact', revoked_at: 'fact' },
  revoked_serial: {
    ...{ revoked_at: 'fact', not_after: 'fact', crl_published_at: 'fact' },
    ...{ shard: 'number', listed_in: 'number', crl_number: 'number' },
  },
  // What a published list says; the publisher renews one from the future.
  crl: {
    ...{ this_update: next(5 * MINUTE_MS, true), next_update: 'fact', ended_before: 'fact' },
    ...{ shard: 'number', number: 'number', entries: 'number' },
  },
  pki_address: { last_used_at: 'fact' },
  acme_binding: {
    ...{ created_at: 'fact', expires_at: 'fact', disabled_at: 'fact', used_at: 'fact' },
    ...{ revokes_replaced: 'number', is_reusable: 'number' },
  },
  acme_account: { terms_agreed_at: 'fact', created_at: 'fact' },
  acme_used_nonce: { expires_at: lease(NONCE_MS, true) },
  ocsp_responder: { not_before: 'fact', not_after: 'fact', created_at: 'fact' },
} as const satisfies { [Table in keyof Schema]: NumericColumns<Schema[Table]> };

const MAX_COUNTED = 1_000;

/** Rows that a clock which was ahead has left, of the columns that are counted. A running service repairs them. */
export async function strayTimes(db: Db, now: number): Promise<StrayTimes[]> {
  const found: StrayTimes[] = [];
  for (const [table, columns] of Object.entries(TIMES)) {
    for (const [column, kind] of Object.entries<Kind>(columns)) {
      if (typeof kind === 'string' || !kind.isCounted) continue;
      const rows = await db
        .selectFrom(table as keyof Schema)
        .select(sql<number>`1`.as('one'))
        .where(sql<boolean>`${sql.ref(column)} > ${latestAhead(now, kind.lengthMs)}`)
        .limit(MAX_COUNTED)
        .execute();
      if (rows.length > 0) found.push({ table, column, count: rows.length });
    }
  }
  return found;
}
