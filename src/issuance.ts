// The part of the application that issues: products, the certificate authority, and the use cases over both. Opened
// when a command serves or orders, because making the first issuers takes a second.
import { readFileSync } from 'node:fs';
import { openAuthority } from './adapters/ca/authority.ts';
import { readCsr } from './adapters/ca/csr.ts';
import { ensureIssuers } from './adapters/ca/issuers.ts';
import { requireStrongKey } from './adapters/ca/public-key.ts';
import { registrableDomain } from './adapters/public-suffix.ts';
import type { App } from './app.ts';
import type { Config } from './config.ts';
import type { CertificateAuthority, Issuer } from './domain/authority.ts';
import type { Clock } from './domain/ports.ts';
import { PRODUCTS, type Product } from './domain/products.ts';
import { ProductsError, parseProducts } from './domain/products-file.ts';
import { EXIT, Problem } from './problem.ts';
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
  /** Voids what lost signers left behind. Done at the start, and again and again while serving. */
  readonly sweep: () => Promise<number>;
}

export async function openIssuance({ store, newId }: App, config: Config, now: Clock): Promise<Issuance> {
  const products = new Map([...PRODUCTS, ...ownProducts(config.productsFile)].map((product) => [product.id, product]));
  await voidLostIssuances(store, now);
  const issuers = await ensureIssuers(store, config.authority, now, newId);
  const authority = openAuthority(issuers, config.authority.pkiUrl, now);
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
    issuers,
    products,
    reissue: reissueCertificate(tools),
    placeOrder: placeOrder(tools),
    show: showOrders(store),
    sweep: () => voidLostIssuances(store, now),
  };
}

function ownProducts(file: string | undefined): Product[] {
  if (file === undefined) return [];
  try {
    return parseProducts(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    const why = error instanceof ProductsError ? `\n  ${error.problems.join('\n  ')}` : ` ${(error as Error).message}`;
    throw new Problem(EXIT.configuration, `RESEAL_PRODUCTS_FILE ${file} cannot be used:${why}`, 'Correct the file.', {
      cause: error,
    });
  }
}
