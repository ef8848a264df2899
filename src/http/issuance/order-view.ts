// The JSON of orders and certificates, with the fields that clients of this API family expect. The serializer sends what
// the schemas name, and nothing else.
import { domainToUnicode } from 'node:url';
import Type from 'typebox';
import {
  CANCELLATION_REASONS,
  type Cancellation,
  type CancellationReason,
  CERTIFICATE_STATUSES,
  type CertificateRecord,
  type IssuedCertificate,
  statusOf,
} from '../../domain/certificate/certificate.ts';
import { DCV_METHODS, type DcvMethod, ORDER_STATUSES, type Order } from '../../domain/certificate/order.ts';
import { pem } from '../../domain/certificate/pem.ts';
import type { SubjectFields } from '../../domain/certificate/subject.ts';
import { CHECK_PROBLEMS } from '../../domain/validation/check-result.ts';
import { inLocale, type Locale } from '../../kernel/locale.ts';
import type { ShownCertificate, ShownOrder } from '../../usecases/issuance/show-orders.ts';
import type { NameState, ValidationState } from '../../usecases/validation/show-validation.ts';
import { DateTime, Int64, list, moment, nullable, word } from '../front/values.ts';
import { RevocationView, revocationView, ScheduledRevocation, scheduleView } from '../revocation/revocation-view.ts';
import { Method, Policy, Scope } from './certificate-fields.ts';

const Pem = Type.String({ description: 'PEM; null until it is issued.' });

export const OrderStatusWord = word(
  'OrderStatus',
  ORDER_STATUSES,
  '`domain_verifing`: the first certificate waits for its names to be proven, or over ACME for its CSR. `reissuing`: another one does.',
);
/** What is certified about a holder beside the common name. */
const SUBJECT = {
  country: nullable(Type.String({ description: 'Of the holder, in the subject, as the operator placed the order.' })),
  organization: nullable(Type.String({ description: 'Likewise.' })),
  organizational_unit: nullable(Type.String({ description: 'Likewise.' })),
};
const subjectView = (subject: SubjectFields | null) => ({
  country: subject?.country ?? null,
  organization: subject?.organization ?? null,
  organizational_unit: subject?.organizationalUnit ?? null,
});

const SUMMARY = {
  id: Type.String(),
  order_id: Type.String({ description: 'The same as `id`.' }),
  product: Type.String(),
  alternative_order_id: nullable(Type.String({ description: 'Your own name for the order.' })),
  status: OrderStatusWord,
  common_name: nullable(Type.String()),
  dns_names: list(Type.String()),
  certificate_id: nullable(Type.String({ description: 'The current certificate.' })),
  pending_certificate_id: nullable(Type.String({ description: 'The certificate that waits for validation.' })),
  dcv_method: nullable(Method),
  dcv_scope: Scope,
  persist_until: nullable({ ...Int64, description: 'Unix seconds; null: no expiry.' }),
  persist_policy: Policy,
  created_at: DateTime,
  term_ends_at: DateTime,
  ...SUBJECT,
};
export const OrderSummary = Type.Object(SUMMARY, { title: 'OrderSummary' });

const CertificateStatus = word('CertificateStatus', CERTIFICATE_STATUSES);
const CANCELLATION = {
  reason: word('CancellationReason', Object.keys(CANCELLATION_REASONS) as CancellationReason[]),
  message: Type.String(),
  canceled_at: DateTime,
};

const CONTENT = {
  id: Type.String(),
  status: CertificateStatus,
  common_name: nullable(Type.String()),
  common_name_unicode: nullable(Type.String({ description: 'As people read it.' })),
  dns_names: list(Type.String()),
  dns_names_unicode: list(Type.String()),
  csr: nullable(Type.String({ description: 'As it was sent.' })),
  pem: nullable(Pem),
};

