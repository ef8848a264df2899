// Finalizes an order over ACME: its CSR is judged as every other, and then its certificate is issued by the flow of every
// issuance. From the first write on it is a pending certificate: if this process dies, the background work issues it.
import { requireActive } from '../../domain/access/account.ts';
import { requireStorage } from '../../domain/access/quota.ts';
import { acmeActor } from '../../domain/acme/account.ts';
import { type AcmeOrder, acmeOrderStatus, KEEP_ENDED_MS } from '../../domain/acme/acme-order.ts';
import type { Authorization } from '../../domain/acme/authorization.ts';
import { problemType } from '../../domain/acme/challenge.ts';
import { identifierOf } from '../../domain/acme/new-order.ts';
import { AcmeProblem, type Subproblem } from '../../domain/acme/problem.ts';
import type { StoredProblem } from '../../domain/acme/stored-problem.ts';
import { type Product, productOf } from '../../domain/catalog/products.ts';
import type { PlannedRevocation } from '../../domain/certificate/certificate.ts';
import { differenceOf } from '../../domain/certificate/names.ts';
import { awaitsCsr, type Order } from '../../domain/certificate/order.ts';
import { NO_KEY } from '../../domain/certificate/public-key.ts';
import { Refusal } from '../../domain/errors.ts';
import type { OrderId } from '../../domain/ids.ts';
import { planPlacement, withDefaults } from '../../domain/issuance/placement.ts';
import type { CertificateRequest } from '../../domain/issuance/request.ts';
import type { Repositories } from '../../domain/store.ts';
import type { CheckProblem } from '../../domain/validation/check-result.ts';
import { MINUTE_MS } from '../../kernel/durations.ts';
import { type Draft, decidedAt } from '../issuance/draft.ts';
import { type IssuanceSteps, issue } from '../issuance/issuance-flow.ts';
import { wantedCertificate } from '../issuance/issue-certificate.ts';
import { type KeyReader, keyPolicy, withKeysReadOnce } from '../issuance/key-policy.ts';
import { type CheckResults, NOTHING_CHECKED } from '../validation/check-names.ts';
import { insertWaiting } from '../validation/pending-certificates.ts';
import { methodsOf, provenNames, provenUntil } from '../validation/proven-names.ts';
import { endAcmeOrder } from './end-acme-order.ts';
import type { ShowAcmeOrders } from './show-acme-orders.ts';
import type { AcmeCaller, AcmeOrderTools } from './tools.ts';

/** `csr` is PEM. Afterwards the order is valid, or processing. */
export type FinalizeOrder = (caller: AcmeCaller, orderId: OrderId, csr: string) => Promise<void>;

/** How long a certificate is tried for whose last checks found no answer: clients do not poll for longer. */
const PROCESSING_MS = 10 * MINUTE_MS;

export function finalizeOrder(tools: AcmeOrderTools, show: Pick<ShowAcmeOrders, 'order'>): FinalizeOrder {
  return async (caller, orderId, csr) => {
    const { account } = caller.bound;
    using _slot = await tools.acquireSlot('placement', account.accountId);
    const { acme, order, authorizations, status } = await show.order(caller, orderId);
    if (status !== 'ready') throw notReady(status);
    const product = productOf(tools.products, order.productId);
    const request = requestOf(order, acme, authorizations, { product, csr });
    const problem = await withKeysReadOnce(tools, { accountId: account.accountId, request }, async (reader) => {
      requireNames(tools.csrNames(csr), order.names);
      requireOtherKey(reader.readCsr(csr).spki, account.spki);
      return await issue(tools, async () => stepsOf(tools, caller, { acme, product, request, reader }));
    });
    if (problem) throw new AcmeProblem(problem.type, problem.detail, { subproblems: problem.subproblems ?? [] });
  };
}

function requestOf(
  { commonName, names }: Order,
  { notAfter }: AcmeOrder,
  authorizations: readonly Authorization[],
  { product, csr }: { readonly product: Product; readonly csr: string },
): CertificateRequest {
  // A persistent record is no proof to be reused: the names without one are looked up again now.
  const isPersist = authorizations.some((one) => one.state === 'valid' && one.method === 'dns-persist-01');
  return withDefaults(
    {
      ...{ csr, keySource: 'caller', keepsEncryptionKey: false, dnsNames: names },
      ...(commonName !== null && { commonName }),
      ...(notAfter !== null && { customExpirationDate: notAfter }),
      ...(isPersist && { dcvMethod: 'dns-persist' }),
    },
    product,
  );
}

interface Finalizing {
  readonly acme: AcmeOrder;
  readonly product: Product;
  readonly request: CertificateRequest;
  readonly reader: KeyReader;
}

/** What the order ends with, or null. */
type Outcome = StoredProblem | null;

function stepsOf(tools: AcmeOrderTools, caller: AcmeCaller, finalizing: Finalizing): IssuanceSteps<Outcome> {
  const { acme } = finalizing;
  const { accountId, orderId, certificateId } = acme;
  const by = acmeActor(caller.bound, caller.requestId);

  /** The certificate waits from now on, for its signature or for another check. */
  async function beginWaiting(tx: Repositories, { wanted, plan }: Draft, results: CheckResults): Promise<void> {
    await insertWaiting(tx, wanted, { pendingMs: PROCESSING_MS, results });
    await tx.acmeOrders.finalize(orderId, plan.notAfter + KEEP_ENDED_MS);
  }

  return {
    needsEvidence: true,
    decide: (db, locked) => decide(tools, db, finalizing, locked),

    async lock(tx) {
      const found = await tx.orders.findForUpdate(accountId, orderId);
      return { order: found?.order ?? null, isBusy: found?.signing != null };
    },

    async enqueue(tx, draft, results) {
      const problem = finalProblem(results);
      if (problem) {
        await endAcmeOrder(tools, tx, draft.order, problem);
        return problem;
      }
      await beginWaiting(tx, draft, results);
      await tx.orders.save({ ...planned(draft), pendingCertificateId: certificateId });
      return null;
    },

    planned,
    async begin(tx, draft) {
      await beginWaiting(tx, draft, NOTHING_CHECKED);
      const order: Order = { ...planned(draft), status: 'issuing', pendingCertificateId: certificateId };
      await tx.orders.save(order);
      return { ...order, revision: order.revision + 1 };
    },

    finish: () => ({ by, action: 'certificate:issued', details: { certificate_id: certificateId }, idempotency: null }),
    issued: () => null,
  };
}

