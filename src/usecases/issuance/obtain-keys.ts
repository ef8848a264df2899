// Makes the keys that the service provides for a certificate: a cloud-held key that is certified, or the escrowed key of
// a dual certificate's encryption half. It takes long, so nothing is locked meanwhile; keys of a stale decision are
// discarded.

import type { Product } from '../../domain/catalog/products.ts';
import { CURVE_BITS } from '../../domain/catalog/products.ts';
import type { PublicKey } from '../../domain/certificate/public-key.ts';
import { type CloudKey, newKeyKind, placeholderKey } from '../../domain/cloud-keys/cloud-key.ts';
import type { EscrowedKey } from '../../domain/cloud-keys/ports.ts';
import { invalid } from '../../domain/errors.ts';
import type { CertificateRequest } from '../../domain/issuance/request.ts';
import type { Draft } from './draft.ts';
import { encryptionKeyOf } from './key-policy.ts';
import type { IssuanceTools } from './tools.ts';

/** None of it is stored yet, unless it says so. */
export interface ObtainedKeys {
  readonly cloud: CloudKey | null;
  readonly encryption: ObtainedEncryptionKey | null;
}

export interface ObtainedEncryptionKey {
  readonly key: EscrowedKey;
  /** False for a key that is kept, and stored already. */
  readonly isNew: boolean;
  /** The private key for the holder of the signing key: SM2EnvelopedKey, DER. */
  readonly envelope: Uint8Array;
}

export const NO_KEYS: ObtainedKeys = { cloud: null, encryption: null };

/** Dual certificates are signed with SM3 and nothing else, so any other request needs no key from the service. */
export const mayNeedKeys = ({ keySource, signHash }: Pick<CertificateRequest, 'keySource' | 'signHash'>): boolean =>
  keySource === 'sign-cloud-csc' || signHash === 'sm3';

/** Stands for a cloud-held key while a request is decided: its kind is known before it is made. */
export const cloudKeyToBe = (
  { signHash }: Pick<CertificateRequest, 'signHash'>,
  previous: PublicKey,
  product: Product,
): PublicKey => placeholderKey(newKeyKind(signHash, previous, product));

/** Call only when all names are validated: keys are expensive, and would be wasted on a certificate that waits. */
export async function obtainKeys(tools: IssuanceTools, draft: Draft): Promise<ObtainedKeys> {
  return {
    cloud: draft.request.keySource === 'sign-cloud-csc' ? await newCloudKey(tools, draft) : null,
    encryption: draft.product.form === 'dual' ? await encryptionKey(tools, draft) : null,
  };
}

async function newCloudKey(
  { keys, now, newId }: IssuanceTools,
  { order: { accountId }, request: { pin, pinHint }, plan }: Draft,
): Promise<CloudKey> {
  // The plan has refused a request without an access code.
  if (!pin) throw invalid('sign_key_pin', 'sign_key_pin is missing.', '缺少 sign_key_pin。');
  const maker = keys(accountId);
  const { publicKey, privateKey } = await maker.make(plan.publicKey);
  const id = newId();
  try {
    const wrappedKey = await maker.wrap(privateKey, pin, id);
    const unused = { wrongCodes: 0, lockedUntil: 0, destroyedAt: null };
    return { id, accountId, publicKey, wrappedKey, hint: pinHint || null, createdAt: now(), ...unused };
  } finally {
    privateKey.fill(0);
  }
}

async function encryptionKey(tools: IssuanceTools, draft: Draft): Promise<ObtainedEncryptionKey> {
  const kept = draft.request.keepsEncryptionKey ? await keptKey(tools, draft) : undefined;
  const key = kept ?? (await newEscrowedKey(tools, draft));
  return { key, isNew: !kept, envelope: await tools.keys(key.accountId).envelope(key, draft.wanted.publicKey) };
}

/** The previous certificate's encryption key. One that was blocked while the certificate waited is not kept. */
async function keptKey({ store }: IssuanceTools, { order: { accountId }, previous }: Draft) {
  const key = previous ? await encryptionKeyOf(store, accountId, previous.id) : undefined;
  return key && (await store.blockedKeys.has(key.publicKey, accountId)) ? undefined : key;
}

async function newEscrowedKey(
  { keys, now, newId }: IssuanceTools,
  { order: { accountId, id: orderId } }: Draft,
): Promise<EscrowedKey> {
  const made = await keys(accountId).make({ type: 'sm2', bits: CURVE_BITS.sm2 });
  return { id: newId(), accountId, orderId, createdAt: now(), ...made };
}

/** Wipes what JavaScript lets us wipe: the buffers held here. */
export function wipe({ encryption }: ObtainedKeys): void {
  encryption?.key.privateKey.fill(0);
}
