// Reissues the certificate of an order: reads what the rules of planReissue need, and says what is particular to a
// reissue in the flow of every issuance (issuance-flow.ts).
//
// Reissues of one order follow each other, because each replaces the one before: by a mutex in this process, and by the
// order's lock across instances. A signer that does not return loses its lease, and what it prepared is voided.
import type { Actor, CredentialKind } from '../../domain/access/credential.ts';
import { type AccountUsage, requireStorage } from '../../domain/access/quota.ts';
import { productOf } from '../../domain/catalog/products.ts';
import type { Order } from '../../domain/certificate/order.ts';
import { NO_KEY } from '../../domain/certificate/public-key.ts';
import { Refusal } from '../../domain/errors.ts';
import type { CertificateId, OrderId } from '../../domain/ids.ts';
import { mentionedNames } from '../../domain/issuance/names.ts';
import { isSignerAlive } from '../../domain/issuance/ports.ts';
import { planReissue } from '../../domain/issuance/reissue.ts';
import type { PreviousCertificate, ReissuePlan, ReissueRequest } from '../../domain/issuance/request.ts';
import type { Repositories } from '../../domain/store.ts';
import type { CheckResult } from '../../domain/validation/check-result.ts';
import type { Proofs } from '../../domain/validation/ports.ts';
import { keyedMutex } from '../../kernel/concurrency.ts';
import { CHECK_LIMITS_MS, checkCaaAlone, needsInstruction } from '../validation/check-names.ts';
import { beginWaiting, requireRoom } from '../validation/pending-certificates.ts';
import { methodsOf, proofKeys, provenNames, provenUntil, readBefore } from '../validation/proven-names.ts';
import { type Draft, decidedAt, previousOf } from './draft.ts';
import { earlierAnswer, type Idempotency } from './idempotency.ts';
import { type IssuanceSteps, issue } from './issuance-flow.ts';
import { wantedCertificate } from './issue-certificate.ts';
import { type KeyReader, type KeyReads, keyPolicy, withKeysReadOnce } from './key-policy.ts';
import { cloudKeyToBe, mayNeedKeys } from './obtain-keys.ts';
import type { IssuanceTools } from './tools.ts';

export interface ReissueCall {
  readonly by: Actor;
  readonly credentialKind: CredentialKind;
  readonly orderId: OrderId;
  readonly request: ReissueRequest;
  readonly idempotency: Idempotency | null;
  /** The caller's address, for the audit log. */
  readonly remote: string;
}

export interface Reissue {
  /** The id of the new certificate; it is issued, or waits for validation. */
  reissue(call: ReissueCall): Promise<CertificateId>;
  /** What would happen. Writes nothing. */
  plan(call: ReissueCall): Promise<DryRun>;
}

export interface DryRun {
  readonly plan: ReissuePlan;
  /** By name, what CAA says now; a name that it does not permit would make the certificate wait. */
  readonly caa: ReadonlyMap<string, CheckResult>;
}

