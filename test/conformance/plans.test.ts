// Query plans: every statement of a reissue, of reading orders and of delivering callbacks uses an index. The statements
// are captured from the repositories, and the database explains them. SQLite compiles each of them once. PLAN_ROWS=1000000 tests a large database.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type CompiledQuery, Kysely, sql } from 'kysely';
import { newSealKey, sealerWith } from '../../src/adapters/seal/seal.ts';
import { auditIn } from '../../src/adapters/store/access/audit.ts';
import { credentialsIn } from '../../src/adapters/store/access/credentials.ts';
import { rateLimitsIn } from '../../src/adapters/store/access/rate-limits.ts';
import { callbackLanesIn } from '../../src/adapters/store/callbacks/callback-lanes.ts';
import { deliveriesIn } from '../../src/adapters/store/callbacks/deliveries.ts';
import { deliveryQueueIn } from '../../src/adapters/store/callbacks/delivery-queue.ts';
import { expiryNoticesIn } from '../../src/adapters/store/callbacks/expiry-notices.ts';
import type { Engine } from '../../src/adapters/store/engine/engine.ts';
import type { Db, Schema } from '../../src/adapters/store/engine/schema.ts';
import { SEALED_PLACES, sealKeysInUse, valuesSealedBy } from '../../src/adapters/store/engine/sealed.ts';
import { certificatesIn } from '../../src/adapters/store/issuance/certificates.ts';
import { idempotencyKeysIn } from '../../src/adapters/store/issuance/idempotency-keys.ts';
import { ordersIn } from '../../src/adapters/store/issuance/orders.ts';
import { placementKeysIn } from '../../src/adapters/store/issuance/placement-keys.ts';
import { signingsIn } from '../../src/adapters/store/issuance/signings.ts';
import { blockedKeysIn } from '../../src/adapters/store/revocation/blocklist.ts';
import { crlsIn } from '../../src/adapters/store/revocation/crls.ts';
import { revocationsIn } from '../../src/adapters/store/revocation/revocations.ts';
import { revokedSerialsIn } from '../../src/adapters/store/revocation/revoked-serials.ts';
import { engineAt, openStore } from '../../src/adapters/store/store.ts';
import { factsIn } from '../../src/adapters/store/support/facts.ts';
import { finderIn } from '../../src/adapters/store/support/finder.ts';
import { proofsIn } from '../../src/adapters/store/validation/proofs.ts';
import { waitingIn } from '../../src/adapters/store/validation/waiting.ts';
import type { AuditFilter } from '../../src/domain/access/ports.ts';
import type { PendingEvent } from '../../src/domain/callbacks/ports.ts';
import type { PreparedCertificate } from '../../src/domain/certificate/certificate.ts';
import { firstIdAt } from '../../src/domain/ids.ts';
import { spellingsOf } from '../../src/domain/support/ports.ts';
import { bothEngines } from '../support/engines.ts';
import { inventoryLookUps } from '../support/inventory-filters.ts';
import { isCompiledAnew, SCANS } from '../support/query-plans.ts';
import { EVERY_BYTE, preparation, prepared } from '../support/records.ts';
import { ORDER } from '../support/reissue.ts';
import { finished, HOLDS, signed } from '../support/signings.ts';

const ROWS = Number(process.env.PLAN_ROWS ?? 2_000);
const ACCOUNTS = Math.ceil(ROWS / 20);
/** With few rows a planner rightly prefers a full scan; the test forbids it to see that an index would serve. */
const ARE_MANY = ROWS >= 100_000;

