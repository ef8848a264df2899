// The two writes of every issuance. `writeDown` records everything that will be signed, with a lease. `finishIssuance`
// signs it once, and records certificate, order, revocations, event and audit row in one transaction. A crash in between leaves a row that says what was meant; its serial number is never signed again.
import type { Actor } from '../../domain/access/credential.ts';
import type { AuditAction, AuditEntry } from '../../domain/access/ports.ts';
import { maxValidityDays } from '../../domain/catalog/public-rules.ts';
import { type CertificateRole, NotSigned, type Purpose, purposeOf } from '../../domain/certificate/authority.ts';
import type { PendingCertificate, PreparedCertificate } from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import type { PublicKey } from '../../domain/certificate/public-key.ts';
import { Refusal } from '../../domain/errors.ts';
import type { CertificateId } from '../../domain/ids.ts';
import { type BeginConditions, type FinishedIssuance, SIGNING_LEASE_MS } from '../../domain/issuance/ports.ts';
import type { CertificatePlan, CertificateRequest, PreviousCertificate } from '../../domain/issuance/request.ts';
import type { Repositories } from '../../domain/store.ts';
import { auditEntry } from '../access/audit.ts';
import { giveUpSigning } from '../lease/void-lost-issuances.ts';
import type { Draft } from './draft.ts';
import { IDEMPOTENCY_MS, type Idempotency } from './idempotency.ts';
import type { ObtainedKeys } from './obtain-keys.ts';
import { revokeOnIssuance } from './revoke-on-issuance.ts';
import type { IssuanceTools } from './tools.ts';

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

type WhatToSign = Pick<Draft, 'product' | 'wanted'> & {
  readonly order: Pick<Order, 'subject'>;
  readonly basis: Pick<Draft['basis'], 'decided'>;
  readonly plan: Pick<CertificatePlan, 'issuerId' | 'notBefore' | 'notAfter'>;
};

type PrepareTools = Pick<IssuanceTools, 'authority' | 'now'> & { readonly store: Pick<Repositories, 'sharedNow'> };

/** Chooses serial numbers and makes the bytes to be signed. */
export function prepare(
  { authority, now, store }: PrepareTools,
  { order: { subject }, product, plan, wanted, basis: { decided } }: WhatToSign,
  { cloud, encryption }: ObtainedKeys,
): PreparedCertificate {
  const { commonName, names, signHash } = wanted;
  const { kind, trust, shortLived: isShortLived } = product;
  const maxDays = maxValidityDays(product, decided.at);
  const { issuerId, notBefore, notAfter } = plan;
  const encode = (role: CertificateRole, publicKey: PublicKey) =>
    authority.prepare({
      role,
      kind,
      trust,
      commonName,
      names,
      subject,
      publicKey,
      signHash,
      issuerId,
      notBefore,
      notAfter,
      maxDays,
      isShortLived,
    });
  const publicKey = cloud?.publicKey ?? wanted.publicKey;
  const { serial, toBeSigned } = encode(encryption ? 'signing' : 'single', publicKey);
  const leaseEndsAt = store.sharedNow() + SIGNING_LEASE_MS;
  return {
    ...wanted,
    state: 'prepared',
    publicKey,
    preparation: { issuerId, serial, notBefore, notAfter, preparedAt: now(), leaseEndsAt },
    toBeSigned,
    cloudKeyId: cloud?.id ?? wanted.cloudKeyId,
    encryption: encryption && {
      ...encode('encryption', encryption.key.publicKey),
      escrowedKeyId: encryption.key.id,
      envelope: encryption.envelope,
    },
  };
}

/** Records what will be signed, and takes the order's lease. Durable before anything is signed. */
export async function writeDown(
  tools: PrepareTools,
  tx: Repositories,
  draft: Pick<Draft, 'order' | 'product' | 'plan' | 'wanted' | 'basis'>,
  { order: { revision }, keys }: { readonly order: Order; readonly keys: ObtainedKeys },
): Promise<PreparedCertificate> {
  const { cloud, encryption } = keys;
  const prepared = prepare(tools, draft, keys);
  if (cloud) await tx.cloudKeys.insert(cloud);
  if (encryption?.isNew) await tx.escrowedKeys.insert(encryption.key);
  const conditions = conditionsOf(draft, revision);
  if (!(await tx.signings.begin(prepared, conditions)))
    throw new NotWrittenDown(draft.plan.issuerId, conditions.purpose);
  return prepared;
}

