// Reissue the certificate of an order. In this order: the idempotency key, the order, its state and everything else
// that planReissue decides; then, when every name is proven, write down, sign once, and finish in one transaction.
//
// Reissues of one order follow each other: each replaces the one before. While one is being signed the next waits,
// in this process in a queue, across instances by asking again. A signer that does not come back loses its lease,
// and whoever finds that voids what it had prepared: a serial number is never signed twice.
import { setTimeout as sleep } from 'node:timers/promises';
import type { CertificateAuthority } from '../domain/authority.ts';
import type { Caller } from '../domain/credential.ts';
import { Refusal } from '../domain/errors.ts';
import type { NewId } from '../domain/ids.ts';
import type { CurrentCertificate } from '../domain/issuance-ports.ts';
import type { CertificateRecord, Order } from '../domain/order.ts';
import type { Clock, Repositories, Store } from '../domain/ports.ts';
import type { Product } from '../domain/products.ts';
import { NO_KEY, type PublicKey } from '../domain/public-key.ts';
import { planReissue } from '../domain/reissue.ts';
import { mentionedNames } from '../domain/reissue-names.ts';
import type { ReissueContext, ReissuePlan, ReissueRequest } from '../domain/reissue-request.ts';
import { finishIssuance, LEASE_MS, pendingRecord, preparedRecord } from './issue-certificate.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { isKeyBlocked, once, soundKey } from './sound-key.ts';

export interface ReissueTools {
  readonly store: Store;
  readonly authority: CertificateAuthority;
  readonly products: ReadonlyMap<string, Product>;
  readonly now: Clock;
  readonly newId: NewId;
  readonly readCsr: (text: string) => PublicKey;
  readonly requireStrongKey: (key: PublicKey) => void;
  readonly registrableDomain: (name: string) => string | undefined;
}

export interface ReissueCall {
  readonly caller: Caller;
  readonly orderId: string;
  readonly request: ReissueRequest;
  readonly idempotency: { readonly key: string; readonly requestHash: string } | null;
  readonly requestId: string;
  readonly remote: string;
}

export interface Reissue {
  /** The id of the certificate that results; it may still be pending. */
  reissue(call: ReissueCall): Promise<string>;
  /** What would happen. Nothing is written. */
  plan(call: ReissueCall): Promise<ReissuePlan>;
}

const IDEMPOTENCY_MS = 24 * 3_600_000;
const BUSY_PAUSE_MS = 20;
// Longer than a lease: whoever waits behind a signer that is lost is served, not refused.
const MAX_BUSY_TRIES = 750;

/** What the first transaction decided: done, to be signed, or to be asked again. */
type Step =
  | { readonly kind: 'answered'; readonly certificateId: string }
  | {
      readonly kind: 'prepared';
      readonly record: CertificateRecord;
      readonly order: Order;
      readonly current: CurrentCertificate;
      readonly plan: ReissuePlan;
    }
  | { readonly kind: 'busy' };

export function reissueCertificate(tools: ReissueTools): Reissue {
  const { store, now } = tools;
  const inTurn = oneAtATime();

  async function attempt(call: ReissueCall): Promise<string> {
    for (let tries = 0; tries < MAX_BUSY_TRIES; tries += 1) {
      const step = await store.transaction((to) => begin(tools, to, call));
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
    }
    throw new Refusal('service_busy', { retryAfterSeconds: 1 });
  }

  return {
    // Named by account too: nobody waits because a stranger uses the id of one's order.
    reissue: (call) => inTurn(`${call.caller.account.id} ${call.orderId}`, () => attempt(call)),
    plan: async (call) => {
      const order = await store.orders.find(call.caller.account.id, call.orderId);
      if (!order) throw new Refusal('order_not_found');
      // A key that was used for another body is refused here too; one that was used for this body changes no plan.
      await earlierAnswer(store, call, now());
      const current = await currentOf(store, order);
      return planReissue(call.request, await contextOf(tools, store, order, current, call.request, now()));
    },
  };
}

