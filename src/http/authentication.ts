// The door of /openapi/v3: who is calling, and may this kind of credential do what the route does. Both are asked
// before the body is read, also on paths and methods that do not exist.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Action, type Caller, requirePermission } from '../domain/credential.ts';
import { Secret } from '../domain/secret.ts';
import type { AuthenticateCaller } from '../usecases/authenticate-caller.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null;
  }
  interface FastifyContextConfig {
    /** What the route does, in the words of the permission table. */
    action?: Action;
  }
}

export function authenticateRequests(app: FastifyInstance, authenticate: AuthenticateCaller): void {
  app.addHook('onRoute', ({ url, config }) => {
    if (!config?.action) throw new Error(`the route ${url} does not say which action it is`);
  });
  app.addHook('onRequest', async (request) => {
    const { 'x-cc-key-id': keyId, 'x-cc-auth-key': authKey } = request.headers;
    request.caller = await authenticate({
      keyId: single(keyId),
      authKey: typeof authKey === 'string' ? new Secret(authKey) : undefined,
    });
    const { action } = request.routeOptions.config;
    if (action) requirePermission(request.caller, action);
  });
}

export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new Error('the route lies outside the authenticated part');
  return request.caller;
}

const single = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : undefined;
