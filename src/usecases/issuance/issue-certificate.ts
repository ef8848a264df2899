// The two writes of every issuance. `writeDown` records everything that will be signed, with a lease, in the caller's
// transaction. `finishIssuance` signs it once, and records certificate, order, revocations, event and audit row in one
// transaction. A crash in between leaves a row that says what was meant; its serial number is never signed again.
import type { Actor } from '../../domain/access/credential.ts';
import type { AuditAction, AuditEntry } from '../../domain/access/ports.ts';
import type { CertificateRole } from '../../domain/certificate/authority.ts';
import type { PendingCertificate, PreparedCertificate } from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import type { PublicKey } from '../../domain/certificate/public-key.ts';
import { Refusal } from '../../domain/errors.ts';
import type { CertificateId } from '../../domain/ids.ts';
import type { CertificatePlan, CertificateRequest, PreviousCertificate } from '../../domain/issuance/request.ts';
import type { Repositories } from '../../domain/store.ts';
import type { Draft } from './draft.ts';
import type { Idempotency } from './idempotency.ts';
import type { ObtainedKeys } from './obtain-keys.ts';
import { revokeOnIssuance } from './revoke-on-issuance.ts';
import type { IssuanceTools } from './tools.ts';

/** A signature takes milliseconds and the store answers within seconds: a signer that exceeds this has lost its lease. */
export const SIGNING_LEASE_MS = 10_000;
/** No product lives longer, so a larger value means the same. Bounds the column. */
const MAX_VALIDITY_DAYS = 3_650;

/** A certificate as requested and planned, before its serial number and dates are chosen. */
export function wantedCertificate(
  { id, at, order, cloudKeyId }: WantedFor,
  request: CertificateRequest,
  plan: CertificatePlan,
): PendingCertificate {
  const { validityDays } = request;
  return {
    id,
    orderId: order.id,
    accountId: order.accountId,
    state: 'pending',
    createdAt: at,
    pendingSince: null,
    commonName: plan.commonName,
    names: plan.names,
    csr: request.csr || null,
    publicKey: plan.publicKey,
    signHash: plan.signHash,
    validityDays: validityDays === undefined ? null : Math.min(validityDays, MAX_VALIDITY_DAYS),
    customExpirationDate: request.customExpirationDate ?? null,
    willRevoke: plan.revokes,
    cloudKeyId,
    keepsEncryptionKey: request.keepsEncryptionKey,
  };
}

interface WantedFor {
  readonly id: CertificateId;
  readonly at: number;
  readonly order: Order;
  /** The cloud-held key of the previous certificate, if it is certified again. */
  readonly cloudKeyId: string | null;
}

type WhatToSign = Pick<Draft, 'product' | 'wanted' | 'order'> & {
  readonly plan: Pick<CertificatePlan, 'issuerId' | 'notBefore' | 'notAfter'>;
};

/** Chooses serial numbers, makes the bytes to be signed and takes the lease. Durable before anything is signed. */
export async function writeDown(
  { authority, now }: Pick<IssuanceTools, 'authority' | 'now'>,
  tx: Repositories,
  { product, plan, wanted, order }: WhatToSign,
  { cloud, encryption }: ObtainedKeys,
): Promise<PreparedCertificate> {
  const { commonName, names, signHash } = wanted;
  const { kind, trust, maxValidityDays: maxDays } = product;
  const { issuerId, notBefore, notAfter } = plan;
  const prepare = (role: CertificateRole, publicKey: PublicKey) =>
    authority.prepare({
      ...{ role, kind, trust, commonName, names, publicKey, signHash },
      ...{ issuerId, notBefore, notAfter, maxDays },
    });
  const publicKey = cloud?.publicKey ?? wanted.publicKey;
  const { serial, toBeSigned } = prepare(encryption ? 'signing' : 'single', publicKey);
  const preparedAt = now();
  const leaseEndsAt = preparedAt + SIGNING_LEASE_MS;
  const prepared: PreparedCertificate = {
    ...wanted,
    state: 'prepared',
    publicKey,
    preparation: { issuerId, serial, notBefore, notAfter, preparedAt, leaseEndsAt },
    toBeSigned,
    cloudKeyId: cloud?.id ?? wanted.cloudKeyId,
    encryption: encryption && {
      ...prepare('encryption', encryption.key.publicKey),
      escrowedKeyId: encryption.key.id,
      envelope: encryption.envelope,
    },
  };
  if (cloud) await tx.cloudKeys.insert(cloud);
  if (encryption?.isNew) await tx.escrowedKeys.insert(encryption.key);
  if (wanted.pendingSince === null) await tx.certificates.insert(prepared);
  else if (!(await tx.certificates.prepare(prepared))) throw lostLease();
  await tx.orders.beginSigning(order.id, { certificateId: wanted.id, until: leaseEndsAt });
  return prepared;
}

export interface Finish {
  /** The order as it will be, apart from its status and its certificates. */
  readonly order: Order;
  readonly previous: Pick<PreviousCertificate, 'id' | 'version'> | null;
  readonly by: Actor;
  readonly action: AuditAction;
  readonly details: AuditEntry['details'];
  readonly idempotency: Idempotency | null;
}

const lostLease = (): Refusal => new Refusal('service_busy', { retryAfterSeconds: 1 });

type FinishTools = Pick<IssuanceTools, 'store' | 'authority' | 'now' | 'newId' | 'audit' | 'publishCrls' | 'onIssued'>;

export async function finishIssuance(tools: FinishTools, record: PreparedCertificate, finish: Finish): Promise<void> {
  const { store, authority, now, newId } = tools;
  const { encryption, signHash } = record;
  const { issuerId } = record.preparation;
  const der = await authority.sign(issuerId, signHash, record.toBeSigned);
  const encryptionDer = encryption && (await authority.sign(issuerId, signHash, encryption.toBeSigned));
  const { previous, by, idempotency } = finish;
  const crls = await store.transaction(async (tx) => {
    const { id: certificateId, accountId, orderId } = record;
    const at = now();
    const orderStatus = 'issued' as const;
    const order: Order = {
      ...finish.order,
      ...{ status: orderStatus, currentCertificateId: certificateId, pendingCertificateId: null },
    };
    // The lease ended and another process voided what was prepared: the signature is discarded.
    if (!(await tx.orders.finishSigning(order, certificateId))) throw lostLease();
    const facts = { der, issuedAt: at, version: (previous?.version ?? 0) + 1, replacesId: previous?.id ?? null };
    if (!(await tx.certificates.issue(certificateId, { ...facts, encryptionDer }))) throw lostLease();
    if (record.pendingSince !== null) await tx.waiting.delete(accountId, certificateId);
    const event = { action: 'order:issued', orderStatus, createdAt: at } as const;
    await tx.outbox.add({ id: newId(), accountId, orderId, certificateId, ...event });
    await tools.audit(tx, by, finish.action, orderId, finish.details);
    if (idempotency) {
      const { key, requestHash } = idempotency;
      await tx.idempotencyKeys.put(accountId, orderId, key, { requestHash, certificateId, at });
    }
    const saved = { ...order, revision: order.revision + 1 };
    return await revokeOnIssuance(tx, newId, { record, order: saved }, { at, by });
  });
  tools.onIssued(record, finish.action);
  await tools.publishCrls(crls);
}
