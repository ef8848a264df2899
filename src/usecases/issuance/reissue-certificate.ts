// Reissue the certificate of an order. In this order: the idempotency key, the order, its state and everything else
// that planReissue decides; then, when every name is proven, write down, sign once, and finish in one transaction.
//
// Reissues of one order follow each other: each replaces the one before. While one is being signed the next waits,
// in this process in a queue, across instances by asking again. A signer that does not come back loses its lease,
// and whoever finds that voids what it had prepared: a serial number is never signed twice.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Product } from '../../domain/catalog/products.ts';
import type { CertificateRecord, Order } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { CertificateId } from '../../domain/ids.ts';
import type { CurrentCertificate } from '../../domain/issuance/ports.ts';
import { planReissue } from '../../domain/issuance/reissue.ts';
import type { ReissuePlan, ReissueRequest } from '../../domain/issuance/request.ts';
import type { Repositories } from '../../domain/store.ts';
import { keyedMutex } from '../../kernel/keyed-mutex.ts';
import { isClear, needsInstruction } from '../validation/check-names.ts';
import { beginWaiting } from '../validation/pending-certificates.ts';
import { type Ahead, lookAhead, readingKeysOnce } from './gather-evidence.ts';
import { finishIssuance, keepKeys, LEASE_MS, pendingRecord, preparedRecord } from './issue-certificate.ts';
import { type ObtainedKeys, wipe } from './obtain-keys.ts';
import { contextOf, currentOf, earlierAnswer } from './reissue-context.ts';
import type { ReissueCall, ReissueTools } from './tools.ts';

export interface Reissue {
  /** The id of the certificate that results; it may still be pending. */
  reissue(call: ReissueCall): Promise<string>;
  /** What would happen. Nothing is written. */
  plan(call: ReissueCall): Promise<ReissuePlan>;
}

const BUSY_PAUSE_MS = 20;
// Longer than a lease: whoever waits behind a signer that is lost is served, not refused.
const MAX_BUSY_TRIES = 750;
// Keys that others made worthless are made anew, and that costs.
const MAX_STALE = 5;

/** What the first transaction decided: done, to be signed, to be asked again, or to be begun anew with other keys. */
type Step =
  | { readonly kind: 'answered'; readonly certificateId: CertificateId }
  | {
      readonly kind: 'prepared';
      readonly record: CertificateRecord;
      readonly order: Order;
      readonly current: CurrentCertificate;
      readonly plan: ReissuePlan;
    }
  | { readonly kind: 'busy' }
  | { readonly kind: 'stale' };

export function reissueCertificate(given: ReissueTools): Reissue {
  const { store, now } = given;
  const withLock = keyedMutex();

  async function attempt(call: ReissueCall): Promise<string> {
    const tools = readingKeysOnce(given);
    let ahead = await lookAhead(tools, call);
    let stale = 0;
    try {
      for (let tries = 0; tries < MAX_BUSY_TRIES; tries += 1) {
        const step = await store.transaction((tx) => begin(tools, tx, call, ahead));
        if (step.kind === 'answered') return step.certificateId;
        if (step.kind === 'prepared') {
          await finishIssuance(tools, step.record, {
            order: { ...step.order, ...step.plan.dcv, commonName: step.plan.commonName, names: step.plan.names },
            replaces: step.current,
            audit: auditOf(call, step.plan),
            idempotency: call.idempotency,
          });
          return step.record.id;
        }
        await sleep(BUSY_PAUSE_MS);
        if (step.kind === 'busy') continue;
        stale += 1;
        if (stale === MAX_STALE) break;
        wipe(ahead.keys);
        ahead = await lookAhead(tools, call);
      }
      throw new Refusal('service_busy', { retryAfterSeconds: 1 });
    } finally {
      wipe(ahead.keys);
    }
  }

  return {
    // Named by account too: nobody waits because a stranger uses the id of one's order.
    reissue: (call) => withLock(`${call.caller.account.id} ${call.orderId}`, () => attempt(call)),
    plan: async (call) => {
      const order = await store.orders.find(call.caller.account.id, call.orderId);
      if (!order) throw new Refusal('order_not_found');
      // A key that was used for another body is refused here too; one that was used for this body changes no plan.
      await earlierAnswer(store, call, now());
      const current = await currentOf(store, order);
      return planReissue(call.request, await contextOf(given, store, order, current, call.request, now()));
    },
  };
}