/** Inserts are excluded: they search nothing. */
function everyLookUp(db: Db, engine: Engine): Readonly<Record<string, () => Promise<unknown>>> {
  const orders = ordersIn(db, engine);
  const certificates = certificatesIn(db);
  const page = { after: 'o5', limit: 50 };
  const list = { issuerId: 'i', shard: 1 };
  return {
    'the caller': () => credentialsIn(db).findForAuthentication('k1'),
    'an order': () => orders.find('a1', 'o1'),
    'an order by its alternative id': () => orders.findByAlternative('a1', 'x1'),
    'an order for update': () => orders.findForUpdate('a1', 'o1'),
    ...inventoryLookUps(db, engine),
    // A revision that does not exist: same plan, no change.
    'saving an order': () => orders.save({ ...ORDER, id: 'o1', accountId: 'a1' }).catch(() => {}),
    'what a reissue needs': () => orders.findForReissue('a1', 'o1', ['n1', 'n2']),
    'a certificate': () => certificates.find('a1', 'c1'),
    'the current certificate': () => certificates.findCurrent('a1', 'c1'),
    'what replaced it': () => certificates.findReplacing('a1', 'c1'),
    'the certificates of an order': () => certificates.listLast('a1', 'o1', 50),
    'the valid certificates of an order': () => certificates.listValid('a1', 'o1', 1),
    'canceling it': () =>
      certificates.cancel({ accountId: 'a1', orderId: 'o1', certificateId: 'c1' }, { reason: 'requested', at: 1 }),
    'the last that was canceled': () => certificates.lastCanceled('a1', 'o1', null),
    ...signingLookUps(db, engine),
    'proofs of names': () => proofsIn(db).proven('a1', ['n1', 'n2', 'n3'], 0),
    'an idempotency key': () => idempotencyKeysIn(db).find('a1', 'o1', 'key', 0),
    'a key of a placement': () => placementKeysIn(db).find('a1', 'key1', 0),
    'a blocked key': () => blockedKeysIn(db).has(prepared('any').publicKey, 'a1'),
    'the audit trail': () => auditIn(db).listOf('a1', page),
    ...supportLookUps(db, engine),
    'whether a valid certificate is left': () => certificates.hasUnrevoked('a1', 'o1', 1),
    'carrying out a revocation': () =>
      revocationsIn(db).markRevoked('c1', { reason: 'superseded', cause: 'requested', at: 1 }),
    'the serial numbers of a certificate': () => revokedSerialsIn(db).ofCertificate('c1'),
    'the status of a serial number': () => revokedSerialsIn(db).statusOf('i', '0a'),
    'what a list has yet to show': () => revokedSerialsIn(db).unlisted(list, 50),
    'what a list has brought': () => revokedSerialsIn(db).listedBetween(list, 1, 2, 50),
    'a page of a list': () => revokedSerialsIn(db).page(list, { upTo: 1, expiredBefore: 0, after: '0', limit: 50 }),
    'the head of a list': () => crlsIn(db).head(list),
    'a list': () => crlsIn(db).find(list),
    'the seal keys in use': () => sealKeysInUse(db),
    'the values that a key has sealed': async () => {
      for (const place of SEALED_PLACES) await valuesSealedBy(db, place, 'a', 50).next();
    },
    ...deliveryLookUps(db, engine),
  };
}

function supportLookUps(db: Db, engine: Engine): Readonly<Record<string, () => Promise<unknown>>> {
  const id = firstIdAt(Date.UTC(2026, 10, 15));
  const filters: readonly AuditFilter[] = [
    { accountId: 'a1' },
    { requestId: id },
    { since: 0, until: 2 ** 40, actor: 'k1' },
    { accountId: 'a1', about: { orderId: 'o1' }, since: 0 },
    { accountId: 'a1', about: { certificateId: 'c1' } },
  ];
  const texts = [id, 'o1', 'c1', 'www.example.com', '0a'.repeat(8), 'ff'.repeat(32)];
  const facts = factsIn(db, engine);
  return {
    'old audit rows': () => auditIn(db).deleteBefore(1, 500),
    'old idempotency keys': () => idempotencyKeysIn(db).deleteBefore(0, 500),
    'old keys of placements': () => placementKeysIn(db).deleteBefore(0, 500),
    'full buckets': () => rateLimitsIn(db).deleteFull(0, 500),
    'what waits for a resumed account': () => waitingIn(db, engine).makeDue('a1', 5),
    'what waits': () => facts.waiting(),
    'overdue revocations': () => facts.overdueRevocations(5),
    'the expiry of a responder': () => facts.responderExpiry('i'),
    ...Object.fromEntries(
      filters.map((filter) => [
        `audit rows, ${JSON.stringify(filter)}`,
        () => auditIn(db).search(filter, { after: 'zz', limit: 50 }),
      ]),
    ),
    ...Object.fromEntries(texts.map((text) => [`finding ${text}`, () => finderIn(db).find(spellingsOf(text), 50)])),
  };
}

