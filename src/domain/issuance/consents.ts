// What a reissue costs: which certificates it revokes, and whether the caller has said that this is understood. Nothing
// is revoked here, and nothing ever before the new certificate has been issued.

import type { PlannedRevocation } from '../certificate/order.ts';
import { Refusal } from '../errors.ts';
import type { MissingConsent, ReissueContext, ReissueRequest } from './request.ts';

/** Rule 4: every valid certificate that carries a name which goes. Rule 5: the previous one, if the product says so. */
export function revocationsOf(removed: readonly string[], context: ReissueContext): PlannedRevocation[] {
  const { product, current, earlier } = context;
  const gone = new Set(removed);
  const valid = current.isStillValid ? [current, ...earlier] : earlier;
  return valid.flatMap(({ id, names }): PlannedRevocation[] => {
    const carriesRemoved = names.some((name) => gone.has(name));
    if (!carriesRemoved && !(product.revokesPreviousOnReissue && id === current.id)) return [];
    const cause = carriesRemoved ? 'name_removed' : 'previous_replaced';
    return [{ certificateId: id, reason: 'superseded', cause, afterHours: product.revocationGraceHours }];
  });
}

/** The consents follow from the rules and not from what is left to revoke: a client must not depend on dates. */
export function missingConsentsOf(
  request: ReissueRequest,
  removed: readonly string[],
  { product }: ReissueContext,
): MissingConsent[] {
  const missing: MissingConsent[] = [];
  if (removed.length > 0 && !request.acceptsRemovalOfNames) missing.push('remove_domain_not_confirmed');
  if (product.revokesPreviousOnReissue && !request.acceptsRevocationOfPrevious) {
    missing.push('revoke_last_cert_not_confirmed');
  }
  return missing;
}

const FIELD: Record<MissingConsent, string> = {
  remove_domain_not_confirmed: 'i_know_remove_domain_will_revoke_before_cert',
  revoke_last_cert_not_confirmed: 'i_know_will_revoke_last_cert',
};

/** More than a person reads. */
const MAX_LISTED = 100;

/** Refuses with the first of them; the details let a person decide about both. */
export function requireConsents(
  missing: readonly MissingConsent[],
  removed: readonly string[],
  revokes: readonly PlannedRevocation[],
): void {
  const [first] = missing;
  if (first === undefined) return;
  throw new Refusal(first, {
    field: FIELD[first],
    details: {
      removed_names: removed,
      certificates: revokes.slice(0, MAX_LISTED).map(({ certificateId }) => certificateId),
      ...(revokes.length > MAX_LISTED && { certificates_in_all: revokes.length }),
    },
  });
}
