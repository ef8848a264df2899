// Key and certificate of the sandbox's receiver. The certificate comes from a regular order, in an account without API
// keys. The private key is stored sealed, so that both survive restarts.

import { pem } from '../domain/certificate/pem.ts';
import type { AccountId } from '../domain/ids.ts';
import type { Store } from '../domain/store.ts';
import { DAY_MS } from '../kernel/durations.ts';
import { byOperator } from '../usecases/access/audit.ts';
import type { ManageAccess } from '../usecases/access/manage-access.ts';
import type { PlaceOrder } from '../usecases/issuance/place-order.ts';

export const RECEIVER_NAME = 'receiver.sandbox.test';
/** Also in the certificate, so that the missing chain is its only fault. */
export const UNTRUSTED_NAME = 'untrusted.sandbox.test';

const RECEIVER_SECRET = 'sandbox-receiver';
const PRODUCT = 'tls-private';
const RENEW_MS = 30 * DAY_MS;
const MAX_ORDERS = 200;

interface ReceiverIdentity {
  /** PKCS#8, PEM. */
  readonly key: string;
  readonly issuerId: string;
  readonly leaf: Uint8Array;
}

interface IdentityTools {
  readonly store: Store;
  readonly access: ManageAccess;
  readonly placeOrder: PlaceOrder;
  readonly now: () => number;
  readonly newKeyAndCsr: (commonName: string) => Promise<{ readonly pkcs8: Uint8Array; readonly csr: string }>;
}

interface StoredKey {
  readonly accountId: AccountId;
  readonly key: string;
  readonly csr: string;
}

/** Orders a certificate if there is none, or if it expires soon. */
export async function receiverIdentity(tools: IdentityTools): Promise<ReceiverIdentity> {
  const { store, now } = tools;
  const { accountId, key, csr } = await loadKey(tools);
  const last = await lastCertificate(store, accountId);
  if (last && last.notAfter > now() + RENEW_MS) return { key, ...last };
  await tools.placeOrder({
    accountId,
    productId: PRODUCT,
    alternativeId: null,
    actor: byOperator(accountId).actor,
    vouchesForNames: true,
    request: {
      commonName: RECEIVER_NAME,
      dnsNames: [UNTRUSTED_NAME],
      csr,
      keySource: 'caller',
      signHash: 'sha256',
      keepsEncryptionKey: false,
    },
  });
  const issued = await lastCertificate(store, accountId);
  if (!issued) throw new Error('the order of the receiver was not issued');
  return { key, ...issued };
}

async function lastCertificate(store: Store, accountId: AccountId) {
  const { rows: orders } = await store.inventory.orders(accountId, {}, { limit: MAX_ORDERS });
  const id = orders.findLast(({ status }) => status === 'issued')?.currentCertificateId;
  const certificate = id ? await store.certificates.find(accountId, id) : undefined;
  if (certificate?.state !== 'issued') return undefined;
  const { issuerId, notAfter } = certificate.preparation;
  return { issuerId, notAfter, leaf: certificate.der };
}

async function loadKey({ store, access, newKeyAndCsr }: IdentityTools): Promise<StoredKey> {
  return await store.transaction(async (tx) => {
    const stored = await tx.secrets.get(RECEIVER_SECRET);
    if (stored !== undefined) return JSON.parse(stored) as StoredKey;
    const { id } = await access.createAccountIn(tx, { name: 'Sandbox receiver', kind: 'standard', locale: 'en' });
    const { pkcs8, csr } = await newKeyAndCsr(RECEIVER_NAME);
    const made: StoredKey = { accountId: id, key: pem('PRIVATE KEY', pkcs8), csr };
    await tx.secrets.claim(RECEIVER_SECRET, JSON.stringify(made));
    return made;
  });
}
