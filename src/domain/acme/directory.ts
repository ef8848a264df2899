// What ACME can order, and the paths of its resources: the one place that knows both sides of a URL.
import type { Product } from '../catalog/products.ts';

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
} as const;

/**
 * Products whose certificates need nothing but names and a CSR. The second certificate of a dual one would have no place in
 * the answer, and a holder's name is nothing that a challenge proves.
 */
export const isOrderedByAcme = ({ kind, form, keySources, dcvMethods }: Product): boolean =>
  kind === 'ssl' && form === 'single' && keySources.includes('caller') && dcvMethods.length > 0;
