// The HTTP server: limits, order of the hooks, and the registered operations, which have files by resource.
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import Fastify, { type FastifyServerOptions } from 'fastify';
import type { CertificateAuthority } from '../domain/certificate/authority.ts';
import type { NewId } from '../domain/ids.ts';
import type { Log } from '../kernel/log.ts';
import type { AuthenticateCaller } from '../usecases/access/authenticate-caller.ts';
import type { ChangeAccount } from '../usecases/access/change-account.ts';
import type { ConfigureCallback } from '../usecases/callbacks/configure-callback.ts';
import type { ManageDeliveries } from '../usecases/callbacks/manage-deliveries.ts';
import type { SendTestCallback } from '../usecases/callbacks/send-test-callback.ts';
import type { UseCloudKey } from '../usecases/cloud-keys/use-cloud-key.ts';
import type { CancelOrder } from '../usecases/issuance/cancel-order.ts';
import type { PlaceOrder } from '../usecases/issuance/place-order.ts';
import type { Reissue } from '../usecases/issuance/reissue-certificate.ts';
import type { ShowOrders } from '../usecases/issuance/show-orders.ts';
import { accountOperations } from './access/account.ts';
import { auditOperation, type ListAudit } from './access/audit.ts';
import { callbackOperations } from './callbacks/callback.ts';
import { callbackTestOperation } from './callbacks/callback-test-operation.ts';
import { deliveryOperations } from './callbacks/deliveries.ts';
import { cloudKeyOperations } from './cloud-keys/cloud-keys.ts';
import { cscInterface } from './cloud-keys/csc.ts';
import type { Api } from './front/api.ts';
import { authenticateRequests } from './front/authentication.ts';
import { parseBodies } from './front/bodies.ts';
import { limitConcurrency } from './front/capacity.ts';
import { answerErrors, answerTransportErrors, sendError } from './front/failures.ts';
import { collectOperations } from './front/operation.ts';
import {
  type RecordRequest,
  type RequestMetrics,
  recordRequests,
  recordWhenClosed,
  requestRecorder,
} from './front/request-log.ts';
import { collectRoutes, refuseUnknownRoutes } from './front/routes.ts';
import { orderOperations } from './issuance/orders.ts';
import { placementOperations } from './issuance/place-order.ts';
import { reissueOperation } from './issuance/reissue.ts';
import { healthEndpoints } from './pages/health.ts';
import { metricsEndpoint } from './pages/metrics.ts';
import { referencePage } from './pages/reference.ts';
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
  readonly changeAccount: ChangeAccount;
  readonly listAudit: ListAudit;
  /** Resolves once the store has made a write durable. */
  /** Throws `service_busy` unless the store takes durable writes and every sealed value has a key. */
  readonly checkReady: () => Promise<void>;
}

interface Services extends AppServices, ValidationServices, RevocationOperations {
  readonly reissue: Reissue;
  /** Keyed digest, so short PINs cannot be brute-forced from it. */
  readonly digestOf: (text: string) => string;
  readonly placeOrder: PlaceOrder;
  readonly cancelOrder: CancelOrder;
  readonly show: ShowOrders;
  readonly sendTestCallback: SendTestCallback;
  readonly callbacks: ConfigureCallback;
  readonly deliveries: ManageDeliveries;
  readonly cloudKeys: UseCloudKey;
  readonly authority: CertificateAuthority;
  readonly crls: { readonly serve: Parameters<typeof crlEndpoint>[1] };
  readonly answerOcsp: Parameters<typeof ocspEndpoints>[1];
}

interface ServerOptions {
  readonly publicUrl: () => string;
  /** Path prefix of the public URL, such as /pki; empty for none. */
  readonly pathPrefix: string;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly trustedProxies: readonly string[];
  readonly metricsToken: string | undefined;
  readonly maxRequests: number;
  readonly logsProbes: boolean;
}

// Several times the size of a CSR with an RSA-8192 key and a hundred names.
const MAX_BODY_BYTES = 256 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
const HEADERS_MS = 10_000;
const REQUEST_MS = 30_000;
// Longer than the idle timeout of common load balancers (60 s), which would otherwise reuse a connection just closed.
const KEEP_ALIVE_MS = 72_000;
// Idle socket timeout. Longer than keep-alive, which it would otherwise preempt.
const SOCKET_IDLE_MS = 90_000;
// Idle keep-alive connections cost a socket each; concurrent requests are limited separately.
const CONNECTIONS_PER_REQUEST = 16;

