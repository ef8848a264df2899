// Decides whether a certificate that waited for validation can be issued now. It keeps what was asked for and consented
// to; its issuer and its dates are those of the day it is issued. Pure.
import { maxValidityDays, perspectivesFor } from '../catalog/public-rules.ts';
import { canStillSign } from '../certificate/authority.ts';
import type { CancellationReason, PendingCertificate } from '../certificate/certificate.ts';
import { type Validity, validityOf } from '../certificate/validity.ts';
import { Refusal } from '../errors.ts';
import { chooseIssuer, constraintOn } from './key.ts';
import type { IssuanceContext } from './request.ts';

type PendingPlan =
  | ({ readonly kind: 'ready'; readonly issuerId: string } & Validity)
  /** Not now; perhaps at the next check. */
  | { readonly kind: 'later' }
  /** It can never be issued as it was requested. */
  | { readonly kind: 'impossible'; readonly why: CancellationReason };

type PendingContext = Pick<IssuanceContext, 'now' | 'order' | 'product' | 'issuers' | 'perspectives'> & {
  readonly isKeyBlocked: boolean;
};

export function planPending(record: PendingCertificate, context: PendingContext): PendingPlan {
  if (context.isKeyBlocked) return { kind: 'impossible', why: 'key_compromised' };
  if (context.perspectives < perspectivesFor(context.product, context.now)) return { kind: 'later' };
  const issuer = chooseIssuer(context, record.publicKey, record.signHash);
  // The operator may have imported an authority meanwhile that must not certify these names, and may bring another.
  if (!issuer || !canStillSign(issuer, context.now) || constraintOn(issuer, record, context.order.subject))
    return { kind: 'later' };
  try {
    const validity = validityOf({
      now: context.now,
      validityDays: record.validityDays ?? undefined,
      customExpirationDate: record.customExpirationDate ?? undefined,
      maxDays: maxValidityDays(context.product, context.now),
      termEndsAt: context.order.termEndsAt,
      issuer,
    });
    return { kind: 'ready', issuerId: issuer.id, ...validity };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { kind: 'impossible', why: 'expiration_passed' };
  }
}
