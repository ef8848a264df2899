// Looks a text up as everything it may stand for, in all accounts. One look-up per kind, each by an index.
import type { Finder, Found, FoundKind, Spellings } from '../../../domain/support/ports.ts';
import type { Db } from '../engine/schema.ts';

type Place = Omit<Found, 'kind'>;
type LookUp = (db: Db, spellings: Spellings, limit: number) => Promise<readonly Place[]>;

const NOTHING = { accountId: null, orderId: null, certificateId: null };

const certificates = (db: Db) =>
  db
    .selectFrom('certificate')
    .select([
      'certificate.id as certificateId',
      'certificate.order_id as orderId',
      'certificate.account_id as accountId',
    ]);
const orders = (db: Db) =>
  db.selectFrom('certificate_order').select(['certificate_order.id as orderId', 'account_id as accountId']);

const LOOK_UPS: Readonly<Record<FoundKind, LookUp>> = {
  async account(db, { text }) {
    const rows = await db.selectFrom('account').select('id').where('id', '=', text).execute();
    return rows.map(({ id }) => ({ ...NOTHING, text: id, accountId: id }));
  },
  async key(db, { text }) {
    const rows = await db.selectFrom('credential').select('account_id').where('key_id', '=', text).execute();
    return rows.map(({ account_id }) => ({ ...NOTHING, text, accountId: account_id }));
  },
  async order(db, { text }) {
    const rows = await orders(db).where('certificate_order.id', '=', text).execute();
    return rows.map((row) => ({ ...NOTHING, ...row, text }));
  },
  async alternative_id(db, { text }, limit) {
    const rows = await orders(db)
      .where('alternative_id', '=', text)
      .where('alternative_id', 'is not', null)
      .limit(limit)
      .execute();
    return rows.map((row) => ({ ...NOTHING, ...row, text }));
  },
  async certificate(db, { text }) {
    const rows = await certificates(db).where('certificate.id', '=', text).execute();
    return rows.map((row) => ({ ...row, text }));
  },
  async serial(db, { hex }) {
    if (hex === null) return [];
    const own = await certificates(db).where('serial', '=', hex).execute();
    const half = await certificates(db)
      .innerJoin('encryption_certificate', 'encryption_certificate.certificate_id', 'certificate.id')
      .where('encryption_certificate.serial', '=', hex)
      .execute();
    return [...own, ...half].map((row) => ({ ...row, text: hex }));
  },
  async key_fingerprint(db, { hex }, limit) {
    if (hex === null) return [];
    const own = await certificates(db).where('key_fingerprint', '=', hex).limit(limit).execute();
    const escrowed = await db
      .selectFrom('escrowed_key')
      .select(['account_id as accountId', 'order_id as orderId'])
      .where('key_fingerprint', '=', hex)
      .limit(limit)
      .execute();
    return [...own, ...escrowed].map((row) => ({ ...NOTHING, ...row, text: hex }));
  },
  async blocked_key(db, { hex }) {
    if (hex === null) return [];
    const rows = await db.selectFrom('blocked_key').select('fingerprint').where('fingerprint', '=', hex).execute();
    return rows.map(({ fingerprint }) => ({ ...NOTHING, text: fingerprint }));
  },
  async name(db, { names }, limit) {
    const found: Place[] = [];
    for (const name of names) {
      const rows = await db
        .selectFrom('order_name')
        .innerJoin('certificate_order', 'certificate_order.id', 'order_name.order_id')
        .select(['order_name.name as text', 'order_name.order_id as orderId', 'account_id as accountId'])
        .where('order_name.name', '=', name)
        .orderBy('order_name.order_id', 'desc')
        .limit(limit)
        .execute();
      found.push(...rows.map((row) => ({ ...NOTHING, ...row })));
    }
    return found;
  },
  async delivery(db, { text }) {
    const rows = await db
      .selectFrom('outbox')
      .select(['order_id as orderId', 'certificate_id as certificateId', 'account_id as accountId'])
      .where('id', '=', text)
      .execute();
    return rows.map((row) => ({ ...row, text }));
  },
  async cloud_key(db, { text }) {
    const rows = await db.selectFrom('cloud_key').select('account_id as accountId').where('id', '=', text).execute();
    return rows.map((row) => ({ ...NOTHING, ...row, text }));
  },
};

export const finderIn = (db: Db): Finder => ({
  async find(spellings, limit) {
    const found: Found[] = [];
    for (const [kind, lookUp] of Object.entries(LOOK_UPS) as [FoundKind, LookUp][]) {
      for (const place of await lookUp(db, spellings, limit)) found.push({ kind, ...place });
    }
    return found;
  },
});
