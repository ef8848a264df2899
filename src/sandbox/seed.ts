// Demo data of the sandbox: accounts, one order per product, and callback settings. Seeding is idempotent: ids and keys
// survive restarts, even if sandbox.json is lost, and the user's changes are kept.
import type { AccountKind } from '../domain/access/account.ts';
import { type Actor, CREDENTIAL_KINDS, type CredentialKind } from '../domain/access/credential.ts';
import type { CallbackAction, CallbackSettings } from '../domain/callbacks/callback.ts';
import type { Product } from '../domain/catalog/products.ts';
import type { Order } from '../domain/certificate/order.ts';
import { MAX_CALLBACK_URL } from '../domain/egress/url.ts';
import { Refusal } from '../domain/errors.ts';
import type { AccountId } from '../domain/ids.ts';
import type { Store } from '../domain/store.ts';
import { byOperator } from '../usecases/access/audit.ts';
import type { ManageAccess } from '../usecases/access/manage-access.ts';
import type { ManageAcme } from '../usecases/acme/manage-acme.ts';
import type { ConfigureCallback } from '../usecases/callbacks/configure-callback.ts';
import type { PlaceOrder } from '../usecases/issuance/place-order.ts';
import type { SandboxCallback, SandboxFile } from './folder.ts';

type SandboxAccounts = SandboxFile['accounts'];

interface DemoAccount {
  readonly name: string;
  readonly kind: AccountKind;
  readonly credentials: readonly CredentialKind[];
  readonly callback?: { readonly disabled: boolean; readonly enabled_actions?: CallbackAction[] };
}

const DEMO_ACCOUNTS: readonly DemoAccount[] = [
  { name: 'Sandbox', kind: 'standard', credentials: CREDENTIAL_KINDS, callback: { disabled: false } },
  { name: 'Sandbox managed PKI', kind: 'managed_pki', credentials: ['standard'], callback: { disabled: false } },
  { name: 'Sandbox without callback', kind: 'standard', credentials: ['standard'] },
  {
    name: 'Sandbox with paused callback',
    kind: 'standard',
    credentials: ['standard'],
    callback: { disabled: true, enabled_actions: ['order:revoked'] },
  },
];

/** Sealed values. The accounts are stored with their keys; the callbacks only as a marker that they were seeded. */
const ACCOUNTS_SECRET = 'sandbox-accounts';
const CALLBACKS_SECRET = 'sandbox-callbacks';
const BINDING_SECRET = 'sandbox-acme-key';

interface SandboxBinding {
  readonly kid: string;
  readonly hmac_key: string;
}

/** For any number of ACME accounts, so that the line of the greeting works twice. */
export async function seedBinding(store: Store, acme: ManageAcme, accountId: AccountId): Promise<SandboxBinding> {
  return await store.transaction(async (tx) => {
    const stored = await tx.secrets.get(BINDING_SECRET);
    if (stored !== undefined) return JSON.parse(stored) as SandboxBinding;
    const { binding, macKey } = await acme.createBindingIn(tx, {
      ...{ accountId, name: 'Sandbox', isReusable: true, expiresAt: null },
      ...{ products: null, nameSuffixes: null, revokesReplaced: false },
    });
    const made = { kid: binding.id, hmac_key: macKey.reveal() };
    await tx.secrets.claim(BINDING_SECRET, JSON.stringify(made));
    return made;
  });
}

export async function seedAccounts(store: Store, access: ManageAccess): Promise<SandboxAccounts> {
  return await store.transaction(async (tx) => {
    const stored = await tx.secrets.get(ACCOUNTS_SECRET);
    if (stored !== undefined) return JSON.parse(stored) as SandboxAccounts;
    const accounts: SandboxAccounts[number][] = [];
    for (const { name, kind, credentials: kinds } of DEMO_ACCOUNTS) {
      const { id } = await access.createAccountIn(tx, { name, kind, locale: 'en' });
      const credentials: SandboxAccounts[number]['credentials'][number][] = [];
      for (const kind of kinds) {
        const { credential, authKey } = await access.createKeyIn(tx, { accountId: id, kind, expiresAt: null });
        credentials.push({ kind, key_id: credential.keyId, auth_key: authKey.reveal() });
      }
      accounts.push({ id, name, kind, credentials, callback: null });
    }
    await tx.secrets.claim(ACCOUNTS_SECRET, JSON.stringify(accounts));
    return accounts;
  });
}

/** Key types for which the sandbox can make CSRs. */
const KEY_TYPES = ['p256', 'p384', 'rsa', 'sm2'] as const;

