// The sandbox's orders: one of each product, in the first account. Each is known by its alternative id, so that a
// restart finds them and places only what is missing, such as a product that a newer version brought.

import type { Product } from '../domain/catalog/products.ts';
import type { Order } from '../domain/certificate/order.ts';
import { Refusal } from '../domain/errors.ts';
import type { AccountId } from '../domain/ids.ts';
import type { Store } from '../domain/store.ts';
import type { PlaceOrder } from '../usecases/issuance/place-order.ts';
import type { SandboxFile } from './folder.ts';

/** Of the keys that the sandbox makes a request for. */
const KEY_TYPES = ['p256', 'p384', 'rsa', 'sm2'] as const;

export async function seedOrders(
  store: Store,
  placeOrder: PlaceOrder,
  products: Iterable<Product>,
  accountId: AccountId,
  makeCsr: (commonName: string, keyType: (typeof KEY_TYPES)[number]) => Promise<string>,
): Promise<SandboxFile['orders']> {
  const orders: Order[] = [];
  for (const { id, kind, keys, signHashes } of products) {
    const alternativeId = `sandbox-${id}`;
    const placed = () => store.orders.findByAlternative(accountId, alternativeId);
    async function place(): Promise<Order | undefined> {
      const keyType = KEY_TYPES.find((one) => keys.some(({ type }) => type === one));
      if (!keyType) return undefined;
      const commonName = kind === 'ssl' ? `${id}.example.com` : 'Sandbox';
      await placeOrder({
        ...{ accountId, productId: id, alternativeId, actor: 'cli', vouchesForNames: true },
        request: {
          commonName,
          dnsNames: kind === 'ssl' ? [`www.${id}.example.com`] : undefined,
          csr: await makeCsr(commonName, keyType),
          keySource: 'caller',
          signHash: signHashes[0]!,
          keepsEncryptionKey: false,
        },
      }).catch((error) => {
        // A product that cannot be served, such as SM2 that is switched off, is no reason not to show the others.
        if (!(error instanceof Refusal)) throw error;
      });
      return await placed();
    }
    const order = (await placed()) ?? (await place());
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
