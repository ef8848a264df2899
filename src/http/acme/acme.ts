// ACME under /acme (RFC 8555): a scope of its own, whose answers and errors follow the RFC and not our envelope. Every answer
// to a POST has a fresh nonce, and every answer but the directory a link to it.
import type { FastifyInstance, FastifyReply } from 'fastify';
import { ACME_PATHS } from '../../domain/acme/directory.ts';
import type { Log } from '../../kernel/log.ts';
import type { AuthenticateAcme } from '../../usecases/acme/authenticate-request.ts';
import type { AcmeNonces } from '../../usecases/acme/nonces.ts';
import { sendError } from '../front/failures.ts';
import { type Routes, refuseUnknownRoutes } from '../front/routes.ts';
import { type AccountServices, accountResources } from './accounts.ts';
import { type AuthorizationServices, authorizationResources } from './authorizations.ts';
import { type CertificateServices, certificateResources } from './certificates.ts';
import { type DirectoryServices, directoryResources } from './directory.ts';
import { acmeDoor } from './door.ts';
import { type OrderServices, orderResources } from './orders.ts';
import { outcomeOf, problemResponse } from './problem-table.ts';

export interface AcmeServices
  extends DirectoryServices,
    AccountServices,
    OrderServices,
    AuthorizationServices,
    CertificateServices {
  readonly authenticate: AuthenticateAcme;
  readonly nonces: AcmeNonces;
}

interface AcmeOptions {
  readonly log: Log;
  readonly routes: Routes;
  readonly publicUrl: () => string;
}

export const acmeInterface =
  (services: AcmeServices, { log, routes, publicUrl }: AcmeOptions) =>
  async (scope: FastifyInstance): Promise<void> => {
    scope.setErrorHandler((error, request, reply) => {
      let type = '';
      const sent = sendError(error, reply, log, (refusal, locale) => {
        const response = problemResponse(refusal, locale);
        type = response.body.type;
        return response;
      });
      request.outcome = outcomeOf(type);
      return sent;
    });
    answerHeaders(scope, services.nonces, publicUrl);
    refuseUnknownRoutes(scope, routes);
    answerPreflights(scope);
    const door = acmeDoor(scope, services.authenticate, publicUrl);
    directoryResources(door, services);
    accountResources(door, services);
    orderResources(door, services);
    authorizationResources(door, services);
    certificateResources(door, services);
  };

function answerHeaders(scope: FastifyInstance, nonces: AcmeNonces, publicUrl: () => string): void {
  scope.addHook('onSend', (request, reply, payload, done) => {
    const route = request.routeOptions.url ?? '';
    const isNewNonce = route === ACME_PATHS.newNonce;
    if (request.method === 'POST' || isNewNonce) reply.header('replay-nonce', nonces.issue());
    if (!route.endsWith('/directory')) addLink(reply, `<${publicUrl()}${ACME_PATHS.directory}>;rel="index"`);
    // Fastify adds a charset, which JSON does not have, and which clients that compare types do not expect.
    const type = reply.getHeader('content-type');
    if (type !== undefined) reply.header('content-type', String(type).replace(/; charset=utf-8$/, ''));
    reply.headers(CROSS_ORIGIN);
    done(null, payload);
  });
}

/** For clients in browsers (RFC 8555, 6.1): requests carry their own signature, and no ambient credential. */
const CROSS_ORIGIN = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'Link, Location, Replay-Nonce, Retry-After',
};
const PREFLIGHT = {
  'access-control-allow-methods': 'GET, HEAD, POST',
  'access-control-allow-headers': 'Content-Type, Accept-Language',
  'access-control-max-age': '86400',
};

function answerPreflights(scope: FastifyInstance): void {
  scope.options('/*', { schema: { hide: true } }, async (_request, reply) => reply.code(204).headers(PREFLIGHT).send());
}

/** Keeps the links that the handler has set. */
function addLink(reply: FastifyReply, link: string): void {
  const others = [reply.getHeader('link') ?? []].flat().map(String);
  reply.header('link', [...others, link]);
}
