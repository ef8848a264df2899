// Opens issuance: products, the certificate authority, and the use cases over both. Commands that do not issue skip it,
// because making the first issuers takes a second.
import { createHmac, createSecretKey } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { readCsr } from '../adapters/ca/csr.ts';
import { readCatalog } from '../adapters/catalog/products-file.ts';
import { registrableDomain } from '../adapters/dns/public-suffix.ts';
import { keyMaker } from '../adapters/keys/key-maker.ts';
import { randomBytes } from '../adapters/seal/random.ts';
import { sm2Fault } from '../adapters/sm2/self-check.ts';
import { csrInspector } from '../adapters/workers/inspect-csr.ts';
import { workerPool } from '../adapters/workers/pool.ts';
import type { Config } from '../config/config.ts';
import type { Catalog, Product } from '../domain/catalog/products.ts';
import { comingChanges, inForce } from '../domain/catalog/public-rules.ts';
import {
  type CertificateAuthority,
  ISSUER_KEY_TYPES,
  type Issuer,
  type IssuerSlot,
} from '../domain/certificate/authority.ts';
import type { Clock } from '../domain/clock.ts';
import type { AccountId } from '../domain/ids.ts';
import type { AlternateChains } from '../domain/issuance/custody.ts';
import { batches } from '../kernel/concurrency.ts';
import type { AcmeFaults } from '../sandbox/acme-faults.ts';
import { auditLog } from '../usecases/access/audit.ts';
import { type UseCloudKey, useCloudKey } from '../usecases/cloud-keys/use-cloud-key.ts';
import { type CancelOrder, cancelOrder } from '../usecases/issuance/cancel-order.ts';
import { issuePending } from '../usecases/issuance/issue-pending.ts';
import { type PlaceOrder, placeOrder } from '../usecases/issuance/place-order.ts';
import { type Reissue, reissueCertificate } from '../usecases/issuance/reissue-certificate.ts';
import { type ShowOrders, showOrders } from '../usecases/issuance/show-orders.ts';
import { voidLostIssuances } from '../usecases/lease/void-lost-issuances.ts';
import { type ChangeDcvMethod, changeDcvMethod } from '../usecases/validation/change-dcv-method.ts';
import { type ProveDomains, proveDomains } from '../usecases/validation/prove-domains.ts';
import { type ShowValidation, showValidation } from '../usecases/validation/show-validation.ts';
import { type AcmeOrderServices, openAcmeOrders } from './acme-orders.ts';
import type { App } from './app.ts';
import { logUnexpected } from './background.ts';
import { openTokens, type Tokens } from './hsm.ts';
import { issuanceObservers } from './issuance-observers.ts';
import { openIssuers } from './issuers.ts';
import { openLintGate } from './lint.ts';
import { openRevocation, type RevocationServices } from './revocation.ts';
import { serviceSecrets } from './service-secrets.ts';
import { openValidation, type Validation, type ValidationNetwork } from './validation.ts';

export interface Issuance extends RevocationServices, AcmeOrderServices {
  readonly authority: CertificateAuthority;
  readonly issuers: readonly Issuer[];
  readonly products: Catalog;
  /** Chains of an issuer to other roots. */
  readonly alternatesOf: AlternateChains['of'];
  /** Makes the issuer of a slot, unless there is one. */
  readonly makeIssuer: (slot: IssuerSlot) => Promise<void>;
  /** The products as the rules of the day limit them. */
  readonly offered: () => readonly Product[];
  readonly resolverDetail: Validation['resolverDetail'];
  /** What /readyz says of tokens with issuer keys. */
  readonly tokenDetail: Tokens['detail'];
  readonly startTokens: Tokens['start'];
  readonly reissue: Reissue;
  readonly placeOrder: PlaceOrder;
  readonly cancelOrder: CancelOrder;
  readonly changeDcvMethod: ChangeDcvMethod;
  readonly proveDomains: ProveDomains;
  readonly showValidation: ShowValidation;
  readonly show: ShowOrders;
  /** In a sandbox only. */
  readonly acmeFaults?: AcmeFaults | undefined;
  readonly cloudKeys: UseCloudKey;
  /** Keyed digest of a text, so that a short access code cannot be brute-forced from it. */
  readonly digestOf: (text: string) => string;
  /**
   * Periodic work: voids issuances of lost signers, repairs next checks, takes up issuers that were imported or made. Returns the number of voided issuances.
   */
  readonly sweep: () => Promise<number>;
  /** The part of `sweep` that every process needs: takes up issuers that were imported or made. */
  readonly takeUpIssuers: () => Promise<void>;
  /** Stops the worker threads and the signer processes. */
  readonly close: () => Promise<void>;
}

