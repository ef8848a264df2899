// Places an order over ACME: an order without a CSR, with an authorization for each name. A name that the account has a
// reusable proof of, whichever door it came through, is authorized at once.
import { requireActive } from '../../domain/access/account.ts';
import { requireStorage } from '../../domain/access/quota.ts';
import { acmeActor } from '../../domain/acme/account.ts';
import { type AcmeOrder, KEEP_ENDED_MS, MAX_PENDING_AUTHORIZATIONS } from '../../domain/acme/acme-order.ts';
import type { Authorization } from '../../domain/acme/authorization.ts';
import { challengesFor } from '../../domain/acme/challenge.ts';
import { type NewOrderRequest, requireOrderable } from '../../domain/acme/new-order.ts';
import { AcmeProblem, malformed, unauthorized } from '../../domain/acme/problem.ts';
import type { Product } from '../../domain/catalog/products.ts';
import type { IssuedCertificate } from '../../domain/certificate/certificate.ts';
import { Refusal } from '../../domain/errors.ts';
import type { OrderId } from '../../domain/ids.ts';
import { requirePerspectives } from '../../domain/issuance/domain-validation.ts';
import { newOrder } from '../../domain/issuance/placement.ts';
import type { Repositories } from '../../domain/store.ts';
import { type AcmeMethod, isAcmeMethod, OFFERED_WITH } from '../../domain/validation/method.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../kernel/durations.ts';
import { requireRoom } from '../validation/pending-certificates.ts';
import { provenNames } from '../validation/proven-names.ts';
import { findCertificate } from './find-certificate.ts';
import { limitNewOrders } from './limits.ts';
import type { AcmeCaller, AcmeOrderTools } from './tools.ts';

export type PlaceAcmeOrder = (caller: AcmeCaller, product: Product, request: NewOrderRequest) => Promise<OrderId>;

/** A proof that ends sooner is not counted on: the order would end before its CSR arrives. */
const MIN_REUSE_MS = HOUR_MS;

export function placeAcmeOrder(tools: AcmeOrderTools): PlaceAcmeOrder {
  const { store, now, newId, audit } = tools;
  const certificates = findCertificate(tools);

  async function requireReplaceable(certId: string, { bound: { account } }: AcmeCaller, names: readonly string[]) {
    const found = await certificates.findByText(certId);
    const earlier = found && (await store.acmeOrders.findByCertificate(account.accountId, found.id));
    if (!found || earlier?.acmeAccountId !== account.id) throw notYours();
    if (!sharesName(found, names)) throw nothingInCommon();
    return { certId, certificateId: earlier.certificateId };
  }

  return async (caller, product, request) => {
    const { account, binding } = caller.bound;
    const { accountId } = account;
    using _slot = await tools.acquireSlot('placement', accountId);
    const at = now();
    const empty = newOrder({ id: newId(), accountId, alternativeId: null, subject: null }, product, at);
    const issuers = { choose: tools.authority.issuerFor, served: tools.authority.served };
    const { registrableDomain, perspectives } = tools;
    const context = { now: at, product, order: empty, rights: binding, issuers, registrableDomain, perspectives };
    const names = requireOrderable(request, context);
    requirePerspectives(context);
    const replaces = request.replaces === null ? null : await requireReplaceable(request.replaces, caller, names);
    const order = {
      ...{ ...empty, status: 'domain_verifing' as const, dcvMethod: null },
      ...{ commonName: names[0] ?? null, names },
    };
    return await store.transaction(async (tx) => {
      await requireRoomFor(tools, tx, caller);
      await limitNewOrders(tx, account);
      if (replaces && (await tx.acmeOrders.findReplacing(accountId, replaces.certificateId))) throw alreadyReplaced();
      const reused = tools.reusesProofs ? names : [];
      const proofs = await provenNames(tools, tx, { accountId, names: reused, product, now: at });
      const ends = names.map((name) => proofs.get(name)?.until ?? 0).filter((until) => until >= at + MIN_REUSE_MS);
      const acme: AcmeOrder = {
        ...{ orderId: order.id, accountId, acmeAccountId: account.id, acmeAccountUrl: caller.accountUrl },
        ...{ certificateId: newId(), replaces, revokesReplaced: replaces !== null && binding.revokesReplaced },
        ...{ notAfter: request.notAfter, problem: null },
        expiresAt: Math.min(at + tools.pendingMs, ...ends),
        keepUntil: at + tools.pendingMs + KEEP_ENDED_MS,
      };
      const authorizations = names.map((name): Authorization => {
        const { methods = [], until = 0 } = proofs.get(name) ?? {};
        const facts = { id: newId(), orderId: order.id, accountId, acmeAccountId: account.id, name };
        const kept = { ...facts, token: tools.newToken(), expiresAt: acme.expiresAt };
        const method = until >= at + MIN_REUSE_MS ? shownMethod(name, product, methods) : undefined;
        return method
          ? { ...kept, state: 'valid', method, validatedAt: at }
          : { ...kept, state: 'pending', answered: null };
      });
      await requireFewPending(tx, account.id, authorizations);
      await tx.orders.insert(order);
      await tx.acmeOrders.insert(acme, authorizations);
      const details = { product: product.id, acme_account: account.id, replaces: replaces?.certificateId ?? null };
      await audit(tx, acmeActor(caller.bound, caller.requestId), 'order:placed', order.id, details);
      return order.id;
    });
  };
}

