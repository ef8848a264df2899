// GET and PUT /openapi/v3/account: shows the caller's account and credential, changes name or language. An extension of
// the specification: lets a client verify its API key without side effects.
import Type from 'typebox';
import { ACCOUNT_KINDS, type Account, MAX_ACCOUNT_NAME } from '../../domain/access/account.ts';
import { CREDENTIAL_KINDS, type Credential } from '../../domain/access/credential.ts';
import { LOCALES } from '../../kernel/locale.ts';
import type { ChangeAccount } from '../../usecases/access/change-account.ts';
import type { QuotaUse } from '../../usecases/access/quota-use.ts';
import type { Api } from '../front/api.ts';
import { callerOf } from '../front/authentication.ts';
import { answers, success } from '../front/reply.ts';
import { DateTime, moment, nullable } from '../front/values.ts';

const QuotaView = Type.Object({ used: Type.Integer(), limit: Type.Integer() });
const AccountView = Type.Object({
  account: Type.Object({
    id: Type.String(),
    name: Type.String(),
    kind: Type.Enum([...ACCOUNT_KINDS]),
    locale: Type.Enum([...LOCALES]),
    created_at: DateTime,
  }),
  credential: Type.Object({
    key_id: Type.String(),
    kind: Type.Enum([...CREDENTIAL_KINDS]),
    expires_at: nullable(DateTime),
  }),
  quotas: Type.Object({ open_orders: QuotaView, stored_bytes: QuotaView }),
});

const AccountBody = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_ACCOUNT_NAME, examples: ['Acme Ltd'] })),
  locale: Type.Optional(Type.String({ enum: [...LOCALES], examples: ['zh-CN'] })),
});

const common = { tags: ['account'], 'x-reseal-extension': true, response: answers(AccountView) };

interface AccountServices {
  readonly changeAccount: ChangeAccount;
  readonly quotaUse: (account: Account) => Promise<QuotaUse>;
}

export function accountOperations(api: Api, { changeAccount, quotaUse }: AccountServices): void {
  api.get(
    '/account',
    { config: { action: 'read' }, schema: { summary: 'Show the account', ...common } },
    async (request) => {
      const { account, credential } = callerOf(request);
      return success(viewOf(account, credential, await quotaUse(account)));
    },
  );

  api.put(
    '/account',
    { config: { action: 'change_account' }, schema: { summary: 'Change the account', body: AccountBody, ...common } },
    async (request) => {
      const caller = callerOf(request);
      const account = await changeAccount(caller, request.body, request.id);
      return success(viewOf(account, caller.credential, await quotaUse(account)));
    },
  );
}

const viewOf = (
  account: Account,
  credential: Credential,
  { openOrders, storedBytes }: QuotaUse,
): Type.Static<typeof AccountView> => ({
  account: {
    id: account.id,
    name: account.name,
    kind: account.kind,
    locale: account.locale,
    created_at: new Date(account.createdAt).toISOString(),
  },
  credential: {
    key_id: credential.keyId,
    kind: credential.kind,
    expires_at: moment(credential.expiresAt),
  },
  quotas: { open_orders: openOrders, stored_bytes: storedBytes },
});
