// Checks the dated rules of public trust: what is in force, what lacks, and what changes within the notice.
import {
  comingChanges,
  type DatedRule,
  lackingPerspectives,
  type Offer,
  publicRulesAt,
  type RuleChange,
} from '../../domain/catalog/public-rules.ts';
import type { Diagnostic } from '../../kernel/problem.ts';

interface Configured extends Pick<Offer, 'products'> {
  /** Remote ones. */
  readonly perspectives: number;
  readonly isEnforced: boolean;
}

const MORE_RESOLVERS =
  'Add resolvers on other networks to RESEAL_DNS_PERSPECTIVES, or unset RESEAL_REQUIRE_PERSPECTIVES if no one outside trusts your root.';
const EARLIER =
  'Shortened certificates need automated reissues. To try it before, set max_validity_days and reuse_days of products of your own.';

const CHANGE: Readonly<Record<DatedRule, { text(value: number): string; remedy: string }>> = {
  max_validity_days: { text: (days) => `certificates of at most ${days} days`, remedy: EARLIER },
  reuse_days: { text: (days) => `proofs that serve for at most ${days} days`, remedy: EARLIER },
  perspectives: { text: (count) => `no certificate without ${count} remote perspectives`, remedy: MORE_RESOLVERS },
};

export function checkPublicRules({ products, perspectives, isEnforced }: Configured, now: number): Diagnostic {
  const check = 'public rules';
  const offer = { products, perspectives: isEnforced ? perspectives : Infinity };
  const { validityDays, reuseDays, perspectives: required } = publicRulesAt(now);
  const lacking = lackingPerspectives(offer, now);
  if (lacking.length > 0) {
    const text = `${required} remote perspectives are asked for, and ${perspectives} configured: ${lacking.join(', ')} are not issued`;
    return { check, state: 'problem', text, remedy: MORE_RESOLVERS };
  }
  const changes = comingChanges(offer, now);
  if (changes.length > 0) {
    const remedy = [...new Set(changes.map(({ rule }) => CHANGE[rule].remedy))].join(' ');
    return { check, state: 'warning', text: changes.map(announced).join('; '), remedy };
  }
  const counted = `${perspectives} of ${required} remote perspectives${isEnforced ? '' : ', not enforced'}`;
  const text = `certificates below ${validityDays} days, proofs for ${reuseDays} days; ${counted}`;
  return { check, state: 'ok', text };
}

const announced = ({ rule, from, value, products }: RuleChange): string =>
  `from ${new Date(from).toISOString().slice(0, 10)} ${CHANGE[rule].text(value)} (${products.join(', ')})`;
