// Orders, certificates and CRLs for commands that only read: the same views as the service's, without issuers, keys and
// workers, which opening issuance would create.
import { readCatalog } from '../adapters/catalog/products-file.ts';
import { registrableDomain } from '../adapters/dns/public-suffix.ts';
import type { RecordCommands } from '../cli/command.ts';
import type { Config } from '../config/config.ts';
import type { Clock } from '../domain/clock.ts';
import { auditLog } from '../usecases/access/audit.ts';
import { showOrders } from '../usecases/issuance/show-orders.ts';
import { listInterrupted } from '../usecases/revocation/interrupted-issuances.ts';
import { showValidation } from '../usecases/validation/show-validation.ts';
import type { App } from './app.ts';
import { serviceSecrets } from './service-secrets.ts';
import { openValidation } from './validation.ts';

export async function openRecords(
  { store, newId, peers, log, metrics }: App,
  config: Config,
  now: Clock,
): Promise<RecordCommands> {
  // Made with the first issuers. Without them no certificate waits, and no challenge is shown.
  const isIssuing = (await store.issuers.listPublic()).length > 0;
  const secret = isIssuing ? (await serviceSecrets(store))('domain validation') : new Uint8Array();
  const validation = showValidation({
    ...openValidation(config, { now, secret, log, metrics }),
    ...{
      store,
      products: readCatalog(config.productsFile),
      now,
      newId,
      audit: auditLog({ now, newId }),
      registrableDomain,
    },
    acquireSlot: peers.acquireSlot,
  });
  return {
    show: showOrders(store, validation),
    heads: () => store.crls.heads(),
    interrupted: () => listInterrupted(store),
    lintRefusals: (limit) => store.lintResults.listRefused(limit),
  };
}
