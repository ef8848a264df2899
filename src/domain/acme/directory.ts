// What ACME can order, and the paths of its resources: the one place that knows both sides of a URL.
import type { Product } from '../catalog/products.ts';
import { type BindingRights, mayOrder } from './binding.ts';
import { AcmeProblem } from './problem.ts';

/** Below the public URL. Resources of orders are a part of this list. */
export const ACME_PATHS = {
  directory: '/acme/directory',
  newNonce: '/acme/new-nonce',
  newAccount: '/acme/new-account',
  newOrder: '/acme/new-order',
  revokeCert: '/acme/revoke-cert',
  keyChange: '/acme/key-change',
  renewalInfo: '/acme/renewal-info',
  account: '/acme/account',
  order: '/acme/order',
  authorization: '/acme/authorization',
  certificate: '/acme/certificate',
} as const;

/**
 * Products whose certificates need nothing but names and a CSR. The second certificate of a dual one would have no place in
 * the answer, and a holder's name is nothing that a challenge proves.
 */
export const isOrderedByAcme = ({ kind, form, keySources, dcvMethods }: Product): boolean =>
  kind === 'ssl' && form === 'single' && keySources.includes('caller') && dcvMethods.length > 0;

/**
 * The product of a new order: that of the directory, or the profile under the directory of all; without one, the first that
 * the binding allows.
 */
export function orderedProduct(
  products: readonly Product[],
  { product, profile }: { readonly product: string | undefined; readonly profile: string | null },
  rights: BindingRights,
): Product {
  const ordered = products.filter(isOrderedByAcme);
  const isWanted = ({ id }: Product) =>
    product === undefined && profile === null
      ? mayOrder(rights, id, []) === undefined
      : (product === undefined || id === product) && (profile === null || id === profile);
  const found = ordered.find(isWanted);
  if (found) return found;
  const ids = ordered.map(({ id }) => id);
  throw new AcmeProblem('invalidProfile', {
    en: `There is no such profile in this directory. The products of the directory ${ACME_PATHS.directory} are its profiles: ${ids.join(', ')}.`,
    zh: `该目录中没有此 profile。目录 ${ACME_PATHS.directory} 的 profile 即其产品：${ids.join('、')}。`,
  });
}
