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
import { DateTime, Int64, moment, nullable, text, word } from '../front/values.ts';

const Language = word('Locale', LOCALES, 'The language of messages.');

const QuotaView = Type.Object({ used: Int64, limit: Int64 }, { title: 'Quota' });
const AccountView = Type.Object({
  account: Type.Object(
    {
      id: Type.String(),
      name: Type.String(),
      kind: word('AccountKind', ACCOUNT_KINDS),
      locale: Language,
      created_at: DateTime,
    },
    { title: 'Account' },
  ),
  credential: Type.Object(
    {
      key_id: Type.String(),
      kind: word('CredentialKind', CREDENTIAL_KINDS),
      expires_at: nullable(DateTime),
    },
    { title: 'Credential' },
  ),
  quotas: Type.Object({ open_orders: QuotaView, stored_bytes: QuotaView }, { title: 'Quotas' }),
});

const AccountBody = Type.Object(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_ACCOUNT_NAME })),
    locale: Type.Optional(text(Language)),
  },
  { title: 'AccountChange', minProperties: 1 },
);

const common = {
  tags: ['account'],
  'x-reseal-extension': true,
  errors: [],
  response: answers('Account', AccountView),
} as const;

interface AccountServices {
  readonly changeAccount: ChangeAccount;
  readonly quotaUse: (account: Account) => Promise<QuotaUse>;
}

export function accountOperations(api: Api, { changeAccount, quotaUse }: AccountServices): void {
  api.get(
    '/account',
    {
      config: { action: 'read' },
      schema: {
        operationId: 'getAccount',
        summary: 'Show the account',
        description: 'Changes nothing: also a way to find out whether a key works, and of which kind it is.',
        ...common,
      },
    },
    async (request) => {
      const { account, credential } = callerOf(request);
      return success(viewOf(account, credential, await quotaUse(account)));
    },
  );

  api.put(
    '/account',
    {
      config: { action: 'change_account' },
      schema: {
        operationId: 'updateAccount',
        summary: 'Change the account',
        description: 'What is left out stays as it is.',
        body: AccountBody,
        ...common,
      },
    },
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
