// The rules of public trust that change on dates already known, as a table. They limit products of public trust for TLS,
// which may be stricter; others have their own rules. Judged at the moment of issuance, also for what waited over a date.

import { DAY_MS, HOUR_MS } from '../../kernel/durations.ts';
import type { ProductKind, Trust } from '../certificate/authority.ts';

interface PublicRules {
  /** The first day they apply, in UTC. */
  readonly from: string;
  /** No certificate may be valid for longer. */
  readonly validityDays: number;
  /** No proof of control may be reused for longer. */
  readonly reuseDays: number;
  /** Remote network perspectives that must look at every name, besides the primary one. */
  readonly perspectives: number;
}

/** Baseline Requirements 6.3.2, 4.2.1 and 3.2.2.9. The first row also stands for the time before it. */
const PUBLIC_RULES = [
  { from: '2025-09-15', validityDays: 200, reuseDays: 200, perspectives: 2 },
  { from: '2026-03-15', validityDays: 200, reuseDays: 200, perspectives: 3 },
  { from: '2026-06-15', validityDays: 200, reuseDays: 200, perspectives: 4 },
  { from: '2026-12-15', validityDays: 200, reuseDays: 200, perspectives: 5 },
  { from: '2027-03-15', validityDays: 100, reuseDays: 100, perspectives: 5 },
  { from: '2029-03-15', validityDays: 47, reuseDays: 10, perspectives: 5 },
] as const satisfies readonly PublicRules[];

/** Rules apply this much earlier: clocks differ, and what is decided now is signed a moment later. */
const LEAD_MS = HOUR_MS;
const startOf = (rules: PublicRules): number => Date.parse(rules.from) - LEAD_MS;
const STARTS = PUBLIC_RULES.map(startOf);

export const publicRulesAt = (at: number): PublicRules =>
  PUBLIC_RULES.findLast((_, index) => STARTS[index]! <= at) ?? PUBLIC_RULES[0];

/** One less than the limit, because notAfter is inclusive and clocks differ. */
const issuedDays = ({ validityDays }: PublicRules): number => validityDays - 1;

/** What a product of public trust may say; the table limits it further from its dates on. */
export const MAX_PUBLIC_TLS_DAYS = issuedDays(PUBLIC_RULES[0]);
export const MAX_PUBLIC_REUSE_DAYS = PUBLIC_RULES[0].reuseDays;

interface Purpose {
  readonly kind: ProductKind;
  readonly trust: Trust;
}
type Validity = Purpose & { readonly maxValidityDays: number };
type Reuse = Purpose & { readonly reuseDays: number };

export const isPublicTls = ({ kind, trust }: Purpose): boolean => kind === 'ssl' && trust === 'public';

/** How many days a certificate of the product may be valid that is issued at this moment. */
export const maxValidityDays = (product: Validity, at: number): number =>
  isPublicTls(product) ? Math.min(product.maxValidityDays, issuedDays(publicRulesAt(at))) : product.maxValidityDays;

/** How many days a proof of control serves the product at this moment. */
export const reuseDays = (product: Reuse, at: number): number =>
  isPublicTls(product) ? Math.min(product.reuseDays, publicRulesAt(at).reuseDays) : product.reuseDays;

/** The product as it is offered at this moment. */
export const inForce = <Offered extends Validity & Reuse>(product: Offered, at: number): Offered => ({
  ...product,
  maxValidityDays: maxValidityDays(product, at),
  reuseDays: reuseDays(product, at),
});

/** How many remote perspectives must look at the names of the product at this moment. */
export const perspectivesFor = (product: Purpose, at: number): number =>
  isPublicTls(product) ? publicRulesAt(at).perspectives : 0;

/** How long before its date a change is announced. */
export const NOTICE_MS = 60 * DAY_MS;

export const DATED_RULES = ['max_validity_days', 'reuse_days', 'perspectives'] as const;
export type DatedRule = (typeof DATED_RULES)[number];

/** What is offered, and how its names are looked at. */
export interface Offer {
  readonly products: readonly (Validity & Reuse & { readonly id: string })[];
  /** Remote perspectives; infinite where their number is not enforced. */
  readonly perspectives: number;
}

export interface RuleChange {
  readonly rule: DatedRule;
  /** As in the table; in the past for a number of perspectives that is lacking already. */
  readonly from: number;
  readonly value: number;
  /** Ids of the products that it limits. */
  readonly products: readonly string[];
}

const LIMITS: Readonly<Record<DatedRule, (rules: PublicRules) => number>> = {
  max_validity_days: issuedDays,
  reuse_days: (rules) => rules.reuseDays,
  perspectives: (rules) => rules.perspectives,
};

/** Whether a rule takes something from a product, or asks for more than there is. */
const IS_LIMITED: Readonly<Record<DatedRule, (limit: number, product: Validity & Reuse, offer: Offer) => boolean>> = {
  max_validity_days: (limit, product) => product.maxValidityDays > limit,
  reuse_days: (limit, product) => product.reuseDays > limit,
  perspectives: (limit, _product, { perspectives }) => perspectives < limit,
};

/** The changes within the notice that limit what is offered. */
export function comingChanges(offer: Offer, now: number): RuleChange[] {
  const coming = PUBLIC_RULES.map((rules, index) => ({ rules, before: PUBLIC_RULES[index - 1] })).filter(
    ({ rules }) => startOf(rules) > now && startOf(rules) <= now + NOTICE_MS,
  );
  return coming.flatMap(({ rules, before }) =>
    DATED_RULES.flatMap((rule) => {
      const value = LIMITS[rule](rules);
      const change = { rule, from: Date.parse(rules.from), value, products: limitedBy(rule, value, offer) };
      return before && LIMITS[rule](before) !== value && change.products.length > 0 ? [change] : [];
    }),
  );
}

/** Ids of the products that cannot be issued now, because too few perspectives look at their names. */
export const lackingPerspectives = (offer: Offer, now: number): readonly string[] =>
  limitedBy('perspectives', publicRulesAt(now).perspectives, offer);

const limitedBy = (rule: DatedRule, limit: number, offer: Offer): string[] =>
  offer.products
    .filter((product) => isPublicTls(product) && IS_LIMITED[rule](limit, product, offer))
    .map(({ id }) => id);
