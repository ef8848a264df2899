// The interface of a command, and what commands may use. The runner parses arguments, prints, and maps errors to exit
// codes.
import type { ParseArgsOptionDescriptor } from 'node:util';
import type { Account } from '../domain/access/account.ts';
import type { Manifest } from '../domain/backup.ts';
import type { CallbackReport } from '../domain/callbacks/report.ts';
import type { Catalog } from '../domain/catalog/products.ts';
import type { Issuer, Purpose } from '../domain/certificate/authority.ts';
import type { LintResult, LintVerdict } from '../domain/issuance/lint.ts';
import type { CertificateRef, CrlHead, ReadCrl } from '../domain/revocation/ports.ts';
import type { Diagnostic, ExitCode } from '../kernel/problem.ts';
import type { WorldCommands } from '../sandbox/world.ts';
import type { ManageAccess } from '../usecases/access/manage-access.ts';
import type { ManageAcme } from '../usecases/acme/manage-acme.ts';
import type { ConfigureCallback } from '../usecases/callbacks/configure-callback.ts';
import type { ManageDeliveries } from '../usecases/callbacks/manage-deliveries.ts';
import type { OperateCloudKeys } from '../usecases/cloud-keys/operate-cloud-keys.ts';
import type { ManageOperators } from '../usecases/console/manage-operators.ts';
import type { CancelOrder } from '../usecases/issuance/cancel-order.ts';
import type { IssuerOverview } from '../usecases/issuance/manage-authorities.ts';
import type { PlaceOrder } from '../usecases/issuance/place-order.ts';
import type { ShowOrders } from '../usecases/issuance/show-orders.ts';
import type { ChangeRevocation } from '../usecases/revocation/change-revocation.ts';
import type { InterruptedIssuances } from '../usecases/revocation/interrupted-issuances.ts';
import type { RestoredRevocations } from '../usecases/revocation/restore-revocations.ts';
import type { RevokeCertificate } from '../usecases/revocation/revoke-certificate.ts';
import type { RevokeKey } from '../usecases/revocation/revoke-key.ts';
import type { FindAnything } from '../usecases/support/find-anything.ts';
import type { SearchAudit } from '../usecases/support/search-audit.ts';
import type { ProveDomains } from '../usecases/validation/prove-domains.ts';
import type { CustodyCommands, OfflineRoot } from './ceremony.ts';

/** Issuers, and the blocklist of keys. */
export interface Authorities {
  overview(): Promise<IssuerOverview[]>;
  /** PEM, or a key in a token, which has to sign as a proof. Throws a Problem if verifiers would refuse what it signs for one of the purposes. */
  adopt(own: {
    readonly chain: string;
    readonly key: { readonly pem: string } | { readonly uri: string };
    readonly purposes: readonly Purpose[];
    readonly policy: string | null;
  }): Promise<Issuer>;
  /** Reads a list in any of the forms that are published. Throws a Problem. */
  block(list: string): Promise<{ readonly blocked: number; readonly counts: Readonly<Record<string, number>> }>;
}

export interface CallbackCommands {
  /** Throws `account_not_found`. */
  account(id: string): Promise<Account>;
  readonly callbacks: ConfigureCallback;
  readonly deliveries: ManageDeliveries;
  sendTest(account: Account, body: unknown): Promise<CallbackReport>;
}

export interface ConsoleCommands {
  readonly operators: ManageOperators;
  /** With a slash at its end. */
  consoleUrl(): Promise<string>;
}

export interface OrderCommands {
  readonly placeOrder: PlaceOrder;
  readonly cancelOrder: CancelOrder;
  readonly proveDomains: ProveDomains;
  readonly show: ShowOrders;
}

/** Views that need no issuers and create nothing. */
export interface RecordCommands {
  readonly show: ShowOrders;
  heads(): Promise<CrlHead[]>;
  /** Interrupted issuances that are not revoked, in all accounts. */
  interrupted(): Promise<CertificateRef[]>;
  /** What external linters did not pass, newest first. */
  lintRefusals(limit: number): Promise<LintResult[]>;
}

