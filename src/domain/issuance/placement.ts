// Decides the first certificate of an order. Pure, and by the same rules as a reissue, with two differences: there is
// nothing to compare the names with, and a CSR is needed whatever the product says about later ones.

import type { Product } from '../catalog/products.ts';
import type { Order } from '../certificate/order.ts';
import { NO_KEY } from '../certificate/public-key.ts';
import { invalid, Refusal } from '../errors.ts';
import type { AccountId } from '../ids.ts';
import { domainValidation } from './domain-validation.ts';
import { keyAndIssuer, requireKeyAsOffered, requireSignHashOffered } from './key.ts';
import { changedNames } from './names.ts';
import { validityFor } from './reissue.ts';
import type { ReissueContext, ReissuePlan, ReissueRequest } from './request.ts';

export type PlacementContext = Omit<ReissueContext, 'order' | 'current' | 'earlier'> & {
  /** An operator answers for what cannot be proven: the name in a signing certificate. */
  readonly isVouchedFor: boolean;
};

const DAY_MS = 86_400_000;
/** X.520 gives a common name 64 characters; without DNS names it is all there is. */
const MAX_SUBJECT = 64;

/** What the order begins as: its term, and how its names will be proven unless it says otherwise. */
export function newOrder(
  id: string,
  accountId: AccountId,
  product: Product,
  alternativeId: string | null,
  now: number,
): Order {
  return {
    id,
    accountId,
    productId: product.id,
    alternativeId,
    status: 'issuing',
    commonName: null,
    names: [],
    dcvMethod: product.dcvMethods[0] ?? null,
    dcvScope: product.dcvScopes.includes('fqdn') ? 'fqdn' : (product.dcvScopes[0] ?? 'fqdn'),
    persistUntil: null,
    persistPolicy: 'fqdn',
    currentCertificateId: null,
    pendingCertificateId: null,
    createdAt: now,
    termEndsAt: now + product.termDays * DAY_MS,
    revision: 1,
  };
}

export function planPlacement(request: ReissueRequest, order: Order, given: PlacementContext): ReissuePlan {
  const { product } = given;
  if (product.kind !== 'ssl' && !given.isVouchedFor) throw needsOperator();
  const subject = product.kind === 'ssl' ? null : subjectOf(request.commonName);
  // Names are free to choose once; whether they may change is a question for reissues.
  const anyNames = { ...product, namesMayChange: 'any' as const };
  const nothing = { id: '', commonName: subject, names: [], publicKey: NO_KEY, version: 0, isStillValid: false };
  const context: ReissueContext = { ...given, product: anyNames, order, current: nothing, earlier: [] };
  requireSignHashOffered(request, context);
  if (product.kind === 'ssl' && !request.commonName) throw missing('certificate.common_name', 'common_name');
  if (request.keySource === 'caller' && !request.csr) throw missing('certificate.csr', 'csr');
  const source = requireKeyAsOffered(request, { ...context, product: { ...anyNames, csr: 'required' } });
  const names = changedNames(request, context);
  const { publicKey, issuer } = keyAndIssuer(source, request, context);
  const validity = validityFor(request, issuer, context);
  const needsValidation = names.names.filter((name) => !given.validatedNames.has(name));
  const dcv = domainValidation(request, context, needsValidation);
  return {
    ...names,
    ...validity,
    publicKey,
    issuerId: issuer.id,
    signHash: request.signHash,
    needsValidation,
    revokes: [],
    missingConsents: [],
    dcv,
  };
}

/** Nobody here can prove that a caller is who the certificate would say. */
const needsOperator = (): Refusal =>
  new Refusal('permission_denied', {
    reason: {
      en: 'Orders of this product name a person or an organization, which the operator has to vouch for. Ask the operator to place it; reissue it yourself.',
      zh: '该产品的证书包含个人或机构名称，须由运营方核实。请联系运营方下单，之后可自行重签。',
    },
  });

const MAX_ALTERNATIVE_ID = 64;

/** The customer's own name for an order; it travels in paths too. */
export function requireAlternativeId(text: string): void {
  // One or two dots would be taken for a step in a path.
  if (/^(?!\.{1,2}$)[\x21-\x7e]+$/.test(text) && text.length <= MAX_ALTERNATIVE_ID) return;
  throw invalid(
    'alternative_order_id',
    `alternative_order_id has 1 to ${MAX_ALTERNATIVE_ID} printable ASCII characters without blanks.`,
    `alternative_order_id 须为 1 至 ${MAX_ALTERNATIVE_ID} 个不含空格的可打印 ASCII 字符。`,
  );
}

function subjectOf(commonName: string | undefined): string {
  const text = commonName?.trim() ?? '';
  if (text !== '' && [...text].length <= MAX_SUBJECT && !/\p{C}/u.test(text)) return text;
  throw invalid(
    'certificate.common_name',
    `A signing certificate names its holder in 1 to ${MAX_SUBJECT} printable characters.`,
    `签名证书的持有者名称须为 1 至 ${MAX_SUBJECT} 个可打印字符。`,
  );
}

const missing = (field: string, name: string): Refusal => invalid(field, `${name} is missing.`, `缺少 ${name}。`);
