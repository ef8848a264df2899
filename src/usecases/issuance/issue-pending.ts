// Issues a certificate that waited, once its names are validated and CAA permits it. It keeps the id that was answered
// when it was requested; its issuer and its dates are those of today. Nothing is issued to a suspended account.
// Implements the port of validation.

import type { Product } from '../../domain/catalog/products.ts';
import type { PendingCertificate } from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import { planPending } from '../../domain/issuance/pending.ts';
import type { CertificatePlan } from '../../domain/issuance/request.ts';
import type { Repositories } from '../../domain/store.ts';
import { byService } from '../access/audit.ts';
import type { IssuePending, PendingOutcome } from '../validation/prove-domains.ts';
import { methodsOf, provenNames, provenUntil } from '../validation/proven-names.ts';
import { type Draft, decidedAt, previousOf } from './draft.ts';
import { type CheckedBefore, type IssuanceSteps, issue, type Settled } from './issuance-flow.ts';
import type { IssuanceTools } from './tools.ts';

export const issuePending =
  (tools: IssuanceTools): IssuePending =>
  (record, product, results) => {
    const checked = { results, at: tools.now() };
    return issue(tools, async () => stepsOf(tools, record, product, checked)).catch(laterIfRefused);
  };

/** A certificate that its linter does not pass goes on waiting: the operator may correct the product, or the linter. */
function laterIfRefused(error: unknown): PendingOutcome {
  if (error instanceof Refusal && (error.code === 'lint_refused' || error.code === 'service_busy')) return 'later';
  throw error;
}

const LATER: Settled<PendingOutcome> = { outcome: 'later' };

function stepsOf(
  tools: IssuanceTools,
  { id, accountId, orderId }: PendingCertificate,
  product: Product,
  checked: CheckedBefore,
): IssuanceSteps<PendingOutcome> {
  return {
    needsEvidence: true,
    checked,

    async decide(db, locked) {
      if (locked === null) return LATER;
      const order = await db.orders.find(accountId, orderId);
      const record = await db.certificates.find(accountId, id);
      if (order?.pendingCertificateId !== id || record?.state !== 'pending') return LATER;
      if (await isSuspended(db, accountId)) return LATER;
      return await decide(tools, db, { order, record, product });
    },

    /**
     * No order while it is being signed: it stays pending meanwhile, and its signer decides what becomes of it. None
     * either if the account was suspended during the checks: the decision is then found stale, and made again.
     */
    async lock(tx) {
      const found = await tx.orders.findForUpdate(accountId, orderId);
      const mayIssue = found && !found.signing && !(await isSuspended(tx, accountId));
      return { order: mayIssue ? found.order : null, isBusy: false };
    },

    enqueue: async () => 'later',

    planned,
    /** A reissue stays `reissuing` until it is done. */
    async begin(tx, draft) {
      const { order } = draft;
      if (order.status !== 'domain_verifing') return planned(draft);
      await tx.orders.save({ ...order, status: 'issuing' });
      return { ...planned(draft), status: 'issuing', revision: order.revision + 1 };
    },

    finish: () => ({
      by: byService(accountId),
      action: 'certificate:issued',
      details: { certificate_id: id },
      idempotency: null,
    }),
    issued: () => 'issued',
  };
}

const isSuspended = async ({ accounts }: Repositories, accountId: AccountId): Promise<boolean> =>
  (await accounts.find(accountId))?.suspendedAt !== null;
const planned = ({ order, plan: { commonName, names } }: Draft): Order => ({ ...order, commonName, names });

async function decide(
  tools: IssuanceTools,
  db: Repositories,
  { order, record, product }: { readonly order: Order; readonly record: PendingCertificate; readonly product: Product },
): Promise<Draft | Settled<PendingOutcome>> {
  const now = tools.now();
  const { accountId, publicKey, names, commonName, signHash, willRevoke: revokes } = record;
  const proofs = await provenNames(tools, db, { accountId, names, product, now });
  const isKeyBlocked = await db.blockedKeys.has(publicKey, accountId);
  const issuers = { choose: tools.authority.issuerFor, served: tools.authority.served };
  const decided = planPending(record, { now, order, product, issuers, isKeyBlocked, perspectives: tools.perspectives });
  if (decided.kind === 'later') return LATER;
  if (decided.kind === 'impossible') return { outcome: { impossible: decided.why } };
  const { issuerId, notBefore, notAfter } = decided;
  const { dcvMethod, dcvScope, persistUntil, persistPolicy } = order;
  const plan: CertificatePlan = {
    ...{ commonName, names, added: [], removed: [], publicKey, signHash, revokes },
    ...{ issuerId, notBefore, notAfter, dcv: { dcvMethod, dcvScope, persistUntil, persistPolicy } },
    needsValidation: names.filter((name) => !proofs.has(name)),
  };
  return {
    ...{ order, product, plan, wanted: record },
    request: { keySource: 'caller', signHash, keepsEncryptionKey: record.keepsEncryptionKey },
    previous: await previousOf(db, order),
    provenBy: methodsOf(proofs),
    acmeAccount: (await db.acmeOrders.findByCertificate(accountId, record.id))?.acmeAccountUrl,
    basis: {
      decided: decidedAt(now, order, plan),
      revision: order.revision,
      provenUntil: provenUntil(proofs, names),
      issuerId,
      unblockedKey: publicKey,
      cloudKeyId: null,
      // What was consented to is revoked whatever happened meanwhile, unless it is revoked already.
      revokes: [],
      idempotency: null,
    },
  };
}