/** Some sixty signatures of P-256, or ten of P-384: a turn of the event loop stays short. */
const CSR_TURN_MS = 8;

/** Remote perspectives; infinite where their number is not enforced. */
const enforcedPerspectives = ({ perspectives, requiresPerspectives }: Config['validation']): number =>
  requiresPerspectives ? perspectives.length : Infinity;

export async function openIssuance(
  { store, newId, log, metrics, peers, signerProgram }: App,
  config: Config,
  now: Clock,
  network?: ValidationNetwork,
): Promise<Issuance> {
  const products = readCatalog(config.productsFile);
  const offer = { products: [...products.values()], perspectives: enforcedPerspectives(config.validation) };
  metrics.watchRules(() => comingChanges(offer, now()));
  await voidLostIssuances(store, now, newId);
  const fault = sm2Fault();
  if (fault) log({ event: 'warning', text: `SM2 is switched off, and products that need it are refused: ${fault}` });
  const keyTypes = ISSUER_KEY_TYPES.filter((keyType) => keyType !== 'sm2' || !fault);
  const tokens = openTokens(config, { log, metrics, signerProgram });
  const issuers = await openIssuers({ store, newId, log }, config, { keyTypes, tokens }, now);
  const { authority } = issuers;
  await store.pkiAddresses.remember(config.authority.pkiUrl, now());
  const { publishCrls, closeFiles, ...revocation } = openRevocation(
    { store, newId, log, metrics },
    { products, issuers, keyTypes, tokens, now, dataDir: config.dataDir },
  );
  // The processes of one service share the cores.
  const pool = workerPool({
    threads: Math.max(1, Math.floor((availableParallelism() - 1) / Math.max(1, config.workers))),
  });
  const secretFor = await serviceSecrets(store);
  const wrappingSecret = secretFor('cloud-key wrapping');
  const digestSecret = createSecretKey(secretFor('request digest'));
  const { resolverDetail, ...checking } = openValidation(
    config,
    { now, secret: secretFor('domain validation'), log, metrics },
    network,
  );
  const tools = {
    ...checking,
    pendingMs: config.validation.pendingMs,
    quotas: config.quotas,
    acquireSlot: peers.acquireSlot,
    random: Math.random,
    onError: logUnexpected(log, 'validate'),
    ...issuanceObservers(log, metrics, now),
    store,
    authority,
    makeIssuer: issuers.make,
    isRetired: issuers.isRetired,
    perspectives: offer.perspectives,
    keys: (accountId: AccountId) => keyMaker(pool.of(accountId), wrappingSecret),
    products,
    now,
    newId,
    audit: auditLog({ now, newId }),
    readCsr: (text: string) => readCsr(text).publicKey,
    ...csrInspector(pool),
    inBatch: batches(CSR_TURN_MS),
    lintCertificate: openLintGate(config, { products: offer.products, imitate: authority.imitate, log }),
    registrableDomain,
    publishCrls,
  };
  const validation = showValidation(tools);
  const { revoke, revokeKey } = revocation;
  const acmeFaults = network?.acmeFaults;
  const acmeParts = { ...tools, revoke, revokeKey, onError: logUnexpected(log, 'validate_acme') };
  const acme = openAcmeOrders(acmeParts, issuers, acmeFaults);
  return {
    ...revocation,
    ...acme,
    acmeFaults,
    authority,
    get issuers() {
      return issuers.list();
    },
    products,
    alternatesOf: store.alternateChains.of,
    makeIssuer: issuers.make,
    offered: () => offer.products.map((product) => inForce(product, now())),
    resolverDetail,
    tokenDetail: tokens.detail,
    startTokens: tokens.start,
    reissue: reissueCertificate(tools),
    placeOrder: placeOrder(tools),
    cancelOrder: cancelOrder(tools),
    changeDcvMethod: changeDcvMethod(tools),
    proveDomains: proveDomains({ ...tools, issue: issuePending(tools) }),
    showValidation: validation,
    show: showOrders(store, validation),
    cloudKeys: useCloudKey({ ...tools, randomBytes, withKeyLock: peers.withLock }),
    digestOf: (text) => createHmac('sha256', digestSecret).update('request body ').update(text).digest('hex'),
    takeUpIssuers: issuers.refresh,
    async close() {
      await acme.acmeAuthorizations.close();
      closeFiles();
      tokens.close();
      await pool.close();
    },
    async sweep() {
      const voided = await voidLostIssuances(store, now, newId);
      if (voided > 0)
        log({ event: 'warning', text: `${voided} interrupted issuances were voided: reseal cert interrupted` });
      await store.waiting.repair(store.sharedNow());
      await store.authorizations.repair(store.sharedNow());
      await issuers.refresh();
      return voided;
    },
  };
}