/** What begins is finished, so that every statement of a batch is sent. */
function signingLookUps(db: Db, engine: Engine): Readonly<Record<string, () => Promise<unknown>>> {
  const signings = signingsIn(db, engine, () => {});
  const begin = async (record: PreparedCertificate) => {
    const unblocked = { ...HOLDS, unblockedKey: { ...record.publicKey, fingerprint: 'none' } };
    assert.ok(await signings.begin(record, { ...unblocked, idempotency: { key: 'new key', since: 0 } }));
  };
  const of = (id: string, orderId: string, change: Partial<PreparedCertificate> = {}) => {
    const accountId = `a${Number(orderId.slice(1)) % ACCOUNTS}`;
    return prepared(id, { orderId, accountId, preparation: preparation(id, { issuerId: 'i' }), ...change });
  };
  const issue = async (record: PreparedCertificate, evenIfReported: boolean) => {
    await begin(record);
    const idempotency = { key: 'new key', requestHash: '' };
    const issuance = finished(record, { certificate: signed(record, { version: 2 }), idempotency });
    assert.ok(await signings.finish(issuance, { evenIfReported }));
  };
  const encryption = { escrowedKeyId: 'e', serial: 'half', toBeSigned: EVERY_BYTE, envelope: EVERY_BYTE };
  return {
    'beginning to sign, and finishing': () => issue(of('s1', 'o11'), false),
    'finishing a dual certificate, whatever its key': () => issue(of('s2', 'o12', { encryption }), true),
    'finishing one that waited': () => issue(of('p13', 'o13', { pendingSince: 0 }), true),
    'expired leases': () => signings.overdue(5, 10),
    'marking what is being signed on a key': () => signings.reportKey('f', null),
    async 'voiding what is being signed'() {
      await begin(of('s4', 'o14', { encryption: { ...encryption, serial: 'another half' } }));
      await signings.void('o14', 'v1');
    },
  };
}

function deliveryLookUps(db: Db, engine: Engine): Readonly<Record<string, () => Promise<unknown>>> {
  const queue = deliveryQueueIn(db, engine);
  const lanes = callbackLanesIn(db, engine);
  const notices = expiryNoticesIn(db, engine);
  const deliveries = deliveriesIn(db, engine, () => {});
  const event = {
    ...{ id: 'e1', accountId: 'a1', orderId: 'o1', action: 'order:issued', body: '{}', createdAt: 0 },
    ...{ attempts: 30, tries: 0, begunAt: 0, inOrder: true },
  } satisfies Record<string, unknown> as PendingEvent;
  // A token that does not exist: same plan, no change.
  const attempt = { number: 31, at: 0, ms: 0, httpStatus: 200, reason: null, excerpt: null };
  const attempted = { event, token: 'none', attempt };
  const page = { after: 'e5', limit: 50 };
  const filters = [
    {},
    { orderId: 'o1' },
    { state: 'suppressed' },
    { action: 'order:revoked' },
    { since: 0, until: 2 ** 40 },
    { orderId: 'o1', state: 'delivered', action: 'order:issued', since: 0 },
  ] as const;
  return {
    'anything new': () => queue.hasNew(),
    'new events': () => queue.enqueueNew(100, 5),
    'due and idle lanes': async () => lanes.wakeBy(await lanes.lockIdle(await lanes.due(5, 64), 5), 5),
    'a lane': () => lanes.tryLock('a1'),
    'the next lane': () => lanes.lock('a1'),
    'due events of a lane': () => queue.dueEvents('a1', 5, false, 16),
    'due events in order': () => queue.dueEvents('a1', 5, true, 1),
    leasing: () => queue.lease(['e1', 'e2'], { token: 't', until: 9 }),
    suppressing: () => queue.suppress(['nothing'], 'disabled', 5),
    'saving a lane': () =>
      lanes.save({
        accountId: 'a1',
        failures: 0,
        openCount: 0,
        openUntil: 0,
        degradedSince: 0,
        inOrderUntil: 0,
        notBefore: 0,
      }),
    'healing a lane': () => lanes.reset(['a1', 'a2'], 5),
    'noting a delivery': () => queue.markDelivered([attempted], 5),
    'giving back': () => queue.release(event, 'none', 5),
    'strayed lanes': () => lanes.stray({ limit: 100 }, 5, 100),
    'bringing back': () => queue.repair('a1', 5, 100),
    'giving up old events': () => queue.failBegunBefore('a1', -1, { now: 5, includeInOrder: true, limit: 100 }),
    'a delivery': () => deliveries.find('a1', 'e1'),
    ...Object.fromEntries(
      filters.map((filter) => [`deliveries, ${JSON.stringify(filter)}`, () => deliveries.list('a1', filter, page)]),
    ),
    attempts: () => deliveries.attemptsOf(['e1', 'e2']),
    'sending again': () => deliveries.resend('a1', 'nothing', 5),
    'sending a range again': () =>
      deliveries.resendRange(
        'a1',
        { state: 'suppressed', since: 2 ** 45 },
        { limit: 10 },
        { actions: ['order:issued'], now: 5 },
      ),
    'what a pause held back': () => deliveries.heldBack('a1', 1_000),
    'certificates that end': () => notices.page({ days: 0, after: { dueAt: 0, certificateId: 'c5' }, before: 5 }, 100),
    'the cursor of notices': () => notices.moveCursor(30, { dueAt: 1, certificateId: 'c' }),
    'events past retention': () => deliveries.deleteSettled(-1, 500),
    'how long the queue is': () => deliveries.queueFacts(),
    'how many were given up': () => deliveries.failedSince(2 ** 45, 100),
  };
}