export interface SupportCommands {
  readonly searchAudit: SearchAudit;
  readonly findAnything: FindAnything;
}

export interface RevocationCommands {
  readonly revoke: RevokeCertificate;
  readonly changeRevocation: ChangeRevocation;
  readonly revokeKey: RevokeKey;
  readonly interrupted: InterruptedIssuances;
  readonly show: ShowOrders;
  /** Fingerprint of the key in a PEM text: a public or private key, a CSR, or a certificate. */
  fingerprintOf(text: string): string;
}

export interface AddressView {
  readonly name: string;
  readonly variable: string;
  readonly value: string;
  /** False: derived from the listening address or from another address, and not binding. */
  readonly isConfigured: boolean;
}

export interface AddressChange {
  readonly name: string;
  readonly variable: string;
  readonly before: string;
  readonly after: string;
  /** What stops working. */
  readonly breaks: string;
}

/** The addresses that the store records. */
export interface AddressCommands {
  list(): Promise<AddressView[]>;
  /** Returns what changes; changes it only if `isConfirmed`. */
  set(given: Readonly<Record<string, string | undefined>>, isConfirmed: boolean): Promise<AddressChange[]>;
}

/** How a command was called. */
export interface Invocation {
  /** True unless the command may create or migrate the store. */
  readonly mustExist: boolean;
  /** From --env-file. */
  readonly envFile: string | undefined;
  readonly isTerminal: boolean;
  /** Prints a line beside the output: which store and which settings are used. */
  report(text: string): void;
  /** Adapts commands in a text to how this program was started. */
  hints(text: string): string;
}

/** Keeps a snapshot of PostgreSQL open while a dump is made from it. */
export interface Hold {
  announce(snapshot: string): void;
  /** Resolves when the dump has ended. */
  released(): Promise<void>;
}

export interface RestoreReport extends RestoredRevocations {
  /** RFC 3339; absent when only CRLs were read. */
  readonly takenAt?: string;
  readonly lists: readonly (Pick<ReadCrl, 'issuerId' | 'shard' | 'number' | 'thisUpdate'> & {
    readonly source: string;
    readonly entries: number;
  })[];
  /** CRLs that the store has published and none was given for. */
  readonly missing: readonly CrlHead[];
}

export interface BackupCommands {
  /** `progress` takes a part from 0 to 1. */
  take(file: string, hold: Hold | undefined, progress: (part: number) => void): Promise<Manifest>;
  /** Without a file: the database that RESEAL_DATABASE_URL names, compared with nothing. */
  verify(file: string | undefined): Promise<Diagnostic[]>;
  /** `acceptsLoss`: revocations made since the backup may be lost. */
  restore(file: string, crls: readonly string[], acceptsLoss: boolean): Promise<RestoreReport>;
  importCrls(crls: readonly string[]): Promise<RestoreReport>;
  /** Whether the store knows all that published CRLs say. */
  compareCrls(crls: readonly string[]): Promise<Diagnostic>;
}

export interface SealStatus {
  readonly activeKeyId: string;
  /** Keys at hand, the one to rotate to first. */
  readonly keyIds: readonly string[];
  readonly counts: readonly {
    readonly table: string;
    readonly column: string;
    readonly keyId: string;
    readonly values: number;
  }[];
  readonly instances: readonly {
    readonly name: string;
    readonly seenAt: number;
    readonly keyIds: readonly string[];
    readonly activeKeyId: string;
  }[];
  /** Says which values have no key, if any. */
  readonly missing: string | undefined;
}

/** Operations on the store as a whole. */
export interface StoreCommands {
  sealStatus(): Promise<SealStatus>;
  rotateSeal(
    onProgress: (at: { resealed: number; total: number; waitingFor: readonly string[] }) => void,
  ): Promise<{ keyId: string; resealed: number; unopenable: readonly string[] }>;
  copy(
    to: string,
    onProgress: (at: { step: string; table: string; rows: number }) => void,
  ): Promise<{
    from: string;
    to: string;
    rows: number;
    digest: string;
    contents: readonly { table: string; rows: number; digest: string }[];
  }>;
}