async function begin(tools: ReissueTools, tx: Repositories, call: ReissueCall, { looked, keys }: Ahead): Promise<Step> {
  const { now, newId } = tools;
  const at = now();
  const accountId = call.caller.account.id;
  const found = await tx.orders.findForUpdate(accountId, call.orderId);
  if (!found) throw new Refusal('order_not_found');
  // Under the order's lock, so that two calls with one key cannot both find nothing.
  const earlier = await earlierAnswer(tx, call, at);
  if (earlier !== undefined) return { kind: 'answered', certificateId: earlier };
  const { order, signing } = found;
  if (signing && signing.until > at) return { kind: 'busy' };
  // Its signer is lost. The serial number stays taken, and nobody signs it again.
  if (signing) await tx.certificates.void(signing.certificateId, newId());

  const current = await currentOf(tx, order);
  const { request } = call;
  const context = await contextOf(tools, tx, order, current, request, at, keys.cloud?.publicKey);
  const plan = planReissue(request, context);
  const { names, needsValidation: unproven } = plan;
  const isInstructed = needsInstruction(unproven, plan.dcv);
  // Another reissue may have changed the names since they were looked at.
  if (!isInstructed && !names.every((name) => looked.names.has(name))) {
    return { kind: 'stale' };
  }
  const waits = isInstructed || !isClear(looked, { names, unproven });
  const id = newId();
  if (waits) {
    await beginWaiting(tx, pendingRecord(id, at, order, request, plan, waits), tools.pendingMs, looked);
    await tx.orders.save({ ...order, ...plan.dcv, status: 'reissuing', pendingCertificateId: id });
    await tx.audit.append({ id: newId(), at, accountId, subject: order.id, ...auditOf(call, plan) });
    if (call.idempotency) {
      const { key, requestHash } = call.idempotency;
      await tx.idempotencyKeys.put(accountId, order.id, key, { requestHash, certificateId: id, at });
    }
    return { kind: 'answered', certificateId: id };
  }
  if (!fit(keys, context.product, request, current)) return { kind: 'stale' };
  const { productId } = order;
  // Without a CSR the last key is certified again, wherever it lies.
  const cloudKeyId = request.csr ? null : current.cloudKeyId;
  const wanted = { ...pendingRecord(id, at, order, request, plan, waits), cloudKeyId };
  const record = preparedRecord(tools, wanted, { ...plan, productId }, keys, at);
  await keepKeys(tx, keys);
  await tx.certificates.insert(record);
  await tx.orders.beginSigning(order.id, { certificateId: id, until: at + LEASE_MS });
  return { kind: 'prepared', record, order, current, plan };
}

/** Whether they are what this request needs now: meanwhile another reissue may have come first. */
function fit(
  { cloud, encryption }: ObtainedKeys,
  { form }: Product,
  { keySource, keepsEncryptionKey }: ReissueRequest,
  current: CurrentCertificate,
): boolean {
  if ((keySource === 'sign-cloud-csc') !== (cloud !== null)) return false;
  if (form !== 'dual') return encryption === null;
  return encryption !== null && (!keepsEncryptionKey || encryption.decidedAt === current.id);
}

/** Who, from where, and what changed. */
const auditOf = ({ caller, requestId, remote }: ReissueCall, { added, removed, needsValidation }: ReissuePlan) => ({
  actor: caller.credential.keyId,
  action: 'order:reissued' as const,
  requestId,
  details: { remote, added: added.join(' '), removed: removed.join(' '), needs_validation: needsValidation.join(' ') },
});
