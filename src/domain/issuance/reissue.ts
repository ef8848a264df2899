// Decides what a reissue may do. Pure: no clock, no store, no network. Everything it needs is an argument, so the rules
// of the interface can be read, and tested, as one page. Who is calling, the shape of the body, the idempotency key and
// whether there is such an order were settled before; writing down, signing and revoking come after.
import type { ChosenIssuer } from '../certificate/authority.ts';
import type { Order } from '../certificate/order.ts';
import { validityOf } from '../certificate/validity.ts';
import { invalid, Refusal } from '../errors.ts';
import { missingConsentsOf, requireConsents, revocationsOf } from './consents.ts';
import { domainValidation } from './domain-validation.ts';
import { keyAndIssuer, requireKeyAsOffered, requireSignHashOffered } from './key.ts';
import { changedNames } from './names.ts';
import type { ReissueContext, ReissuePlan, ReissueRequest } from './request.ts';

/** The order of these steps is contract (reissue 8): with two faults at once, the first one is the answer. */
export function planReissue(request: ReissueRequest, context: ReissueContext): ReissuePlan {
  // The state of the order.
  requireReissuable(context.order, context.now);
  requireFewerThanMost(context.current.version);

  // The rules of the product: what can be told from what was sent, before any of it is read. Rule 1, that sign_hash is
  // there at all, is a matter of shape.
  requireSignHashOffered(request, context);
  requireCommonName(request, context); // Rule 2
  const keySource = requireKeyAsOffered(request, context); // Rule 3

  // The names.
  const names = changedNames(request, context);

  // The consents.
  const revokes = revocationsOf(names.removed, context); // Rules 4 and 5
  const missingConsents = missingConsentsOf(request, names.removed, context);
  if (!request.dryRun) requireConsents(missingConsents, names.removed, revokes);

  // The key and its CSR. Rule 7: an access code is used with a cloud-held key only.
  const { publicKey, issuer } = keyAndIssuer(keySource, request, context);

  // The validity.
  const validity = validityFor(request, issuer, context);

  // Domain validation.
  const needsValidation = names.names.filter((name) => !context.validatedNames.has(name));
  const dcv = domainValidation(request, context, needsValidation); // Rule 6

  const { signHash } = request;
  const issuerId = issuer.id;
  return { ...names, ...validity, publicKey, signHash, issuerId, needsValidation, revokes, missingConsents, dcv };
}

/** One reissue at a time; and only of an order that still owes certificates, whether or not its end was noted yet. */
function requireReissuable({ status, termEndsAt, pendingCertificateId }: Order, now: number): void {
  if (status === 'reissuing') {
    throw new Refusal('reissue_in_progress', { details: { certificate_id: pendingCertificateId } });
  }
  const isOver = status === 'issued' && now >= termEndsAt;
  if (status === 'issued' && !isOver) return;
  throw new Refusal('order_state_conflict', {
    reason: isOver
      ? { en: 'The term of the order is over. Place a new order.', zh: '订单期限已结束，请重新下单。' }
      : {
          en: `The order is ${status}; only an issued order can be reissued.`,
          zh: `订单状态为 ${status}，只有已签发的订单可以重签。`,
        },
    details: { status: isOver ? 'expired' : status },
  });
}

/** Each may have to be listed and revoked in one go, while others wait. */
const MAX_CERTIFICATES = 10_000;

function requireFewerThanMost(version: number): void {
  if (version < MAX_CERTIFICATES) return;
  throw new Refusal('order_state_conflict', {
    reason: {
      en: `The order has ${MAX_CERTIFICATES} certificates, and gets no more. Place a new order.`,
      zh: `该订单已有 ${MAX_CERTIFICATES} 张证书，达到上限，请重新下单。`,
    },
  });
}

function requireCommonName({ commonName }: ReissueRequest, { product }: ReissueContext): void {
  if (product.kind !== 'ssl' || commonName) return;
  throw invalid(
    'certificate.common_name',
    'An SSL product needs certificate.common_name.',
    'SSL 产品必须发送 certificate.common_name。',
  );
}

export function validityFor(request: ReissueRequest, issuer: ChosenIssuer, { now, product, order }: ReissueContext) {
  const { validityDays, customExpirationDate } = request;
  return validityOf({
    now,
    validityDays,
    customExpirationDate,
    maxDays: product.maxValidityDays,
    termEndsAt: order.termEndsAt,
    issuerNotAfter: issuer.notAfter,
  });
}
