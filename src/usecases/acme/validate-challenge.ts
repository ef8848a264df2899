// Validates one challenge of ACME: control of the name, then CAA, from every perspective and with the product's networks,
// as orders are checked. Nothing is written here: callers record the proof. CAA is checked again at every issuance, and so
// is a persistent record.
import { createHash } from 'node:crypto';
import { acmeChallenge, type ChallengeProblemType, problemType } from '../../domain/acme/challenge.ts';
import type { Product } from '../../domain/catalog/products.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { CheckResult, FailedCheck } from '../../domain/validation/check-result.ts';
import type { AcmeMethod } from '../../domain/validation/method.ts';
import type { Localized } from '../../kernel/locale.ts';
import type { CheckDomains } from '../validation/check-domains.ts';
import { checkDeadline } from '../validation/check-names.ts';
import { recordedMethod } from '../validation/proven-names.ts';

interface ChallengeTools {
  readonly checks: CheckDomains;
  /** Runs before each validation. For sandboxes only, whose users test what their clients do about it. */
  readonly disturb?: DisturbValidation | undefined;
}

/** May take its time. Returns the failure of a validation that is to fail, or null. */
export type DisturbValidation = (name: string, signal: AbortSignal) => Promise<FailedCheck | null>;

export interface ChallengeToValidate {
  /** The account that the ACME account is bound to. */
  readonly accountId: AccountId;
  /** The URL of the ACME account. */
  readonly acmeAccount: string;
  readonly product: Pick<Product, 'id' | 'trust' | 'validationNetworks'>;
  /** Canonical, as it will be certified: with `*.` for a wildcard, or an IP address. */
  readonly name: string;
  /** One of `challengesFor` the name. */
  readonly type: AcmeMethod;
  /** Empty for a challenge without one. */
  readonly token: string;
  /** Of the account key (RFC 7638), base64url. */
  readonly thumbprint: string;
  readonly limitMs: number;
  /** Aborted when the service shuts down. */
  readonly stopping?: AbortSignal | undefined;
}

export type ChallengeResult =
  | { readonly isOk: true; readonly evidence: ChallengeEvidence }
  | { readonly isOk: false; readonly problem: ChallengeProblem };

export interface ChallengeEvidence {
  readonly name: string;
  /** The method to record a proof under, for the account and the name; null if nothing is recorded, because it may not be reused. */
  readonly proof: string | null;
}

export interface ChallengeProblem {
  readonly type: ChallengeProblemType;
  readonly detail: Localized;
}

/** Never rejects because of what servers answer. Settles within `limitMs`. */
export type ValidateChallenge = (challenge: ChallengeToValidate) => Promise<ChallengeResult>;

export function validateChallenge({ checks, disturb }: ChallengeTools): ValidateChallenge {
  return async ({ accountId, acmeAccount, product, name, type, token, thumbprint, limitMs, stopping }) => {
    using deadline = checkDeadline(limitMs, stopping);
    const text = `${token}.${thumbprint}`;
    const digest = createHash('sha256').update(text).digest('base64url');
    const challenge = acmeChallenge(name, type, { token, text, digest });
    const control = await deadline.run(async (signal) => {
      const disturbed = await disturb?.(name, signal);
      return disturbed ?? (await checks.control(challenge, { accountId, acmeAccount, product, signal }));
    }, type);
    if (!control.isOk) return refused(control);
    const caa = await deadline.run((signal) => checks.caa(name, [type], { accountId, acmeAccount, signal }));
    return caa.isOk ? { isOk: true, evidence: { name, proof: proofOf(type, product, control) } } : refused(caa);
  };
}

const refused = (failure: FailedCheck): ChallengeResult => ({
  isOk: false,
  problem: { type: problemType(failure), detail: failure.reason },
});

/** Persistent records are looked up again at every issuance (persist 15). */
const proofOf = (type: AcmeMethod, product: Pick<Product, 'id' | 'trust'>, control: CheckResult): string | null =>
  type === 'dns-persist-01' ? null : recordedMethod(type, product, control);