/** Clients of the family read strings here: absent values are empty. */
export const INSTRUCTION = {
  domain: Type.String(),
  dcv_method: Type.Unsafe<DcvMethod | ''>({ type: 'string', enum: [...DCV_METHODS, ''] }),
  auth_path: Type.String({
    description: 'Owner name of the TXT record, or path of the file. Empty: nothing to publish.',
  }),
  auth_val: Type.String({ description: 'The text to publish there.' }),
};
export const CachedUntil = {
  ...DateTime,
  description: 'Until when the resolver may repeat its answer without asking. Null: it asks again each time.',
};
const DcvRecord = Type.Object(
  {
    ...INSTRUCTION,
    domain_unicode: Type.String({ description: 'As people read it.' }),
    approval_email: Type.String(),
    verified: Type.Boolean(),
    problem: nullable(
      Type.Object(
        {
          result: word('CheckProblem', CHECK_PROBLEMS),
          message: Type.String(),
          checked_at: nullable(DateTime),
          cached_until: nullable(CachedUntil),
        },
        { title: 'DcvProblem' },
      ),
    ),
  },
  { title: 'DcvRecord' },
);

export const OrderView = Type.Object(
  {
    ...SUMMARY,
    certificate: nullable(Type.Object(CONTENT, { title: 'OrderCertificate' })),
    canceled: nullable(
      Type.Object(
        { certificate_id: Type.String(), ...CANCELLATION },
        { title: 'CanceledCertificate', description: 'The last one, if it ended without being issued.' },
      ),
    ),
    revocations: list(ScheduledRevocation, { description: 'Scheduled revocations, the next first.' }),
    acme_account: nullable(Type.String({ description: 'The ACME account that placed the order; null for any other.' })),
    replaces: nullable(Type.String({ description: 'The order whose certificate this one renews, over ACME.' })),
    replaced_by: nullable(
      Type.String({ description: 'The order that renews the certificate of this one, over ACME.' }),
    ),
    dcv_val: list(DcvRecord, { description: 'What to publish, the common name first. Stays when a name is proven.' }),
    dcv_vals: list(DcvRecord, { description: 'The same as `dcv_val`.' }),
    dcv_next_check_at: nullable(DateTime),
    dcv_expires_at: nullable(Type.String({ format: 'date-time', description: 'When the wait for proof ends.' })),
  },
  { title: 'Order' },
);

export const CertificateView = Type.Object(
  {
    ...CONTENT,
    order_id: Type.String(),
    ...SUBJECT,
    canceled: nullable(Type.Object(CANCELLATION, { title: 'Cancellation' })),
    ica_pem: Type.String({
      description:
        'What a server sends after its certificate, PEM: the issuers below the root. Empty until it is issued.',
    }),
    root_pem: Type.String({ description: 'The root, PEM, which verifiers have. Empty until it is issued.' }),
    encryption_pem: Type.Optional(Type.String({ description: 'Of a dual certificate: its encryption half.' })),
    encryption_serial_number: Type.Optional(Type.String()),
    encryption_key_envelope: Type.Optional(
      Type.String({
        description: 'Base64 of an SM2EnvelopedKey: the encryption key, for the holder of the signing key.',
      }),
    ),
    cloud_key_id: nullable(Type.String()),
    serial_number: nullable(Type.String({ description: 'Lower-case hexadecimal.' })),
    not_before: nullable(DateTime),
    not_after: nullable(DateTime),
    version: nullable(Type.Integer({ description: '1, 2, 3 … within the order.' })),
    replaces: nullable(Type.String()),
    replaced_by: nullable(Type.String()),
    history: list(
      Type.Object(
        {
          id: Type.String(),
          status: CertificateStatus,
          version: nullable(Type.Integer()),
          replaces: nullable(Type.String()),
        },
        { title: 'CertificateSummary' },
      ),
      { description: 'The last hundred certificates of the order, the oldest first.' },
    ),
    revocation: nullable(RevocationView),
  },
  { title: 'Certificate' },
);

export const summaryOf = (order: Order): Type.Static<typeof OrderSummary> => ({
  id: order.id,
  order_id: order.id,
  product: order.productId,
  alternative_order_id: order.alternativeId,
  status: order.status,
  common_name: order.commonName,
  dns_names: order.names,
  certificate_id: order.currentCertificateId,
  pending_certificate_id: order.pendingCertificateId,
  dcv_method: order.dcvMethod,
  dcv_scope: order.dcvScope,
  persist_until: order.persistUntil,
  persist_policy: order.persistPolicy,
  created_at: new Date(order.createdAt).toISOString(),
  term_ends_at: new Date(order.termEndsAt).toISOString(),
  ...subjectView(order.subject),
});