const sharesName = (certificate: IssuedCertificate, names: readonly string[]): boolean =>
  names.some((name) => certificate.names.includes(name));

/** Locks the account, so that of two orders placed at once each counts the other, and one replaces a certificate. */
async function requireRoomFor(
  { quotas }: AcmeOrderTools,
  tx: Repositories,
  { bound: { account } }: AcmeCaller,
): Promise<void> {
  const tenant = await tx.accounts.findForUpdate(account.accountId);
  if (!tenant) throw new Refusal('account_not_found');
  requireActive(tenant);
  requireStorage(tenant, quotas);
  await requireRoom(tx, tenant, quotas);
}

async function requireFewPending(
  tx: Repositories,
  acmeAccountId: string,
  authorizations: readonly Authorization[],
): Promise<void> {
  const added = authorizations.filter(({ state }) => state === 'pending').length;
  if (added === 0) return;
  const pending = await tx.authorizations.countPending(acmeAccountId, MAX_PENDING_AUTHORIZATIONS);
  if (pending + added <= MAX_PENDING_AUTHORIZATIONS) return;
  throw new AcmeProblem(
    'rateLimited',
    {
      en: `This ACME account has ${pending} pending authorizations, and may have ${MAX_PENDING_AUTHORIZATIONS}. Answer their challenges, or deactivate some.`,
      zh: `该 ACME 账户有 ${pending} 个待处理的授权，上限为 ${MAX_PENDING_AUTHORIZATIONS} 个。请先完成其质询，或停用部分授权。`,
    },
    { retryAfterSeconds: (10 * MINUTE_MS) / SECOND_MS },
  );
}

/** The challenge that stands for a proof: its own, or that with which the product offers its method. */
function shownMethod(name: string, product: Product, methods: readonly string[]): AcmeMethod | undefined {
  const offered = challengesFor(name, product);
  return (
    methods.find(isAcmeMethod) ??
    offered.find((challenge) => methods.some((method) => method === OFFERED_WITH[challenge])) ??
    (methods.length > 0 ? offered[0] : undefined)
  );
}

const notYours = (): AcmeProblem =>
  unauthorized(
    'replaces names no certificate that this ACME account has ordered. Leave it out, or send the id of one that it has.',
    'replaces 所指的不是该 ACME 账户订购的证书，请不发送，或发送其已订购证书的标识。',
  );
const nothingInCommon = (): AcmeProblem =>
  malformed(
    'The order has no identifier in common with the certificate that replaces names. Leave replaces out.',
    '该订单与 replaces 所指证书没有共同的标识符，请不发送 replaces。',
  );
const alreadyReplaced = (): AcmeProblem =>
  new AcmeProblem('alreadyReplaced', {
    en: 'Another order replaces this certificate already. Order without replaces.',
    zh: '该证书已由另一订单替换，请不发送 replaces 重新下单。',
  });
