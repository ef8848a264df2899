// Certificates of whichever account: for the service's own work, when a key is compromised or a signer was lost.
import type { AccountId, OrderId } from '../../../domain/ids.ts';
import type { Certificates } from '../../../domain/issuance/ports.ts';
import type { Page } from '../../../domain/page.ts';
import type { Db } from '../engine/schema.ts';

type OnKey = Awaited<ReturnType<Certificates['listOnKey']>>;

const refs = (db: Db, { after = '', limit }: Page) =>
  db
    .selectFrom('certificate')
    .select(['certificate.id', 'certificate.account_id', 'certificate.order_id', 'certificate.state'])
    .where('certificate.id', '>', after)
    .orderBy('certificate.id')
    .limit(limit);

export async function certificatesOnKey(db: Db, fingerprint: string, page: Page): Promise<OnKey> {
  const signed = ['prepared', 'issued', 'voided'] as const;
  const own = await refs(db, page).where('key_fingerprint', '=', fingerprint).where('state', 'in', signed).execute();
  const half = await refs(db, page)
    .innerJoin('encryption_certificate', 'encryption_certificate.certificate_id', 'certificate.id')
    .innerJoin('escrowed_key', 'escrowed_key.id', 'encryption_certificate.key_id')
    .where('escrowed_key.key_fingerprint', '=', fingerprint)
    .where('state', 'in', signed)
    .execute();
  const found = new Map([...own, ...half].map((row) => [row.id, row]));
  return [...found.values()]
    .sort((one, other) => (one.id < other.id ? -1 : 1))
    .slice(0, page.limit)
    .map((row) => ({ ...refFrom(row), state: row.state }));
}

export async function voidedCertificates(db: Db, page: Page) {
  const rows = await refs(db, page)
    .leftJoin('revocation', 'revocation.certificate_id', 'certificate.id')
    .where('state', '=', 'voided')
    .where('revoked_at', 'is', null)
    .execute();
  return rows.map(refFrom);
}

const refFrom = (row: { id: string; account_id: AccountId; order_id: OrderId }) => ({
  certificateId: row.id,
  accountId: row.account_id,
  orderId: row.order_id,
});
