// Everything that goes wrong is one class. Its `code` says what happened, and narrows the type of `details`.
import type { components } from './openapi.ts';

type Schemas = components['schemas'];

/** The errors of the document, a type per code. */
type ServiceError = {
  [S in keyof Schemas]: Schemas[S] extends { code: infer C extends string; message: string; request_id: string }
    ? string extends C
      ? never
      : Schemas[S]
    : never;
}[keyof Schemas];

export type ServiceErrorCode = ServiceError['code'];

type SigningError = {
  [S in keyof Schemas]: Schemas[S] extends { error: string; error_description: string } ? Schemas[S] : never;
}[keyof Schemas];

/** Why a callback was not accepted. */
export type RejectionReason =
  | 'header_missing'
  | 'access_key_wrong'
  | 'timestamp_outside_tolerance'
  | 'signature_wrong'
  | 'body_invalid';

/** What is not an answer of the document. */
type ClientError =
  /** No answer, or half of one: whether the service acted is not known. `cause` has the reason. */
  | { code: 'network_error' }
  /** No answer within the limits: whether the service acted is not known. */
  | { code: 'timeout' }
  /** Not described by the document: of a proxy, or a code of another version of the service. */
  | { code: 'unexpected_response'; details: { readonly code: string | null; readonly excerpt: string } }
  /** The signing API has errors of its own. */
  | { code: 'signing_error'; details: SigningError }
  | { code: 'callback_rejected'; details: { readonly reason: RejectionReason; readonly header: string | null } };

type DetailsOf<E> = 'details' extends keyof E ? E['details' & keyof E] : undefined;

interface Facts<Code, Details> {
  readonly code: Code;
  /** For people, in English or Chinese. Never decide by it. */
  readonly message: string;
  readonly details: Details;
  /** The request field at fault. */
  readonly field: string | undefined;
  /** The HTTP status; null without an answer. */
  readonly status: number | null;
  /** To quote in questions to the operator; null if no answer had one. */
  readonly requestId: string | null;
  /** Seconds after which to try again, if the answer says so. */
  readonly retryAfter: number | null;
  readonly cause?: unknown;
}

type FactsOf<E> = E extends { code: infer C } ? Facts<C, DetailsOf<E>> : never;
export type ErrorFacts = FactsOf<ServiceError> | FactsOf<ClientError>;

/** A union, so that a comparison of `code` narrows `details`. */
export type ResealError = Error & ErrorFacts;

class FactualError extends Error {
  readonly code: ErrorFacts['code'];
  readonly status: number | null;
  readonly requestId: string | null;
  readonly retryAfter: number | null;
  readonly field: string | undefined;
  readonly details: ErrorFacts['details'];

  constructor({ code, message, status, requestId, retryAfter, field, details, cause }: ErrorFacts) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
    this.field = field;
    this.details = details;
  }
}
// On the prototype: an own property would be printed among the facts.
Object.defineProperty(FactualError.prototype, 'name', { value: 'ResealError' });

interface ResealErrorClass {
  // `instanceof` narrows to the type of this property.
  readonly prototype: ResealError;
  new (facts: ErrorFacts): ResealError;
}
// A class cannot be a union. Its constructor takes a member of the union, code and details together, so every instance is one.
export const ResealError = FactualError as ResealErrorClass;
