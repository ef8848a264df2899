// What commands on the custody of keys may use, and how they show the record of a ceremony.
import type { AuditEntry } from '../domain/access/ports.ts';
import type { Issuer, IssuerKeyType, Purpose } from '../domain/certificate/authority.ts';
import type { RevocationReason } from '../domain/certificate/certificate.ts';
import type { TakenBackup } from '../domain/issuance/custody.ts';
import { time } from './values.ts';

interface Performed {
  readonly ceremony: AuditEntry;
}

/** `stillSigning`: signatures of a retired issuer that had not ended after a minute. */
interface Retiring extends Performed {
  readonly stillSigning: number;
}

export interface ExportedRoot extends Performed {
  /** Of the list that was published with the export; null if the key stays. */
  readonly nextUpdate: number | null;
  /** Where copies of the sealed key may still be. */
  readonly left: readonly string[];
  /** Those that were taken while the key was in the store. */
  readonly backups: readonly TakenBackup[];
}

/** Needs the store. Every act is recorded, and throws a Problem if it cannot be done. */
export interface CustodyCommands {
  /** Makes a key, in a token if its place is given. `write` stores its request, PEM. */
  request(
    wanted: {
      readonly purposes: readonly Purpose[];
      readonly keyType: IssuerKeyType;
      readonly keyUri: string | undefined;
    },
    write: (csr: string) => void,
  ): Promise<Performed & { readonly id: string; readonly subject: string }>;
  install(chain: string, policy: string | null): Promise<Retiring & { readonly issuer: Issuer }>;
  rotate(
    purpose: Purpose,
    keyType: IssuerKeyType | undefined,
  ): Promise<Retiring & { readonly issuer: Issuer; readonly previousId: string }>;
  /** Where the root's key is offline, `write` stores what it has to sign; without it nothing is done. */
  revoke(
    id: string,
    reason: RevocationReason,
    write: ((request: string) => void) | undefined,
  ): Promise<Retiring & { readonly crlNumber: number | null; readonly valid: number }>;
  exportRoot(
    id: string,
    files: { readonly key: string; readonly chain: string },
    how: { readonly passphrase: string; readonly isRemoved: boolean; readonly crlDays: number },
  ): Promise<ExportedRoot>;
  crlRequest(id: string, write: (request: string) => void): Promise<Performed & { readonly number: number }>;
  installCrl(crl: Uint8Array): Promise<Performed & { readonly nextUpdate: number }>;
  crossSign(id: string, chain: string): Promise<Performed & { readonly url: string }>;
  ceremonies(limit: number): Promise<AuditEntry[]>;
}

interface OfflineKey {
  /** PEM. */
  readonly key: string;
  readonly chain: string;
  readonly passphrase: string;
}

/** Opens no store and reads no settings: for a machine without a network. */
export interface OfflineRoot {
  /** Returns the certificate and those above it, PEM. */
  sign(given: OfflineKey & { readonly csr: string; readonly years: number }): Promise<{
    readonly chain: string;
    readonly subject: string;
    /** What its extended key usages allow. */
    readonly allows: readonly Purpose[];
    readonly notAfter: number;
  }>;
  signCrl(given: OfflineKey & { readonly request: string; readonly days: number }): Promise<{
    readonly crl: Uint8Array;
    readonly number: number;
    readonly entries: number;
    readonly nextUpdate: number;
  }>;
  /** What the record of a ceremony without a store says. */
  record(inputs: Readonly<Record<string, string>>, outputs: Readonly<Record<string, string | Uint8Array>>): object;
}

export const ceremonyView = ({ id, at, actor, action, subject, details }: AuditEntry) => ({
  ...{ id, at: time(at), actor, action, subject, details },
});

export const ceremonyText = ({ id, at, actor, action, subject, details }: AuditEntry): string =>
  [
    `Ceremony ${id}: ${action} ${subject}, by ${actor} at ${time(at)}`,
    ...Object.entries(details).map(([name, value]) => `  ${name} ${value ?? '-'}`),
  ].join('\n');

export const stillSigningText = (stillSigning: number): string =>
  stillSigning === 0
    ? 'Nothing is signed by the previous issuer any more.'
    : `${stillSigning} certificates of the previous issuer were still being signed after a minute: see reseal cert interrupted.`;