/** Services for commands, provided by the composition root. */
export interface Context {
  readonly now: () => number;
  /** Whether output goes to a person's terminal, and not to a pipe, a file or a journal. */
  readonly isTerminal: boolean;
  /** Shows progress to a person; not part of the command's output. */
  report(line: string): void;
  /** Built in, and of the products file. Throws a Problem that lists every fault of the file. */
  products(): Catalog;
  /** Shows a certificate, PEM, to the configured linters. */
  lintFile(pem: string): Promise<LintVerdict>;
  storeCommands(): Promise<StoreCommands>;
  /** Opens the store for the duration of `work`, as the other with… functions do. */
  withAccess<T>(work: (access: ManageAccess) => Promise<T>): Promise<T>;
  withAcme<T>(work: (acme: ManageAcme) => Promise<T>): Promise<T>;
  withAddresses<T>(work: (addresses: AddressCommands) => Promise<T>): Promise<T>;
  withConsole<T>(work: (console: ConsoleCommands) => Promise<T>): Promise<T>;
  withRecords<T>(work: (records: RecordCommands) => Promise<T>): Promise<T>;
  withIssuance<T>(work: (issuance: OrderCommands) => Promise<T>): Promise<T>;
  withCallbacks<T>(work: (callbacks: CallbackCommands) => Promise<T>): Promise<T>;
  withRevocation<T>(work: (revocation: RevocationCommands) => Promise<T>): Promise<T>;
  withCloudKeys<T>(work: (cloudKeys: OperateCloudKeys) => Promise<T>): Promise<T>;
  withSupport<T>(work: (support: SupportCommands) => Promise<T>): Promise<T>;
  withAuthorities<T>(work: (authorities: Authorities) => Promise<T>): Promise<T>;
  withCustody<T>(work: (custody: CustodyCommands) => Promise<T>): Promise<T>;
  /** Opens no store. */
  offlineRoot(): Promise<OfflineRoot>;
  /** Asks at the terminal, without echo. `instead`: what to do without one. */
  askSecret(question: string, instead: string): Promise<string>;
  /** Opens nothing by itself: a backup is taken from a running service. */
  withBackups<T>(work: (backups: BackupCommands) => Promise<T>): Promise<T>;
  /** Prints the snapshot to standard output, and releases it when standard input ends. */
  hold(): Hold;
  /** Commands on the DNS records and files that a sandbox serves. */
  sandboxWorld(): Promise<WorldCommands>;
  /** Serves until a signal arrives. Without a number of workers the configured one is used. */
  serve(workers: string | undefined): Promise<void>;
  serveSandbox(): Promise<void>;
  resetSandbox(): Promise<{ folder: string; deleted: string[] }>;
  /** Undefined if no sandbox was ever started here. */
  readSandbox(): Promise<{ receiver: { callbacks: readonly unknown[] } } | undefined>;
  diagnose(): Promise<Diagnostic[]>;
}

/** Printed as text for people, or as JSON for machines with --json. */
export interface Output {
  readonly json: unknown;
  readonly text: string;
  readonly exitCode?: ExitCode;
}

export interface Arguments {
  readonly positionals: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
}

export interface Command {
  readonly about: string;
  /** `creates`: opens the store, and creates or migrates it first if needed. `none`: does not open it. */
  readonly store: 'existing' | 'creates' | 'none';
  /** Without the leading `reseal`. The first is the shortest that works. */
  readonly examples: readonly string[];
  /** Names of the positional arguments: `[NAME]` is optional, `NAME…` is one or more. */
  readonly positionals: readonly string[];
  readonly options: Readonly<Record<string, ParseArgsOptionDescriptor & { readonly about: string }>>;
  /** Returns undefined if the command prints by itself. */
  run(given: Arguments, context: Context): Promise<Output | undefined>;
}

/** Passes on at most one line per second. */
export function everySecond(report: (line: string) => void): (line: string) => void {
  let last = Number.NEGATIVE_INFINITY;
  return (line) => {
    if (performance.now() - last < 1_000) return;
    last = performance.now();
    report(line);
  };
}
