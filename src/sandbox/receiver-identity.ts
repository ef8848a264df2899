// The certificate of the sandbox's receiver: a real one, of an order like any other, in an account that nobody has a
// key to. The private key is kept sealed, so that restarts find both.

import { pem } from '../domain/certificate/pem.ts';
import type { AccountId } from '../domain/ids.ts';
import type { Store } from '../domain/store.ts';
import { DAY_MS } from '../kernel/durations.ts';
import type { ManageAccess } from '../usecases/access/manage-access.ts';
import type { PlaceOrder } from '../usecases/issuance/place-order.ts';

export const RECEIVER_NAME = 'receiver.sandbox.test';
/** In the certificate too, so that nothing else is wrong with a receiver that leaves out its chain. */
export const UNTRUSTED_NAME = 'untrusted.sandbox.test';

const NOTE = 'sandbox-receiver';
const PRODUCT = 'tls-private';
const RENEW_MS = 30 * DAY_MS;
const MAX_ORDERS = 200;

export interface Identity {
  /** PKCS#8, PEM. */
  readonly key: string;
  readonly issuerId: string;
  readonly leaf: Uint8Array;
}

export interface IdentityTools {
  readonly store: Store;
  readonly access: ManageAccess;
  readonly placeOrder: PlaceOrder;
  readonly now: () => number;
  readonly newKeyAndCsr: (commonName: string) => Promise<{ readonly pkcs8: Uint8Array; readonly csr: string }>;
}

interface Note {
  readonly accountId: AccountId;
  readonly key: string;
  readonly csr: string;
}

export async function receiverIdentity(tools: IdentityTools): Promise<Identity> {
  const { store, now } = tools;
  const { accountId, key, csr } = await noteOf(tools);
  const found = await lastCertificate(store, accountId);
  if (found?.preparation && found.preparation.notAfter > now() + RENEW_MS) return identityOf(found, key);
  await tools.placeOrder({
    accountId,
    productId: PRODUCT,
    alternativeId: null,
    actor: 'cli',
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
  return identityOf((await lastCertificate(store, accountId))!, key);
}

type Found = NonNullable<Awaited<ReturnType<typeof lastCertificate>>>;
const identityOf = ({ preparation, der }: Found, key: string): Identity => ({
  key,
  issuerId: preparation!.issuerId,
  leaf: der!,
});

async function lastCertificate(store: Store, accountId: AccountId) {
  const orders = await store.orders.list(accountId, { limit: MAX_ORDERS });
  const id = orders.findLast(({ status }) => status === 'issued')?.currentCertificateId;
  return id ? await store.certificates.find(accountId, id) : undefined;
}

async function noteOf({ store, access, newKeyAndCsr }: IdentityTools): Promise<Note> {
  return await store.transaction(async (tx) => {
    const note = await tx.secrets.get(NOTE);
    if (note !== undefined) return JSON.parse(note) as Note;
    const { id } = await access.createAccountIn(tx, { name: 'Sandbox receiver', kind: 'standard', locale: 'en' });
    const { pkcs8, csr } = await newKeyAndCsr(RECEIVER_NAME);
    const made: Note = { accountId: id, key: pem('PRIVATE KEY', pkcs8), csr };
    await tx.secrets.claim(NOTE, JSON.stringify(made));
    return made;
  });
}
