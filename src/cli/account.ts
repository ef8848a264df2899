// reseal account create | list | show | quota | suspend | resume
import { ACCOUNT_KINDS, type Account } from '../domain/access/account.ts';
import { MAX_QUOTA, MIB } from '../domain/access/quota.ts';
import { LOCALES } from '../kernel/locale.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { Command } from './command.ts';
import { keyTable, keyView } from './key.ts';
import { oneOf, pageSize, table, time } from './values.ts';

const accountView = (account: Account) => ({
  id: account.id,
  name: account.name,
  kind: account.kind,
  locale: account.locale,
  created_at: time(account.createdAt),
  suspended_at: account.suspendedAt === null ? null : time(account.suspendedAt),
});

const accountTable = (accounts: readonly Account[]): string =>
  table(
    ['ID', 'KIND', 'LOCALE', 'CREATED', 'STATE', 'NAME'],
    accounts.map((account) => [
      account.id,
      account.kind,
      account.locale,
      time(account.createdAt),
      account.suspendedAt === null ? 'active' : 'suspended',
      account.name,
    ]),
  );

export const accountCreate: Command = {
  store: 'creates',
  about: 'create an account',
  examples: ["account create 'Acme Ltd'", "account create 'Acme PKI' --kind managed_pki --locale zh-CN"],
  positionals: ['NAME'],
  options: {
    kind: { type: 'string', about: `${ACCOUNT_KINDS.join(' or ')} (default ${ACCOUNT_KINDS[0]})` },
    locale: { type: 'string', about: `${LOCALES.join(' or ')} (default ${LOCALES[0]})` },
  },
  async run({ positionals: [name = ''], options }, { withAccess }) {
    const kind = oneOf('kind', options.kind, ACCOUNT_KINDS, 'standard');
    const locale = oneOf('locale', options.locale, LOCALES, 'en');
    const account = await withAccess((access) => access.createAccount({ name, kind, locale }));
    return {
      json: { account: accountView(account) },
      text: `Created account ${account.id} (${account.name}).\nNext, a key for it: reseal key create ${account.id}`,
    };
  },
};

export const accountList: Command = {
  store: 'existing',
  about: 'list accounts, oldest first',
  examples: ['account list', 'account list --limit 50 --after 01…'],
  positionals: [],
  options: {
    limit: { type: 'string', about: 'maximum number of results (default 100)' },
    after: { type: 'string', about: 'continue after this account id' },
  },
  async run({ options }, { withAccess }) {
    const page = { limit: pageSize(options.limit), after: options.after?.toString() };
    const accounts = await withAccess((access) => access.listAccounts(page));
    const more = accounts.length === page.limit ? `\nMore: reseal account list --after ${accounts.at(-1)?.id}` : '';
    return {
      json: { accounts: accounts.map(accountView) },
      text:
        accounts.length === 0 && page.after === undefined
          ? "There are no accounts yet. Create one: reseal account create 'Acme Ltd'"
          : accountTable(accounts) + more,
    };
  },
};

export const accountShow: Command = {
  store: 'existing',
  about: 'show an account and its keys',
  examples: ['account show ACCOUNT'],
  positionals: ['ACCOUNT'],
  options: {},
  async run({ positionals: [id = ''] }, { withAccess, now }) {
    const { account, credentials } = await withAccess((access) => access.showAccount(id));
    return {
      json: { account: accountView(account), credentials: credentials.map((credential) => keyView(credential, now())) },
      text: `${accountTable([account])}\n\n${keyTable(credentials, now())}`,
    };
  },
};

const DEFAULT = 'default';

/** A number; null for the default; undefined if the option was left out. */
function quota(option: string, given: unknown): number | null | undefined {
  if (given === undefined) return undefined;
  if (given === DEFAULT) return null;
  const value = /^\d{1,9}$/.test(String(given)) ? Number(given) : Number.NaN;
  if (value >= 0 && value <= MAX_QUOTA) return value;
  throw new Problem(
    EXIT.usage,
    `--${option} ${String(given)} is no quota`,
    `Use a number from 0 to ${MAX_QUOTA}, or ${DEFAULT}.`,
  );
}

export const accountQuota: Command = {
  store: 'existing',
  about: 'show how many orders may wait and how much may be stored, or change it for this account',
  examples: ['account quota ACCOUNT', 'account quota ACCOUNT --open-orders 5000 --stored-mib default'],
  positionals: ['ACCOUNT'],
  options: {
    'open-orders': { type: 'string', about: `orders that may wait for a certificate, or ${DEFAULT}` },
    'stored-mib': { type: 'string', about: `MiB that its certificates may take, or ${DEFAULT}` },
  },
  async run({ positionals: [id = ''], options }, { withAccess }) {
    const openOrders = quota('open-orders', options['open-orders']);
    const mib = quota('stored-mib', options['stored-mib']);
    const change = {
      ...(openOrders !== undefined && { openOrders }),
      ...(mib !== undefined && { storedBytes: mib === null ? null : mib * MIB }),
    };
    const isChange = Object.keys(change).length > 0;
    const use = await withAccess((access) => (isChange ? access.changeQuotas(id, change) : access.showQuotas(id)));
    const { openOrders: open, storedBytes: stored } = use;
    return {
      json: { quotas: { open_orders: open, stored_bytes: stored } },
      text: table(
        ['QUOTA', 'USED', 'LIMIT'],
        [
          ['open orders', String(open.used), String(open.limit)],
          ['stored MiB', String(Math.ceil(stored.used / MIB)), String(Math.floor(stored.limit / MIB))],
        ],
      ),
    };
  },
};

export const accountSuspend: Command = {
  store: 'existing',
  about: 'refuse its keys, issue nothing to it, and hold its callbacks; its certificates stay valid',
  examples: ['account suspend ACCOUNT', "account suspend ACCOUNT --reason 'invoice 4711'"],
  positionals: ['ACCOUNT'],
  options: { reason: { type: 'string', about: 'for the audit log' } },
  async run({ positionals: [id = ''], options }, { withAccess }) {
    const reason = options.reason?.toString() ?? null;
    const account = await withAccess((access) => access.suspendAccount(id, reason));
    return {
      json: { account: accountView(account) },
      text: `Account ${id} is suspended since ${time(account.suspendedAt)}. Revocations, CRLs and OCSP go on.\nTo end it: reseal account resume ${id}`,
    };
  },
};

export const accountResume: Command = {
  store: 'existing',
  about: 'end a suspension; what waited, orders and callbacks, goes on at once',
  examples: ['account resume ACCOUNT'],
  positionals: ['ACCOUNT'],
  options: {},
  async run({ positionals: [id = ''] }, { withAccess }) {
    const account = await withAccess((access) => access.resumeAccount(id));
    return { json: { account: accountView(account) }, text: `Account ${id} is active.` };
  },
};
