// Operators' routes over accounts and their keys. The secret of a key is in the answer that creates it, once.
import Type from 'typebox';
import { ACCOUNT_KINDS, type Account } from '../../domain/access/account.ts';
import { CREDENTIAL_KINDS, type Credential, credentialState } from '../../domain/access/credential.ts';
import { MAX_QUOTA, MIB } from '../../domain/access/quota.ts';
import type { Clock } from '../../domain/clock.ts';
import { invalid } from '../../domain/errors.ts';
import { DAY_MS, HOUR_MS } from '../../kernel/durations.ts';
import { LOCALES } from '../../kernel/locale.ts';
import type { OperatorCall } from '../../usecases/access/audit.ts';
import type { ManageAccess } from '../../usecases/access/manage-access.ts';
import type { ListAllAccounts } from '../../usecases/support/list-all-accounts.ts';
import type { Api } from '../front/api.ts';
import { wordOf } from '../front/filters.ts';
import { PageQuery, pageOf } from '../front/paging.ts';
import { answers, success } from '../front/reply.ts';
import { moment } from '../front/values.ts';
import * as Answer from './operator-schemas.ts';
import { operatorCallOf } from './operator-scope.ts';

export interface AccountServices {
  readonly now: Clock;
  /** The same use cases as the command line's, in the name of the operator. */
  readonly accessAs: (call: OperatorCall) => ManageAccess;
  readonly listAll: ListAllAccounts;
}

const hide = true;
const Params = Type.Object({ id: Type.String() });
const Search = Type.Object({ ...PageQuery.properties, query: Type.Optional(Type.String()) });
const NewAccount = Type.Object({
  name: Type.String(),
  kind: Type.Optional(Type.String()),
  locale: Type.Optional(Type.String()),
});
const Suspension = Type.Object({ reason: Type.Optional(Type.String()) });
const Limit = Type.Optional(Type.Unsafe<number | null>({ type: ['integer', 'null'] }));
const QuotaBody = Type.Object({ open_orders: Limit, stored_mib: Limit });
const NewKey = Type.Object({
  kind: Type.Optional(Type.String()),
  expires_in_days: Type.Optional(Type.Integer()),
});
const Rotation = Type.Object({ overlap_hours: Type.Integer() });

const MAX_SEARCH = 200;
const MAX_REASON = 500;
const MAX_KEY_DAYS = 3_650;
const MAX_OVERLAP_HOURS = 8_760;

