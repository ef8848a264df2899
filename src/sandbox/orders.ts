// The sandbox's orders: one of each product, in the first account. Each is known by its alternative id, so that a
// restart finds them and places only what is missing, such as a product that a newer version brought.
import { Refusal } from '../domain/errors.ts';
import type { Store } from '../domain/ports.ts';
import type { Product } from '../domain/products.ts';
import type { PlaceOrder } from '../usecases/place-order.ts';
import type { SandboxFile } from './folder.ts';

export type SandboxOrders = SandboxFile['orders'];

const MAX_ORDERS = 200;

export async function seedOrders(
  store: Store,
  placeOrder: PlaceOrder,
  products: Iterable<Product>,
  accountId: string,
  makeCsr: (commonName: string, keyType: 'p256' | 'sm2') => Promise<string>,
): Promise<SandboxOrders> {
  const placed = await store.orders.list(accountId, { limit: MAX_ORDERS });
  for (const { id, kind, keys, signHashes } of products) {
    const alternativeId = `sandbox-${id}`;
    if (placed.some((order) => order.alternativeId === alternativeId)) continue;
    const commonName = kind === 'ssl' ? `${id}.example.com` : 'Sandbox';
    const keyType = (['p256', 'sm2'] as const).find((one) => keys.some(({ type }) => type === one));
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
  const orders = await store.orders.list(accountId, { limit: MAX_ORDERS });
  return orders
    .filter(({ alternativeId }) => alternativeId?.startsWith('sandbox-'))
    .map((order) => ({
      id: order.id,
      account_id: order.accountId,
      product: order.productId,
      common_name: order.commonName,
      dns_names: order.names,
      status: order.status,
      certificate_id: order.currentCertificateId,
    }));
}
