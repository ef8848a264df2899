// What the use cases of ACME orders work with. The composition root provides it.
import type { BoundAccount } from '../../domain/acme/account.ts';
import type { IssuanceTools } from '../issuance/tools.ts';
import type { RevokeCertificate } from '../revocation/revoke-certificate.ts';
import type { RevokeKey } from '../revocation/revoke-key.ts';
import type { ValidateChallenge } from './validate-challenge.ts';

export interface AcmeOrderTools extends IssuanceTools {
  readonly validate: ValidateChallenge;
  /** Whether a name that is proven already is authorized at once. Off only in a sandbox, on request. */
  readonly reusesProofs: boolean;
  /** At least 128 random bits, base64url. */
  readonly newToken: () => string;
  /** The names that a CSR asks for, in their canonical spelling. Throws `invalid_csr`. */
  readonly csrNames: (csr: string) => readonly string[];
  /** Ids of the issuers with this key identifier, hexadecimal. */
  readonly issuersWithKey: (keyId: string) => Promise<readonly string[]>;
  readonly revoke: RevokeCertificate;
  readonly revokeKey: RevokeKey;
  readonly onError: (error: unknown) => void;
}

/** A request whose signature was verified, of an account that may send requests. */
export interface AcmeCaller {
  readonly bound: BoundAccount;
  /** As the client knows it. */
  readonly accountUrl: string;
  readonly requestId: string | null;
}
