// Decides whether an order over ACME may be placed: by the rules of every order, as far as they need no key, and by the
// rights of the binding. Each name that is refused has a subproblem. The key comes with the CSR, and is judged then. Pure.
import { DAY_MS } from '../../kernel/durations.ts';
import type { Localized } from '../../kernel/locale.ts';
import type { Product } from '../catalog/products.ts';
import { maxValidityDays } from '../catalog/public-rules.ts';
import { purposeOf } from '../certificate/authority.ts';
import {
  certifiedName,
  isAddress,
  MAX_NAMES,
  type RegistrableDomain,
  requireCertifiable,
} from '../certificate/names.ts';
import type { Order } from '../certificate/order.ts';
import { parseDateTime } from '../certificate/validity.ts';
import { Refusal } from '../errors.ts';
import { constraintOn } from '../issuance/key.ts';
import { nameRules } from '../issuance/names.ts';
import type { IssuerChoice } from '../issuance/request.ts';
import { type BindingRights, requireRights } from './binding.ts';
import { challengesFor } from './challenge.ts';
import { isObject, type JsonObject } from './jws.ts';
import { type AcmeIdentifier, AcmeProblem, malformed, type Subproblem } from './problem.ts';

export interface NewOrderRequest {
  readonly identifiers: readonly AcmeIdentifier[];
  /** RFC 3339. */
  readonly notAfter: string | null;
  /** The certificate that is renewed, as RFC 9773 names it. */
  readonly replaces: string | null;
  readonly profile: string | null;
}

export function parseNewOrder({ identifiers, notBefore, notAfter, replaces, profile }: JsonObject): NewOrderRequest {
  if (notBefore !== undefined) {
    throw malformed(
      'notBefore cannot be chosen here: a certificate begins when it is issued. Leave notBefore out.',
      '不支持指定 notBefore：证书自签发时生效，请不发送 notBefore。',
    );
  }
  return {
    identifiers: parseIdentifiers(identifiers),
    notAfter: text('notAfter', notAfter),
    replaces: text('replaces', replaces),
    profile: text('profile', profile),
  };
}

function text(member: string, value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return value;
  throw malformed(`${member} must be a string, or left out.`, `${member} 须为字符串，或不发送。`);
}

/** An excerpt: the answer repeats what was refused, and must not grow with it. */
const MAX_SHOWN = 253;

function parseIdentifiers(list: unknown): AcmeIdentifier[] {
  if (!Array.isArray(list) || list.length === 0 || list.length > MAX_NAMES) {
    throw malformed(
      `identifiers must be a list of 1 to ${MAX_NAMES} identifiers.`,
      `identifiers 须为包含 1 至 ${MAX_NAMES} 个标识符的列表。`,
    );
  }
  const parsed = list.map((one) => {
    if (!isObject(one) || typeof one.type !== 'string' || typeof one.value !== 'string')
      throw malformed('An identifier has a type and a value, both strings.', '标识符须包含字符串 type 与 value。');
    return { type: one.type, value: one.value };
  });
  const unknown = parsed.find(({ type }) => type !== 'dns' && type !== 'ip');
  if (unknown) {
    throw new AcmeProblem('unsupportedIdentifier', {
      en: 'Identifiers of the types dns and ip are supported, and no others.',
      zh: '仅支持 dns 与 ip 类型的标识符。',
    });
  }
  return parsed as AcmeIdentifier[];
}

interface NewOrderContext {
  readonly now: number;
  readonly product: Product;
  readonly order: Pick<Order, 'termEndsAt'>;
  readonly rights: BindingRights;
  readonly issuers: IssuerChoice;
  readonly registrableDomain: RegistrableDomain;
}

