// What guards the operators' part of /console/api: the address of the caller, an operator's session, and the operator's role.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { consoleOperatorActor } from '../../domain/access/credential.ts';
import { type Operator, requireRole } from '../../domain/console/session.ts';
import type { Network } from '../../domain/egress/addresses.ts';
import { Refusal } from '../../domain/errors.ts';
import type { OperatorCall } from '../../usecases/access/audit.ts';
import type { UseConsoleSessions } from '../../usecases/console/sessions.ts';
import { isForwarded, isWithin, LOOPBACK } from '../front/remote-network.ts';
import { isUnsafe } from './same-origin.ts';
import { tokenIn } from './session-cookie.ts';

declare module 'fastify' {
  interface FastifyRequest {
    operator: Operator | null;
  }
}

export interface OperatorScopeServices {
  readonly consoleSessions: UseConsoleSessions;
  /** Where operators may be, beside this machine. */
  readonly consoleNetworks: readonly Network[];
  readonly publicUrl: () => string;
}

/** Call before registering routes. Unknown paths and methods are guarded as well. */
export function operatorScope(app: FastifyInstance, services: OperatorScopeServices): void {
  const { consoleSessions, publicUrl } = services;
  app.addHook('onRequest', async (request) => {
    requireOperatorAddress(request, services);
    request.operator = await consoleSessions.authenticateOperator(tokenIn(request.headers, publicUrl()));
    requireRole(request.operator, isUnsafe(request));
  });
}

/** Throws outside of operator scopes. */
export function operatorOf(request: FastifyRequest): Operator {
  if (!request.operator) throw new Error('the route is not in an operator scope');
  return request.operator;
}

/** Who acted, for the audit log, without the account that an act concerns. */
export const operatorCallOf = (request: FastifyRequest): OperatorCall => ({
  actor: consoleOperatorActor(operatorOf(request).name),
  requestId: request.id,
});

/**
 * A proxy on this machine that is not trusted would make everyone seem to be here: what was forwarded counts as foreign,
 * unless the proxy is one of RESEAL_TRUSTED_PROXIES. A loopback address that another machine forwards is that machine's, or
 * made up by a caller in a trusted network: this machine is meant only if nothing in between is elsewhere.
 */
export function requireOperatorAddress(
  request: FastifyRequest,
  { consoleNetworks }: Pick<OperatorScopeServices, 'consoleNetworks'>,
): void {
  const isUntrusted = isForwarded(request) && request.ip === request.socket.remoteAddress;
  const isHere = (request.ips ?? [request.ip]).every((ip) => isWithin(LOOPBACK, ip));
  if (!isUntrusted && (isHere || isWithin(consoleNetworks, request.ip))) return;
  throw new Refusal('permission_denied', {
    reason: {
      en: 'Operators sign in from this machine, or from a network in RESEAL_CONSOLE_NETWORKS; a proxy in between must be one of RESEAL_TRUSTED_PROXIES.',
      zh: '操作员只能从本机或 RESEAL_CONSOLE_NETWORKS 中的网络登录；其间的代理须列于 RESEAL_TRUSTED_PROXIES。',
    },
  });
}
