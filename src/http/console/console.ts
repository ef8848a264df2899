// /console/api: what the pages of the console call. The operations of /openapi/v3 are here once more, under `account`, with
// a session instead of the two headers (ADR 0066); beside them are signing in and out, and what operators do.
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import type { Secret } from '../../domain/secret.ts';
import type { Api } from '../front/api.ts';
import { authenticateRequests } from '../front/authentication.ts';
import { type Routes, refuseUnknownRoutes } from '../front/routes.ts';
import { type EventServices, eventStream } from './events.ts';
import { type OperatorServices, operatorOperations } from './operator.ts';
import { type OperatorScopeServices, operatorScope } from './operator-scope.ts';
import { requireSameOrigin } from './same-origin.ts';
import { tokenIn } from './session-cookie.ts';
import { sessionOperations } from './sessions.ts';

/** The two headers are not read. */
interface PresentedSession {
  readonly keyId?: undefined;
  readonly token: Secret | undefined;
}

interface ConsoleParts {
  readonly services: OperatorScopeServices & EventServices;
  readonly routes: Routes;
  /** Registers what account holders may do: the operations of /openapi/v3. */
  readonly accountOperations: (api: Api) => void;
  readonly operator: OperatorServices;
}

export const consoleInterface =
  ({ services, routes, accountOperations, operator }: ConsoleParts) =>
  async (scope: FastifyInstance): Promise<void> => {
    const { consoleSessions, publicUrl } = services;
    const api = scope.withTypeProvider<TypeBoxTypeProvider>() as Api;
    api.decorateRequest('operator', null);
    requireSameOrigin(api, publicUrl);
    refuseUnknownRoutes(api, routes);
    sessionOperations(api, services);
    await api.register(
      async (accounts) => {
        authenticateRequests(
          accounts,
          ({ token }: PresentedSession) => consoleSessions.authenticateCaller(token),
          (headers) => ({ token: tokenIn(headers, publicUrl()) }),
        );
        refuseUnknownRoutes(accounts, routes);
        accountOperations(accounts as Api);
        eventStream(accounts as Api, services);
      },
      { prefix: '/account' },
    );
    await api.register(
      async (operators) => {
        operatorScope(operators, services);
        refuseUnknownRoutes(operators, routes);
        operatorOperations(operators as Api, operator);
      },
      { prefix: '/operator' },
    );
  };
