// Decides which names a certificate gets: those requested, whether they can be certified, and whether the product lets
// them differ from the previous ones. Consent to losing a name is checked by the caller.

import type { NameChange, Product } from '../catalog/products.ts';
import type { ProductKind } from '../certificate/authority.ts';
import {
  certifiedName,
  combineNames,
  differenceOf,
  MAX_NAMES,
  type NameRules,
  type RegistrableDomain,
  requireCertifiable,
  requireMaxNames,
  spelledName,
} from '../certificate/names.ts';
import { invalid, Refusal } from '../errors.ts';
import type { CertificateRequest, IssuanceContext, NameChanges, PreviousCertificate } from './request.ts';

const COMMON_NAME = 'certificate.common_name';
const DNS_NAMES = 'certificate.dns_names';

/**
 * The names a request mentions, for look-ups that are made before it is decided: their proofs may be needed, and
 * certificates with a current name that is not among them may be revoked. Never throws: an invalid name matches nothing
 * here and is refused by `requestedNames`.
 */
export function mentionedNames(request: CertificateRequest, kind: ProductKind, current: readonly string[]): string[] {
  const commonName = kind === 'ssl' && request.commonName ? spelledName(request.commonName) : undefined;
  return combineNames(commonName, request.dnsNames?.slice(0, MAX_NAMES).map(spelledName), current);
}

export function requestedNames(request: CertificateRequest, context: IssuanceContext): NameChanges {
  const { product, previous } = context;
  const isSsl = product.kind === 'ssl';
  // Counted as sent, before any is parsed: a body may hold thousands of strings.
  requireMaxNames(request.dnsNames ?? [], DNS_NAMES);
  if (!isSsl && request.dnsNames && request.dnsNames.length > 0) throw noNames();
  const commonName = isSsl ? certifiedName(request.commonName ?? '', COMMON_NAME) : holderName(request, previous);
  const dnsNames = request.dnsNames?.map((name, index) => certifiedName(name, `${DNS_NAMES}.${index}`));
  const before = previous?.names ?? [];
  const names = combineNames(isSsl ? (commonName ?? undefined) : undefined, dnsNames, before);
  requireAllCertifiable(names, dnsNames ?? [], context);
  requireMaxNames(names, DNS_NAMES);
  const change = differenceOf(before, names);
  // The first certificate chooses its names freely.
  if (previous) requireAllowed(product.namesMayChange, change.added, change.removed);
  return { commonName, names, ...change };
}

const noNames = (): Refusal =>
  new Refusal('invalid_sans', {
    field: DNS_NAMES,
    reason: {
      en: 'This product certifies a holder, not DNS names. Leave dns_names out.',
      zh: '该产品认证的是持有者而非域名，请不发送 dns_names。',
    },
  });

/** What the product can certify. */
export const nameRules = (product: Product, registrableDomain: RegistrableDomain): NameRules => ({
  allowsWildcard: product.allowsWildcard,
  isPublicTrust: product.trust === 'public',
  privateNames: product.privateNames,
  registrableDomain,
});

/** Kept names too: a reissue is an issuance, and every rule applies again. */
function requireAllCertifiable(names: readonly string[], dnsNames: readonly string[], context: IssuanceContext): void {
  const { product, registrableDomain } = context;
  const rules = nameRules(product, registrableDomain);
  for (const [index, name] of names.entries()) {
    const sentAt = dnsNames.indexOf(name);
    const isCommonName = index === 0 && product.kind === 'ssl';
    requireCertifiable(name, rules, isCommonName ? COMMON_NAME : sentAt < 0 ? DNS_NAMES : `${DNS_NAMES}.${sentAt}`);
  }
}

function requireAllowed(change: NameChange, added: readonly string[], removed: readonly string[]): void {
  const refused = [...(change === 'none' ? added : []), ...(change === 'any' ? [] : removed)];
  if (refused.length === 0) return;
  throw new Refusal('invalid_sans', {
    field: DNS_NAMES,
    reason:
      change === 'none'
        ? {
            en: 'The names of this product are fixed. Send those of the current certificate, or leave dns_names out.',
            zh: '该产品的域名不可变更，请发送当前证书的域名，或不发送 dns_names。',
          }
        : {
            en: 'Names of this product can be added, not removed. Send the current ones too, or leave dns_names out.',
            zh: '该产品的域名只能增加，不能移除，请同时发送现有域名，或不发送 dns_names。',
          },
    details: { added_names: added, removed_names: removed },
  });
}

/** X.520 gives a common name 64 characters; in a certificate without DNS names it is the only name. */
const MAX_HOLDER_NAME = 64;

/**
 * The holder's name in a signing certificate. The operator vouches for it when the order is placed, and nothing here
 * could validate another, so a reissue may only repeat it or leave it out.
 */
export function holderName({ commonName }: CertificateRequest, previous: PreviousCertificate | null): string | null {
  const text = commonName?.trim() ?? '';
  if (previous) {
    if (!commonName || text === previous.commonName) return previous.commonName;
    throw new Refusal('invalid_sans', {
      field: COMMON_NAME,
      reason: {
        en: 'A reissue of this product keeps its common name. Leave common_name out, or place a new order.',
        zh: '该产品重签时名称不可变更，请不发送 common_name，或重新下单。',
      },
    });
  }
  if (text !== '' && [...text].length <= MAX_HOLDER_NAME && !/\p{C}/u.test(text)) return text;
  throw invalid(
    COMMON_NAME,
    `A signing certificate names its holder in 1 to ${MAX_HOLDER_NAME} printable characters.`,
    `签名证书的持有者名称须为 1 至 ${MAX_HOLDER_NAME} 个可打印字符。`,
  );
}
