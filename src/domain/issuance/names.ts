// Which names a reissue asks for, whether they can be certified, and whether the product lets them differ from the
// current ones. Whether the caller agreed to lose a name is asked afterwards (reissue-consents.ts).

import type { NameChange } from '../catalog/products.ts';
import type { ProductKind } from '../certificate/authority.ts';
import {
  differenceOf,
  dnsName,
  MAX_NAMES,
  type NameRules,
  requireCertifiable,
  requireFewEnough,
  wantedNames,
} from '../certificate/names.ts';
import { Refusal } from '../errors.ts';
import type { NameChanges, ReissueContext, ReissueRequest } from './request.ts';

const COMMON_NAME = 'certificate.common_name';
const DNS_NAMES = 'certificate.dns_names';

/**
 * The names a request speaks of, for look-ups that must be made before it is decided: proofs of these may be needed,
 * and certificates with a current name that is not among them may be revoked. Never refuses: what is no name finds
 * nothing, and is refused when its turn comes.
 */
export function mentionedNames(request: ReissueRequest, kind: ProductKind, current: readonly string[]): string[] {
  const spelled = (text: string): string => text.toLowerCase().replace(/\.$/, '');
  const commonName = kind === 'ssl' && request.commonName ? spelled(request.commonName) : undefined;
  return wantedNames(commonName, request.dnsNames?.slice(0, MAX_NAMES).map(spelled), current);
}

export function changedNames(request: ReissueRequest, context: ReissueContext): NameChanges {
  const { product, current } = context;
  const isSsl = product.kind === 'ssl';
  // As sent and before reading them: a body may hold more strings than anybody should look at.
  requireFewEnough(request.dnsNames ?? [], DNS_NAMES);
  if (!isSsl && request.dnsNames && request.dnsNames.length > 0) throw noNames();
  const commonName = isSsl ? dnsName(request.commonName ?? '', COMMON_NAME) : sameText(request, current.commonName);
  const dnsNames = request.dnsNames?.map((name, index) => dnsName(name, `${DNS_NAMES}.${index}`));
  const names = wantedNames(isSsl ? (commonName ?? undefined) : undefined, dnsNames, current.names);
  requireAllCertifiable(names, dnsNames ?? [], context);
  requireFewEnough(names, DNS_NAMES);
  const change = differenceOf(current.names, names);
  requireAllowed(product.namesMayChange, change.added, change.removed);
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

/** Also the names that are only kept: a reissue is an issuance, and every rule applies again. */
function requireAllCertifiable(names: readonly string[], dnsNames: readonly string[], context: ReissueContext): void {
  const { product, registrableDomain } = context;
  const rules: NameRules = {
    allowsWildcard: product.allowsWildcard,
    isPublicTrust: product.trust === 'public',
    registrableDomain,
  };
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

/**
 * The name in a signing certificate was vouched for when it was ordered, and nothing here could prove another: it can
 * be repeated or left out.
 */
function sameText(request: ReissueRequest, current: string | null): string | null {
  if (!request.commonName || request.commonName.trim() === current) return current;
  throw new Refusal('invalid_sans', {
    field: COMMON_NAME,
    reason: {
      en: 'A reissue of this product keeps its common name. Leave common_name out, or place a new order.',
      zh: '该产品重签时名称不可变更，请不发送 common_name，或重新下单。',
    },
  });
}
