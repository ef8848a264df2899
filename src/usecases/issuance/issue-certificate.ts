// The two steps every issuance has. First everything that will be signed is written down, with a lease; that is the
// caller's transaction. Then it is signed, once, and one transaction records the certificate, the order, what is to be
// revoked, the event to call back and the audit row. A crash in between leaves a row that says what was meant.

import type { AuditEntry } from '../../domain/access/ports.ts';
import type { Catalog } from '../../domain/catalog/products.ts';
import type { CertificateAuthority, CertificateRole } from '../../domain/certificate/authority.ts';
import type { CertificateRecord, Order } from '../../domain/certificate/order.ts';
import type { PublicKey } from '../../domain/certificate/public-key.ts';
import type { Validity } from '../../domain/certificate/validity.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { NewId } from '../../domain/ids.ts';
import type { ReissuePlan, ReissueRequest } from '../../domain/issuance/request.ts';
import type { PublishLists } from '../../domain/revocation/ports.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import type { ObtainedKeys } from './obtain-keys.ts';
import { revokeOnIssuance } from './revoke-on-issuance.ts';

/** A signature takes milliseconds, and the store answers within seconds. Who has not finished after this must act as if dead. */
export const LEASE_MS = 10_000;
// No product lives longer: a larger wish means the same, and a number without a bound has no place in a column.
const MAX_WISH_DAYS = 3_650;

export interface IssuanceTools {
  readonly store: Store;
  readonly authority: CertificateAuthority;
  readonly products: Catalog;
  readonly now: Clock;
  readonly newId: NewId;
  /** Shows the world what an issuance has revoked. Never fails. */
  readonly publishLists: PublishLists;
}

/** What was asked for and decided, before anything is written down to be signed. */
export function pendingRecord(
  id: string,
  at: number,
  order: Order,
  request: ReissueRequest,
  plan: ReissuePlan,
  waits: boolean,
): CertificateRecord {
  return {
    id,
    orderId: order.id,
    accountId: order.accountId,
    state: 'pending',
    createdAt: at,
    pendingSince: waits ? at : null,
    commonName: plan.commonName,
    names: plan.names,
    csr: request.csr || null,
    publicKey: plan.publicKey,
    signHash: plan.signHash,
    validityDays: request.validityDays === undefined ? null : Math.min(request.validityDays, MAX_WISH_DAYS),
    customExpirationDate: request.customExpirationDate ?? null,
    willRevoke: plan.revokes,
    preparation: null,
    der: null,
    issuedAt: null,
    version: null,
    replacesId: null,
    revocation: null,
    cloudKeyId: null,
    keepsEncryptionKey: request.keepsEncryptionKey,
    encryption: null,
  };
}

/** The record with serial numbers, dates and the bytes to be signed: to be made durable before it is signed. */
export function preparedRecord(
  { authority, products }: IssuanceTools,
  record: CertificateRecord,
  { issuerId, notBefore, notAfter, productId }: Validity & { readonly issuerId: string; readonly productId: string },
  { cloud, encryption }: ObtainedKeys,
  at: number,
): CertificateRecord {
  const product = products.get(productId);
  if (!product) throw new Error(`there is no product ${productId}`);
  const { commonName, names, signHash } = record;
  const { kind, trust, maxValidityDays: maxDays } = product;
  const prepare = (role: CertificateRole, publicKey: PublicKey) =>
    authority.prepare({
      ...{ role, kind, trust, commonName, names, publicKey, signHash },
      ...{ issuerId, notBefore, notAfter, maxDays },
    });
  const { serial, toBeSigned } = prepare(encryption ? 'signing' : 'single', record.publicKey);
  return {
    ...record,
    state: 'prepared',
    preparation: { issuerId, serial, notBefore, notAfter, toBeSigned, preparedAt: at, leaseEndsAt: at + LEASE_MS },
    cloudKeyId: cloud?.id ?? record.cloudKeyId,
    encryption: encryption && {
      ...prepare('encryption', encryption.key.publicKey),
      escrowedKeyId: encryption.key.id,
      envelope: encryption.envelope,
      der: null,
    },
  };
}

/** In the transaction that writes down the certificate they belong to. */
export async function keepKeys(tx: Repositories, { cloud, encryption }: ObtainedKeys): Promise<void> {
  if (cloud) await tx.cloudKeys.insert(cloud);
  if (encryption?.isNew) await tx.escrowedKeys.insert(encryption.key);
}

export interface Finish {
  /** The order as it shall be, apart from its status and its certificates. */
  readonly order: Order;
  /** The certificate that the new one takes the place of. */
  readonly replaces: { readonly id: string; readonly version: number } | null;
  readonly audit: Pick<AuditEntry, 'actor' | 'action' | 'requestId' | 'details'>;
  readonly idempotency: { readonly key: string; readonly requestHash: string } | null;
}

const lost = (): Refusal => new Refusal('service_busy', { retryAfterSeconds: 1 });

export async function finishIssuance(tools: IssuanceTools, record: CertificateRecord, finish: Finish): Promise<void> {
  const { store, authority, now, newId } = tools;
  const { issuerId, toBeSigned } = record.preparation!;
  const der = await authority.sign(issuerId, record.signHash, toBeSigned!);
  const half = record.encryption?.toBeSigned;
  const encryptionDer = half ? await authority.sign(issuerId, record.signHash, half) : null;
  const lists = await store.transaction(async (tx) => {
    const { id, accountId, orderId } = record;
    const at = now();
    const order: Order = { ...finish.order, status: 'issued', currentCertificateId: id, pendingCertificateId: null };
    // Our lease ran out, and somebody voided what we prepared: the signature is not used, and never will be.
    if (!(await tx.orders.finishSigning(order, id))) throw lost();
    const version = (finish.replaces?.version ?? 0) + 1;
    const replacesId = finish.replaces?.id ?? null;
    if (!(await tx.certificates.issue(id, { der, issuedAt: at, version, replacesId, encryptionDer }))) throw lost();
    if (record.pendingSince !== null) await tx.waiting.delete(accountId, id);
    const orderStatus = order.status;
    await tx.outbox.add({
      ...{ id: newId(), accountId, orderId, orderStatus, certificateId: id, action: 'order:issued', createdAt: at },
    });
    await tx.audit.append({ id: newId(), at, accountId, subject: orderId, ...finish.audit });
    if (finish.idempotency) {
      const { key, requestHash } = finish.idempotency;
      await tx.idempotencyKeys.put(accountId, orderId, key, { requestHash, certificateId: id, at });
    }
    const saved = { ...order, revision: order.revision + 1 };
    return await revokeOnIssuance(tx, newId, record, saved, at, finish.audit);
  });
  await tools.publishLists(lists);
}
