// What every call to the outside looks like: where it goes, what it may cost, and what came of it. The one function
// that opens such connections implements CallOut; callback test, deliveries and domain checks only differ in policy.
import type { Address, AddressRule } from './addresses.ts';

/** How far a call came. */
export const STAGES = ['resolve', 'connect', 'tls', 'request', 'response'] as const;
export type Stage = (typeof STAGES)[number];

/** Why a call failed: a closed list, each the fault of the other side or of the way there. */
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

/** A URL whose form was checked; nothing is known yet about where it leads. */
export interface OutboundUrl {
  readonly scheme: 'https' | 'http';
  /** A lower-case name of A-labels, or an IP address without brackets. */
  readonly host: string;
  /** Of a host that is an IP address. */
  readonly literal: Address | null;
  readonly port: number;
  /** Path and query exactly as they were written. */
  readonly target: string;
}

export interface OutboundPolicy {
  /** Let through although they are not public; link-local and metadata addresses never are. */
  readonly allow: readonly AddressRule[];
  /** Refused although they are public; stronger than allow. */
  readonly deny: readonly AddressRule[];
  /** For the whole call, name resolution included. */
  readonly totalMs: number;
}

export interface OutboundCall {
  readonly url: OutboundUrl;
  readonly method: 'POST' | 'GET';
  /** Besides Host, User-Agent and Content-Length. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly policy: OutboundPolicy;
  /** Ends the call at once: whoever asked is gone. */
  readonly signal?: AbortSignal | undefined;
}

export interface Observation {
  readonly stage: Stage;
  /** Milliseconds of each phase that was begun. */
  readonly phases: Readonly<Partial<Record<Stage, number>>>;
  readonly tls: { readonly version: string; readonly certificateEndsAt: number } | null;
}

export type Outcome =
  /** Not public and not allowed: nothing was connected to, and nothing more is told. */
  | { readonly kind: 'private' }
  | { readonly kind: 'failed'; readonly reason: FailureReason; readonly seen: Observation }
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      /** The beginning of the answer, cut at 16 KiB. */
      readonly body: Uint8Array;
      /** Only let through by an allow rule: what it answers is not for the caller's eyes. */
      readonly isPrivate: boolean;
      readonly seen: Observation;
    };

/** Never rejects because of the other side, and always settles within the policy's time. */
export type CallOut = (call: OutboundCall) => Promise<Outcome>;