const planned = ({ order, plan }: Draft): Order => ({
  ...{ ...order, ...plan.dcv },
  ...{ commonName: plan.commonName, names: plan.names },
});

/** Reads what the rules depend on, and applies them. Throws every refusal of a CSR. */
async function decide(
  tools: AcmeOrderTools,
  db: Repositories,
  { acme, product, request, reader }: Finalizing,
  locked: Order | null | undefined,
): Promise<Draft> {
  const now = tools.now();
  const { accountId, orderId, certificateId } = acme;
  const order = locked ?? (await db.orders.find(accountId, orderId));
  const authorizations = await db.authorizations.ofOrder(orderId);
  const status = order ? acmeOrderStatus(order, acme, authorizations, now) : 'invalid';
  if (!order || !awaitsCsr(order) || status !== 'ready') throw notReady(status);
  const account = await db.accounts.find(accountId);
  if (!account) throw new Refusal('account_not_found');
  requireActive(account);
  const { names } = order;
  const proofs = await provenNames(tools, db, { accountId, names, product, now });
  if (request.dcvMethod === undefined && names.some((name) => !proofs.has(name))) throw notReady('pending');
  const placed = planPlacement(request, {
    ...{ now, order, product, previous: null, readCsr: reader.readCsr, isVouchedFor: false },
    validatedNames: proofs,
    requireAcceptedKey: await keyPolicy(tools, db, { accountId, request, reusedKey: null, keepsKeyOf: null, reader }),
    cloudKey: NO_KEY,
    issuers: { choose: tools.authority.issuerFor, served: tools.authority.served },
    perspectives: tools.perspectives,
    registrableDomain: tools.registrableDomain,
  });
  requireStorage(account, tools.quotas);
  const plan = { ...placed, revokes: plannedRevocations(acme, product) };
  const wanted = wantedCertificate({ id: certificateId, at: now, order, cloudKeyId: null }, request, plan);
  return {
    ...{ order, product, request, previous: null, plan },
    provenBy: methodsOf(proofs),
    acmeAccount: acme.acmeAccountUrl,
    // Its id is known from the certificate URL on.
    wanted: { ...wanted, pendingSince: now },
    basis: {
      decided: decidedAt(now, order, plan),
      revision: order.revision,
      provenUntil: provenUntil(proofs, plan.names),
      issuerId: plan.issuerId,
      unblockedKey: plan.publicKey,
      cloudKeyId: null,
      // What was consented to is revoked whatever happened meanwhile, unless it is revoked already.
      revokes: [],
      idempotency: null,
    },
  };
}

/** By the consent of the binding: after the product's grace, and never before the new certificate is issued. */
const plannedRevocations = ({ replaces, revokesReplaced }: AcmeOrder, product: Product): PlannedRevocation[] =>
  replaces && revokesReplaced
    ? [
        {
          ...{ certificateId: replaces.certificateId, reason: 'superseded', cause: 'previous_replaced' },
          afterHours: product.revocationGraceHours,
        },
      ]
    : [];

/** Another check may find something else. */
const PASSING: ReadonlySet<CheckProblem> = new Set(['dns_failure', 'resolver_unreachable', 'perspectives_differ']);

/** Why the order ends; null if another check may find something else. */
function finalProblem({ control, caa }: CheckResults): StoredProblem | null {
  const failures = [...control, ...caa].flatMap(([name, result]): [Subproblem, CheckProblem][] =>
    result.isOk
      ? []
      : [[{ type: problemType(result), detail: result.reason, identifier: identifierOf(name) }, result.problem]],
  );
  const final = failures.filter(([, problem]) => !PASSING.has(problem)).map(([one]) => one);
  const [first] = final;
  return first ? { type: first.type, detail: first.detail, subproblems: final } : null;
}

/** As sets: order and repetition mean nothing. */
function requireNames(asked: readonly string[], ordered: readonly string[]): void {
  const { added, removed } = differenceOf(ordered, asked);
  if (added.length === 0 && removed.length === 0) return;
  throw badCsr(
    `The CSR must ask for the names of the order and no others: ${ordered.join(', ')}.`,
    `CSR 中的名称须与订单完全一致：${ordered.join('、')}。`,
  );
}

/** Its holder would vouch for itself: a leaked server key could order on. */
function requireOtherKey(certified: Uint8Array, ofAccount: Uint8Array): void {
  if (Buffer.compare(certified, ofAccount) !== 0) return;
  throw badCsr(
    'The key of the ACME account cannot be certified. Make a key of its own for the certificate.',
    'ACME 账户的密钥不能用于证书，请为证书另行生成密钥。',
  );
}

const badCsr = (en: string, zh: string): AcmeProblem => new AcmeProblem('badCSR', { en, zh });

const notReady = (status: string): AcmeProblem =>
  new AcmeProblem('orderNotReady', {
    en: `The order is ${status}. It can be finalized once it is ready: when all of its authorizations are valid.`,
    zh: `订单状态为 ${status}，须在所有授权有效（ready）后才能提交 CSR。`,
  });
