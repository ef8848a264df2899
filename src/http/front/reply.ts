// The envelope of every response: {"code":"success","data":…} or {"code","message","field"?,"details"?,"request_id"}.
import Type from 'typebox';
import { type ErrorCode, Refusal } from '../../domain/errors.ts';
import type { Locale, Localized } from '../../kernel/locale.ts';
import { ERROR_TABLE, messageOf } from './error-table.ts';

export interface ErrorResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: {
    code: keyof typeof ERROR_TABLE;
    message: string;
    field?: string;
    details?: Readonly<Record<string, unknown>>;
    request_id: string;
  };
}

export const success = <T>(data: T): { code: 'success'; data: T } => ({ code: 'success', data });

export function errorResponse(refusal: Refusal, locale: Locale, requestId: string): ErrorResponse {
  const { field, details, retryAfterSeconds } = refusal.facts;
  const isTransport = refusal instanceof TransportRefusal;
  return {
    status: isTransport ? refusal.status : ERROR_TABLE[refusal.code].status,
    headers: {
      ...(isTransport && refusal.headers),
      ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
    },
    body: {
      code: refusal.code,
      message: messageOf(refusal, locale),
      ...(field !== undefined && { field }),
      ...(details && { details }),
      request_id: requestId,
    },
  };
}

/** An error in the HTTP message itself. Its status takes precedence over the error table's. */
export class TransportRefusal extends Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: ErrorCode, reason?: Localized, headers = {}) {
    super(code, { ...(reason && { reason }) });
    this.status = status;
    this.headers = headers;
  }
}

/** What an error is serialized by. The document has a schema per code, with its details. */
const ErrorBody = Type.Object({
  code: Type.String(),
  message: Type.String(),
  field: Type.Optional(Type.String()),
  details: Type.Optional(Type.Object({}, { additionalProperties: true })),
  request_id: Type.String(),
});

/** Response schemas of an operation: its data on success, named in the document, and the error envelope otherwise. */
export const answers = <T extends Type.TSchema>(name: string, data: T) => ({
  200: Type.Object({ code: Type.Literal('success'), data }, { title: `${name}Response` }),
  default: ErrorBody,
});