export function reissueCertificate(tools: IssuanceTools): Reissue {
  const { store, now } = tools;
  const withLock = keyedMutex();

  async function read({ by, orderId, request }: ReissueCall): Promise<OrderAsRead> {
    const keys = proofKeys(tools, mentionedNames(request, 'ssl', []));
    const found = await store.orders.findForReissue(by.accountId, orderId, keys);
    if (!found) throw new Refusal('order_not_found');
    const { order, current: previous, proofs, usage } = found;
    const names = new Set([...keys, ...(previous?.names ?? [])]);
    return { order, previous, usage, proofs: readBefore(proofs, names, store.proofs) };
  }

  return {
    // The account is part of the key: a stranger who knows an order's id cannot make its owner wait.
    reissue: (call) =>
      withLock(`${call.by.accountId} ${call.orderId}`, () =>
        withKeysReadOnce(tools, keysOf(call), (reader) =>
          issue(tools, async () => stepsOf(tools, call, await read(call), reader)),
        ),
      ),

    async plan(call) {
      using _slot = await tools.acquireSlot('dry_run', call.by.accountId);
      const found = await read(call);
      // A key used with another body is refused here too; one used with this body changes no plan.
      const { accountId, id: orderId } = found.order;
      if (call.idempotency) await earlierAnswer(store, { accountId, orderId, at: now() }, call.idempotency);
      const { plan, product, provenBy } = await withKeysReadOnce(tools, keysOf(call), (reader) =>
        decide(tools, { ...store, proofs: found.proofs }, call, { ...found, reader }),
      );
      const waits = needsInstruction(plan.needsValidation, plan.dcv);
      if (waits) await requireRoom(store, { id: accountId, ...found.usage }, tools.quotas);
      const { names, dcv } = plan;
      const limitMs = CHECK_LIMITS_MS.issuing;
      const caa = await checkCaaAlone(tools, { accountId, product, names, provenBy, dcv, limitMs });
      // Made by the first certificate; a dry run makes nothing.
      return { plan: tools.authority.unmade(plan.issuerId) ? { ...plan, issuerId: '' } : plan, caa };
    },
  };
}

const keysOf = ({ by: { accountId }, request }: ReissueCall) => ({ accountId, request });

/** The order, the certificate that a reissue replaces, and proofs of its names, of one moment. */
interface OrderAsRead {
  readonly order: Order;
  readonly previous: PreviousCertificate | null;
  readonly usage: AccountUsage;
  readonly proofs: Pick<Proofs, 'proven'>;
}

/** What a decision reads besides. */
interface DecisionReads extends KeyReads {
  readonly certificates: Pick<Repositories['certificates'], 'listValid'>;
  readonly proofs: Pick<Proofs, 'proven'>;
}

function stepsOf(
  tools: IssuanceTools,
  call: ReissueCall,
  found: OrderAsRead,
  reader: KeyReader,
): IssuanceSteps<CertificateId> {
  const { now, newId, audit } = tools;
  const { by, request, idempotency } = call;
  const { accountId, id: orderId, productId } = found.order;
  const detailsOf = ({ plan, wanted }: Draft) => ({
    certificate_id: wanted.id,
    remote: call.remote,
    added: plan.added.join(' '),
    removed: plan.removed.join(' '),
    needs_validation: plan.needsValidation.join(' '),
  });

  return {
    needsEvidence: mayNeedKeys(request) || tools.products.get(productId)?.kind === 'ssl',

    async decide(db, locked) {
      const earlier = idempotency && (await earlierAnswer(db, { accountId, orderId, at: now() }, idempotency));
      if (earlier) return { outcome: earlier };
      if (locked) {
        const { usage } = found;
        return await decide(tools, db, call, { order: locked, previous: await previousOf(db, locked), usage, reader });
      }
      const { certificates, cloudKeys } = db;
      const { order, previous, usage, proofs } = found;
      const reads = { certificates, cloudKeys, proofs, blockedKeys: null };
      return await decide(tools, reads, call, { order, previous, usage, reader });
    },

    async lock(tx) {
      const found = await tx.orders.findForUpdate(accountId, orderId);
      if (!found) throw new Refusal('order_not_found');
      const { order, signing } = found;
      if (signing && isSignerAlive(signing, tx.sharedNow())) return { order, isBusy: true };
      // The signer is lost. Its serial number stays taken and is never signed again.
      if (signing) await tx.signings.void(orderId, newId());
      return { order, isBusy: false };
    },

    async enqueue(tx, draft, results) {
      const { order, plan, wanted } = draft;
      await tx.orders.rememberNames(order, newNames(draft));
      await beginWaiting(tx, { ...wanted, pendingSince: wanted.createdAt }, tools, results);
      await tx.orders.save({ ...order, ...plan.dcv, status: 'reissuing', pendingCertificateId: wanted.id });
      await audit(tx, by, 'order:reissued', orderId, detailsOf(draft));
      if (idempotency) {
        const { key, requestHash } = idempotency;
        await tx.idempotencyKeys.put(accountId, orderId, key, { requestHash, certificateId: wanted.id, at: now() });
      }
      return wanted.id;
    },

    planned: plannedOrder,
    // Most reissues keep their names, and pay nothing for this.
    mustBegin: (draft) => newNames(draft).length > 0,
    async begin(tx, draft) {
      await tx.orders.rememberNames(draft.order, newNames(draft));
      return plannedOrder(draft);
    },
    finish: (draft) => ({ by, action: 'order:reissued', details: detailsOf(draft), idempotency }),
    issued: (certificateId) => certificateId,
  };
}

