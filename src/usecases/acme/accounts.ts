// Accounts of ACME clients (RFC 8555, 7.3): register, change, deactivate, and change of the key.
import {
  type AcmeAccount,
  acmeActor,
  type BoundAccount,
  parseContacts,
  requireUsableAccount,
} from '../../domain/acme/account.ts';
import { parseJwk } from '../../domain/acme/jwk.ts';
import { innerHeader, isObject, type JsonObject, parseJws, payloadOf, requireObject } from '../../domain/acme/jws.ts';
import type { AccountKey } from '../../domain/acme/ports.ts';
import { AcmeProblem, malformed, unauthorized } from '../../domain/acme/problem.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';
import { auditLog } from '../access/audit.ts';
import type { AccountSigned, KeySigned } from './authenticate-request.ts';
import { type BindingTools, checkBinding } from './check-binding.ts';
import { limitNewAccounts } from './limits.ts';

interface AccountTools extends BindingTools {
  readonly store: Store;
  readonly newId: NewId;
  /** Agreement is required of new accounts if there are any. */
  readonly termsUrl: string | undefined;
}

/** Of one reusable binding: more than any fleet registers, and a bound on the table. */
const MAX_ACCOUNTS = 10_000;

export type AcmeAccountActs = ReturnType<typeof acmeAccountActs>;

export function acmeAccountActs(tools: AccountTools) {
  const { store, now, newId, jwsKeys, termsUrl } = tools;
  const audit = auditLog({ now, newId });

  /** The account of a key that has one. Contacts and binding of the request are ignored, as the RFC has it. */
  async function existing(request: KeySigned, bound: BoundAccount): Promise<BoundAccount> {
    requireUsableAccount(bound, now());
    await request.spendNonce(store);
    return bound;
  }

  async function register(request: KeySigned, payload: JsonObject, requestId: string): Promise<BoundAccount> {
    const contacts = parseContacts(payload.contact) ?? [];
    const hasAgreed = payload.termsOfServiceAgreed === true;
    if (termsUrl !== undefined && !hasAgreed) throw notAgreed(termsUrl);
    const { url, key } = request;
    const { binding, tenant } = await checkBinding(tools, payload.externalAccountBinding, { url, key });
    const account: AcmeAccount = {
      id: newId(),
      accountId: binding.accountId,
      bindingId: binding.id,
      status: 'valid',
      thumbprint: key.thumbprint,
      spki: key.publicKey.spki,
      contacts,
      termsAgreedAt: hasAgreed ? now() : null,
      createdAt: now(),
    };
    await store.transaction(async (tx) => {
      await request.spendNonce(tx);
      await limitNewAccounts(tx, binding.id);
      // Before the account refers to it, so that PostgreSQL locks it once: of two that register at a time, one gets it.
      if (!(await tx.acmeBindings.claim(binding.id, now()))) throw bindingUsed();
      if ((await tx.acmeAccounts.count(binding.id, MAX_ACCOUNTS)) >= MAX_ACCOUNTS) throw bindingFull();
      if (!(await tx.acmeAccounts.insert(account))) throw registeredMeanwhile();
      await audit(tx, acmeActor({ account }, requestId), 'acme-account:created', account.id, { binding: binding.id });
    });
    return { account, binding, tenant };
  }

  return {
    async newAccount(request: KeySigned, requestId: string): Promise<{ bound: BoundAccount; isNew: boolean }> {
      const payload = requireObject(request.payload);
      const bound = await store.acmeAccounts.findByKey(request.key.thumbprint);
      if (bound) return { bound: await existing(request, bound), isNew: false };
      if (payload.onlyReturnExisting === true) throw noAccount();
      try {
        return { bound: await register(request, payload, requestId), isNew: true };
      } catch (error) {
        // Another request with this key was faster.
        const registered = error instanceof AcmeProblem && (await store.acmeAccounts.findByKey(request.key.thumbprint));
        if (!registered) throw error;
        return { bound: await existing(request, registered), isNew: false };
      }
    },

    /** Returns the account as it is afterwards. Unknown fields, and a status other than `deactivated`, are ignored. */
    async change(request: AccountSigned, requestId: string): Promise<AcmeAccount> {
      const { account, payload } = request;
      if (payload === 'post-as-get') return account;
      const by = acmeActor(request, requestId);
      if (payload.status === 'deactivated') {
        return await store.transaction(async (tx) => {
          const ended = (await tx.acmeAccounts.end(account.id, 'deactivated')) ?? account;
          // Nothing that is issued changes; the sweep ends what was not finalized.
          await tx.acmeOrders.expireAll(account.id, tx.sharedNow());
          await audit(tx, by, 'acme-account:deactivated', account.id);
          return ended;
        });
      }
      const contacts = parseContacts(payload.contact);
      if (contacts === undefined) return account;
      await store.transaction(async (tx) => {
        await tx.acmeAccounts.setContacts(account.id, contacts);
        await audit(tx, by, 'acme-account:changed', account.id);
      });
      return { ...account, contacts };
    },

    /** Returns the account with its new key, or the id of another account that has that key. */
    async changeKey(
      request: AccountSigned,
      accountUrl: string,
      requestId: string,
    ): Promise<AcmeAccount | { readonly conflictsWith: string }> {
      const { account } = request;
      const key = newKeyIn(request, accountUrl);
      const other = await store.acmeAccounts.findByKey(key.thumbprint);
      if (other) return { conflictsWith: other.account.id };
      await store.transaction(async (tx) => {
        if (!(await tx.acmeAccounts.changeKey(account, key))) throw changedMeanwhile();
        await audit(tx, acmeActor(request, requestId), 'acme-account:key_changed', account.id, {
          thumbprint: key.thumbprint,
          former: account.thumbprint,
        });
      });
      return { ...account, thumbprint: key.thumbprint, spki: key.publicKey.spki };
    },
  };

  /** The key that the inner JWS proves possession of. */
  function newKeyIn({ account, payload, url }: AccountSigned, accountUrl: string): AccountKey {
    const inner = parseJws(requireObject(payload), 'inner JWS');
    const { url: innerUrl, jwk } = innerHeader(inner);
    if (innerUrl !== url) {
      throw malformed('The inner JWS must have the same url as the outer one.', '内层 JWS 的 url 必须与外层相同。');
    }
    const key = jwsKeys.read(jwk);
    jwsKeys.verify(inner, key.publicKey.spki);
    const change = requireObject(payloadOf(inner));
    if (change.account !== accountUrl) {
      throw malformed(
        `account in the inner JWS must be the account that signs the request, ${accountUrl}.`,
        `内层 JWS 的 account 必须是签署请求的账户 ${accountUrl}。`,
      );
    }
    if (!isObject(change.oldKey) || jwsKeys.read(parseJwk(change.oldKey)).thumbprint !== account.thumbprint) {
      throw malformed(
        'oldKey in the inner JWS must be the present key of the account.',
        '内层 JWS 的 oldKey 必须是账户当前的密钥。',
      );
    }
    return key;
  }
}

