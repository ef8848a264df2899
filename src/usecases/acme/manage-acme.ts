// Operator's management of external account bindings and ACME accounts. The MAC key of a binding exists in clear only in the
// result of the call that created it. Each change and its audit row are one transaction.
import { accountName } from '../../domain/access/account.ts';
import type { AcmeAccount } from '../../domain/acme/account.ts';
import type { Binding, BindingRights } from '../../domain/acme/binding.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId, NewId } from '../../domain/ids.ts';
import type { Page } from '../../domain/page.ts';
import { Secret } from '../../domain/secret.ts';
import type { Repositories, Store } from '../../domain/store.ts';
import { auditLog, byOperator } from '../access/audit.ts';

export interface NewBinding extends BindingRights, Pick<Binding, 'accountId' | 'name' | 'isReusable' | 'expiresAt'> {}

export interface IssuedBinding {
  readonly binding: Binding;
  /** base64url without padding, as clients take it. */
  readonly macKey: Secret;
}

interface AcmeTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
  readonly randomBytes: (count: number) => Uint8Array;
}

const MAC_KEY_BYTES = 32;

export type ManageAcme = ReturnType<typeof manageAcme>;

export function manageAcme({ store, now, newId, randomBytes }: AcmeTools) {
  const audit = auditLog({ now, newId });

  async function createBindingIn(tx: Repositories, request: NewBinding): Promise<IssuedBinding> {
    if (!(await tx.accounts.find(request.accountId))) throw new Refusal('account_not_found');
    const macKey = new Secret(Buffer.from(randomBytes(MAC_KEY_BYTES)).toString('base64url'));
    const name = request.name === '' ? '' : accountName(request.name);
    const binding: Binding = { id: newId(), ...request, name, createdAt: now(), disabledAt: null, usedAt: null };
    await tx.acmeBindings.insert(binding, macKey);
    await audit(tx, byOperator(binding.accountId), 'acme-binding:created', binding.id, {
      name: binding.name,
      products: binding.products?.join(' ') ?? null,
      names_below: binding.nameSuffixes?.join(' ') ?? null,
      is_reusable: Number(binding.isReusable),
      revokes_replaced: Number(binding.revokesReplaced),
      expires_at: binding.expiresAt,
    });
    return { binding, macKey };
  }

  return {
    // For use inside a larger transaction, such as the sandbox's.
    createBindingIn,
    createBinding: (request: NewBinding) => store.transaction((tx) => createBindingIn(tx, request)),

    async listBindings(accountId: AccountId, page: Page): Promise<Binding[]> {
      if (!(await store.accounts.find(accountId))) throw new Refusal('account_not_found');
      return await store.acmeBindings.listOf(accountId, page);
    },

    /** Requests of every ACME account made with it are refused from now on. */
    disableBinding: (id: string) =>
      store.transaction(async (tx) => {
        const binding = await tx.acmeBindings.disable(id, now());
        if (!binding) throw noBinding();
        await audit(tx, byOperator(binding.accountId), 'acme-binding:disabled', id);
        return binding;
      }),

    async listAccounts(accountId: AccountId, page: Page): Promise<AcmeAccount[]> {
      if (!(await store.accounts.find(accountId))) throw new Refusal('account_not_found');
      return await store.acmeAccounts.listOf(accountId, page);
    },

    /** For good. The tenant's other ACME accounts are not concerned. */
    disableAccount: (id: string) =>
      store.transaction(async (tx) => {
        const account = await tx.acmeAccounts.end(id, 'revoked');
        if (!account) throw noAcmeAccount();
        await audit(tx, byOperator(account.accountId), 'acme-account:disabled', id);
        return account;
      }),
  };
}

const noBinding = (): Refusal =>
  new Refusal('key_not_found', {
    reason: {
      en: 'There is no such external account binding. reseal acme key list ACCOUNT shows them.',
      zh: '没有此外部账户绑定，可通过 reseal acme key list ACCOUNT 查看。',
    },
  });

const noAcmeAccount = (): Refusal =>
  new Refusal('account_not_found', {
    reason: {
      en: 'There is no such ACME account. reseal acme account list ACCOUNT shows them.',
      zh: '没有此 ACME 账户，可通过 reseal acme account list ACCOUNT 查看。',
    },
  });
