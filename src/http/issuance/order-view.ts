// The JSON of orders and certificates, with the fields that clients of this API family expect.
import { domainToUnicode } from 'node:url';
import {
  CANCELLATION_REASONS,
  type Cancellation,
  type CertificateRecord,
  type IssuedCertificate,
  statusOf,
} from '../../domain/certificate/certificate.ts';
import type { Order } from '../../domain/certificate/order.ts';
import { pem } from '../../domain/certificate/pem.ts';
import { inLocale, type Locale } from '../../kernel/locale.ts';
import type { ShownOrder } from '../../usecases/issuance/show-orders.ts';
import type { NameState, ValidationState } from '../../usecases/validation/show-validation.ts';
import { moment } from '../front/values.ts';
import { scheduleView } from '../revocation/revocation-view.ts';

export const summaryOf = (order: Order) => ({
  id: order.id,
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
  created_at: moment(order.createdAt),
  term_ends_at: moment(order.termEndsAt),
});

export const orderView = ({ order, certificate, canceled, validation, scheduled }: ShownOrder, locale: Locale) => ({
  ...summaryOf(order),
  certificate: certificate ? contentOf(certificate) : null,
  canceled: canceled ? { certificate_id: canceled.certificateId, ...cancellationView(canceled, locale) } : null,
  revocations: scheduled.map((one) => ({ certificate_id: one.certificateId, ...scheduleView(one) })),
  ...validationView(order, validation, locale),
});

/** The name as people read it. The A-labels beside it tell names apart that look alike. */
const unicodeOf = (name: string): string => (name.includes('xn--') ? domainToUnicode(name) : name);

export const contentOf = (certificate: CertificateRecord) => ({
  id: certificate.id,
  status: statusOf(certificate),
  common_name: certificate.commonName,
  common_name_unicode: certificate.commonName === null ? null : unicodeOf(certificate.commonName),
  dns_names: certificate.names,
  dns_names_unicode: certificate.names.map(unicodeOf),
  csr: certificate.csr,
  pem: certificate.state === 'issued' ? pem('CERTIFICATE', certificate.der) : null,
});

export const cancellationView = ({ reason, at }: Cancellation, locale: Locale) => ({
  reason,
  message: inLocale(CANCELLATION_REASONS[reason], locale),
  canceled_at: moment(at),
});

/** The encryption half of a dual certificate, with its private key for the holder of the signing key. */
export const encryptionOf = ({ encryption }: IssuedCertificate) =>
  encryption && {
    encryption_pem: pem('CERTIFICATE', encryption.der),
    encryption_serial_number: encryption.serial,
    encryption_key_envelope: Buffer.from(encryption.envelope).toString('base64'),
  };

/** Clients of the family read strings here: absent values are empty. */
const nameView = (order: Order, { name, challenge, isVerified, finding }: NameState, locale: Locale) => ({
  domain: name,
  domain_unicode: unicodeOf(name),
  dcv_method: order.dcvMethod ?? '',
  auth_path: challenge?.path ?? '',
  auth_val: challenge?.value ?? '',
  approval_email: '',
  verified: isVerified,
  problem: finding && {
    result: finding.problem,
    message: inLocale(finding.reason, locale),
    checked_at: moment(finding.at),
  },
});

const validationView = (order: Order, { names, waiting }: ValidationState, locale: Locale) => ({
  dcv_val: names.map((one) => nameView(order, one, locale)),
  dcv_next_check_at: moment(waiting?.dueAt),
  dcv_expires_at: moment(waiting?.expiresAt),
});
