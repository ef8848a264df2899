// The words a reissue is decided in: what was asked, what is known, and what follows. The wire's awkward names have
// their meaning here. Nothing is decided in this file.

import type { KeySource, Product } from '../catalog/products.ts';
import type { CertificateAuthority } from '../certificate/authority.ts';
import type { CertificateRecord, DomainValidation, Order, PlannedRevocation } from '../certificate/order.ts';
import type { PublicKey } from '../certificate/public-key.ts';
import type { SignHash } from '../certificate/sign-hash.ts';
import type { Validity } from '../certificate/validity.ts';
import type { Secret } from '../secret.ts';

/** A body whose types are right, and whose `sign_hash` and `csr_from` are words we know. */
export interface ReissueRequest {
  /** Empty is missing (contract reissue 11). */
  readonly commonName?: string | undefined;
  /** An empty list is a wish, leaving it out is none (contract reissue 24, 25). */
  readonly dnsNames?: readonly string[] | undefined;
  /** Empty is left out. */
  readonly csr?: string | undefined;
  readonly keySource: KeySource;
  readonly signHash: SignHash;
  /** Access code and hint: only there when `keySource` is `sign-cloud-csc`, which alone may use them (contract reissue 7). */
  readonly pin?: Secret | undefined;
  readonly pinHint?: string | undefined;
  /** `un_modify_key`: acts on dual certificates only. */
  readonly keepsEncryptionKey: boolean;
  readonly validityDays?: number | undefined;
  readonly customExpirationDate?: string | undefined;
  /** `i_know_remove_domain_will_revoke_before_cert` is literally true. */
  readonly acceptsRemovalOfNames: boolean;
  /** `i_know_will_revoke_last_cert` is literally true. */
  readonly acceptsRevocationOfPrevious: boolean;
  readonly dcvMethod?: string | undefined;
  readonly dcvScope?: string | undefined;
  /** Left out keeps the order's value, 0 clears it: the two differ, and no default may be applied on the way here. */
  readonly persistUntil?: number | undefined;
  readonly persistPolicy?: string | undefined;
  /** Missing consents are then findings in the plan. */
  readonly dryRun: boolean;
}

export interface ReissueContext {
  readonly now: number;
  readonly order: Order;
  readonly product: Product;
  readonly current: Pick<CertificateRecord, 'id' | 'commonName' | 'names' | 'publicKey'> & {
    /** How many there were, this one included. */
    readonly version: number;
    /** Neither expired nor revoked: only then there is something left to revoke. */
    readonly isStillValid: boolean;
  };
  /** The other certificates of the order that are still valid; only those that carry a name which goes matter. */
  readonly earlier: readonly Pick<CertificateRecord, 'id' | 'names'>[];
  /** Names with a proof of this account that may serve now. A dns-persist record never does: it is asked each time. */
  readonly validatedNames: ReadonlySet<string>;
  /** The key of a CSR whose signature verifies; anything else is `invalid_csr`. */
  readonly readCsr: (text: string) => PublicKey;
  /** `invalid_csr` for a weak or compromised key. Asked of a key certified again too: it may be listed since. */
  readonly requireAcceptedKey: (key: PublicKey) => void;
  /** The key made for this request, or one that stands for it as long as nothing is written. */
  readonly cloudKey: PublicKey;
  readonly issuers: Issuers;
  readonly registrableDomain: (name: string) => string | undefined;
}

export interface Issuers {
  readonly choose: CertificateAuthority['issuerFor'];
  /** Everything `choose` has an answer to, for the caller who asked for something else. */
  readonly served: CertificateAuthority['served'];
}

/** A consent that was not given, by the code it is refused with. */
export type MissingConsent = 'remove_domain_not_confirmed' | 'revoke_last_cert_not_confirmed';

export interface NameChanges {
  readonly commonName: string | null;
  /** The common name first. Empty for products that certify no DNS names. */
  readonly names: readonly string[];
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

export interface ReissuePlan extends NameChanges, Validity {
  readonly publicKey: PublicKey;
  readonly signHash: SignHash;
  readonly issuerId: string;
  /** Empty: the certificate can be issued before the answer, as far as proofs are concerned. */
  readonly needsValidation: readonly string[];
  readonly revokes: readonly PlannedRevocation[];
  readonly missingConsents: readonly MissingConsent[];
  /** What the order keeps from now on. */
  readonly dcv: DomainValidation;
}
