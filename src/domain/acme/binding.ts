// External account bindings: the operator gives a tenant a key id and a MAC key, and who registers with it orders for that
// tenant, within the rights of the binding.
import type { Localized } from '../../kernel/locale.ts';
import { certifiedName, hostOf, isAddress, isWildcard, MAX_NAMES } from '../certificate/names.ts';
import { invalid } from '../errors.ts';
import type { AccountId } from '../ids.ts';
import { AcmeProblem, type Subproblem, unauthorized } from './problem.ts';

/** What the ACME accounts of a binding may order. */
export interface BindingRights {
  /** Ids of products; null for all that ACME can order. */
  readonly products: readonly string[] | null;
  /** Names that it may order, with everything below them; null for any. An IP address stands for itself. */
  readonly nameSuffixes: readonly string[] | null;
  /** Recorded consent: a certificate that an order replaces is revoked once the new one is issued. */
  readonly revokesReplaced: boolean;
}

export interface Binding extends BindingRights {
  /** The key id that clients send. */
  readonly id: string;
  readonly accountId: AccountId;
  /** For people. */
  readonly name: string;
  /** Serves any number of ACME accounts, instead of one. */
  readonly isReusable: boolean;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly disabledAt: number | null;
  /** When an ACME account was first made with it. */
  readonly usedAt: number | null;
}

/** What a binding does not allow of an order. */
export interface RightsFault {
  readonly isProductRefused: boolean;
  readonly names: readonly string[];
}

/** Undefined if the order is within the rights. Names are canonical, wildcards with their asterisk. */
export function mayOrder(rights: BindingRights, product: string, names: readonly string[]): RightsFault | undefined {
  const isProductRefused = rights.products !== null && !rights.products.includes(product);
  const { nameSuffixes } = rights;
  const refused = nameSuffixes === null ? [] : names.filter((name) => !nameSuffixes.some((top) => isBelow(name, top)));
  return isProductRefused || refused.length > 0 ? { isProductRefused, names: refused } : undefined;
}

/** Throws what `mayOrder` finds: `unauthorized` for the product, `rejectedIdentifier` with a subproblem for each name. */
export function requireRights(rights: BindingRights, product: string, names: readonly string[]): void {
  const fault = mayOrder(rights, product, names);
  if (!fault) return;
  if (fault.isProductRefused) {
    throw unauthorized(
      `The external account binding does not allow the product ${product}. Use the directory of one of: ${rights.products?.join(', ')}.`,
      `外部账户绑定不允许订购产品 ${product}，请使用以下产品的目录：${rights.products?.join('、')}。`,
    );
  }
  const allowed = rights.nameSuffixes?.join(', ');
  const detail = {
    en: `The external account binding allows only names below: ${allowed}. Ask the operator for another binding.`,
    zh: `外部账户绑定只允许以下域名及其子域名：${allowed}。请向运营方申请其他绑定。`,
  };
  const subproblems = fault.names.map(
    (name): Subproblem => ({
      type: 'rejectedIdentifier',
      detail,
      identifier: { type: isAddress(name) ? 'ip' : 'dns', value: name },
    }),
  );
  throw new AcmeProblem('rejectedIdentifier', detail, { subproblems });
}

/** The names that the operator gives a binding, in their canonical spelling; null for none. */
export function parseSuffixes(texts: readonly string[]): readonly string[] | null {
  const names = texts.map((text) => certifiedName(text, 'names_below'));
  if (names.length > MAX_NAMES || names.some(isWildcard)) {
    throw invalid(
      'names_below',
      `At most ${MAX_NAMES} names, each without an asterisk: everything below it is meant.`,
      `最多 ${MAX_NAMES} 个域名，且不带星号：其下的所有域名均包含在内。`,
    );
  }
  return names.length === 0 ? null : [...new Set(names)];
}

const isBelow = (name: string, top: string): boolean => hostOf(name) === top || hostOf(name).endsWith(`.${top}`);

/** Call only once its MAC or an account's signature was verified: its state must not leak to others. */
export function requireUsableBinding({ disabledAt, expiresAt }: Binding, now: number): void {
  if (disabledAt !== null) throw unauthorized(...UNUSABLE.disabled);
  if (expiresAt !== null && expiresAt <= now) throw unauthorized(...UNUSABLE.expired);
}

const UNUSABLE = {
  disabled: [
    'The external account binding of this account is disabled. Ask the operator for a new one, and register a new account with it.',
    '该账户的外部账户绑定已停用，请向运营方申请新的绑定并注册新账户。',
  ],
  expired: [
    'The external account binding of this account has expired. Ask the operator for a new one, and register a new account with it.',
    '该账户的外部账户绑定已过期，请向运营方申请新的绑定并注册新账户。',
  ],
} as const;

export const SUSPENDED: Localized = {
  en: 'The account that this binding belongs to is suspended. Ask the operator to resume it.',
  zh: '该绑定所属的账户已被暂停，请联系运营方恢复。',
};