async function fill(db: Db): Promise<void> {
  const numbers = sql.raw(`with recursive n (i) as (select 1 union all select i + 1 from n where i < ${ROWS})`);
  const account = sql.raw(`'a' || (i % ${ACCOUNTS})`);
  await sql`${numbers} insert into account (id, name, kind, locale, created_at)
    select 'a' || (i - 1), 'Name', 'standard', 'en', 0 from n where i <= ${sql.raw(String(ACCOUNTS))}`.execute(db);
  await sql`${numbers} insert into credential (key_id, account_id, kind, secret_hash, created_at)
    select 'k' || i, ${account}, 'standard', ${sql.raw(`'${'0'.repeat(64)}'`)}, 0 from n
    where i <= ${sql.raw(String(ACCOUNTS))}`.execute(db);
  await sql`${numbers} insert into certificate_order (id, account_id, product_id, status, names, dcv_scope,
    persist_policy, term_ends_at, created_at, revision)
    select 'o' || i, ${account}, 'ssl-dv', 'issued', '[]', 'fqdn', 'fqdn', 0, 0, 1 from n`.execute(db);
  await sql`${numbers} insert into order_name select 'n' || i, 'o' || i, ${account} from n`.execute(db);
  await sql`insert into issuer (id, role, key_type, state, certificate, created_at)
    values ('i', 'root', 'p256', 'active', '', 0)`.execute(db);
  await sql`${numbers} insert into issuer_purpose (purpose, key_type, issuer_id)
    select case i when 11 then 'public-tls' else 'p' || i end, '', 'i' from n`.execute(db);
  await sql`${numbers} insert into certificate (id, account_id, order_id, state, created_at, names, spki, key_type,
    key_bits, key_fingerprint, sign_hash, will_revoke, serial, not_before, not_after,
    prepared_at, lease_ends_at, issuer_id, der, issued_at, version)
    select 'c' || i, ${account}, 'o' || i, 'issued', 0, '[]', '', 'p256', 256, 'f' || i, 'sha256', '[]', i, 0, 1,
    0, 0, 'i', '', 0, 1 from n`.execute(db);
  await sql`${numbers} insert into certificate (id, account_id, order_id, state, created_at, pending_since, names, spki,
    key_type, key_bits, key_fingerprint, sign_hash, will_revoke)
    select 'p' || i, ${account}, 'o' || i, 'pending', 0, 0, '[]', '', 'p256', 256, 'p' || i, 'sha256', '[]'
    from n`.execute(db);
  await sql`${numbers} insert into domain_authorization (account_id, name, method, validated_at)
    select ${account}, 'n' || i, 'dns', 0 from n`.execute(db);
  await sql`${numbers} insert into audit (id, at, account_id, actor, action, subject, details)
    select i, 0, ${account}, 'cli', 'order:placed', '', '{}' from n`.execute(db);
  await sql`${numbers} insert into revocation (certificate_id, account_id, reason, cause, due_at)
    select 'c' || i, ${account}, 'superseded', 'requested', 0 from n where i % 2 = 0`.execute(db);
  await sql`${numbers} insert into revoked_serial (issuer_id, shard, serial, certificate_id, reason, revoked_at,
    not_after, listed_in) select 'i', i % 16, i, 'c' || i, 'superseded', 0, 0, i from n`.execute(db);
  await sql`${numbers} insert into crl (issuer_id, shard, number, this_update, next_update, entries, ended_before,
    addresses, der) select 'i', i, 1, 0, 1, 0, 0, '', '' from n`.execute(db);
  await sql`${numbers} insert into ocsp_responder (serial, issuer_id, not_before, not_after, certificate, sealed_key,
    created_at) select 'r' || i, 'i', 0, i, '', '', 0 from n`.execute(db);
  await sql`${numbers} insert into reported_key (account_id, fingerprint, created_at)
    select ${account}, 'f' || i, 0 from n`.execute(db);
  await sql`insert into escrowed_key (id, account_id, order_id, spki, key_fingerprint, sealed_key, created_at)
    values ('e', 'a1', 'o1', '', '', '', 0)`.execute(db);
  await sql`${numbers} insert into escrowed_key (id, account_id, order_id, spki, key_fingerprint, sealed_key, created_at)
    select 'e' || i, ${account}, 'o' || i, '', 'f' || i, '', 0 from n`.execute(db);
  await sql`${numbers} insert into encryption_certificate (certificate_id, account_id, key_id, serial, der, envelope)
    select 'c' || i, ${account}, 'e', 's' || i, '', '' from n`.execute(db);
  await sql`${numbers} insert into idempotency_key (account_id, order_id, key, request_hash, certificate_id, created_at)
    select ${account}, 'o' || i, 'key', '', 'c' || i, 1 from n`.execute(db);
  await sql`${numbers} insert into placement_key (account_id, key, request_hash, order_id, certificate_id, created_at)
    select ${account}, 'key' || i, '', 'o' || i, 'c' || i, 1 from n`.execute(db);
  await sql`${numbers} insert into rate_limit (key, full_at) select 'r' || i, i from n`.execute(db);
  await sql`${numbers} insert into blocked_key (fingerprint, reason, created_at)
    select 'f' || i, '', 0 from n`.execute(db);
  // Most are delivered; some are pending, some new, some failed.
  await sql`${numbers} insert into outbox (id, account_id, order_id, certificate_id, action, created_at, body, state,
    is_new, in_order, due_at, settled_at)
    select 'e' || i, ${account}, 'o' || i, 'c' || i, 'order:issued', 0, '{}',
    case when i % 100 < 2 then 'pending' when i % 100 = 3 then 'failed' when i % 100 = 4 then 'suppressed' else 'delivered' end,
    case when i % 100 = 0 then 1 else 0 end, i % 2, case when i % 100 = 1 then i end,
    case when i % 100 >= 2 then i end from n`.execute(db);
  await sql`${numbers} insert into delivery_attempt (event_id, number, at, ms, http_status)
    select 'e' || i, 1, 0, 5, 200 from n where i % 100 >= 2`.execute(db);
  await sql`${numbers} insert into callback_lane (account_id, due_at, trips)
    select 'a' || (i - 1), case when i % 50 = 0 then i end, case when i % 70 = 0 then 1 else 0 end from n
    where i <= ${sql.raw(String(ACCOUNTS))}`.execute(db);
  await sql`analyze`.execute(db);
}

for (const { name, newLocation } of await bothEngines()) {
  describe(`${name}, ${ROWS} orders and events`, async () => {
    const location = await newLocation();
    await (await openStore(location, sealerWith([newSealKey()]), Date.now)).close();
    // The migration engine: filling takes long, and its single connection keeps settings for what follows.
    const engine = engineAt(location, {}, true);
    const sent: CompiledQuery[] = [];
    const db = new Kysely<Schema>({ dialect: engine.dialect, log: ({ query }) => void sent.push(query) });
    const lookUps = everyLookUp(db, engine);

    test('filling', async () => {
      await fill(db);
      if (name === 'postgresql' && !ARE_MANY) await sql`set enable_seqscan = off`.execute(db);
    });

    for (const [what, lookUp] of Object.entries(lookUps)) {
      test(what, async () => {
        sent.length = 0;
        await lookUp();
        const queries = [...new Map(sent.map((query) => [query.sql, query])).values()];
        assert.notEqual(queries.length, 0);
        for (const query of queries) {
          assert.deepEqual(await SCANS[name](db, query), [], query.sql);
          assert.ok(!isCompiledAnew(location, query), `SQLite compiles it for each execution: ${query.sql}`);
        }
      });
    }

    test('closing', () => db.destroy());
  });
}
