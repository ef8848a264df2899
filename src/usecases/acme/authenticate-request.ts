// Authenticates a signed request (RFC 8555, 6.2 to 6.5). Checks, cheapest first: form, URL, authenticity of the nonce, key,
// signature; then the states of account, binding and tenant; then the nonce is spent. Requests signed by a key that they
// bring along leave nothing behind before the key was found to mean something: strangers cannot fill the table of nonces.
import { type BoundAccount, requireUsableAccount } from '../../domain/acme/account.ts';
import { ACME_PATHS } from '../../domain/acme/directory.ts';
import { type JsonObject, parseJws, parseObject, payloadOf, requestHeader } from '../../domain/acme/jws.ts';
import type { AccountKey, JwsKeys } from '../../domain/acme/ports.ts';
import { AcmeProblem, malformed, unauthorized } from '../../domain/acme/problem.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import type { AcmeNonces } from './nonces.ts';

interface Signed {
  /** Exactly the URL that was asked, and signed. */
  readonly url: string;
  /** `post-as-get` for an empty payload. */
  readonly payload: JsonObject | 'post-as-get';
}

export interface AccountSigned extends Signed, BoundAccount {
  readonly signedBy: 'account';
}

export interface KeySigned extends Signed {
  readonly signedBy: 'key';
  readonly key: AccountKey;
  /** Call exactly once, in the transaction of what the request does. Throws `badNonce` if it was used before. */
  readonly spendNonce: (db: Pick<Repositories, 'usedNonces'>) => Promise<void>;
}

/** Whose signature a resource takes. */
export type SignedBy = 'account' | 'key' | 'either';

interface AuthenticationTools {
  readonly store: Store;
  readonly now: Clock;
  readonly jwsKeys: JwsKeys;
  readonly nonces: AcmeNonces;
  readonly publicUrl: () => string;
}

export interface SignedRequest {
  /** The body. */
  readonly text: string;
  readonly url: string;
}

export type AuthenticateAcme = (request: SignedRequest, by: SignedBy) => Promise<AccountSigned | KeySigned>;

export function authenticateAcme(tools: AuthenticationTools): AuthenticateAcme {
  const { store, now, jwsKeys, nonces, publicUrl } = tools;

  /** Throws `accountDoesNotExist`. */
  async function accountOf(kid: string): Promise<BoundAccount> {
    const prefix = `${publicUrl()}${ACME_PATHS.account}/`;
    const found = kid.startsWith(prefix) ? await store.acmeAccounts.find(kid.slice(prefix.length)) : undefined;
    if (found) return found;
    throw new AcmeProblem('accountDoesNotExist', {
      en: `There is no account ${kid.slice(0, MAX_SHOWN)}. kid is the Location that newAccount answered.`,
      zh: `账户 ${kid.slice(0, MAX_SHOWN)} 不存在。kid 须为 newAccount 返回的 Location。`,
    });
  }

  return async ({ text, url }, by) => {
    const jws = parseJws(parseObject(text, 'body'));
    const { nonce: nonceText, url: signedUrl, signer } = requestHeader(jws);
    if (signedUrl !== url) throw otherUrl(url);
    const nonce = nonces.read(nonceText);
    if ('kid' in signer) {
      if (by === 'key') throw WRONG_SIGNER.key();
      const bound = await accountOf(signer.kid);
      jwsKeys.verify(jws, bound.account.spki);
      requireUsableAccount(bound, now());
      const payload = payloadOf(jws);
      await nonces.spend(store, nonce);
      return { signedBy: 'account', url, payload, ...bound };
    }
    if (by === 'account') throw WRONG_SIGNER.account();
    const key = jwsKeys.read(signer.jwk);
    jwsKeys.verify(jws, key.publicKey.spki);
    return { signedBy: 'key', url, payload: payloadOf(jws), key, spendNonce: (db) => nonces.spend(db, nonce) };
  };
}

const MAX_SHOWN = 200;

const otherUrl = (url: string): AcmeProblem =>
  unauthorized(
    `The url in the protected header is not the one that was asked, ${url.slice(0, MAX_SHOWN)}. Take URLs from the directory.`,
    `protected 头中的 url 与请求的地址 ${url.slice(0, MAX_SHOWN)} 不一致，请使用目录中的地址。`,
  );

const WRONG_SIGNER = {
  key: () =>
    malformed(
      'This resource takes requests signed by the key in jwk, and no kid.',
      '该资源要求以 jwk 中的密钥签名，不接受 kid。',
    ),
  account: () =>
    malformed(
      'This resource takes requests of an account: sign with its key and send its URL as kid, without jwk.',
      '该资源要求账户签名：请使用账户密钥签名，以 kid 发送账户 URL，不得发送 jwk。',
    ),
} as const;