interface OrderSeeds {
  readonly store: Store;
  readonly placeOrder: PlaceOrder;
  readonly products: Iterable<Product>;
  readonly accountId: AccountId;
  readonly makeCsr: (commonName: string, keyType: (typeof KEY_TYPES)[number]) => Promise<string>;
}

/** Places missing orders, for instance of products that a newer version added; finds others by alternative id. */
export async function seedOrders(seeds: OrderSeeds): Promise<SandboxFile['orders']> {
  const orders: Order[] = [];
  for (const product of seeds.products) {
    const find = () => seeds.store.orders.findByAlternative(seeds.accountId, alternativeIdOf(product));
    let order = await find();
    if (!order) {
      await placeDemoOrder(seeds, product);
      order = await find();
    }
    if (order) orders.push(order);
  }
  return orders.map((order) => ({
    id: order.id,
    account_id: order.accountId,
    product: order.productId,
    common_name: order.commonName,
    dns_names: order.names,
    status: order.status,
    certificate_id: order.currentCertificateId,
  }));
}

const alternativeIdOf = ({ id }: Product): string => `sandbox-${id}`;

async function placeDemoOrder({ placeOrder, accountId, makeCsr }: OrderSeeds, product: Product): Promise<void> {
  const { id, kind, keys, signHashes } = product;
  const keyType = KEY_TYPES.find((one) => keys.some(({ type }) => type === one));
  const [signHash] = signHashes;
  if (!keyType || !signHash) return;
  const commonName = kind === 'ssl' ? `${id}.example.com` : 'Sandbox';
  const csr = await makeCsr(commonName, keyType);
  await placeOrder({
    accountId,
    productId: id,
    alternativeId: alternativeIdOf(product),
    actor: byOperator(accountId).actor,
    vouchesForNames: true,
    request: {
      commonName,
      dnsNames: kind === 'ssl' ? [`www.${id}.example.com`] : undefined,
      csr,
      keySource: 'caller',
      signHash,
      keepsEncryptionKey: false,
    },
  }).catch((error) => {
    // A product that cannot be issued, such as SM2 switched off, must not keep the others from being shown.
    if (!(error instanceof Refusal)) throw error;
  });
}

interface CallbackSeeds {
  readonly store: Store;
  readonly callbacks: ConfigureCallback;
  readonly accounts: SandboxAccounts;
  readonly receiverUrl: string;
  readonly newAccessKey: () => string;
}

/**
 * Returns the accounts with their saved callback settings. Saves the demo settings once; later starts keep what the
 * user changed or deleted, and only update the port of the sandbox's own receiver.
 */
export async function seedCallbacks(seeds: CallbackSeeds): Promise<SandboxAccounts> {
  const { store, callbacks, accounts, receiverUrl, newAccessKey } = seeds;
  const isFirst = (await store.secrets.get(CALLBACKS_SECRET)) === undefined;
  const seeded: SandboxAccounts[number][] = [];
  for (const account of accounts) {
    const seed = isFirst ? DEMO_ACCOUNTS.find(({ name }) => name === account.name)?.callback : undefined;
    const by = byOperator(account.id);
    const before = await callbacks.show(account.id);
    if (before) await updatePort(callbacks, by, before, receiverUrl);
    else if (seed) await callbacks.save(by, { ...seed, url: receiverUrl, access_key: newAccessKey() });
    const saved = await callbacks.show(account.id);
    seeded.push({ ...account, callback: saved ? sandboxCallback(saved) : null });
  }
  await store.secrets.claim(CALLBACKS_SECRET, 'seeded');
  return seeded;
}

async function updatePort(
  callbacks: ConfigureCallback,
  by: Actor,
  saved: CallbackSettings,
  receiverUrl: string,
): Promise<void> {
  const [before, now] = [new URL(saved.url), new URL(receiverUrl)];
  // Keeps the rest of the URL as written. Skipped if a port with more digits would make the URL too long.
  const url = saved.url.replace(/^(https:\/\/[^/?:]+):\d+/i, `$1:${now.port}`);
  if (before.hostname !== now.hostname || before.port === now.port || url.length > MAX_CALLBACK_URL) return;
  await callbacks.save(by, { ...fieldsOf(saved), url });
}

function sandboxCallback(saved: CallbackSettings): SandboxCallback {
  const { url, access_key, ...rest } = fieldsOf(saved);
  return { url, access_key, signing_secret: saved.signingSecret.reveal(), ...rest };
}

const fieldsOf = ({ url, accessKey, isDisabled, enabledActions }: CallbackSettings) => ({
  url,
  access_key: accessKey.reveal(),
  disabled: isDisabled,
  ...(enabledActions && { enabled_actions: enabledActions }),
});
