// What an account has: orders and certificates by what is known of them. A name is found by terms that are written down
// when an order first carries it, so that a search is a look-up and a reissue with the names of before writes none.

import type { CertificateStatus, RevocationReason } from '../certificate/certificate.ts';
import { certifiedName, hostOf, isAddress } from '../certificate/names.ts';
import type { Order, OrderStatus } from '../certificate/order.ts';
import { invalid } from '../errors.ts';
import type { AccountId, CertificateId, OrderId } from '../ids.ts';
import type { Listed, Page } from '../page.ts';

interface Filter {
  /** Lower-case hexadecimal; of an encryption half, too. */
  readonly serial?: string | undefined;
  readonly product?: string | undefined;
  readonly name?: string | undefined;
  /** A domain: the name itself, and what lies below it. */
  readonly nameSuffix?: string | undefined;
  /** Of a certificate its end, of an order that of its current certificate; from `expiresAfter` on, before `expiresBefore`. */
  readonly expiresAfter?: number | undefined;
  readonly expiresBefore?: number | undefined;
  readonly isRevoked?: boolean | undefined;
}

export interface OrderFilter extends Filter {
  readonly status?: OrderStatus | undefined;
}

/** Without `voided`, which no caller was answered. */
export const LISTED_STATUSES = ['pending', 'issued', 'revoked', 'canceled'] as const satisfies CertificateStatus[];
type ListedStatus = (typeof LISTED_STATUSES)[number];

export interface CertificateFilter extends Filter {
  readonly status?: ListedStatus | undefined;
}

export interface CertificateEntry {
  readonly id: CertificateId;
  readonly orderId: OrderId;
  readonly productId: string;
  readonly status: ListedStatus;
  readonly commonName: string | null;
  readonly names: readonly string[];
  readonly serial: string | null;
  readonly notBefore: number | null;
  readonly notAfter: number | null;
  readonly version: number | null;
  readonly isCurrent: boolean;
  readonly revokedAt: number | null;
  readonly revocationReason: RevocationReason | null;
}

/** Throws `invalid_parameters` for an `after` that is not of a list with the same filters. */
export interface Inventory {
  /** By id, or with a limit on the end, by that. */
  orders(accountId: AccountId, filter: OrderFilter, page: Page): Promise<Listed<Order>>;
  /** Those that were issued, and only with such a status those that were not. */
  certificates(accountId: AccountId, filter: CertificateFilter, page: Page): Promise<Listed<CertificateEntry>>;
}

/** A name of many labels would otherwise be written down as many times, a hundred names of it 12 600 times. */
export const MAX_SUFFIX_LABELS = 8;

/** Whether a text has only what DNS names and addresses are spelled with. */
export const isNameText = (text: string): boolean => /^(\*\.)?[a-z0-9.:-]+$/.test(text);

export const suffixTerm = (domain: string): string => `.${domain}`;

/** The terms by which a name is found: itself, and every domain that it is or lies in. */
export function termsOf(name: string): string[] {
  // The holder's name in a signing certificate is found as a whole, and an address lies in no domain.
  if (!isNameText(name) || isAddress(name)) return [name];
  const labels = hostOf(name).split('.');
  const domains = labels.map((_, index) => labels.slice(index)).filter(({ length }) => length <= MAX_SUFFIX_LABELS);
  return [name, ...domains.map((domain) => suffixTerm(domain.join('.')))];
}

/** In the spelling that certificates have; the name of a holder as it is. */
export function searchedName(text: string): string {
  try {
    return certifiedName(text, 'name');
  } catch {
    return text;
  }
}

/** Throws `invalid_parameters` if the text is no domain. A leading dot or `*.` may be written. */
export function searchedSuffix(text: string): string {
  const domain = searchedName(text.replace(/^\*?\./, ''));
  if (
    isNameText(domain) &&
    !domain.includes(':') &&
    !isAddress(domain) &&
    domain.split('.').length <= MAX_SUFFIX_LABELS
  )
    return domain;
  throw invalid(
    'name_suffix',
    `name_suffix is a domain of at most ${MAX_SUFFIX_LABELS} labels, such as example.com.`,
    `name_suffix 须为最多 ${MAX_SUFFIX_LABELS} 级的域名，例如 example.com。`,
  );
}
