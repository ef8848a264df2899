// Why a call failed, told by how far it had come and by the code of the error, never by its text: the same reset means
// something else before the handshake than after the request.
import type { FailureReason, Stage } from '../../domain/egress/outbound.ts';

/** Ends an attempt; whoever catches it already knows how far the attempt had come. */
export class Failure extends Error {
  readonly reason: FailureReason;

  constructor(reason: FailureReason) {
    super(reason);
    this.reason = reason;
  }
}

export const TIMED_OUT: Readonly<Record<Stage, FailureReason>> = {
  resolve: 'dns_timeout',
  connect: 'connect_timeout',
  tls: 'tls_timeout',
  request: 'response_timeout',
  response: 'response_timeout',
};

/** What an error of a stage means when its code does not say more. */
const OTHERWISE: Readonly<Record<Stage, FailureReason>> = {
  resolve: 'dns_failure',
  connect: 'connection_failed',
  tls: 'tls_failed',
  request: 'connection_closed',
  response: 'connection_closed',
};

const TIME_OUTS: ReadonlySet<string> = new Set(['ETIMEDOUT', 'ETIMEOUT', 'ECANCELLED']);
const CLOSED: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);

export function failureOf(stage: Stage, error: unknown): Failure {
  return new Failure(reasonOf(stage, (error as NodeJS.ErrnoException).code ?? ''));
}

function reasonOf(stage: Stage, code: string): FailureReason {
  if (TIME_OUTS.has(code)) return TIMED_OUT[stage];
  if (stage === 'connect' && code === 'ECONNREFUSED') return 'connection_refused';
  if (stage === 'tls' && CLOSED.has(code)) return 'connection_closed';
  // In TLS 1.3 a receiver refuses us after we believe to be connected, so its alert arrives in place of an answer.
  if (code.startsWith('ERR_SSL_') || code === 'EPROTO') return 'tls_failed';
  if (code.startsWith('HPE_')) return 'response_invalid';
  return OTHERWISE[stage];
}

const CERTIFICATE_FAULTS: Readonly<Record<string, FailureReason>> = {
  CERT_HAS_EXPIRED: 'certificate_expired',
  CERT_NOT_YET_VALID: 'certificate_not_yet_valid',
  ERR_TLS_CERT_ALTNAME_INVALID: 'certificate_wrong_host',
};

/** For the code that Node keeps of a certificate it did not accept. There are some thirty, most of them about the chain. */
export const certificateFailure = (code: string): Failure =>
  new Failure(CERTIFICATE_FAULTS[code] ?? 'certificate_untrusted');