/** What was compared in memory does not hold in the store: for one, the issuer may have been retired. */
export class NotWrittenDown extends Refusal {
  readonly issuerId: string;
  readonly purpose: Purpose;

  constructor(issuerId: string, purpose: Purpose) {
    super('service_busy', { retryAfterSeconds: 1 });
    this.issuerId = issuerId;
    this.purpose = purpose;
  }
}

/** What `signings.begin` compares by itself. */
export const conditionsOf = (
  { product, basis: { unblockedKey, idempotency, decided } }: Pick<Draft, 'basis' | 'product'>,
  revision: number,
): BeginConditions => ({
  revision,
  unblockedKey,
  purpose: purposeOf(product),
  idempotency: idempotency && { key: idempotency.key, since: decided.at - IDEMPOTENCY_MS },
});

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

type FinishTools = Pick<IssuanceTools, 'store' | 'authority' | 'now' | 'newId' | 'publishCrls' | 'onIssued'>;

/** Signs once, and records what follows from it. */
export async function finishIssuance(tools: FinishTools, record: PreparedCertificate, finish: Finish): Promise<void> {
  const { store, newId, now } = tools;
  const { accountId, encryption, willRevoke, pendingSince } = record;
  const signed = await sign(tools, record);
  const at = now();
  const { by } = finish;
  const issuance = issuanceOf(tools, record, finish, { ...signed, at });
  const revokesNothing = willRevoke.length === 0 && pendingSince === null && encryption === null;
  if (revokesNothing && (await store.signings.finish(issuance, { evenIfReported: false }))) {
    return tools.onIssued(record, finish.action);
  }
  const crls = await store.transaction(async (tx) => {
    // The lease ended and another process voided what was prepared: the signature is discarded.
    if (!(await tx.signings.finish(issuance, { evenIfReported: true }))) throw lostLease();
    if (pendingSince !== null) await tx.waiting.delete(accountId, record.id);
    const saved = { ...issuance.order, revision: issuance.order.revision + 1 };
    return await revokeOnIssuance(tx, newId, { record, order: saved }, { at, by });
  });
  tools.onIssued(record, finish.action);
  await tools.publishCrls(crls);
}

interface Signed {
  readonly der: Uint8Array;
  readonly encryptionDer: Uint8Array | null;
}

async function sign(tools: FinishTools, record: PreparedCertificate): Promise<Signed> {
  const { authority } = tools;
  const { encryption, signHash, toBeSigned } = record;
  const { issuerId } = record.preparation;
  let der: Uint8Array | undefined;
  try {
    der = await authority.sign(issuerId, signHash, toBeSigned);
    return { der, encryptionDer: encryption && (await authority.sign(issuerId, signHash, encryption.toBeSigned)) };
  } catch (error) {
    if (error instanceof NotSigned) await giveUpSigning(tools, record, error.isCertain && der === undefined);
    throw error;
  }
}

function issuanceOf(
  tools: FinishTools,
  { toBeSigned: _, encryption, ...record }: PreparedCertificate,
  { order, previous, by, action, details, idempotency }: Finish,
  { der, encryptionDer, at }: Signed & { readonly at: number },
): FinishedIssuance {
  const { id: certificateId, orderId, accountId } = record;
  const orderStatus = 'issued' as const;
  const half = encryption && encryptionDer && { ...encryption, der: encryptionDer };
  return {
    order: { ...order, status: orderStatus, currentCertificateId: certificateId, pendingCertificateId: null },
    certificate: {
      ...record,
      state: 'issued',
      der,
      issuedAt: at,
      version: (previous?.version ?? 0) + 1,
      replacesId: previous?.id ?? null,
      revocation: null,
      encryption: half && {
        escrowedKeyId: half.escrowedKeyId,
        serial: half.serial,
        envelope: half.envelope,
        der: half.der,
      },
    },
    event: {
      id: tools.newId(),
      accountId,
      orderId,
      certificateId,
      action: 'order:issued',
      orderStatus,
      createdAt: at,
    },
    audit: auditEntry(tools, by, { action, subject: orderId, details }),
    idempotency,
  };
}
