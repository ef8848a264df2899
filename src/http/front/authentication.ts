// The door of /openapi/v3 and /csc/v2: who is calling, and may this kind of credential do what the route does. Both are
// asked before the body is read, also on paths and methods that do not exist.
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Action, type Actor, type Caller, requirePermission } from '../../domain/access/credential.ts';
import { Secret } from '../../domain/secret.ts';
import type { AuthenticateCaller, PresentedCredential } from '../../usecases/access/authenticate-caller.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null;
  }
  interface FastifyContextConfig {
    /** What the route does, in the words of the permission table. */
    action?: Action;
    /** Answered to anyone. */
    isPublic?: true;
  }
}

export function authenticateRequests(
  app: FastifyInstance,
  authenticate: AuthenticateCaller,
  presentedIn: (headers: IncomingHttpHeaders) => PresentedCredential = twoHeaders,
): void {
  app.addHook('onRoute', ({ url, config }) => {
    if (!config?.action) throw new Error(`the route ${url} does not say which action it is`);
  });
  app.addHook('onRequest', async (request) => {
    const { action, isPublic } = request.routeOptions.config;
    if (isPublic) return;
    request.caller = await authenticate(presentedIn(request.headers));
    if (action) requirePermission(request.caller, action);
  });
}

export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new Error('the route lies outside the authenticated part');
  return request.caller;
}

export const twoHeaders = ({
  'x-cc-key-id': keyId,
  'x-cc-auth-key': authKey,
}: IncomingHttpHeaders): PresentedCredential => ({
  keyId: single(keyId),
  authKey: typeof authKey === 'string' ? new Secret(authKey) : undefined,
});

export function actorOf(request: FastifyRequest): Actor {
  const { account, credential } = callerOf(request);
  return { accountId: account.id, actor: credential.keyId, requestId: request.id };
}

const single = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : undefined;
