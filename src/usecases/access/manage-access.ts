// Operator's management of accounts and API keys: create, list, suspend, disable, rotate. The secret of a key exists in clear
// only in the result of the call that created it. Each change and its audit row are one transaction.
import { type Account, type AccountKind, accountName } from '../../domain/access/account.ts';
import { type Credential, type CredentialKind, requireUsable } from '../../domain/access/credential.ts';
import type { QuotaChange, Quotas } from '../../domain/access/quota.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, NewId } from '../../domain/ids.ts';
import type { Page } from '../../domain/page.ts';
import { Secret } from '../../domain/secret.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import type { Locale } from '../../kernel/locale.ts';
import { auditLog, byOperator, type OperatorCall } from './audit.ts';
import { hashOfSecret } from './authenticate-caller.ts';
import { type QuotaUse, quotaUse } from './quota-use.ts';

export interface IssuedKey {
  readonly credential: Credential;
  readonly authKey: Secret;
}

interface AccessTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Of accounts without quotas of their own. */
  readonly quotas: Quotas;
}

export type NewAccount = { readonly name: string; readonly kind: AccountKind; readonly locale: Locale };
type NewKey = {
  readonly accountId: AccountId;
  readonly kind: CredentialKind;
  readonly expiresAt: number | null;
};

const SECRET_BYTES = 32;

export type ManageAccess = ReturnType<typeof manageAccess>;

/** `call` says which operator acts; the command line's own user if it is left out. */
export function manageAccess({ store, now, newId, randomBytes, quotas }: AccessTools, call?: OperatorCall) {
  const audit = auditLog({ now, newId });
  const by = (accountId: AccountId) => byOperator(accountId, call);

  async function createAccountIn(tx: Repositories, request: NewAccount): Promise<Account> {
    const account: Account = {
      id: newId(),
      ...request,
      name: accountName(request.name),
      createdAt: now(),
      suspendedAt: null,
      quotas: { openOrders: null, storedBytes: null },
      storedBytes: 0,
    };
    await tx.accounts.insert(account);
    await audit(tx, by(account.id), 'account:created', account.id, { kind: account.kind });
    return account;
  }

  async function createKeyIn(tx: Repositories, { accountId, kind, expiresAt }: NewKey): Promise<IssuedKey> {
    await requireAccount(tx, accountId);
    const authKey = new Secret(Buffer.from(randomBytes(SECRET_BYTES)).toString('base64url'));
    const credential: Credential = {
      keyId: newId(),
      accountId,
      kind,
      createdAt: now(),
      expiresAt,
      disabledAt: null,
      lastUsedAt: null,
    };
    await tx.credentials.insert(credential, hashOfSecret(authKey.reveal()));
    await audit(tx, by(accountId), 'key:created', credential.keyId, { kind, expires_at: expiresAt });
    return { credential, authKey };
  }

  return {
    // For use inside a larger transaction, such as the sandbox's.
    createAccountIn,
    createKeyIn,

    createAccount: (request: NewAccount) => store.transaction((tx) => createAccountIn(tx, request)),
    createKey: (request: NewKey) => store.transaction((tx) => createKeyIn(tx, request)),
    listAccounts: (page: Page) => store.accounts.list(page),

    async showAccount(accountId: AccountId): Promise<{ account: Account; credentials: Credential[] }> {
      const account = await requireAccount(store, accountId);
      return { account, credentials: await store.credentials.listOf(accountId) };
    },

    /**
     * Its keys are refused, their access tokens and sessions end, nothing is issued to it, and its callbacks wait. Revocations and
     * their publication go on.
     */
    suspendAccount: (accountId: AccountId, reason: string | null) =>
      store.transaction(async (tx) => {
        const account = found(await tx.accounts.suspend(accountId, now()), 'account_not_found');
        await tx.accessTokens.deleteOf(accountId);
        await tx.sessions.deleteOf(accountId);
        await audit(tx, by(accountId), 'account:suspended', accountId, { reason });
        return account;
      }),

    /** What waited meanwhile, certificates and callbacks, becomes due at once. */
    resumeAccount: (accountId: AccountId) =>
      store.transaction(async (tx) => {
        const account = found(await tx.accounts.resume(accountId), 'account_not_found');
        await tx.waiting.makeDue(accountId, tx.sharedNow());
        await tx.callbackLanes.restart(accountId, tx.sharedNow());
        await audit(tx, by(accountId), 'account:resumed', accountId);
        return account;
      }),

    async showQuotas(accountId: AccountId): Promise<QuotaUse> {
      return await quotaUse(store, await requireAccount(store, accountId), quotas);
    },

    /** Every instance applies them to the next request. */
    changeQuotas: (accountId: AccountId, change: QuotaChange) =>
      store.transaction(async (tx) => {
        const account = found(await tx.accounts.setQuotas(accountId, change), 'account_not_found');
        const details = { open_orders: account.quotas.openOrders, stored_bytes: account.quotas.storedBytes };
        await audit(tx, by(accountId), 'account:quota_changed', accountId, details);
        return await quotaUse(tx, account, quotas);
      }),

    async listKeys(accountId: AccountId): Promise<Credential[]> {
      await requireAccount(store, accountId);
      return store.credentials.listOf(accountId);
    },

    disableKey: (keyId: string) =>
      store.transaction(async (tx) => {
        const credential = found(await tx.credentials.disable(keyId, now()), 'key_not_found');
        await audit(tx, by(credential.accountId), 'key:disabled', keyId);
        return credential;
      }),

    /** Creates a successor. The old key works for the overlap, so that clients can switch without an outage. */
    rotateKey: (keyId: string, overlapMs: number) =>
      store.transaction(async (tx) => {
        const old = found(await tx.credentials.find(keyId), 'key_not_found');
        requireUsable(old, now());
        // The successor gets the same lifetime as the old key.
        const expiresAt = old.expiresAt === null ? null : now() + old.expiresAt - old.createdAt;
        const issued = await createKeyIn(tx, { accountId: old.accountId, kind: old.kind, expiresAt });
        const ending = found(await tx.credentials.expire(keyId, now() + overlapMs), 'key_not_found');
        await audit(tx, by(old.accountId), 'key:rotated', keyId, { successor: issued.credential.keyId });
        return { ...issued, old: ending };
      }),
  };
}

async function requireAccount(db: Repositories, accountId: AccountId): Promise<Account> {
  return found(await db.accounts.find(accountId), 'account_not_found');
}

function found<T>(value: T | undefined, otherwise: 'account_not_found' | 'key_not_found'): T {
  if (value === undefined) throw new Refusal(otherwise);
  return value;
}
