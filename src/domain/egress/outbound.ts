// The ports for outbound calls: target, policy, outcome. One file implements them and opens every outbound connection;
// callback tests, deliveries and domain checks differ in policy only.
import type { AccountId } from '../ids.ts';
import type { Address, AddressRule } from './addresses.ts';

/** The stages of a call, in order; an outcome names the last one reached. */
export const STAGES = ['resolve', 'connect', 'tls', 'request', 'response'] as const;
export type Stage = (typeof STAGES)[number];

/** Why a call failed: a closed list. Each is a fault of the receiver or of the network. */
export const FAILURE_REASONS = [
  'name_not_found',
  'dns_failure',
  'dns_timeout',
  'connection_refused',
  'connection_failed',
  'connect_timeout',
  'tls_failed',
  'tls_timeout',
  'certificate_untrusted',
  'certificate_expired',
  'certificate_not_yet_valid',
  'certificate_wrong_host',
  'connection_closed',
  'response_timeout',
  'response_invalid',
  'canceled',
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** A URL whose syntax is valid. Whether its addresses may be called is not known yet. */
export interface OutboundUrl {
  readonly scheme: 'https' | 'http';
  /** A lower-case DNS name in A-labels, or an IP address without brackets. */
  readonly host: string;
  /** Set if the host is an IP address. */
  readonly literal: Address | null;
  readonly port: number;
  /** Path and query exactly as written. */
  readonly target: string;
}

export interface OutboundPolicy {
  /** Non-public addresses that may be called. Never opens link-local or metadata addresses. */
  readonly allow: readonly AddressRule[];
  /** Public addresses that may not be called. Takes precedence over allow. */
  readonly deny: readonly AddressRule[];
  /** Deadline of the whole call, including name resolution. */
  readonly totalMs: number;
  /** How much of the response body is read. Absent: 16 KiB, enough for a callback's answer and a validation file. */
  readonly maxBodyBytes?: number | undefined;
  /**
   * Takes any certificate of an https server. Only for an exchange that began without TLS, so that a certificate protects
   * nothing, and that carries no secret.
   */
  readonly dangerouslyTrustsAnyCertificate?: boolean | undefined;
}

export interface OutboundCall {
  readonly url: OutboundUrl;
  readonly method: 'POST' | 'GET';
  /** In addition to Host, User-Agent and Content-Length. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly policy: OutboundPolicy;
  /**
   * The account that may use a connection kept from its earlier calls, and for which this one may be kept. Absent: the
   * call opens a connection of its own, says `Connection: close`, and closes it.
   */
  readonly keptFor?: AccountId | undefined;
  /** For whom it is, where connections to one address are bounded: those that wait take turns by account. */
  readonly owner?: AccountId | undefined;
  /** Cancels the call, e.g. because the caller disconnected. */
  readonly signal?: AbortSignal | undefined;
}

export interface Observation {
  readonly stage: Stage;
  /** Milliseconds spent in each stage that was entered. */
  readonly phases: Readonly<Partial<Record<Stage, number>>>;
  readonly tls: { readonly version: string; readonly certificateEndsAt: number } | null;
}

/** No answer to judge. */
export type Unreached =
  /** Neither public nor allowed. No connection was made; no detail is given, so that it reveals nothing. */
  | { readonly kind: 'private' }
  | { readonly kind: 'failed'; readonly reason: FailureReason; readonly seen: Observation };

export type Outcome =
  | Unreached
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      /** Its first bytes, as many as the policy allows. */
      readonly body: Uint8Array;
      /** Reached through an allow rule only: the response must not be shown to the caller. */
      readonly isPrivate: boolean;
      readonly seen: Observation;
    };

/** Never rejects because of the receiver. Always settles within the policy's deadline. */
export type CallOut = (call: OutboundCall) => Promise<Outcome>;

/** A TLS handshake for the sake of the certificate that the server shows. Nothing is sent after it. */
export interface TlsProbe {
  /** Where to connect; `target` is not used. */
  readonly url: OutboundUrl;
  /** The name to ask for (SNI). */
  readonly serverName: string;
  /** The one protocol to offer (ALPN). */
  readonly protocol: string;
  readonly policy: OutboundPolicy;
  readonly owner: AccountId;
  readonly signal?: AbortSignal | undefined;
}

export type TlsOutcome =
  | Unreached
  | {
      readonly kind: 'shown';
      /** Whether the server chose the protocol. */
      readonly hasAgreed: boolean;
      /** The server's certificate, DER. Not verified, except that the server has its key. */
      readonly certificate: Uint8Array;
      readonly isPrivate: boolean;
    };

/** Never rejects because of the server. Always settles within the policy's deadline. */
export type ProbeTls = (probe: TlsProbe) => Promise<TlsOutcome>;
