// The HTTP server: limits, order of the hooks, and the registered operations, which have files by resource.
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import Fastify, { type FastifyServerOptions } from 'fastify';
import type { Account } from '../domain/access/account.ts';
import type { Catalog, Product } from '../domain/catalog/products.ts';
import type { CertificateAuthority } from '../domain/certificate/authority.ts';
import type { Network } from '../domain/egress/addresses.ts';
import type { NewId } from '../domain/ids.ts';
import type { AlternateChains } from '../domain/issuance/custody.ts';
import type { Log } from '../kernel/log.ts';
import type { UseAccessTokens } from '../usecases/access/access-tokens.ts';
import type { AuthenticateCaller } from '../usecases/access/authenticate-caller.ts';
import type { ChangeAccount } from '../usecases/access/change-account.ts';
import type { QuotaUse } from '../usecases/access/quota-use.ts';
import type { ConfigureCallback } from '../usecases/callbacks/configure-callback.ts';
import type { ManageDeliveries } from '../usecases/callbacks/manage-deliveries.ts';
import type { SendTestCallback } from '../usecases/callbacks/send-test-callback.ts';
import type { UseCloudKey } from '../usecases/cloud-keys/use-cloud-key.ts';
import type { FollowAccount } from '../usecases/console/follow-account.ts';
import type { UseConsoleSessions } from '../usecases/console/sessions.ts';
import type { CancelOrder } from '../usecases/issuance/cancel-order.ts';
import type { PlaceOrder } from '../usecases/issuance/place-order.ts';
import type { Reissue } from '../usecases/issuance/reissue-certificate.ts';
import type { ShowOrders } from '../usecases/issuance/show-orders.ts';
import type { SearchAudit } from '../usecases/support/search-audit.ts';
import { accountOperations } from './access/account.ts';
import { auditOperation, type ListAudit } from './access/audit.ts';
import { type AcmeServices, acmeInterface } from './acme/acme.ts';
import { ACME_PREFIX } from './acme/door.ts';
import { callbackOperations } from './callbacks/callback.ts';
import { callbackTestOperation } from './callbacks/callback-test-operation.ts';
import { deliveryOperations } from './callbacks/deliveries.ts';
import { productOperation } from './catalog/products.ts';
import { cloudKeyOperations } from './cloud-keys/cloud-keys.ts';
import { cscInterface } from './cloud-keys/csc.ts';
import { CSC_VERSIONS } from './cloud-keys/csc-wire.ts';
import { accountViews } from './console/account-views.ts';
import { consoleInterface } from './console/console.ts';
import type { OperatorServices } from './console/operator.ts';
import { pages } from './console/pages.ts';
import type { Api } from './front/api.ts';
import { boundArrivals } from './front/arrivals.ts';
import { authenticateRequests, headerCredentials } from './front/authentication.ts';
import { parseBodies } from './front/bodies.ts';
import { limitConcurrency } from './front/capacity.ts';
import { countUnsent } from './front/connections.ts';
import { drainConnections } from './front/drain.ts';
import { answerErrors, sendError } from './front/failures.ts';
import { listener, MAX_HEADER_BYTES } from './front/listener.ts';
import { CONSOLE_API, collectOperations } from './front/operation.ts';
import {
  type RecordRequest,
  type RequestMetrics,
  recordRequests,
  recordWhenClosed,
  requestRecorder,
} from './front/request-log.ts';
import { collectRoutes, refuseUnknownRoutes } from './front/routes.ts';
import { compileSchemasAtFirstUse } from './front/schemas.ts';
import { inventoryOperations } from './issuance/inventory.ts';
import { orderOperations } from './issuance/orders.ts';
import { placementOperations } from './issuance/place-order.ts';
import { reissueOperation } from './issuance/reissue.ts';
import { documentEndpoint } from './pages/document-endpoint.ts';
import { type CheckReady, healthEndpoints } from './pages/health.ts';
import { metricsEndpoint } from './pages/metrics.ts';
import { type RevocationOperations, revocationOperations } from './revocation/revocation.ts';
import { crlEndpoint } from './status/crl.ts';
import { ocspEndpoints } from './status/ocsp.ts';
import { pkiEndpoints } from './status/pki.ts';
import { type ValidationServices, validationOperations } from './validation/dcv.ts';

/** Services of the application itself, without issuance. */
export interface AppServices {
  readonly newId: NewId;
  readonly log: Log;
  readonly metrics: RequestMetrics & { text(): Promise<string> };
  readonly authenticate: AuthenticateCaller;
  readonly accessTokens: UseAccessTokens;
  readonly consoleSessions: UseConsoleSessions;
  readonly operator: OperatorServices;
  readonly followAccount: FollowAccount;
  readonly changeAccount: ChangeAccount;
  readonly quotaUse: (account: Account) => Promise<QuotaUse>;
  readonly listAudit: ListAudit;
  readonly searchAudit: SearchAudit;
  /** Throws `service_busy` unless the store takes durable writes and every sealed value has a key. */
  readonly checkReady: CheckReady;
}

