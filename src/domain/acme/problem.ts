// Errors of the ACME interface (RFC 8555, 6.7). Codes of other capabilities that occur behind this door are mapped in
// http/acme/problem-table.ts, where each of these has its HTTP status.
import type { Localized } from '../../kernel/locale.ts';
import { Refusal } from '../errors.ts';

/** The registered error types; clients see them as urn:ietf:params:acme:error:TYPE. */
export type AcmeErrorType =
  | 'accountDoesNotExist'
  | 'alreadyReplaced'
  | 'alreadyRevoked'
  | 'badCSR'
  | 'badNonce'
  | 'badPublicKey'
  | 'badRevocationReason'
  | 'badSignatureAlgorithm'
  | 'caa'
  | 'compound'
  | 'connection'
  | 'dns'
  | 'externalAccountRequired'
  | 'incorrectResponse'
  | 'invalidContact'
  | 'invalidProfile'
  | 'malformed'
  | 'orderNotReady'
  | 'rateLimited'
  | 'rejectedIdentifier'
  | 'serverInternal'
  | 'tls'
  | 'unauthorized'
  | 'unsupportedContact'
  | 'unsupportedIdentifier'
  | 'userActionRequired';

/** Cases of a type that RFC 8555 gives another HTTP status. */
export type AcmeErrorCase = 'accountDeactivated' | 'keyInUse' | 'notFound' | 'unsupportedMediaType';

export type AcmeErrorCode = AcmeErrorType | AcmeErrorCase;

export interface AcmeIdentifier {
  readonly type: 'dns' | 'ip';
  readonly value: string;
}

export interface Subproblem {
  readonly type: AcmeErrorType;
  readonly detail: Localized;
  readonly identifier?: AcmeIdentifier;
}

interface ProblemFacts {
  readonly subproblems?: readonly Subproblem[];
  /** Supported algorithms, with `badSignatureAlgorithm`. */
  readonly algorithms?: readonly string[];
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

export class AcmeProblem extends Refusal {
  readonly acmeCode: AcmeErrorCode;
  readonly problem: ProblemFacts;

  constructor(acmeCode: AcmeErrorCode, detail: Localized, problem: ProblemFacts = {}) {
    const { retryAfterSeconds, cause } = problem;
    super('invalid_parameters', {
      reason: detail,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
      cause,
    });
    this.acmeCode = acmeCode;
    this.problem = problem;
  }
}

export const malformed = (en: string, zh: string): AcmeProblem => new AcmeProblem('malformed', { en, zh });
export const unauthorized = (en: string, zh: string): AcmeProblem => new AcmeProblem('unauthorized', { en, zh });