async function begin(tools: ReissueTools, to: Repositories, call: ReissueCall): Promise<Step> {
  const { now, newId } = tools;
  const at = now();
  const accountId = call.caller.account.id;
  const found = await to.orders.findForUpdate(accountId, call.orderId);
  if (!found) throw new Refusal('order_not_found');
  // Under the order's lock, so that two calls with one key cannot both find nothing.
  const earlier = await earlierAnswer(to, call, at);
  if (earlier !== undefined) return { kind: 'answered', certificateId: earlier };
  const { order, signing } = found;
  if (signing && signing.until > at) return { kind: 'busy' };
  // Its signer is lost. The serial number stays taken, and nobody signs it again.
  if (signing) await to.certificates.void(signing.certificateId);

  const current = await currentOf(to, order);
  const plan = planReissue(call.request, await contextOf(tools, to, order, current, call.request, at));
  const id = newId();
  if (plan.needsValidation.length > 0) {
    await to.certificates.insert(pendingRecord(id, at, order, call.request, plan));
    await to.orders.save({ ...order, ...plan.dcv, status: 'reissuing', pendingCertificateId: id });
    await to.audit.append({ id: newId(), at, accountId, subject: order.id, ...auditOf(call, plan) });
    if (call.idempotency) {
      const { key, requestHash } = call.idempotency;
      await to.idempotencyKeys.put(accountId, order.id, key, { requestHash, certificateId: id, at });
    }
    return { kind: 'answered', certificateId: id };
  }
  const { productId } = order;
  const record = preparedRecord(tools, pendingRecord(id, at, order, call.request, plan), { ...plan, productId }, at);
  await to.certificates.insert(record);
  await to.orders.beginSigning(order.id, { certificateId: id, until: at + LEASE_MS });
  return { kind: 'prepared', record, order, current, plan };
}

async function earlierAnswer(to: Repositories, call: ReissueCall, at: number): Promise<string | undefined> {
  if (!call.idempotency) return undefined;
  const { key, requestHash } = call.idempotency;
  const entry = await to.idempotencyKeys.find(call.caller.account.id, call.orderId, key, at - IDEMPOTENCY_MS);
  if (entry && entry.requestHash !== requestHash) throw new Refusal('idempotency_key_reused');
  return entry?.certificateId;
}

async function contextOf(
  tools: ReissueTools,
  from: Repositories,
  order: Order,
  current: CurrentCertificate,
  request: ReissueRequest,
  now: number,
): Promise<ReissueContext> {
  const { authority, products } = tools;
  const product = products.get(order.productId);
  if (!product)
    throw new Error(`order ${order.id} is of the product ${order.productId}, which is not configured any more`);
  const mentioned = mentionedNames(request, product.kind, current.names);
  const mayRemove = current.names.some((name) => !mentioned.includes(name));
  const valid =
    mayRemove || product.revokesPreviousOnReissue
      ? await from.certificates.listValid(order.accountId, order.id, now)
      : [];
  const readCsr = once(tools.readCsr);
  const isBlocked = request.csr
    ? await isKeyBlocked(from, request.csr, readCsr)
    : await from.blockedKeys.has(current.publicKey.fingerprint);
  return {
    now,
    order,
    product,
    current: { ...current, isStillValid: valid.some(({ id }) => id === current.id) },
    earlier: valid.filter(({ id }) => id !== current.id),
    validatedNames: await from.proofs.proven(order.accountId, mentioned, now - product.reuseDays * DAY_MS),
    readCsr,
    requireSoundKey: soundKey(tools, product, isBlocked),
    issuers: { choose: authority.issuerFor, served: authority.served },
    registrableDomain: tools.registrableDomain,
  };
}

const DAY_MS = 86_400_000;

/** An order without a certificate has nothing to compare with; its status refuses the reissue anyway. */
async function currentOf(from: Repositories, order: Order): Promise<CurrentCertificate> {
  const id = order.currentCertificateId;
  const certificate = id === null ? undefined : await from.certificates.findCurrent(order.accountId, id);
  if (certificate) return certificate;
  if (order.status === 'issued') throw new Error(`order ${order.id} is issued and has no certificate`);
  return { id: '', commonName: order.commonName, names: order.names, publicKey: NO_KEY, version: 0 };
}

/** Who, from where, and what changed. */
const auditOf = ({ caller, requestId, remote }: ReissueCall, { added, removed, needsValidation }: ReissuePlan) => ({
  actor: caller.credential.keyId,
  action: 'order:reissued' as const,
  requestId,
  details: { remote, added: added.join(' '), removed: removed.join(' '), needs_validation: needsValidation.join(' ') },
});