export const orderView = (
  { order, certificate, canceled, validation, scheduled, acme }: ShownOrder,
  locale: Locale,
): Type.Static<typeof OrderView> => ({
  ...summaryOf(order),
  certificate: certificate ? contentOf(certificate) : null,
  canceled: canceled ? { certificate_id: canceled.certificateId, ...cancellationView(canceled, locale) } : null,
  revocations: scheduled.map((one) => ({ certificate_id: one.certificateId, ...scheduleView(one) })),
  acme_account: acme?.accountUrl ?? null,
  replaces: acme?.replaces ?? null,
  replaced_by: acme?.replacedBy ?? null,
  ...validationView(order, validation, locale),
});

/** The name as people read it. The A-labels beside it tell names apart that look alike. */
const unicodeOf = (name: string): string => (name.includes('xn--') ? domainToUnicode(name) : name);

const contentOf = (certificate: CertificateRecord) => ({
  id: certificate.id,
  status: statusOf(certificate),
  common_name: certificate.commonName,
  common_name_unicode: certificate.commonName === null ? null : unicodeOf(certificate.commonName),
  dns_names: certificate.names,
  dns_names_unicode: certificate.names.map(unicodeOf),
  csr: certificate.csr,
  pem: certificate.state === 'issued' ? pem('CERTIFICATE', certificate.der) : null,
});

const pems = (certificates: readonly Uint8Array[]): string =>
  certificates.map((one) => pem('CERTIFICATE', one)).join('');

const cancellationView = ({ reason, at }: Cancellation, locale: Locale) => ({
  reason,
  message: inLocale(CANCELLATION_REASONS[reason], locale),
  canceled_at: new Date(at).toISOString(),
});

export function certificateView(
  { certificate, subject, replacedBy, history, seen }: ShownCertificate,
  chain: readonly Uint8Array[],
  locale: Locale,
): Type.Static<typeof CertificateView> {
  const issued = certificate.state === 'issued' ? certificate : null;
  const dates = 'preparation' in certificate ? certificate.preparation : null;
  return {
    ...contentOf(certificate),
    order_id: certificate.orderId,
    ...subjectView(subject),
    canceled:
      certificate.state === 'canceled' && certificate.cancellation
        ? cancellationView(certificate.cancellation, locale)
        : null,
    ica_pem: pems(chain.slice(0, -1)),
    root_pem: pems(chain.slice(-1)),
    ...(issued && encryptionOf(issued)),
    cloud_key_id: certificate.cloudKeyId,
    serial_number: issued?.preparation.serial ?? null,
    not_before: moment(dates?.notBefore),
    not_after: moment(dates?.notAfter),
    version: issued?.version ?? null,
    replaces: issued?.replacesId ?? null,
    replaced_by: replacedBy,
    history: history.map(({ id, status, version, replacesId }) => ({ id, status, version, replaces: replacesId })),
    revocation: revocationView(certificate, seen),
  };
}

/** The encryption half of a dual certificate, with its private key for the holder of the signing key. */
const encryptionOf = ({ encryption }: IssuedCertificate) =>
  encryption && {
    encryption_pem: pem('CERTIFICATE', encryption.der),
    encryption_serial_number: encryption.serial,
    encryption_key_envelope: Buffer.from(encryption.envelope).toString('base64'),
  };

const nameView = (order: Order, { name, challenge, isVerified, finding }: NameState, locale: Locale) => ({
  domain: name,
  domain_unicode: unicodeOf(name),
  dcv_method: order.dcvMethod ?? ('' as const),
  auth_path: challenge?.path ?? '',
  auth_val: challenge?.value ?? '',
  approval_email: '',
  verified: isVerified,
  problem: finding && {
    result: finding.problem,
    message: inLocale(finding.reason, locale),
    checked_at: moment(finding.at),
    cached_until: moment(finding.cachedUntil),
  },
});

function validationView(order: Order, { names, waiting }: ValidationState, locale: Locale) {
  const records = names.map((one) => nameView(order, one, locale));
  return {
    dcv_val: records,
    dcv_vals: records,
    dcv_next_check_at: moment(waiting?.dueAt),
    dcv_expires_at: moment(waiting?.expiresAt),
  };
}
