// The sandbox's orders: one of each product, in the first account. Each is known by its alternative id, so that a
// restart finds them and places only what is missing, such as a product that a newer version brought.
import { Refusal } from '../domain/errors.ts';
import type { Order } from '../domain/order.ts';
import type { Store } from '../domain/ports.ts';
import type { Product } from '../domain/products.ts';
import type { PlaceOrder } from '../usecases/place-order.ts';
import type { SandboxFile } from './folder.ts';

export type SandboxOrders = SandboxFile['orders'];

/** Of the keys that the sandbox makes a request for. */
const KEY_TYPES = ['p256', 'p384', 'rsa', 'sm2'] as const;

export async function seedOrders(
  store: Store,
  placeOrder: PlaceOrder,
  products: readonly Product[],
  accountId: string,
  makeCsr: (commonName: string, keyType: (typeof KEY_TYPES)[number]) => Promise<string>,
): Promise<SandboxOrders> {
  for (const { id, kind, keys, signHashes } of products) {
    const alternativeId = `sandbox-${id}`;
    if (await store.orders.findByAlternative(accountId, alternativeId)) continue;
    const commonName = kind === 'ssl' ? `${id}.example.com` : 'Sandbox';
    const keyType = KEY_TYPES.find((one) => keys.some(({ type }) => type === one));
    if (!keyType) continue;
    const placing = placeOrder({
      accountId,
      productId: id,
      alternativeId,
      actor: 'cli',
      vouchesForNames: true,
      request: {
        commonName,
        dnsNames: kind === 'ssl' ? [`www.${id}.example.com`] : undefined,
        csr: await makeCsr(commonName, keyType),
        keySource: 'caller',
        signHash: signHashes[0]!,
        keepsEncryptionKey: false,
        acceptsRemovalOfNames: false,
        acceptsRevocationOfPrevious: false,
        dryRun: false,
      },
    });
    // A product that cannot be served, such as SM2 that is switched off, is no reason not to show the others.
    await placing.catch((error) => {
      if (!(error instanceof Refusal)) throw error;
    });
  }
  const orders: Order[] = [];
  for (const { id } of products) {
    const order = await store.orders.findByAlternative(accountId, `sandbox-${id}`);
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
