// Decides what a reissue may do. Pure: no clock, no store, no network. Everything it needs is an argument, so the rules
// of the interface can be read, and tested, as one page. Authentication, body shape, the idempotency key and the
// existence of the order are checked before; writing down, signing and revoking come after.
import { isPermitted, requirePermission } from '../access/credential.ts';
import type { PlannedRevocation } from '../certificate/certificate.ts';
import { invalid, Refusal } from '../errors.ts';
import { domainValidation, requirePerspectives } from './domain-validation.ts';
import { keyAndIssuer, requireKeyAsOffered, requireSignHashOffered } from './key.ts';
import { requestedNames } from './names.ts';
import type {
  MissingConsent,
  MissingPermission,
  PreviousCertificate,
  ReissueContext,
  ReissuePlan,
  ReissueRequest,
} from './request.ts';

/** The order of these steps is contract (reissue 8): with two faults at once, the first one is the answer. */
export function planReissue(request: ReissueRequest, context: ReissueContext): ReissuePlan {
  // The state of the order.
  const previous = requireReissuable(context);
  requireFewerThanMost(previous.version);

  // The rules of the product: who may use it, and those need no look at names or keys. Rule 1, that sign_hash is present, is body shape.
  if (context.product.kind !== 'ssl') requirePermission(context.credentialKind, 'reissue_signing');
  requireSignHashOffered(request, context);
  requireCommonName(request, context); // Rule 2
  const keySource = requireKeyAsOffered(request, context); // Rule 3

  // The names.
  const names = requestedNames(request, context);

  // The consents.
  const revokes = plannedRevocations(previous, names.removed, context); // Rules 4 and 5
  const missingConsents = missingConsentsOf(request, names.removed, context);
  if (!request.dryRun) requireConsents(missingConsents, names.removed, revokes);
  // A consent says that the account wants it, and a permission that this key may do it.
  const missingPermissions: MissingPermission[] =
    revokes.length === 0 || isPermitted(context.credentialKind, 'revoke') ? [] : ['revoke'];
  if (!request.dryRun) for (const action of missingPermissions) requirePermission(context.credentialKind, action);

  // The key and its CSR, and the validity. Rule 7: an access code is used with a cloud-held key only.
  const key = keyAndIssuer(keySource, request, context, names);

  // Domain validation.
  requirePerspectives(context);
  const dcv = domainValidation(request, context, names.names); // Rule 6

  return { ...names, ...key, ...dcv, revokes, missingConsents, missingPermissions };
}

/** One reissue at a time, and only of an order whose term has not ended, whether or not its end was recorded yet. */
function requireReissuable({ order, previous, now }: ReissueContext): PreviousCertificate {
  const { status, termEndsAt, pendingCertificateId } = order;
  if (status === 'reissuing') {
    throw new Refusal('reissue_in_progress', { details: { certificate_id: pendingCertificateId } });
  }
  const isOver = status === 'issued' && now >= termEndsAt;
  if (status !== 'issued' || isOver) {
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
  if (!previous) throw new Error(`order ${order.id} is issued and has no certificate`);
  return previous;
}

/** Bounds how many certificates one reissue may have to list and revoke in one transaction. */
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

/**
 * Rule 4: every valid certificate that carries a removed name. Rule 5: the previous one, if the product says so. The
 * previous certificate comes first. Nothing is revoked before the new certificate is issued.
 */
function plannedRevocations(
  previous: PreviousCertificate,
  removed: readonly string[],
  { product, valid }: ReissueContext,
): PlannedRevocation[] {
  if (valid.length === 0) return [];
  const gone = new Set(removed);
  const isPrevious = ({ id }: { readonly id: string }) => id === previous.id;
  const candidates = [...valid.filter(isPrevious), ...valid.filter((one) => !isPrevious(one))];
  return candidates.flatMap((one): PlannedRevocation[] => {
    const carriesRemoved = one.names.some((name) => gone.has(name));
    if (!carriesRemoved && !(product.revokesPreviousOnReissue && isPrevious(one))) return [];
    const cause = carriesRemoved ? 'name_removed' : 'previous_replaced';
    return [{ certificateId: one.id, reason: 'superseded', cause, afterHours: product.revocationGraceHours }];
  });
}

/** Depends on the rules, not on what is left to revoke: a client must not depend on dates. */
function missingConsentsOf(
  { acceptsRemovalOfNames, acceptsRevocationOfPrevious }: ReissueRequest,
  removed: readonly string[],
  { product }: ReissueContext,
): MissingConsent[] {
  const missing: MissingConsent[] = [];
  if (removed.length > 0 && !acceptsRemovalOfNames) missing.push('remove_domain_not_confirmed');
  if (product.revokesPreviousOnReissue && !acceptsRevocationOfPrevious) missing.push('revoke_last_cert_not_confirmed');
  return missing;
}

const CONSENT_FIELD: Record<MissingConsent, string> = {
  remove_domain_not_confirmed: 'i_know_remove_domain_will_revoke_before_cert',
  revoke_last_cert_not_confirmed: 'i_know_will_revoke_last_cert',
};

/** More than a person reads. */
const MAX_LISTED = 100;

/** Refuses with the first missing consent; the details let a person decide about both. */
function requireConsents(
  [first]: readonly MissingConsent[],
  removed: readonly string[],
  revokes: readonly PlannedRevocation[],
): void {
  if (first === undefined) return;
  throw new Refusal(first, {
    field: CONSENT_FIELD[first],
    details: {
      removed_names: removed,
      certificates: revokes.slice(0, MAX_LISTED).map(({ certificateId }) => certificateId),
      ...(revokes.length > MAX_LISTED && { certificates_in_all: revokes.length }),
    },
  });
}
