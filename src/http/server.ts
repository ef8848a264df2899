// The HTTP front: limits, the order of the hooks, and which operations there are. What each operation does stands in
// its own file.
import swagger from '@fastify/swagger';
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
import { callbackOperations } from './callbacks/callback.ts';
import { callbackTestOperation } from './callbacks/callback-test-operation.ts';
import { deliveryOperations } from './callbacks/deliveries.ts';
import { cloudKeyOperations } from './cloud-keys/cloud-keys.ts';
import { cscInterface } from './cloud-keys/csc.ts';
import type { Api } from './front/api.ts';
import { authenticateRequests } from './front/authentication.ts';
import { parseBodies } from './front/bodies.ts';
import { limitConcurrency } from './front/capacity.ts';
import { answerErrors, answerTransportErrors, sendFailure } from './front/failures.ts';
import {
  type RecordRequest,
  type RequestMetrics,
  recordRequests,
  recordWhenClosed,
  requestRecorder,
} from './front/request-log.ts';
import { refuseUnknownRoutes, rememberRoutes } from './front/routes.ts';
import { orderOperations } from './issuance/orders.ts';
import { placementOperations } from './issuance/place-order.ts';
import { reissueOperation } from './issuance/reissue.ts';
import { healthEndpoints } from './pages/health.ts';
import { metricsEndpoint } from './pages/metrics.ts';
import { openApiDocument, referencePage } from './pages/reference.ts';
import { type RevocationOperations, revocationOperations } from './revocation/revocation.ts';
import { crlEndpoint } from './status/crl.ts';
import { ocspEndpoints } from './status/ocsp.ts';
import { pkiEndpoints } from './status/pki.ts';
import { type ValidationServices, validationOperations } from './validation/dcv.ts';

/** What serving needs of the application itself, before it can issue anything. */
export interface AppServices {
  readonly newId: NewId;
  readonly log: Log;
  readonly metrics: RequestMetrics & { text(): Promise<string> };
  readonly authenticate: AuthenticateCaller;
  readonly changeAccount: ChangeAccount;
  /** Resolves when the store made a write durable just now. */
  readonly probeWrite: () => Promise<void>;
}

export interface Services extends AppServices, ValidationServices, RevocationOperations {
  readonly reissue: Reissue;
  /** Names a text without giving it away. */
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

export interface ServerOptions {
  readonly publicUrl: () => string;
  /** A path that callers put in front of ours, such as /pki; empty when there is none. */
  readonly pathPrefix: string;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly trustedProxies: readonly string[];
  readonly metricsToken: string | undefined;
  readonly maxRequests: number;
}

// A CSR of an RSA-8192 key and a hundred names fit several times.
const MAX_BODY_BYTES = 256 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
const HEADERS_MS = 10_000;
const REQUEST_MS = 30_000;
// Longer than the idle time-out of the usual load balancers (60 s), or they would reuse a connection we just closed.
const KEEP_ALIVE_MS = 72_000;
// Whoever neither sends nor reads anything for so long is gone; longer than keep-alive, or it would take its place.
const SILENCE_MS = 90_000;
// Idle keep-alive connections cost a socket each; requests under way are bounded separately.
const CONNECTIONS_PER_REQUEST = 16;

export async function buildServer(services: Services, options: ServerOptions): Promise<Api> {
  const record = requestRecorder(services.log, services.metrics);
  const app = Fastify(fastifyOptions(services, options, record)).withTypeProvider<TypeBoxTypeProvider>();
  app.server.maxConnections = options.maxRequests * CONNECTIONS_PER_REQUEST;

  const routes = rememberRoutes(app);
  recordRequests(app, record);
  answerErrors(app, services.log);
  answerTransportErrors(app, services.newId, record);
  parseBodies(app);
  limitConcurrency(app, options.maxRequests);
  refuseUnknownRoutes(app, routes);
  await app.register(swagger, openApiDocument(options.publicUrl));

  healthEndpoints(app, services.probeWrite);
  metricsEndpoint(app, services.metrics, options.metricsToken);
  referencePage(app);
  pkiEndpoints(app, (id) => services.authority.chainOf(id)[0]);
  crlEndpoint(app, services.crls.serve);
  ocspEndpoints(app, services.answerOcsp);
  await app.register(
    async (scope) => {
      const api = scope.withTypeProvider<TypeBoxTypeProvider>() as Api;
      authenticateRequests(api, services.authenticate);
      refuseUnknownRoutes(api, routes);
      accountOperations(api, services.changeAccount);
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
  // Left to itself, Node answers a missing Host header with a bare 400; we do it in the envelope.
  const node = { maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: HEADERS_MS, requireHostHeader: false };
  const transport = options.tls ? { https: { ...node, ...options.tls, minVersion: 'TLSv1.2' } } : { http: node };
  return {
    ...transport,
    logger: false,
    genReqId: services.newId,
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionTimeout: SILENCE_MS,
    // While closing we still answer what arrives on open connections, in our envelope.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    trustProxy: options.trustedProxies.length > 0 ? [...options.trustedProxies] : false,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: MAX_HEADER_BYTES },
    // Never coerce: "true" is not true, and null must not become 0, which would clear a binding.
    ajv: {
      customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, allErrors: false },
      plugins: [statesOnly],
    },
    rewriteUrl: ({ url = '/' }) => withoutPrefix(url, options.pathPrefix),
    // A path that cannot be decoded reaches no route, and so none of the hooks that would log it.
    frameworkErrors(error, request, reply) {
      recordWhenClosed(request, reply, null, record);
      sendFailure(error, request, reply, services.log);
    },
  };
}

/**
 * Lengths and lists of values stand in the schemas for whoever reads the document. The domain checks them, so that
 * its codes and words are the answer, and not the validator's.
 */
const statesOnly: AjvPlugin = (ajv) => {
  for (const keyword of ['minLength', 'maxLength', 'minimum', 'enum', 'format', 'maxItems']) {
    ajv.removeKeyword(keyword).addKeyword(keyword);
  }
  return ajv;
};
type AjvPlugins = NonNullable<NonNullable<FastifyServerOptions['ajv']>['plugins']>;
type AjvPlugin = Exclude<AjvPlugins[number], readonly unknown[]>;

function withoutPrefix(url: string, prefix: string): string {
  return prefix !== '' && url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : url;
}
