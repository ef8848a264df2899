// What a reissue is decided with: the order's product, its current certificate, proofs, keys nobody may use, and an
// earlier answer under the same idempotency key. Reads only.

import { productOf } from '../../domain/catalog/products.ts';
import type { Order } from '../../domain/certificate/order.ts';
import { NO_KEY, type PublicKey } from '../../domain/certificate/public-key.ts';
import { invalid, Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import { mentionedNames } from '../../domain/issuance/names.ts';
import type { CurrentCertificate } from '../../domain/issuance/ports.ts';
import type { ReissueContext, ReissueRequest } from '../../domain/issuance/request.ts';
import type { Repositories } from '../../domain/store.ts';
import type { NamesToCheck } from '../validation/check-names.ts';
import { provenAmong } from '../validation/proven-names.ts';
import { isKeyBlocked, keyPolicy, once } from './key-policy.ts';
import { cloudKeyToBe } from './obtain-keys.ts';
import type { ReissueCall, ReissueTools } from './tools.ts';

const IDEMPOTENCY_MS = 24 * 3_600_000;

export async function earlierAnswer(tx: Repositories, call: ReissueCall, at: number): Promise<string | undefined> {
  if (!call.idempotency) return undefined;
  const { key, requestHash } = call.idempotency;
  const entry = await tx.idempotencyKeys.find(call.caller.account.id, call.orderId, key, at - IDEMPOTENCY_MS);
  if (entry && entry.requestHash !== requestHash) throw new Refusal('idempotency_key_reused');
  return entry?.certificateId;
}

/** An order without a certificate has nothing to compare with; its status refuses the reissue anyway. */
export async function currentOf(db: Repositories, order: Order): Promise<CurrentCertificate> {
  const id = order.currentCertificateId;
  const certificate = id === null ? undefined : await db.certificates.findCurrent(order.accountId, id);
  if (certificate) return certificate;
  if (order.status === 'issued') throw new Error(`order ${order.id} is issued and has no certificate`);
  return { id: '', commonName: order.commonName, names: order.names, publicKey: NO_KEY, version: 0, cloudKeyId: null };
}

/** Without a cloud key, one that stands for it: enough for a plan, and never certified. */
export async function contextOf(
  tools: ReissueTools,
  db: Repositories,
  order: Order,
  current: CurrentCertificate,
  request: ReissueRequest,
  now: number,
  cloudKey?: PublicKey,
): Promise<ReissueContext & Pick<NamesToCheck, 'provenBy'>> {
  const { authority } = tools;
  const product = productOf(tools.products, order.productId);
  const mentioned = mentionedNames(request, product.kind, current.names);
  const mayRemove = current.names.some((name) => !mentioned.includes(name));
  const valid =
    mayRemove || product.revokesPreviousOnReissue
      ? await db.certificates.listValid(order.accountId, order.id, now)
      : [];
  const readCsr = once(tools.readCsr);
  const provenBy = await provenAmong(tools, db, order.accountId, mentioned, product, now);
  return {
    now,
    order,
    product,
    current: { ...current, isStillValid: valid.some(({ id }) => id === current.id) },
    earlier: valid.filter(({ id }) => id !== current.id),
    provenBy,
    validatedNames: new Set(provenBy.keys()),
    readCsr,
    requireAcceptedKey: (await isDestroyed(db, order.accountId, current, request))
      ? refuseDestroyed
      : keyPolicy(tools, product, await isBlocked(db, order.accountId, current, request, readCsr)),
    cloudKey: cloudKey ?? cloudKeyToBe(request, current.publicKey, product),
    issuers: { choose: authority.issuerFor, served: authority.served },
    registrableDomain: tools.registrableDomain,
  };
}

/** Without a CSR the last key is certified again; one that is destroyed can sign nothing any more. */
async function isDestroyed(
  db: Repositories,
  accountId: AccountId,
  { cloudKeyId }: CurrentCertificate,
  { keySource, csr }: ReissueRequest,
): Promise<boolean> {
  if (keySource !== 'caller' || csr || cloudKeyId === null) return false;
  return (await db.cloudKeys.find(accountId, cloudKeyId)) === undefined;
}

const refuseDestroyed = (): never => {
  throw invalid(
    'certificate.csr',
    'The key of the current certificate is destroyed. Send a csr, or csr_from sign-cloud-csc for a new one.',
    '当前证书的密钥已销毁，请发送 csr，或使用 csr_from sign-cloud-csc 生成新密钥。',
  );
};

/** A key that is made for the request was never anybody's before. */
async function isBlocked(
  db: Repositories,
  accountId: AccountId,
  current: CurrentCertificate,
  { keySource, csr }: ReissueRequest,
  readCsr: (text: string) => PublicKey,
): Promise<boolean> {
  if (keySource !== 'caller') return false;
  return csr
    ? await isKeyBlocked(db, accountId, csr, readCsr)
    : await db.blockedKeys.has(current.publicKey.fingerprint, accountId);
}