interface Services extends AppServices, ValidationServices, RevocationOperations {
  readonly reissue: Reissue;
  /** Keyed digest, so short PINs cannot be brute-forced from it. */
  readonly digestOf: (text: string) => string;
  readonly placeOrder: PlaceOrder;
  readonly products: Catalog;
  /** The products as the rules of the day limit them. */
  readonly offered: () => readonly Product[];
  readonly cancelOrder: CancelOrder;
  readonly show: ShowOrders;
  readonly sendTestCallback: SendTestCallback;
  readonly callbacks: ConfigureCallback;
  readonly deliveries: ManageDeliveries;
  readonly cloudKeys: UseCloudKey;
  readonly authority: CertificateAuthority;
  /** Chains of an issuer to other roots. */
  readonly alternatesOf: AlternateChains['of'];
  readonly crls: { readonly serve: Parameters<typeof crlEndpoint>[1] };
  readonly answerOcsp: Parameters<typeof ocspEndpoints>[1];
  readonly acme: AcmeServices;
}

interface ServerOptions {
  readonly publicUrl: () => string;
  /** Path prefix of the public URL, such as /pki; empty for none. */
  readonly pathPrefix: string;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly trustedProxies: readonly string[];
  readonly metricsToken: string | undefined;
  /** Where operators of the console may be, beside this machine. */
  readonly consoleNetworks: readonly Network[];
  readonly maxRequests: number;
  readonly maxConnections: number;
  readonly logsProbes: boolean;
}

// Several times the size of a CSR with an RSA-8192 key and a hundred names.
const MAX_BODY_BYTES = 256 * 1024;
export async function buildServer(services: Services, options: ServerOptions): Promise<Api> {
  const record = requestRecorder(services.log, services.metrics, options.logsProbes);
  const { connections, serverFactory } = listener({ ...options, newId: services.newId, record });
  const app = Fastify({
    ...fastifyOptions(services, options, record),
    serverFactory,
  }).withTypeProvider<TypeBoxTypeProvider>();

  drainConnections(app);
  compileSchemasAtFirstUse(app);
  const routes = collectRoutes(app);
  const operations = collectOperations(app);
  recordRequests(app, record);
  answerErrors(app, services.log);
  countUnsent(app, connections);
  parseBodies(app);
  boundArrivals(app);
  limitConcurrency(app, options.maxRequests);
  refuseUnknownRoutes(app, routes);

  healthEndpoints(app, services.checkReady);
  metricsEndpoint(app, services.metrics, options.metricsToken);
  documentEndpoint(app, operations, options.publicUrl);
  pages(app);
  pkiEndpoints(app, { chainOf: services.authority.chainOf, alternatesOf: services.alternatesOf });
  crlEndpoint(app, services.crls.serve);
  ocspEndpoints(app, services.answerOcsp);
  await app.register(
    async (scope) => {
      const api = scope.withTypeProvider<TypeBoxTypeProvider>() as Api;
      authenticateRequests(api, services.authenticate, headerCredentials);
      refuseUnknownRoutes(api, routes);
      accountInterface(api, services);
    },
    { prefix: '/openapi/v3' },
  );
  await app.register(
    consoleInterface({
      services: { ...services, publicUrl: options.publicUrl, consoleNetworks: options.consoleNetworks },
      routes,
      accountOperations: (api) => {
        accountInterface(api, services);
        accountViews(api, services);
      },
      operator: services.operator,
    }),
    { prefix: CONSOLE_API },
  );
  for (const version of CSC_VERSIONS) {
    await app.register(cscInterface(services, routes, version), { prefix: `/csc/${version}` });
  }
  const acme = { log: services.log, routes, publicUrl: options.publicUrl };
  await app.register(acmeInterface(services.acme, acme), { prefix: ACME_PREFIX });
  return app;
}

/** What a key of an account may ask for. */
function accountInterface(api: Api, services: Services): void {
  accountOperations(api, services);
  auditOperation(api, services.listAudit);
  reissueOperation(api, services.reissue, services.digestOf);
  callbackTestOperation(api, services.sendTestCallback);
  callbackOperations(api, services.callbacks);
  deliveryOperations(api, services.deliveries);
  placementOperations(api, services, services.digestOf);
  validationOperations(api, services);
  inventoryOperations(api, services.show, services.products);
  productOperation(api, services.offered);
  orderOperations(api, services.show, services.authority.chainOf);
  cloudKeyOperations(api, services.cloudKeys);
  revocationOperations(api, services);
}

function fastifyOptions(services: Services, options: ServerOptions, record: RecordRequest): FastifyServerOptions {
  return {
    logger: false,
    genReqId: services.newId,
    bodyLimit: MAX_BODY_BYTES,
    // While closing, requests on open connections are still answered, in the envelope.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    trustProxy: options.trustedProxies.length > 0 ? [...options.trustedProxies] : false,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: MAX_HEADER_BYTES },
    ...(options.pathPrefix !== '' && { rewriteUrl: ({ url = '/' }) => withoutPrefix(url, options.pathPrefix) }),
    // Runs instead of the hooks, for paths that cannot be decoded: it must log by itself.
    frameworkErrors(error, request, reply) {
      recordWhenClosed(reply, null, record);
      // Its body is not awaited.
      if (!request.raw.complete) reply.header('connection', 'close');
      sendError(error, reply, services.log);
    },
  };
}

function withoutPrefix(url: string, prefix: string): string {
  return url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : url;
}
