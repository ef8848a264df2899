// The vocabulary of an issuance: what is asked for, what it is decided from, and what is decided. Wire names get their
// meaning here. Nothing is decided in this file.
import type { CredentialKind } from '../access/credential.ts';
import type { KeySource, Product } from '../catalog/products.ts';
import type { CertificateAuthority } from '../certificate/authority.ts';
import type { CertificateRecord, PlannedRevocation } from '../certificate/certificate.ts';
import type { DomainValidation, Order } from '../certificate/order.ts';
import type { PublicKey } from '../certificate/public-key.ts';
import type { SignHash } from '../certificate/sign-hash.ts';
import type { Validity } from '../certificate/validity.ts';
import type { CertificateId } from '../ids.ts';
import type { Secret } from '../secret.ts';

/** The certificate asked for, by an order or by a reissue. Types are right; `signHash` and `keySource` are known words. */
export interface CertificateRequest {
  /** Empty means missing (contract reissue 11). */
  readonly commonName?: string | undefined;
  /** Empty means no further names; absent keeps those of the previous certificate (contract reissue 24, 25). */
  readonly dnsNames?: readonly string[] | undefined;
  /** Empty means absent. */
  readonly csr?: string | undefined;
  readonly keySource: KeySource;
  readonly signHash: SignHash;
  /** Access code and hint: present only when `keySource` is `sign-cloud-csc` (contract reissue 7). */
  readonly pin?: Secret | undefined;
  readonly pinHint?: string | undefined;
  /** `un_modify_key`: acts on dual certificates only. */
  readonly keepsEncryptionKey: boolean;
  readonly validityDays?: number | undefined;
  readonly customExpirationDate?: string | undefined;
  readonly dcvMethod?: string | undefined;
  readonly dcvScope?: string | undefined;
  /** Absent keeps the order's value, 0 clears it. They differ, so no default may be applied before this point. */
  readonly persistUntil?: number | undefined;
  readonly persistPolicy?: string | undefined;
}

/** The first certificate of an order. Without a digest it gets the product's default. */
export type PlacementRequest = Omit<CertificateRequest, 'signHash'> & { readonly signHash?: SignHash | undefined };

export interface ReissueRequest extends CertificateRequest {
  /** `i_know_remove_domain_will_revoke_before_cert` is literally true. */
  readonly acceptsRemovalOfNames: boolean;
  /** `i_know_will_revoke_last_cert` is literally true. */
  readonly acceptsRevocationOfPrevious: boolean;
  /** Reports missing consents in the plan instead of refusing. */
  readonly dryRun: boolean;
}

/** The certificate that a new one replaces. */
export type PreviousCertificate = Pick<
  CertificateRecord,
  'id' | 'commonName' | 'names' | 'publicKey' | 'cloudKeyId'
> & {
  /** Its number within the order: how many certificates were issued so far. */
  readonly version: number;
};

/** Everything a decision may depend on besides the request. */
export interface IssuanceContext {
  readonly now: number;
  readonly order: Order;
  readonly product: Product;
  /** Null before the first certificate of the order. */
  readonly previous: PreviousCertificate | null;
  /** Names with a reusable proof of this account. A dns-persist record is never one: it is checked each time. */
  readonly validatedNames: Pick<ReadonlySet<string>, 'has'>;
  /** The key of a CSR whose signature verifies; throws `invalid_csr` otherwise. */
  readonly readCsr: (text: string) => PublicKey;
  /** Throws `invalid_csr` for a weak or blocked key. Also applied to a key certified again: it may be blocked since. */
  readonly requireAcceptedKey: (key: PublicKey) => void;
  /** The kind of cloud-held key this request would be given. Stands for it until the key is made. */
  readonly cloudKey: PublicKey;
  readonly issuers: IssuerChoice;
  /** Remote perspectives that look at names; infinite where the number that public rules ask for is not enforced. */
  readonly perspectives: number;
  readonly registrableDomain: (name: string) => string | undefined;
}

export interface ReissueContext extends IssuanceContext {
  /** Decides whether the reissue may revoke, and whether it may certify a signing key (contract permission 13, 14). */
  readonly credentialKind: CredentialKind;
  /** Certificates of the order that are neither expired nor revoked: those that a reissue may have to revoke. */
  readonly valid: readonly { readonly id: CertificateId; readonly names: readonly string[] }[];
}

export interface IssuerChoice {
  readonly choose: CertificateAuthority['issuerFor'];
  /** Everything `choose` has an answer to; listed for callers who asked for something else. */
  readonly served: CertificateAuthority['served'];
}

export interface NameChanges {
  readonly commonName: string | null;
  /** The common name first. Empty for products that certify no DNS names. */
  readonly names: readonly string[];
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/** What will be certified, by which issuer and for how long. */
export interface CertificatePlan extends NameChanges, Validity {
  readonly publicKey: PublicKey;
  readonly signHash: SignHash;
  readonly issuerId: string;
  /** Names without a reusable proof. */
  readonly needsValidation: readonly string[];
  readonly revokes: readonly PlannedRevocation[];
  /** What the order keeps from now on. */
  readonly dcv: DomainValidation;
}

/** A consent that was not given, by the code it is refused with. */
export const MISSING_CONSENTS = ['remove_domain_not_confirmed', 'revoke_last_cert_not_confirmed'] as const;
export type MissingConsent = (typeof MISSING_CONSENTS)[number];

export const MISSING_PERMISSIONS = ['revoke'] as const;
export type MissingPermission = (typeof MISSING_PERMISSIONS)[number];

export interface ReissuePlan extends CertificatePlan {
  readonly missingConsents: readonly MissingConsent[];
  /** What the credential lacks for this reissue. */
  readonly missingPermissions: readonly MissingPermission[];
}
