// Opens ACME over the services of the order interface.
import { jwsKeys } from '../adapters/acme/jws-keys.ts';
import { randomBytes } from '../adapters/seal/random.ts';
import type { Config } from '../config/config.ts';
import type { AcmeServices } from '../http/acme/acme.ts';
import { acmeAccountActs } from '../usecases/acme/accounts.ts';
import { authenticateAcme } from '../usecases/acme/authenticate-request.ts';
import { acmeNonces } from '../usecases/acme/nonces.ts';
import type { App } from './app.ts';
import type { Issuance } from './issuance.ts';
import { serviceSecrets } from './service-secrets.ts';

export async function openAcme(
  { store, now, newId }: App,
  issuance: Issuance,
  { acmeTermsUrl: termsUrl, validation }: Config,
  publicUrl: () => string,
): Promise<AcmeServices> {
  const secretFor = await serviceSecrets(store);
  const real = acmeNonces({ secret: secretFor('acme nonces'), sharedNow: store.sharedNow, randomBytes });
  const nonces = issuance.acmeFaults?.nonces(real) ?? real;
  return {
    ...issuance,
    termsUrl,
    caaIdentities: validation.issuers,
    nonces,
    now,
    chainOf: issuance.authority.chainOf,
    accountUri: (accountId) => validation.accountBase + accountId,
    async productOfOrder({ accountId, orderId }) {
      const order = await store.orders.find(accountId, orderId);
      return order && issuance.products.get(order.productId);
    },
    authenticate: authenticateAcme({ store, now, jwsKeys, nonces, publicUrl }),
    accounts: acmeAccountActs({ store, now, newId, jwsKeys, termsUrl }),
  };
}
