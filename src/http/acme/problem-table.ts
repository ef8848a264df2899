// Problem documents (RFC 8555, 6.7; RFC 7807): the type and HTTP status of every error behind the ACME door.
import {
  type AcmeErrorCase,
  type AcmeErrorCode,
  type AcmeErrorType,
  AcmeProblem,
  type Subproblem,
} from '../../domain/acme/problem.ts';
import type { StoredProblem } from '../../domain/acme/stored-problem.ts';
import type { ErrorCode, Refusal } from '../../domain/errors.ts';
import { inLocale, type Locale } from '../../kernel/locale.ts';
import { messageOf } from '../front/error-table.ts';
import { TransportRefusal } from '../front/reply.ts';

const URN = 'urn:ietf:params:acme:error:';

interface Row {
  readonly type: AcmeErrorType;
  readonly status: number;
}

const STATUS: Readonly<Record<AcmeErrorType, number>> = {
  accountDoesNotExist: 400,
  alreadyReplaced: 409,
  alreadyRevoked: 400,
  badCSR: 400,
  badNonce: 400,
  badPublicKey: 400,
  badRevocationReason: 400,
  badSignatureAlgorithm: 400,
  caa: 403,
  compound: 400,
  connection: 400,
  dns: 400,
  externalAccountRequired: 403,
  incorrectResponse: 403,
  invalidContact: 400,
  invalidProfile: 400,
  malformed: 400,
  orderNotReady: 403,
  rateLimited: 429,
  rejectedIdentifier: 400,
  serverInternal: 500,
  tls: 400,
  unauthorized: 403,
  unsupportedContact: 400,
  unsupportedIdentifier: 400,
  userActionRequired: 403,
};

const CASES: Readonly<Record<AcmeErrorCase, Row>> = {
  accountDeactivated: { type: 'unauthorized', status: 401 },
  keyInUse: { type: 'malformed', status: 409 },
  notFound: { type: 'malformed', status: 404 },
  unsupportedMediaType: { type: 'malformed', status: 415 },
};

/** Codes of other capabilities. Those not listed are malformed, with the status they have. */
const OF_CODES: Readonly<Partial<Record<ErrorCode, Row>>> = {
  invalid_csr: { type: 'badCSR', status: 400 },
  invalid_domain: { type: 'rejectedIdentifier', status: 400 },
  invalid_sans: { type: 'rejectedIdentifier', status: 400 },
  account_suspended: { type: 'unauthorized', status: 403 },
  permission_denied: { type: 'unauthorized', status: 403 },
  order_not_found: { type: 'malformed', status: 404 },
  product_not_found: { type: 'malformed', status: 404 },
  cert_not_found: { type: 'malformed', status: 404 },
  route_not_found: { type: 'malformed', status: 404 },
  method_not_allowed: { type: 'malformed', status: 405 },
  quota_exceeded: { type: 'rateLimited', status: 429 },
  request_too_fast: { type: 'rateLimited', status: 429 },
  service_busy: { type: 'serverInternal', status: 503 },
  service_internal_error: { type: 'serverInternal', status: 500 },
};
const OTHERS: Row = { type: 'malformed', status: 400 };

const isCase = (code: AcmeErrorCode): code is AcmeErrorCase => Object.hasOwn(CASES, code);

function rowOf(refusal: Refusal): Row {
  if (!(refusal instanceof AcmeProblem)) return OF_CODES[refusal.code] ?? OTHERS;
  const { acmeCode: code } = refusal;
  return isCase(code) ? CASES[code] : { type: code, status: STATUS[code] };
}

export function problemResponse(refusal: Refusal, locale: Locale) {
  const { type, status: usual } = rowOf(refusal);
  const isTransport = refusal instanceof TransportRefusal;
  const status = isTransport ? refusal.status : usual;
  const { retryAfterSeconds } = refusal.facts;
  return {
    status,
    headers: {
      'content-type': 'application/problem+json',
      'content-language': locale,
      ...(isTransport && refusal.headers),
      ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
    },
    body: { ...problemDocument(refusal, locale), type: URN + type, status },
  };
}

/** An error as part of an answer, such as that of a challenge or an order. */
export function problemDocument(refusal: Refusal, locale: Locale) {
  const { subproblems, algorithms } = refusal instanceof AcmeProblem ? refusal.problem : {};
  return {
    type: URN + rowOf(refusal).type,
    detail: messageOf(refusal, locale),
    ...(algorithms && { algorithms }),
    ...(subproblems && { subproblems: subproblems.map((one) => subproblemView(one, locale)) }),
  };
}

const subproblemView = ({ type, detail, identifier }: Subproblem, locale: Locale) => ({
  type: URN + type,
  detail: inLocale(detail, locale),
  ...(identifier && { identifier }),
});

/** A problem that was recorded, as part of an order or a challenge. */
export const storedProblemView = ({ subproblems, ...problem }: StoredProblem, locale: Locale) => ({
  ...subproblemView(problem, locale),
  status: STATUS[problem.type],
  ...(subproblems && { subproblems: subproblems.map((one) => subproblemView(one, locale)) }),
});

/** The word of the log line and the metric. */
export const outcomeOf = (type: string): string => `acme:${type.slice(URN.length)}`;
