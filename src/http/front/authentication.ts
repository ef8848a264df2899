// Authentication and authorization for /openapi/v3 and /csc. Both run before the body is read, and also for unknown
// paths and methods.
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  type Action,
  type Actor,
  type Caller,
  callerActor,
  requirePermission,
} from '../../domain/access/credential.ts';
import { Secret } from '../../domain/secret.ts';
import type { PresentedCredential } from '../../usecases/access/authenticate-caller.ts';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null;
    /** As it was sent: unknown to be a key id unless authentication got as far as a 403. */
    presentedKeyId: string | null;
  }
  interface FastifyContextConfig {
    /** The route's action in the permission table. */
    action?: Action;
    /** Skips authentication. */
    isPublic?: true;
  }
}

/** `presentedIn` reads from the headers what `authenticate` compares. */
export function authenticateRequests<Presented extends { readonly keyId?: string | undefined }>(
  app: FastifyInstance,
  authenticate: (presented: Presented) => Promise<Caller>,
  presentedIn: (headers: IncomingHttpHeaders) => Presented,
): void {
  app.addHook('onRoute', ({ url, config }) => {
    if (!config?.action) throw new Error(`the route ${url} declares no action`);
  });
  app.addHook('onRequest', async (request) => {
    const { action, isPublic } = request.route;
    if (isPublic) return;
    const presented = presentedIn(request.headers);
    request.presentedKeyId = presented.keyId ?? null;
    request.caller = await authenticate(presented);
    if (action) requirePermission(request.caller.credential.kind, action);
  });
}

/** Throws outside of the authenticated scopes. */
export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new Error('the route is not in an authenticated scope');
  return request.caller;
}

/** Reads the credential from X-CC-Key-ID and X-CC-Auth-Key. */
export const headerCredentials = ({
  'x-cc-key-id': keyId,
  'x-cc-auth-key': authKey,
}: IncomingHttpHeaders): PresentedCredential => ({
  keyId: single(keyId),
  authKey: typeof authKey === 'string' ? new Secret(authKey) : undefined,
});

export function actorOf(request: FastifyRequest): Actor {
  const caller = callerOf(request);
  return { accountId: caller.account.id, actor: callerActor(caller), requestId: request.id };
}

const single = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : undefined;
