// Verifies an external account binding (RFC 8555, 7.3.4): the holder of a MAC key vouches for the key of a new account.
import type { BoundAccount } from '../../domain/acme/account.ts';
import { requireUsableBinding, SUSPENDED } from '../../domain/acme/binding.ts';
import { parseJwk } from '../../domain/acme/jwk.ts';
import { bindingHeader, parseJws, payloadOf } from '../../domain/acme/jws.ts';
import type { AccountKey, JwsKeys } from '../../domain/acme/ports.ts';
import { AcmeProblem, malformed, unauthorized } from '../../domain/acme/problem.ts';
import type { Clock } from '../../domain/clock.ts';
import { Secret } from '../../domain/secret.ts';
import type { Store } from '../../domain/store.ts';

export interface BindingTools {
  readonly store: Pick<Store, 'acmeBindings'>;
  readonly now: Clock;
  readonly jwsKeys: JwsKeys;
}

/** Compared against when the key id is unknown, so that both cases cost the same. */
const NO_KEY = new Secret('A'.repeat(43));

/** Returns the binding and its tenant. Only who has its MAC key learns its state. */
export async function checkBinding(
  { store, now, jwsKeys }: BindingTools,
  value: unknown,
  { url, key }: { readonly url: string; readonly key: AccountKey },
): Promise<Omit<BoundAccount, 'account'>> {
  if (value === undefined) throw required();
  const jws = parseJws(value, 'externalAccountBinding');
  const { alg, url: boundUrl, kid } = bindingHeader(jws);
  if (boundUrl !== url) {
    throw malformed(
      `The url in externalAccountBinding must be that of newAccount, ${url}.`,
      `externalAccountBinding 中的 url 必须是 newAccount 的地址 ${url}。`,
    );
  }
  const found = await store.acmeBindings.findWithKey(kid);
  if (!jwsKeys.hasMac(jws, alg, found?.key ?? NO_KEY) || !found) throw unknown();
  const payload = payloadOf(jws);
  if (payload === 'post-as-get' || jwsKeys.read(parseJwk(payload)).thumbprint !== key.thumbprint) {
    throw malformed(
      'The payload of externalAccountBinding must be the jwk that signs the request.',
      'externalAccountBinding 的 payload 必须是签署该请求的 jwk。',
    );
  }
  const { binding, tenant } = found;
  if (tenant.suspendedAt !== null) throw unauthorized(SUSPENDED.en, SUSPENDED.zh);
  requireUsableBinding(binding, now());
  return { binding, tenant };
}

const required = (): AcmeProblem =>
  new AcmeProblem('externalAccountRequired', {
    en: 'A new account needs externalAccountBinding. Ask the operator for a key id and an HMAC key: reseal acme key create ACCOUNT.',
    zh: '注册新账户需要 externalAccountBinding，请向运营方申请密钥 ID 与 HMAC 密钥。',
  });

/** One answer for both cases: key ids are not secret, but none is confirmed to strangers. */
const unknown = (): AcmeProblem =>
  unauthorized(
    'The external account binding has an unknown key id, or a wrong MAC. Check both values; the HMAC key is base64url without padding.',
    '外部账户绑定的密钥 ID 不存在，或 MAC 错误。请检查这两个值；HMAC 密钥为无填充的 base64url 编码。',
  );
