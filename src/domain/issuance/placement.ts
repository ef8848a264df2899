// Decides the first certificate of an order. Pure, and by the same rules as a reissue, except that there is no previous
// certificate: names are chosen freely, and a key of the caller needs a CSR whatever the product says about later ones.

import { DAY_MS } from '../../kernel/durations.ts';
import type { Product } from '../catalog/products.ts';
import type { Order } from '../certificate/order.ts';
import type { SubjectFields } from '../certificate/subject.ts';
import { addMonths } from '../certificate/validity.ts';
import { invalid, Refusal } from '../errors.ts';
import { domainValidation, requirePerspectives } from './domain-validation.ts';
import { keyAndIssuer, requireKeyAsOffered, requireSignHashOffered } from './key.ts';
import { holderName, requestedNames } from './names.ts';
import type { CertificatePlan, CertificateRequest, IssuanceContext, PlacementRequest } from './request.ts';

interface PlacementContext extends IssuanceContext {
  readonly previous: null;
  /** The operator vouches for what cannot be validated: the holder's name in a signing certificate. */
  readonly isVouchedFor: boolean;
}

/** A new order: its term, and the default way to validate its names. `months` shortens the product's term. */
export function newOrder(
  { id, accountId, alternativeId, subject }: Pick<Order, 'id' | 'accountId' | 'alternativeId' | 'subject'>,
  product: Product,
  now: number,
  months?: number,
): Order {
  return {
    id,
    accountId,
    productId: product.id,
    alternativeId,
    status: 'issuing',
    commonName: null,
    names: [],
    subject,
    dcvMethod: product.dcvMethods[0] ?? null,
    dcvScope: product.dcvScopes.includes('fqdn') ? 'fqdn' : (product.dcvScopes[0] ?? 'fqdn'),
    persistUntil: null,
    persistPolicy: 'fqdn',
    currentCertificateId: null,
    pendingCertificateId: null,
    createdAt: now,
    termEndsAt: Math.min(now + product.termDays * DAY_MS, months === undefined ? Infinity : addMonths(now, months)),
    revision: 1,
  };
}

const DAYS_OF_TWELVE_MONTHS = 365;
/** A month has 28 to 31 days: a term of 90 days is three months, however many days those have. */
const SHORTER_BY_DAYS = 3;

/** The certificate ends with the term at the latest, so this bounds both. */
export function requireMonths(months: number, { termDays }: Pick<Product, 'termDays'>): number {
  const most = Math.floor(((termDays + SHORTER_BY_DAYS) * 12) / DAYS_OF_TWELVE_MONTHS);
  if (Number.isInteger(months) && months >= 1 && months <= most) return months;
  throw most === 0
    ? invalid(
        'validity_months',
        `The term of this product is ${termDays} days, less than a month. Leave validity_months out.`,
        `该产品的期限为 ${termDays} 天，不足一个月，请不发送 validity_months。`,
      )
    : invalid(
        'validity_months',
        `validity_months is a whole number from 1 to ${most} for this product, or left out.`,
        `该产品的 validity_months 须为 1 至 ${most} 的整数，或不发送。`,
      );
}

export function withDefaults(request: PlacementRequest, { signHashes: [first] }: Product): CertificateRequest {
  // Every product names a digest (product-rules.ts).
  const signHash = request.signHash ?? first ?? 'sha256';
  return { ...request, signHash };
}

export function planPlacement(request: CertificateRequest, context: PlacementContext): CertificatePlan {
  const { product, isVouchedFor } = context;
  if (product.kind !== 'ssl') {
    if (!isVouchedFor) throw needsOperator();
    holderName(request, null);
  }
  requireSignHashOffered(request, context);
  if (product.kind === 'ssl' && !request.commonName) throw missing('certificate.common_name', 'common_name');
  if (request.keySource === 'caller' && !request.csr) throw missing('certificate.csr', 'csr');
  const source = requireKeyAsOffered(request, context);
  const names = requestedNames(request, context);
  const key = keyAndIssuer(source, request, context, names);
  requirePerspectives(context);
  return { ...names, ...key, ...domainValidation(request, context, names.names), revokes: [] };
}

/** The service cannot validate that a caller is the person or organization named. */
const needsOperator = (): Refusal =>
  new Refusal('permission_denied', {
    reason: {
      en: 'Orders of this product name a person or an organization, which the operator has to vouch for. Ask the operator to place it; reissue it yourself.',
      zh: '该产品的证书包含个人或机构名称，须由运营方核实。请联系运营方下单，之后可自行重签。',
    },
  });

/** Upper bound of X.520 for both. */
const MAX_ORGANIZATION = 64;

/** Null where nothing was given. Throws `invalid_parameters`, also for a product whose subjects are names of servers. */
export function requireSubject(given: SubjectFields, { kind }: Product): SubjectFields | null {
  const country = given.country;
  const organization = given.organization?.trim() ?? null;
  const organizationalUnit = given.organizationalUnit?.trim() ?? null;
  if (country === null && organization === null && organizationalUnit === null) return null;
  if (kind === 'ssl') {
    throw invalid(
      'organization',
      'This product certifies names of servers, and no organization. Leave organization, organizational unit and country out.',
      '该产品认证的是服务器域名而非机构，请不发送机构、部门和国家。',
    );
  }
  if (country !== null && !/^[A-Z]{2}$/.test(country)) {
    throw invalid(
      'country',
      'The country is its two capital letters of ISO 3166, such as DE.',
      '国家须为 ISO 3166 的两个大写字母，例如 CN。',
    );
  }
  requireText('organization', given.organization);
  requireText('organizational_unit', given.organizationalUnit);
  return { country, organization, organizationalUnit };
}

function requireText(field: string, text: string | null): void {
  if (text === null || (text.trim() !== '' && [...text].length <= MAX_ORGANIZATION && !/\p{C}/u.test(text))) return;
  throw invalid(
    field,
    `${field} has 1 to ${MAX_ORGANIZATION} printable characters.`,
    `${field} 须为 1 至 ${MAX_ORGANIZATION} 个可打印字符。`,
  );
}

export const MAX_ALTERNATIVE_ID = 64;

/** The customer's own id for an order; it is used in paths. */
export function requireAlternativeId(text: string): void {
  // One or two dots would be taken for a path segment.
  if (/^(?!\.{1,2}$)[\x21-\x7e]+$/.test(text) && text.length <= MAX_ALTERNATIVE_ID) return;
  throw invalid(
    'alternative_order_id',
    `alternative_order_id has 1 to ${MAX_ALTERNATIVE_ID} printable ASCII characters without blanks.`,
    `alternative_order_id 须为 1 至 ${MAX_ALTERNATIVE_ID} 个不含空格的可打印 ASCII 字符。`,
  );
}

const missing = (field: string, name: string): Refusal => invalid(field, `${name} is missing.`, `缺少 ${name}。`);
