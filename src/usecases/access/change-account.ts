// Changes name or language of the caller's own account. The HTTP layer has checked the permission.
import { type Account, accountChange } from '../../domain/access/account.ts';
import { type Caller, callerActor } from '../../domain/access/credential.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { NewId } from '../../domain/ids.ts';
import type { Store } from '../../domain/store.ts';
import { auditLog } from './audit.ts';

export interface AccountRequest {
  readonly name?: string;
  readonly locale?: string;
}

export type ChangeAccount = (caller: Caller, request: AccountRequest, requestId: string) => Promise<Account>;

export function changeAccount(store: Store, now: Clock, newId: NewId): ChangeAccount {
  const audit = auditLog({ now, newId });
  return async (caller, request, requestId) => {
    const change = accountChange(request);
    const by = { accountId: caller.account.id, actor: callerActor(caller), requestId };
    return await store.transaction(async (tx) => {
      const account = await tx.accounts.update(by.accountId, change);
      if (!account) throw new Refusal('unauthenticated_request');
      await audit(tx, by, 'account:changed', by.accountId, { ...change });
      return account;
    });
  };
}
