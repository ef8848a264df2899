// Keys that the service makes for a certificate: a cloud-held one that it certifies, or the escrowed one of the other
// half of a dual certificate. Making them takes long, so it is done before the order is locked; whoever then finds that
// the order has moved on throws them away and begins again.

import { CURVE_BITS, type Product } from '../../domain/catalog/products.ts';
import type { Order } from '../../domain/certificate/order.ts';
import type { PublicKey } from '../../domain/certificate/public-key.ts';
import type { Clock } from '../../domain/clock.ts';
import { type CloudKey, keyToBe, newKeyKind } from '../../domain/cloud-keys/cloud-key.ts';
import type { EscrowedKey, KeyMaker } from '../../domain/cloud-keys/ports.ts';
import type { AccountId, CertificateId, NewId } from '../../domain/ids.ts';
import type { CurrentCertificate } from '../../domain/issuance/ports.ts';
import type { ReissuePlan, ReissueRequest } from '../../domain/issuance/request.ts';
import type { Store } from '../../domain/store.ts';

export interface ObtainedKeys {
  /** Not in the store yet. */
  readonly cloud: CloudKey | null;
  readonly encryption: ObtainedEncryptionKey | null;
}

export interface ObtainedEncryptionKey {
  readonly key: EscrowedKey;
  /** Not in the store yet. */
  readonly isNew: boolean;
  /** The certificate that was current when it was decided whether to keep its key. */
  readonly decidedAt: CertificateId | null;
  readonly envelope: Uint8Array;
}

export const NO_KEYS: ObtainedKeys = { cloud: null, encryption: null };

export interface KeyTools {
  readonly store: Store;
  readonly keys: KeyMaker;
  readonly now: Clock;
  readonly newId: NewId;
}

/** Dual certificates are signed with SM3 and nothing else, so every other request is known to need no keys of ours. */
export const mayNeedKeys = ({ keySource, signHash }: ReissueRequest): boolean =>
  keySource === 'sign-cloud-csc' || signHash === 'sm3';

/** The key that a plan is made with before there is one. */
export const cloudKeyToBe = (request: ReissueRequest, current: PublicKey, product: Product): PublicKey =>
  keyToBe(newKeyKind(request.signHash, current, product));

/** For a plan that was made, and that everything speaks for. */
export async function obtainKeys(
  tools: KeyTools,
  order: Pick<Order, 'id' | 'accountId'>,
  product: Product,
  current: Pick<CurrentCertificate, 'id'> | null,
  request: ReissueRequest,
  plan: ReissuePlan,
): Promise<ObtainedKeys> {
  return {
    cloud: request.keySource === 'sign-cloud-csc' ? await newCloudKey(tools, order.accountId, request, plan) : null,
    encryption:
      product.form === 'dual'
        ? await encryptionKeyFor(tools, order, current, { ...request, publicKey: plan.publicKey })
        : null,
  };
}

async function newCloudKey(
  { keys, now, newId }: KeyTools,
  accountId: AccountId,
  { pin, pinHint }: ReissueRequest,
  plan: ReissuePlan,
): Promise<CloudKey> {
  const made = await keys.make(plan.publicKey);
  const id = newId();
  try {
    return {
      id,
      accountId,
      publicKey: made.publicKey,
      locked: await keys.lock(made.privateKey, pin!, id),
      hint: pinHint || null,
      wrongCodes: 0,
      lockedUntil: 0,
      createdAt: now(),
      destroyedAt: null,
    };
  } finally {
    made.privateKey.fill(0);
  }
}

/** For a dual certificate whose signing half is on `publicKey`. */
export async function encryptionKeyFor(
  tools: KeyTools,
  order: Pick<Order, 'id' | 'accountId'>,
  current: Pick<CurrentCertificate, 'id'> | null,
  { keepsEncryptionKey, publicKey }: { readonly keepsEncryptionKey: boolean; readonly publicKey: PublicKey },
): Promise<ObtainedEncryptionKey> {
  const kept = keepsEncryptionKey && current ? await keptKey(tools, order.accountId, current.id) : undefined;
  const key = kept ?? (await newEscrowedKey(tools, order));
  const envelope = await tools.keys.envelope(key, publicKey);
  return { key, isNew: !kept, decidedAt: current?.id ?? null, envelope };
}

async function keptKey({ store }: KeyTools, accountId: AccountId, certificateId: CertificateId) {
  const certificate = await store.certificates.find(accountId, certificateId);
  const keyId = certificate?.encryption?.escrowedKeyId;
  const key = keyId === undefined ? undefined : await store.escrowedKeys.find(accountId, keyId);
  // One that is listed as compromised is not kept, whatever was asked for.
  return key && (await store.blockedKeys.has(key.publicKey.fingerprint, accountId)) ? undefined : key;
}

async function newEscrowedKey(
  { keys, now, newId }: KeyTools,
  { id: orderId, accountId }: Pick<Order, 'id' | 'accountId'>,
): Promise<EscrowedKey> {
  const made = await keys.make({ type: 'sm2', bits: CURVE_BITS.sm2 });
  return { id: newId(), accountId, orderId, createdAt: now(), ...made };
}

/** What JavaScript lets us wipe: the buffers we hold. */
export function wipe({ encryption }: ObtainedKeys): void {
  encryption?.key.privateKey.fill(0);
}