/** Returns the names to certify, in the order of the request. Throws `rejectedIdentifier` with a subproblem per name. */
export function requireOrderable({ identifiers, notAfter }: NewOrderRequest, context: NewOrderContext): string[] {
  const { product, rights } = context;
  const faults: Subproblem[] = [];
  const names = identifiers.flatMap((identifier) => {
    try {
      return [orderableName(identifier, context)];
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { type, value } = identifier;
      const detail = error.facts.reason ?? REJECTED;
      faults.push({ type: 'rejectedIdentifier', detail, identifier: { type, value: value.slice(0, MAX_SHOWN) } });
      return [];
    }
  });
  if (faults.length > 0) {
    const [first] = faults;
    throw new AcmeProblem('rejectedIdentifier', faults.length === 1 && first ? first.detail : REJECTED, {
      subproblems: faults,
    });
  }
  requireRights(rights, product.id, names);
  if (notAfter !== null) requireNotAfter(notAfter, context);
  return [...new Set(names)];
}

const REJECTED: Localized = {
  en: 'Some identifiers cannot be certified; the subproblems say which and why.',
  zh: '部分标识符无法用于证书，详见 subproblems。',
};

function orderableName({ type, value }: AcmeIdentifier, context: NewOrderContext): string {
  const { product, registrableDomain } = context;
  // U-labels are converted for order clients, which see both forms; an ACME client compares the one it sent.
  if (!/^[!-~]*$/.test(value))
    throw refused(
      'An identifier has ASCII only: send A-labels (xn--…).',
      '标识符仅限 ASCII，请发送 A-label（xn--…）。',
    );
  const name = certifiedName(value, 'identifiers');
  if (isAddress(name) !== (type === 'ip')) {
    throw refused(
      'An IP address is an identifier of the type ip, and a name one of the type dns.',
      'IP 地址须使用 ip 类型，域名须使用 dns 类型。',
    );
  }
  requireCertifiable(name, nameRules(product, registrableDomain), 'identifiers');
  if (challengesFor(name, product).length === 0) {
    throw refused(
      'No challenge of this product proves such a name: DNS proves no IP address, and a server no wildcard.',
      '该产品没有可验证此名称的质询：DNS 方式不能验证 IP 地址，服务器方式不能验证通配符域名。',
    );
  }
  requirePermitted(name, context);
  return name;
}

const refused = (en: string, zh: string): Refusal => new Refusal('invalid_domain', { reason: { en, zh } });

/** The issuer is chosen by the key, which is not known yet: one that may certify the name is enough. */
function requirePermitted(name: string, { now, product, order, issuers }: NewOrderContext): void {
  const purpose = purposeOf(product);
  const until = Math.min(now + maxValidityDays(product, now) * DAY_MS, order.termEndsAt);
  const choices = issuers
    .served(purpose)
    .filter(({ keyType }) => product.keys.some(({ type }) => type === keyType))
    .filter(({ signHash }) => product.signHashes.some((one) => one === signHash))
    .flatMap(({ keyType, signHash }) => issuers.choose(purpose, keyType, signHash, until) ?? []);
  const violations = choices.map((issuer) => constraintOn(issuer, { names: [name], commonName: name }, null));
  const [violation] = violations;
  if (!violation || violations.some((one) => !one)) return;
  throw refused(
    `${name} is outside of the name constraints of the certificate authority (${violation.kind} ${violation.constraint}).`,
    `${name} 超出证书颁发机构的名称约束（${violation.kind} ${violation.constraint}）。`,
  );
}

function requireNotAfter(notAfter: string, { now, product, order }: NewOrderContext): void {
  const end = parseDateTime(notAfter);
  const days = maxValidityDays(product, now);
  if (end !== undefined && end > now && end <= Math.min(now + days * DAY_MS, order.termEndsAt)) return;
  throw malformed(
    `notAfter must be an RFC 3339 date-time to come, at most ${days} days ahead. Send an earlier one, or leave it out.`,
    `notAfter 须为 RFC 3339 格式的将来时间，最多 ${days} 天之后。请发送更早的时间，或不发送。`,
  );
}

export const identifierOf = (name: string): AcmeIdentifier => ({ type: isAddress(name) ? 'ip' : 'dns', value: name });
