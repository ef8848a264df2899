// The error responses of an operation in the OpenAPI document: one per status, with a schema per code, so that a client
// can tell by the code which details there are.
import Type from 'typebox';
import { KEY_TYPES } from '../../domain/certificate/public-key.ts';
import type { ErrorCode } from '../../domain/errors.ts';
import { LINT_SEVERITIES } from '../../domain/issuance/lint.ts';
import { CallbackReportView } from '../callbacks/callback-test-operation.ts';
import { ERROR_TABLE } from '../front/error-table.ts';
import { Int64, nullable, word } from '../front/values.ts';
import { SignHashWord } from '../issuance/certificate-fields.ts';
import { OrderStatusWord } from '../issuance/order-view.ts';

const Names = Type.Array(Type.String());
const ConsentDetails = Type.Object(
  {
    removed_names: Names,
    certificates: Type.Array(Type.String(), { description: 'Those that would be revoked; the first hundred.' }),
    certificates_in_all: Type.Optional(Type.Integer({ description: 'Only if there are more.' })),
  },
  { title: 'ConsentDetails' },
);

/** Codes whose answers have `details`: always, or where the cause has any. */
const DETAILS: Readonly<Partial<Record<ErrorCode, Type.TSchema>>> = {
  invalid_parameters: Type.Object(
    {
      served: Type.Optional(
        Type.Array(
          Type.Object({ key_type: word('KeyType', KEY_TYPES), sign_hash: SignHashWord }, { title: 'ServedKey' }),
          { description: 'Combinations of key and digest that can be asked for instead.' },
        ),
      ),
    },
    { title: 'InvalidParametersDetails' },
  ),
  invalid_sans: Type.Object(
    {
      added_names: Type.Optional(Names),
      removed_names: Type.Optional(Names),
      name: Type.Optional(Type.String({ description: 'That the certificate authority may not certify.' })),
      constraint: Type.Optional(
        Type.String({ description: 'The name constraint it breaks, such as permitted DNS:corp.example.com.' }),
      ),
    },
    { title: 'InvalidSansDetails' },
  ),
  quota_exceeded: Type.Object(
    { quota: Type.String({ enum: ['open_orders', 'stored_bytes'] }), used: Int64, limit: Int64 },
    { title: 'QuotaExceededDetails' },
  ),
  remove_domain_not_confirmed: ConsentDetails,
  revoke_last_cert_not_confirmed: ConsentDetails,
  reissue_in_progress: Type.Object(
    { certificate_id: nullable(Type.String({ description: 'The certificate that is pending.' })) },
    { title: 'ReissueInProgressDetails' },
  ),
  order_state_conflict: Type.Object({ status: OrderStatusWord }, { title: 'OrderStateConflictDetails' }),
  cancel_not_allowed: Type.Object({ status: OrderStatusWord }, { title: 'CancelNotAllowedDetails' }),
  duplicate_alternative_order_id: Type.Object(
    { order_id: Type.String({ description: 'The order that has it.' }) },
    { title: 'DuplicateAlternativeOrderIdDetails' },
  ),
  product_not_found: Type.Object(
    { products: Type.Array(Type.String(), { description: 'The ids of the products there are.' }) },
    { title: 'ProductNotFoundDetails' },
  ),
  lint_refused: Type.Object(
    {
      findings: Type.Array(
        Type.Object(
          {
            linter: Type.String(),
            severity: word('LintSeverity', LINT_SEVERITIES),
            code: Type.String({ description: 'The linter’s own name of the rule.' }),
            text: Type.String(),
          },
          { title: 'LintFinding' },
        ),
        { description: 'Worst first; the first fifty.' },
      ),
    },
    { title: 'LintRefusedDetails' },
  ),
  callback_send_error: CallbackReportView,
  callback_response_not_200: CallbackReportView,
};

const ALWAYS_DETAILED: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'remove_domain_not_confirmed',
  'revoke_last_cert_not_confirmed',
  'reissue_in_progress',
  'callback_send_error',
  'callback_response_not_200',
  'quota_exceeded',
  'product_not_found',
  'cancel_not_allowed',
  'lint_refused',
]);

const COMMON = {
  message: Type.String({ description: 'For people, in English or Chinese. Never decide by it.' }),
  field: Type.Optional(Type.String({ description: 'The request field at fault.' })),
  request_id: Type.String(),
};

/** What a client must be prepared for: within v3 codes may be added. */
export const OTHER_ERROR = Type.Object(
  { code: Type.String({ description: 'What programs decide by.' }), ...COMMON },
  { title: 'Error', description: 'Every error; those of an operation have a schema per code, some with `details`.' },
);

const pascalCase = (code: string): string => code.replace(/(^|_)(.)/g, (_, _start, letter) => letter.toUpperCase());

export function errorSchema(code: ErrorCode): Type.TSchema {
  const details = DETAILS[code];
  const fields = {
    code: Type.String({ enum: [code] }),
    ...COMMON,
    ...(details && { details: ALWAYS_DETAILED.has(code) ? details : Type.Optional(details) }),
  };
  const title = pascalCase(code).replace(/(?<!Error)$/, 'Error');
  return Type.Object(fields, { title, description: ERROR_TABLE[code].en });
}

/** The codes of an operation by status. */
export const byStatus = (codes: Iterable<ErrorCode>): Map<number, ErrorCode[]> =>
  Map.groupBy(codes, (code) => ERROR_TABLE[code].status);

/** Codes that say in Retry-After how long to wait. */
export const WAITING_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'request_too_fast',
  'sign_key_locked',
  'service_busy',
]);
