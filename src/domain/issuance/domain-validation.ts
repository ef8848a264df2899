// Decides how the names of an order are validated from this request on: method, scope, and the binding of a persistent
// record. Checking DNS or a web server is done elsewhere.

import { HOUR_MS, SECOND_MS } from '../../kernel/durations.ts';
import type { Localized } from '../../kernel/locale.ts';
import type { Product } from '../catalog/products.ts';
import { perspectivesFor } from '../catalog/public-rules.ts';
import { isAddress, isWildcard } from '../certificate/names.ts';
import type { DcvMethod, DcvScope } from '../certificate/order.ts';
import { type DomainValidation, type Order, PERSIST_POLICIES, type PersistPolicy } from '../certificate/order.ts';
import { invalid, Refusal } from '../errors.ts';
import { canProve } from '../validation/challenge.ts';
import type { CertificateRequest, IssuanceContext } from './request.ts';

/** The last second of the year 9999: no later date can be written, and milliseconds sent by mistake exceed it. */
export const MAX_UNIX_SECONDS = 253_402_300_799;

export type DcvRequest = Pick<CertificateRequest, 'dcvMethod' | 'dcvScope' | 'persistUntil' | 'persistPolicy'>;

/**
 * Public rules ask that every name is looked at from so many networks. The request is valid, and can be repeated unchanged
 * once the operator has named more of them.
 */
export function requirePerspectives({
  now,
  product,
  perspectives,
}: Pick<IssuanceContext, 'now' | 'product' | 'perspectives'>): void {
  const required = perspectivesFor(product, now);
  if (perspectives >= required) return;
  throw new Refusal('service_busy', {
    reason: {
      en: `Public rules ask for ${required} remote perspectives on every name, and ${perspectives} are configured. The operator adds resolvers on other networks to RESEAL_DNS_PERSPECTIVES; then send the same request again.`,
      zh: `公共信任规则要求从 ${required} 个远程网络视角检查每个域名，目前仅配置了 ${perspectives} 个。请联系运营方在 RESEAL_DNS_PERSPECTIVES 中添加位于其他网络的解析器，之后重新发送相同请求即可。`,
    },
    retryAfterSeconds: HOUR_MS / SECOND_MS,
  });
}

/** Which of the names need validation, and what the order keeps about validating them. */
export function domainValidation(
  request: DcvRequest,
  context: Pick<IssuanceContext, 'now' | 'order' | 'product' | 'validatedNames'>,
  names: readonly string[],
): { readonly needsValidation: readonly string[]; readonly dcv: DomainValidation } {
  const { now, order, product, validatedNames } = context;
  const needsValidation = names.filter((name) => !validatedNames.has(name));
  const dcv: DomainValidation = {
    dcvMethod: methodOf(request, order, product, needsValidation),
    dcvScope: scopeOf(request, order, product),
    ...bindingOf(request, order, now, names.some(isWildcard)),
  };
  if (dcv.dcvMethod === 'file' && dcv.dcvScope === 'base_domain') {
    if (needsValidation.length > 0 || request.dcvMethod || request.dcvScope) throw fileOfBase();
  }
  return { needsValidation, dcv };
}

/** A web server proves control of its own name only. */
const fileOfBase = (): Refusal =>
  invalid(
    'dcv_scope',
    'A file proves the name it is fetched from, and none below it. Send dcv_scope fqdn, or a DNS method.',
    '文件方式只能验证其所在的域名，请使用 dcv_scope fqdn，或改用 DNS 方式。',
  );

function methodOf(
  { dcvMethod: asked }: DcvRequest,
  order: Order,
  { dcvMethods }: Product,
  needsValidation: readonly string[],
): DcvMethod | null {
  const method = asked === undefined ? order.dcvMethod : dcvMethods.find((one) => one === asked);
  // The product may have withdrawn the order's method since. That only matters if a name needs validation.
  const isOffered = dcvMethods.some((one) => one === method);
  if (!isOffered && (asked !== undefined || needsValidation.length > 0)) throw badMethod(dcvMethods, []);
  if (needsValidation.some((name) => !dcvMethods.some((one) => one === method && canProve(one, name))))
    throw badMethod(dcvMethods, needsValidation);
  return method ?? null;
}

