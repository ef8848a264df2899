// reseal acme key create | list | disable, acme account list | disable. A key is an external account binding: ACME clients
// register with it, and order for the account that it belongs to.
import type { AcmeAccount } from '../domain/acme/account.ts';
import { type Binding, parseSuffixes } from '../domain/acme/binding.ts';
import { isOrderedByAcme } from '../domain/acme/directory.ts';
import type { Catalog } from '../domain/catalog/products.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import type { Command } from './command.ts';
import { duration, listOf, pageSize, table, time } from './values.ts';

function stateOf({ disabledAt, expiresAt, usedAt, isReusable }: Binding, now: number): string {
  if (disabledAt !== null) return 'disabled';
  if (expiresAt !== null && expiresAt <= now) return 'expired';
  if (isReusable) return 'reusable';
  return usedAt === null ? 'unused' : 'used';
}

const bindingView = (binding: Binding, now: number) => ({
  kid: binding.id,
  account_id: binding.accountId,
  name: binding.name,
  state: stateOf(binding, now),
  products: binding.products,
  names_below: binding.nameSuffixes,
  reusable: binding.isReusable,
  revokes_replaced: binding.revokesReplaced,
  created_at: time(binding.createdAt),
  expires_at: binding.expiresAt === null ? null : time(binding.expiresAt),
  used_at: binding.usedAt === null ? null : time(binding.usedAt),
});

const accountView = (account: AcmeAccount) => ({
  id: account.id,
  account_id: account.accountId,
  kid: account.bindingId,
  status: account.status,
  contacts: account.contacts,
  thumbprint: account.thumbprint,
  created_at: time(account.createdAt),
});

const PAGE = {
  limit: { type: 'string', about: 'maximum number of results (default 100)' },
  after: { type: 'string', about: 'continue after this id' },
} as const;

const listed = (limit: number, command: string, rows: readonly { readonly id: string }[]): string =>
  rows.length === limit ? `\nMore: reseal ${command} --after ${rows.at(-1)?.id}` : '';

/** Null for all. */
function productsIn(given: unknown, catalog: () => Catalog): readonly string[] | null {
  const ids = listOf(given);
  if (ids.length === 0) return null;
  const ordered = [...catalog().values()].filter(isOrderedByAcme).map(({ id }) => id);
  const unknown = ids.find((id) => !ordered.includes(id));
  if (unknown === undefined) return [...new Set(ids)];
  throw new Problem(
    EXIT.usage,
    `--product ${unknown} is no product that ACME can order`,
    `Use one of: ${ordered.join(', ')}.`,
  );
}

export const acmeKeyCreate: Command = {
  store: 'existing',
  about: 'create an external account binding, with which ACME clients register; its HMAC key is shown once',
  examples: [
    'acme key create ACCOUNT',
    'acme key create ACCOUNT --product ssl-dv --names-below example.com --expires-in 90d',
    'acme key create ACCOUNT --reusable --name cluster',
  ],
  positionals: ['ACCOUNT'],
  options: {
    product: { type: 'string', multiple: true, about: 'allow this product only; repeatable (default: all)' },
    'names-below': {
      type: 'string',
      multiple: true,
      about: 'allow this name and those below it only; repeatable (default: any)',
    },
    'expires-in': { type: 'string', about: 'lifetime, such as 90d (default: does not expire)' },
    reusable: { type: 'boolean', about: 'serves any number of ACME accounts, instead of one' },
    'revokes-replaced': {
      type: 'boolean',
      about: 'consent: a certificate that an order replaces is revoked after it',
    },
    name: { type: 'string', about: 'what it is for, shown in lists' },
  },
  async run({ positionals: [accountId = ''], options }, { withAcme, products, now }) {
    const lifetime = options['expires-in'];
    const request = {
      accountId,
      name: options.name?.toString() ?? '',
      products: productsIn(options.product, products),
      nameSuffixes: parseSuffixes(listOf(options['names-below'])),
      revokesReplaced: options['revokes-replaced'] === true,
      isReusable: options.reusable === true,
      expiresAt: lifetime === undefined ? null : now() + duration('expires-in', lifetime),
    };
    const { binding, macKey } = await withAcme((acme) => acme.createBinding(request));
    return {
      json: { key: bindingView(binding, now()), hmac_key: macKey.reveal() },
      text: `Key id:   ${binding.id}\nHMAC key: ${macKey.reveal()}\n\nKeep the second line now: it is not shown again. ACME clients take both for external\naccount binding, such as certbot with --eab-kid and --eab-hmac-key.`,
    };
  },
};

