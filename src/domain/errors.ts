// Every error code the service returns. Use cases and adapters throw a Refusal with a code; only http/front/error-table.ts
// maps a code to its HTTP status and message.
import type { Localized } from '../kernel/locale.ts';

/** The nine codes that the interface specification defines. */
export type SpecifiedErrorCode =
  | 'request_too_fast'
  | 'invalid_parameters'
  | 'invalid_callback_url'
  | 'callback_url_not_https'
  | 'callback_not_configured'
  | 'callback_send_error'
  | 'callback_response_not_200'
  | 'callback_private_domain'
  | 'permission_denied';

/** Codes of our own, where the specification is silent. Established names of the API family are preferred. */
export type ChosenErrorCode =
  | 'invalid_csr'
  | 'invalid_domain'
  | 'invalid_sans'
  | 'invalid_dcv_method'
  | 'unauthenticated_request'
  | 'api_key_disabled'
  | 'account_suspended'
  | 'quota_exceeded'
  | 'route_not_found'
  | 'order_not_found'
  | 'product_not_found'
  | 'cert_not_found'
  | 'account_not_found'
  | 'key_not_found'
  | 'cloud_key_not_found'
  | 'delivery_not_found'
  | 'session_not_found'
  | 'operator_not_found'
  | 'callback_paused'
  | 'sign_key_pin_wrong'
  | 'sign_key_locked'
  | 'method_not_allowed'
  | 'remove_domain_not_confirmed'
  | 'revoke_last_cert_not_confirmed'
  | 'reissue_in_progress'
  | 'order_state_conflict'
  | 'revocation_state_conflict'
  | 'duplicate_alternative_order_id'
  | 'cancel_not_allowed'
  | 'idempotency_key_reused'
  | 'lint_refused'
  | 'service_internal_error'
  | 'service_busy';

export type ErrorCode = SpecifiedErrorCode | ChosenErrorCode;

interface RefusalFacts {
  /** The invalid request field, spelled as on the wire: `certificate.sign_hash`. */
  readonly field?: string;
  /** What is wrong and what to do, where the code's general message is too vague. */
  readonly reason?: Localized;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly facts: RefusalFacts;

  constructor(code: ErrorCode, facts: RefusalFacts = {}) {
    super(facts.reason?.en ?? code, { cause: facts.cause });
    this.code = code;
    this.facts = facts;
  }
}

/** `invalid_parameters` that names the field, the reason and the remedy, in both languages. */
export const invalid = (field: string, en: string, zh: string): Refusal =>
  new Refusal('invalid_parameters', { field, reason: { en, zh } });