/** Lists the methods that would be accepted. */
function badMethod(offered: Product['dcvMethods'], names: readonly string[]): Refusal {
  const possible = offered.filter((method) => names.every((name) => canProve(method, name)));
  return new Refusal('invalid_dcv_method', { field: 'dcv_method', reason: reasonFor(offered, possible, names) });
}

function reasonFor(offered: readonly DcvMethod[], possible: readonly DcvMethod[], names: readonly string[]): Localized {
  if (offered.length === 0) {
    return {
      en: 'This product has no names to prove. Leave dcv_method out.',
      zh: '该产品无需验证域名，请不发送 dcv_method。',
    };
  }
  if (possible.length === 0) {
    return {
      en: 'No method of this product proves all of these names: DNS proves no IP address, and a file no wildcard. Order them separately.',
      zh: '该产品没有可验证全部名称的方式：DNS 方式不能验证 IP 地址，文件方式不能验证通配符域名，请分开下单。',
    };
  }
  const [en, zh] = names.some(isAddress)
    ? ['DNS never proves an IP address.', 'DNS 方式不能验证 IP 地址。']
    : ['A file never proves a wildcard.', '文件方式不能验证通配符域名。'];
  return {
    en: `These names can be proven by ${possible.join(', ')}. ${en}`,
    zh: `这些域名可用的验证方式：${possible.join('、')}。${zh}`,
  };
}

/** Absent keeps the order's scope: a request without validation fields changes nothing about it. */
function scopeOf({ dcvScope: asked }: DcvRequest, order: Order, { dcvScopes }: Product): DcvScope {
  if (asked === undefined) return order.dcvScope;
  const scope = dcvScopes.find((one) => one === asked);
  if (scope) return scope;
  const list = dcvScopes.join(', ');
  throw invalid(
    'dcv_scope',
    list ? `This product offers ${list}.` : 'This product has no names to prove. Leave dcv_scope out.',
    list ? `该产品支持：${list}。` : '该产品无需验证域名，请不发送 dcv_scope。',
  );
}

/** Rule 6: the method named by this request decides, not the method of the order. */
function bindingOf(request: DcvRequest, order: Order, now: number, hasWildcard: boolean) {
  if (request.dcvMethod !== 'dns-persist') {
    return { persistUntil: order.persistUntil, persistPolicy: order.persistPolicy };
  }
  return {
    persistUntil: untilOf(request.persistUntil, order, now),
    persistPolicy: policyOf(request.persistPolicy, hasWildcard),
  };
}

/** Absent keeps, 0 clears. A falsiness check here would drop an expiry that a customer relies on. */
function untilOf(asked: number | undefined, order: Order, now: number): number | null {
  if (asked === undefined) return order.persistUntil;
  if (asked === 0) return null;
  if (Number.isInteger(asked) && asked * 1000 > now && asked <= MAX_UNIX_SECONDS) return asked;
  throw invalid(
    'persist_until',
    'persist_until is a time to come in Unix seconds, or 0 for no expiry.',
    'persist_until 须为将来的 Unix 时间（秒），或 0 表示不过期。',
  );
}

function policyOf(asked: string | undefined, hasWildcard: boolean): PersistPolicy {
  if (asked === undefined) return 'fqdn';
  if (asked === 'fqdn' && hasWildcard) {
    throw invalid(
      'persist_policy',
      'A record with policy fqdn authorizes no wildcard. Send wildcard, or leave persist_policy out.',
      'persist_policy 为 fqdn 的记录不能授权通配符域名，请发送 wildcard，或不发送 persist_policy。',
    );
  }
  const policy = PERSIST_POLICIES.find((one) => one === asked);
  if (policy) return policy;
  const list = PERSIST_POLICIES.join(', ');
  throw invalid('persist_policy', `Choose one of ${list}.`, `可选值：${list}。`);
}