const plannedOrder = ({ order, plan }: Draft): Order => ({
  ...order,
  ...plan.dcv,
  commonName: plan.commonName,
  names: plan.names,
});

/** Names that the order did not carry before. */
function newNames({ order, plan }: Draft): string[] {
  const all = plan.commonName === null ? plan.names : [...plan.names, plan.commonName];
  return all.filter((name) => name !== order.commonName && !order.names.includes(name));
}

/** Reads what the rules depend on, and applies them. Throws every refusal of a reissue. */
async function decide(
  tools: IssuanceTools,
  db: DecisionReads,
  { request, idempotency, credentialKind }: Pick<ReissueCall, 'request' | 'idempotency' | 'credentialKind'>,
  { order, previous, usage, reader }: Omit<OrderAsRead, 'proofs'> & { readonly reader: KeyReader },
): Promise<Draft & { readonly plan: ReissuePlan }> {
  const now = tools.now();
  const { accountId, id: orderId } = order;
  const product = productOf(tools.products, order.productId);
  const before = previous?.names ?? order.names;
  const mentioned = mentionedNames(request, product.kind, before);
  const mayRevoke = product.revokesPreviousOnReissue || before.some((name) => !mentioned.includes(name));
  const valid = mayRevoke ? await db.certificates.listValid(accountId, orderId, now) : [];
  const proofs = await provenNames(tools, db, { accountId, names: mentioned, product, now });
  const isReused = request.keySource === 'caller' && !request.csr;
  // Without a CSR the previous key is certified again, wherever it is held.
  const cloudKeyId = request.csr ? null : (previous?.cloudKeyId ?? null);
  const reusedKey = isReused && previous ? { publicKey: previous.publicKey, cloudKeyId } : null;
  const keepsKeyOf = product.form === 'dual' && request.keepsEncryptionKey ? (previous?.id ?? null) : null;
  const plan = planReissue(request, {
    now,
    order,
    product,
    previous,
    valid,
    credentialKind,
    readCsr: reader.readCsr,
    validatedNames: proofs,
    requireAcceptedKey: await keyPolicy(tools, db, { accountId, request, reusedKey, keepsKeyOf, reader }),
    cloudKey: cloudKeyToBe(request, previous?.publicKey ?? NO_KEY, product),
    issuers: { choose: tools.authority.issuerFor, served: tools.authority.served },
    perspectives: tools.perspectives,
    registrableDomain: tools.registrableDomain,
  });
  requireStorage(usage, tools.quotas);
  return {
    order,
    product,
    request,
    previous,
    plan,
    provenBy: methodsOf(proofs),
    wanted: wantedCertificate({ id: tools.newId(), at: now, order, cloudKeyId }, request, plan),
    basis: {
      decided: decidedAt(now, order, plan),
      revision: order.revision,
      provenUntil: provenUntil(proofs, plan.names),
      issuerId: plan.issuerId,
      unblockedKey: request.keySource === 'caller' ? plan.publicKey : null,
      cloudKeyId: isReused ? cloudKeyId : null,
      revokes: plan.revokes.map(({ certificateId }) => certificateId),
      idempotency,
    },
  };
}
