// A caller changes the name or the language of its own account: is the wish a valid one, then the change and its
// audit row in one transaction. Whether this kind of key may do it was asked at the door.
import { type Account, accountChange } from '../../domain/access/account.ts';
import type { Caller } from '../../domain/access/credential.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';

export interface AccountRequest {
  readonly name?: string;
  readonly locale?: string;
}

export type ChangeAccount = (caller: Caller, wish: AccountRequest, requestId: string) => Promise<Account>;

export function changeAccount(store: Store, now: Clock, newId: NewId): ChangeAccount {
  return async (caller, wish, requestId) => {
    const change = accountChange(wish);
    return await store.transaction(async (tx) => {
      const { id } = caller.account;
      const account = await tx.accounts.update(id, change);
      if (!account) throw new Refusal('unauthenticated_request');
      await tx.audit.append({
        id: newId(),
        at: now(),
        accountId: id,
        actor: caller.credential.keyId,
        action: 'account:changed',
        subject: id,
        requestId,
        details: { ...change },
      });
      return account;
    });
  };
}
