// Maps errors to failure reasons by stage and error code, never by message: a connection reset means one thing during
// the handshake and another after the request.
import type { FailureReason, Stage } from '../../domain/egress/outbound.ts';

/** Ends a call. The stage it reached is in the CallScope. */
export class Failure extends Error {
  readonly reason: FailureReason;

  constructor(reason: FailureReason) {
    super(reason);
    this.reason = reason;
  }
}

/** The connection ended before any byte of a response. */
export class Unanswered extends Failure {
  constructor() {
    super('connection_closed');
  }
}

export const TIMEOUT_REASON: Readonly<Record<Stage, FailureReason>> = {
  resolve: 'dns_timeout',
  connect: 'connect_timeout',
  tls: 'tls_timeout',
  request: 'response_timeout',
  response: 'response_timeout',
};

/** For error codes without a reason of their own. */
const DEFAULT_REASON: Readonly<Record<Stage, FailureReason>> = {
  resolve: 'dns_failure',
  connect: 'connection_failed',
  tls: 'tls_failed',
  request: 'connection_closed',
  response: 'connection_closed',
};

const TIMEOUT_CODES: ReadonlySet<string> = new Set(['ETIMEDOUT', 'ETIMEOUT', 'ECANCELLED']);
const CLOSED_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);

export function failureOf(stage: Stage, error: unknown): Failure {
  return new Failure(reasonOf(stage, (error as NodeJS.ErrnoException).code ?? ''));
}

function reasonOf(stage: Stage, code: string): FailureReason {
  if (TIMEOUT_CODES.has(code)) return TIMEOUT_REASON[stage];
  if (stage === 'connect' && code === 'ECONNREFUSED') return 'connection_refused';
  if (stage === 'tls' && CLOSED_CODES.has(code)) return 'connection_closed';
  // In TLS 1.3 the server can reject the handshake after the client has finished it: its alert replaces the response.
  if (code.startsWith('ERR_SSL_') || code === 'EPROTO') return 'tls_failed';
  if (code.startsWith('HPE_')) return 'response_invalid';
  return DEFAULT_REASON[stage];
}

const CERTIFICATE_FAULTS: Readonly<Record<string, FailureReason>> = {
  CERT_HAS_EXPIRED: 'certificate_expired',
  CERT_NOT_YET_VALID: 'certificate_not_yet_valid',
  ERR_TLS_CERT_ALTNAME_INVALID: 'certificate_wrong_host',
};

/** Maps Node's verification error code. Most of the thirty or so are about the chain. */
export const certificateFailure = (code: string): Failure =>
  new Failure(CERTIFICATE_FAULTS[code] ?? 'certificate_untrusted');