export const acmeKeyList: Command = {
  store: 'existing',
  about: 'list the external account bindings of an account, oldest first',
  examples: ['acme key list ACCOUNT', 'acme key list ACCOUNT --limit 50 --after 01…'],
  positionals: ['ACCOUNT'],
  options: PAGE,
  async run({ positionals: [accountId = ''], options }, { withAcme, now }) {
    const page = { limit: pageSize(options.limit), after: options.after?.toString() };
    const bindings = await withAcme((acme) => acme.listBindings(accountId, page));
    const rows = bindings.map((one) => [
      one.id,
      stateOf(one, now()),
      one.products?.join(',') ?? 'all',
      one.nameSuffixes?.join(',') ?? 'any',
      time(one.expiresAt),
      one.name || '-',
    ]);
    return {
      json: { keys: bindings.map((one) => bindingView(one, now())) },
      text:
        bindings.length === 0
          ? `No external account bindings. Create one: reseal acme key create ${accountId}`
          : table(['KEY ID', 'STATE', 'PRODUCTS', 'NAMES BELOW', 'EXPIRES', 'NAME'], rows) +
            listed(page.limit, `acme key list ${accountId}`, bindings),
    };
  },
};

export const acmeKeyDisable: Command = {
  store: 'existing',
  about: 'disable an external account binding and all ACME accounts made with it, immediately and permanently',
  examples: ['acme key disable KEY_ID'],
  positionals: ['KEY_ID'],
  options: {},
  async run({ positionals: [id = ''] }, { withAcme, now }) {
    const binding = await withAcme((acme) => acme.disableBinding(id));
    return {
      json: { key: bindingView(binding, now()) },
      text: `External account binding ${id} is disabled: requests of its ACME accounts are refused from now on.`,
    };
  },
};

export const acmeAccountList: Command = {
  store: 'existing',
  about: 'list the ACME accounts of an account, oldest first',
  examples: ['acme account list ACCOUNT', 'acme account list ACCOUNT --limit 50 --after 01…'],
  positionals: ['ACCOUNT'],
  options: PAGE,
  async run({ positionals: [accountId = ''], options }, { withAcme }) {
    const page = { limit: pageSize(options.limit), after: options.after?.toString() };
    const accounts = await withAcme((acme) => acme.listAccounts(accountId, page));
    const rows = accounts.map(({ id, status, bindingId, createdAt, contacts }) => [
      ...[id, status, bindingId, time(createdAt)],
      contacts.join(' ') || '-',
    ]);
    return {
      json: { accounts: accounts.map(accountView) },
      text:
        accounts.length === 0
          ? 'No ACME client has registered for this account.'
          : table(['ID', 'STATUS', 'KEY ID', 'CREATED', 'CONTACTS'], rows) +
            listed(page.limit, `acme account list ${accountId}`, accounts),
    };
  },
};

export const acmeAccountDisable: Command = {
  store: 'existing',
  about: 'disable one ACME account immediately and permanently',
  examples: ['acme account disable ACME_ACCOUNT'],
  positionals: ['ACME_ACCOUNT'],
  options: {},
  async run({ positionals: [id = ''] }, { withAcme }) {
    const account = await withAcme((acme) => acme.disableAccount(id));
    return {
      json: { account: accountView(account) },
      text: `ACME account ${id} is ${account.status}: its requests are refused from now on.`,
    };
  },
};
