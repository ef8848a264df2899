// The part of the application that issues: products, the certificate authority, and the use cases over both. Opened
// when a command serves or orders, because making the first issuers takes a second.
import { openAuthority } from './adapters/ca/authority.ts';
import { readCsr } from './adapters/ca/csr.ts';
import { ensureIssuers } from './adapters/ca/issuers.ts';
import { requireStrongKey } from './adapters/ca/public-key.ts';
import { ownProducts } from './adapters/own-products.ts';
import { registrableDomain } from './adapters/public-suffix.ts';
import type { App } from './app.ts';
import type { Config } from './config.ts';
import type { CertificateAuthority, Issuer } from './domain/authority.ts';
import type { Clock } from './domain/ports.ts';
import { PRODUCTS, type Product } from './domain/products.ts';
import { type PlaceOrder, placeOrder } from './usecases/place-order.ts';
import { type Reissue, reissueCertificate } from './usecases/reissue-certificate.ts';
import { type ShowOrders, showOrders } from './usecases/show-orders.ts';
import { voidLostIssuances } from './usecases/void-lost-issuances.ts';

export interface Issuance {
  readonly authority: CertificateAuthority;
  readonly issuers: readonly Issuer[];
  readonly products: ReadonlyMap<string, Product>;
  readonly reissue: Reissue;
  readonly placeOrder: PlaceOrder;
  readonly show: ShowOrders;
  /**
   * Voids what lost signers left behind, and takes up the issuers that were brought meanwhile. Done at the start, and
   * again and again while serving. Returns how many issuances were lost.
   */
  readonly sweep: () => Promise<number>;
}

export async function openIssuance({ store, newId, log }: App, config: Config, now: Clock): Promise<Issuance> {
  const products = new Map([...PRODUCTS, ...ownProducts(config.productsFile)].map((product) => [product.id, product]));
  await voidLostIssuances(store, now);
  let issuers: readonly Issuer[] = await ensureIssuers(store, config.authority, now, newId);
  const authority = openAuthority(issuers, config.authority.pkiUrl);
  async function takeUpIssuers(): Promise<void> {
    if (statesOf(await store.issuers.listPublic()) === statesOf(issuers)) return;
    issuers = await store.issuers.list();
    authority.use(issuers);
    log({ event: 'issuers_changed', text: statesOf(issuers) });
  }
  const tools = {
    store,
    authority,
    products,
    now,
    newId,
    readCsr: (text: string) => readCsr(text).publicKey,
    requireStrongKey,
    registrableDomain,
  };
  return {
    authority,
    get issuers() {
      return issuers;
    },
    products,
    reissue: reissueCertificate(tools),
    placeOrder: placeOrder(tools),
    show: showOrders(store),
    async sweep() {
      const voided = await voidLostIssuances(store, now);
      await takeUpIssuers();
      return voided;
    },
  };
}

/** An issuer never changes but for its state, so this tells one set from another. */
const statesOf = (issuers: readonly Pick<Issuer, 'id' | 'state'>[]): string =>
  issuers.map(({ id, state }) => `${id} ${state}`).join(', ');