const noAccount = (): AcmeProblem =>
  new AcmeProblem('accountDoesNotExist', {
    en: 'This key has no account, and onlyReturnExisting asked for no new one.',
    zh: '该密钥没有账户，且 onlyReturnExisting 要求不创建新账户。',
  });

const notAgreed = (url: string): AcmeProblem =>
  new AcmeProblem('userActionRequired', {
    en: `A new account must agree to the terms of service, ${url}: send termsOfServiceAgreed true.`,
    zh: `注册新账户须同意服务条款 ${url}：请发送 termsOfServiceAgreed 为 true。`,
  });

const bindingUsed = (): AcmeProblem =>
  unauthorized(
    'This external account binding serves one account, and has it. Use the key of that account, or ask the operator for another binding.',
    '该外部账户绑定只能用于一个账户，且已被使用。请使用该账户的密钥，或向运营方申请新的绑定。',
  );

const bindingFull = (): AcmeProblem =>
  unauthorized(
    `This external account binding has ${MAX_ACCOUNTS} accounts. Use one of them, or ask the operator for another binding.`,
    `该外部账户绑定已有 ${MAX_ACCOUNTS} 个账户，请使用已有账户，或向运营方申请新的绑定。`,
  );

/** A retry finds the account. */
const registeredMeanwhile = (): AcmeProblem =>
  new AcmeProblem('keyInUse', {
    en: 'Another request has registered this key at the same time. Send the request again.',
    zh: '另一请求正在注册同一密钥，请重新发送。',
  });

const changedMeanwhile = (): AcmeProblem =>
  new AcmeProblem('keyInUse', {
    en: 'The account or the new key was changed by another request at the same time. Read the account, and try again.',
    zh: '账户或新密钥已被另一请求更改，请查询账户后重试。',
  });