export function operatorAccounts(api: Api, { now, accessAs, listAll }: AccountServices): void {
  const details = { hide, params: Params, response: answers('OperatorAccount', Answer.AccountDetails) } as const;
  const read = async (access: ManageAccess, id: string) => {
    const { account, credentials } = await access.showAccount(id);
    const { openOrders, storedBytes } = await access.showQuotas(id);
    return success({
      account: accountView(account),
      keys: credentials.map((one) => keyView(one, now())),
      quotas: {
        open_orders: { ...openOrders, is_default: account.quotas.openOrders === null },
        stored_mib: {
          used: Math.ceil(storedBytes.used / MIB),
          limit: Math.floor(storedBytes.limit / MIB),
          is_default: account.quotas.storedBytes === null,
        },
      },
    });
  };

  api.get(
    '/accounts',
    { schema: { hide, querystring: Search, response: answers('OperatorAccounts', Answer.AccountList) } },
    async ({ query: { query = '', ...rest } }) => {
      const page = pageOf(rest, PageQuery);
      const { rows, nextAfter } = await listAll.accounts(bounded('query', query, MAX_SEARCH), page);
      return success({ accounts: rows.map(accountView), next_after: nextAfter });
    },
  );

  const created = { hide, body: NewAccount, response: answers('OperatorNewAccount', Answer.Account) } as const;
  api.post('/accounts', { schema: created }, async (request) => {
    const { name, kind = 'standard', locale = 'en' } = request.body;
    const account = await accessAs(operatorCallOf(request)).createAccount({
      name,
      kind: wordOf('kind', kind, ACCOUNT_KINDS),
      locale: wordOf('locale', locale, LOCALES),
    });
    return success(accountView(account));
  });

  api.get('/accounts/:id', { schema: details }, (request) =>
    read(accessAs(operatorCallOf(request)), request.params.id),
  );

  api.post('/accounts/:id/suspend', { schema: { ...details, body: Suspension } }, async (request) => {
    const access = accessAs(operatorCallOf(request));
    const reason = bounded('reason', request.body.reason ?? '', MAX_REASON).trim();
    await access.suspendAccount(request.params.id, reason === '' ? null : reason);
    return await read(access, request.params.id);
  });

  api.post('/accounts/:id/resume', { schema: details }, async (request) => {
    const access = accessAs(operatorCallOf(request));
    await access.resumeAccount(request.params.id);
    return await read(access, request.params.id);
  });

  api.put('/accounts/:id/quotas', { schema: { ...details, body: QuotaBody } }, async (request) => {
    const access = accessAs(operatorCallOf(request));
    const openOrders = limit('open_orders', request.body.open_orders);
    const mib = limit('stored_mib', request.body.stored_mib);
    await access.changeQuotas(request.params.id, {
      ...(openOrders !== undefined && { openOrders }),
      ...(mib !== undefined && { storedBytes: mib === null ? null : mib * MIB }),
    });
    return await read(access, request.params.id);
  });

  const issued = { hide, params: Params, response: answers('OperatorNewKey', Answer.IssuedKey) } as const;
  api.post('/accounts/:id/keys', { schema: { ...issued, body: NewKey } }, async (request, reply) => {
    const { kind = 'standard', expires_in_days: days } = request.body;
    const { credential, authKey } = await accessAs(operatorCallOf(request)).createKey({
      accountId: request.params.id,
      kind: wordOf('kind', kind, CREDENTIAL_KINDS),
      expiresAt: days === undefined ? null : now() + within('expires_in_days', days, 1, MAX_KEY_DAYS) * DAY_MS,
    });
    reply.header('cache-control', 'no-store');
    return success({ key: keyView(credential, now()), auth_key: authKey.reveal(), old: null });
  });

  api.post('/keys/:id/rotate', { schema: { ...issued, body: Rotation } }, async (request, reply) => {
    const overlapMs = within('overlap_hours', request.body.overlap_hours, 0, MAX_OVERLAP_HOURS) * HOUR_MS;
    const access = accessAs(operatorCallOf(request));
    const { credential, authKey, old } = await access.rotateKey(request.params.id, overlapMs);
    reply.header('cache-control', 'no-store');
    return success({ key: keyView(credential, now()), auth_key: authKey.reveal(), old: keyView(old, now()) });
  });

  const disabled = { hide, params: Params, response: answers('OperatorKey', Answer.Key) } as const;
  api.post('/keys/:id/disable', { schema: disabled }, async (request) =>
    success(keyView(await accessAs(operatorCallOf(request)).disableKey(request.params.id), now())),
  );
}

export const accountView = (account: Account): Answer.Account => ({
  id: account.id,
  name: account.name,
  kind: account.kind,
  locale: account.locale,
  created_at: new Date(account.createdAt).toISOString(),
  suspended_at: moment(account.suspendedAt),
});

const keyView = (credential: Credential, now: number): Answer.Key => ({
  key_id: credential.keyId,
  kind: credential.kind,
  state: credentialState(credential, now),
  created_at: new Date(credential.createdAt).toISOString(),
  expires_at: moment(credential.expiresAt),
  last_used_at: moment(credential.lastUsedAt),
});

function bounded(field: string, text: string, most: number): string {
  if (text.length <= most) return text;
  throw invalid(field, `${field} has at most ${most} characters.`, `${field} 最多 ${most} 个字符。`);
}

function within(field: string, value: number, least: number, most: number): number {
  if (value >= least && value <= most) return value;
  throw invalid(field, `${field} is a number from ${least} to ${most}.`, `${field} 须为 ${least} 至 ${most} 的整数。`);
}

/** Null: the default again. Left out: unchanged. */
const limit = (field: string, value: number | null | undefined): number | null | undefined =>
  value == null ? value : within(field, value, 0, MAX_QUOTA);
