// Issue a certificate that waited, now that its names are proven and CAA does not stand in the way. It keeps the id that
// was answered long ago; its dates and its issuer are those of today.

import type { Product } from '../../domain/catalog/products.ts';
import { canStillSign } from '../../domain/certificate/authority.ts';
import type { CertificateRecord, Order } from '../../domain/certificate/order.ts';
import { validityOf } from '../../domain/certificate/validity.ts';
import { Refusal } from '../../domain/errors.ts';
import type { Repositories } from '../../domain/store.ts';
import { type CheckResults, isClear, unprovenOf } from '../validation/check-names.ts';
import type { IssuePending, PendingOutcome } from '../validation/prove-domains.ts';
import { provenAmong } from '../validation/proven-names.ts';
import { finishIssuance, keepKeys, LEASE_MS, preparedRecord } from './issue-certificate.ts';
import { encryptionKeyFor, NO_KEYS, type ObtainedKeys, wipe } from './obtain-keys.ts';
import { currentOf } from './reissue-context.ts';
import type { ReissueTools } from './tools.ts';

const DAY_MS = 86_400_000;

export const issuePending =
  (tools: ReissueTools): IssuePending =>
  async (record, product, looked) => {
    const { store } = tools;
    const order = await store.orders.find(record.accountId, record.orderId);
    if (!order) return 'later';
    const current = order.currentCertificateId === null ? null : await currentOf(store, order);
    const keys =
      product.form === 'dual'
        ? { ...NO_KEYS, encryption: await encryptionKeyFor(tools, order, current, record) }
        : NO_KEYS;
    try {
      const step = await store.transaction((tx) => prepare(tools, tx, record, product, looked, keys));
      if (!('prepared' in step)) return step.outcome;
      await finishIssuance(tools, step.prepared, {
        order: { ...step.order, commonName: record.commonName, names: record.names },
        replaces: step.replaces,
        audit: {
          actor: 'service',
          action: 'certificate:issued',
          requestId: null,
          details: { certificate_id: record.id },
        },
        idempotency: null,
      });
      return 'issued';
    } finally {
      wipe(keys);
    }
  };

type Step =
  | { readonly outcome: Exclude<PendingOutcome, 'issued'> }
  | {
      readonly prepared: CertificateRecord;
      readonly order: Order;
      readonly replaces: { readonly id: string; readonly version: number } | null;
    };

const LATER: Step = { outcome: 'later' };

/** Everything is asked again under the lock of the order: what was true when it was looked at may not be any more. */
async function prepare(
  tools: ReissueTools,
  tx: Repositories,
  { id, accountId, orderId }: CertificateRecord,
  product: Product,
  looked: CheckResults,
  keys: ObtainedKeys,
): Promise<Step> {
  const at = tools.now();
  const found = await tx.orders.findForUpdate(accountId, orderId);
  if (!found || found.signing || found.order.pendingCertificateId !== id) return LATER;
  const { order } = found;
  const record = await tx.certificates.find(accountId, id);
  if (record?.state !== 'pending') return LATER;
  const { names } = record;
  const provenBy = await provenAmong(tools, tx, accountId, names, product, at);
  if (!isClear(looked, { names, unproven: unprovenOf({ names, provenBy }) })) return LATER;
  if (await tx.blockedKeys.has(record.publicKey.fingerprint, accountId))
    return { outcome: { impossible: 'its key is compromised' } };

  const until = Math.min(at + product.maxValidityDays * DAY_MS, order.termEndsAt);
  const issuer = tools.authority.issuerFor(record.publicKey.type, record.signHash, until);
  if (!issuer || !canStillSign(issuer, at)) return LATER;
  const validity = validityNow(record, order, product, issuer.notAfter, at);
  if (!validity) return { outcome: { impossible: 'the end it was asked for, or the term of the order, has passed' } };
  const current = order.currentCertificateId === null ? null : await currentOf(tx, order);
  // Another certificate became current while the key was chosen: it is chosen anew at the next look.
  if (keys.encryption && keys.encryption.decidedAt !== (current?.id ?? null)) return LATER;

  const chosen = { ...validity, issuerId: issuer.id, productId: order.productId };
  const prepared = preparedRecord(tools, record, chosen, keys, at);
  await keepKeys(tx, keys);
  if (!(await tx.certificates.prepare(prepared))) return LATER;
  const signing = await toIssuing(tx, order);
  await tx.orders.beginSigning(orderId, { certificateId: id, until: at + LEASE_MS });
  return { prepared, order: signing, replaces: current };
}

/** A reissue stays `reissuing` until it is done. */
async function toIssuing(tx: Repositories, order: Order): Promise<Order> {
  if (order.status !== 'domain_verifing') return order;
  const issuing: Order = { ...order, status: 'issuing' };
  await tx.orders.save(issuing);
  return { ...issuing, revision: order.revision + 1 };
}

function validityNow(record: CertificateRecord, order: Order, product: Product, issuerNotAfter: number, now: number) {
  try {
    return validityOf({
      now,
      validityDays: record.validityDays ?? undefined,
      customExpirationDate: record.customExpirationDate ?? undefined,
      maxDays: product.maxValidityDays,
      termEndsAt: order.termEndsAt,
      issuerNotAfter,
    });
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}