export async function buildServer(services: Services, options: ServerOptions): Promise<Api> {
  const record = requestRecorder(services.log, services.metrics, options.logsProbes);
  const app = Fastify(fastifyOptions(services, options, record)).withTypeProvider<TypeBoxTypeProvider>();
  app.server.maxConnections = options.maxRequests * CONNECTIONS_PER_REQUEST;

  const routes = collectRoutes(app);
  const operations = collectOperations(app);
  recordRequests(app, record);
  answerErrors(app, services.log);
  answerTransportErrors(app, services.newId, record);
  parseBodies(app);
  limitConcurrency(app, options.maxRequests);
  refuseUnknownRoutes(app, routes);

  healthEndpoints(app, services.checkReady);
  metricsEndpoint(app, services.metrics, options.metricsToken);
  referencePage(app, operations, options.publicUrl);
  pkiEndpoints(app, (id) => services.authority.chainOf(id)[0]);
  crlEndpoint(app, services.crls.serve);
  ocspEndpoints(app, services.answerOcsp);
  await app.register(
    async (scope) => {
      const api = scope.withTypeProvider<TypeBoxTypeProvider>() as Api;
      authenticateRequests(api, services.authenticate);
      refuseUnknownRoutes(api, routes);
      accountOperations(api, services.changeAccount);
      auditOperation(api, services.listAudit);
      reissueOperation(api, services.reissue, services.digestOf);
      callbackTestOperation(api, services.sendTestCallback);
      callbackOperations(api, services.callbacks);
      deliveryOperations(api, services.deliveries);
      placementOperations(api, services);
      validationOperations(api, services);
      orderOperations(api, services.show, services.authority.chainOf);
      cloudKeyOperations(api, services.cloudKeys);
      revocationOperations(api, services);
    },
    { prefix: '/openapi/v3' },
  );
  await app.register(cscInterface(services, routes), { prefix: '/csc/v2' });
  return app;
}

function fastifyOptions(services: Services, options: ServerOptions, record: RecordRequest): FastifyServerOptions {
  // By default Node answers a missing Host header with a bare 400; answerErrors sends the envelope.
  const node = { maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: HEADERS_MS, requireHostHeader: false };
  const transport = options.tls ? { https: { ...node, ...options.tls, minVersion: 'TLSv1.2' } } : { http: node };
  return {
    ...transport,
    logger: false,
    genReqId: services.newId,
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionTimeout: SOCKET_IDLE_MS,
    // While closing, requests on open connections are still answered, in the envelope.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    trustProxy: options.trustedProxies.length > 0 ? [...options.trustedProxies] : false,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: MAX_HEADER_BYTES },
    // No coercion: "true" is not true, and null must not become 0, which would clear a binding.
    ajv: {
      customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: false },
      plugins: [documentationOnly],
    },
    rewriteUrl: ({ url = '/' }) => withoutPrefix(url, options.pathPrefix),
    // Runs instead of the hooks, for paths that cannot be decoded: it must log by itself.
    frameworkErrors(error, _request, reply) {
      recordWhenClosed(reply, null, record);
      sendError(error, reply, services.log);
    },
  };
}

/** The domain checks these and returns more specific codes. `meaning` is what the text of a parameter stands for. */
const DOCUMENTATION_ONLY = [
  ...['minLength', 'maxLength', 'pattern', 'format', 'enum', 'minimum', 'maximum', 'maxItems', 'minProperties'],
  'meaning',
];

const documentationOnly: AjvPlugin = (ajv) => {
  for (const keyword of DOCUMENTATION_ONLY) ajv.removeKeyword(keyword).addKeyword(keyword);
  return ajv;
};
type AjvPlugins = NonNullable<NonNullable<FastifyServerOptions['ajv']>['plugins']>;
type AjvPlugin = Exclude<AjvPlugins[number], readonly unknown[]>;

function withoutPrefix(url: string, prefix: string): string {
  return prefix !== '' && url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : url;
}
