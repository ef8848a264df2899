// Authorizations of ACME clients, and their challenges.
import { type Authorization, authorizationStatus } from '../../domain/acme/authorization.ts';
import { challengesFor, hasToken, persistTerms } from '../../domain/acme/challenge.ts';
import { ACME_PATHS } from '../../domain/acme/directory.ts';
import { identifierOf } from '../../domain/acme/new-order.ts';
import { AcmeProblem, malformed } from '../../domain/acme/problem.ts';
import type { Product } from '../../domain/catalog/products.ts';
import { hostOf, isWildcard } from '../../domain/certificate/names.ts';
import type { Clock } from '../../domain/clock.ts';
import { type AcmeMethod, isAcmeMethod } from '../../domain/validation/method.ts';
import type { AcmeAuthorizations } from '../../usecases/acme/answer-challenge.ts';
import type { AcmeDoor, AcmeRequest } from './door.ts';
import { callerIn } from './orders.ts';
import { storedProblemView } from './problem-table.ts';

export interface AuthorizationServices {
  readonly acmeAuthorizations: AcmeAuthorizations;
  /** The product that an authorization is for; undefined if it is not offered any more. */
  readonly productOfOrder: (authorization: Authorization) => Promise<Product | undefined>;
  readonly now: Clock;
  readonly caaIdentities: readonly string[];
  readonly accountUri: (accountId: string) => string;
}

/** Most servers answer within a second. */
const RETRY_AFTER_SECONDS = 1;

export function authorizationResources(door: AcmeDoor, services: AuthorizationServices): void {
  const { acmeAuthorizations, productOfOrder, now, caaIdentities, accountUri } = services;
  const urlOf = ({ id }: Authorization): string => door.url(`${ACME_PATHS.authorization}/${id}`);

  function challengeView(one: Authorization, type: AcmeMethod, { locale }: AcmeRequest) {
    const isAttempted =
      'method' in one ? one.method === type : one.state === 'pending' && one.answered?.method === type;
    const status = one.state === 'pending' ? (isAttempted ? 'processing' : 'pending') : one.state;
    return {
      type,
      url: `${urlOf(one)}/${type}`,
      status,
      ...(hasToken(type) ? { token: one.token } : persistView(one)),
      ...(one.state === 'valid' && { validated: new Date(one.validatedAt).toISOString() }),
      ...(one.state === 'invalid' && { error: storedProblemView(one.problem, locale) }),
    };
  }

  function persistView({ name, accountId }: Authorization) {
    const { issuers, accountUri: accounturi, policy } = persistTerms(name, caaIdentities, accountUri(accountId));
    return { 'issuer-domain-names': issuers, accounturi, ...(policy && { policy }) };
  }

  /** While it is pending, all that the client may answer; afterwards the one that decided. */
  async function methodsOf(one: Authorization): Promise<readonly AcmeMethod[]> {
    if (one.state === 'valid' || one.state === 'invalid') return [one.method];
    const product = one.state === 'pending' ? await productOfOrder(one) : undefined;
    return product ? challengesFor(one.name, product) : [];
  }

  async function authorizationView(one: Authorization, request: AcmeRequest) {
    const { type, value } = identifierOf(hostOf(one.name));
    return {
      identifier: { type, value },
      status: authorizationStatus(one, now()),
      expires: new Date(one.expiresAt).toISOString(),
      ...(isWildcard(one.name) && { wildcard: true }),
      challenges: (await methodsOf(one)).map((method) => challengeView(one, method, request)),
    };
  }

  door.byAccount(`${ACME_PATHS.authorization}/:id`, async (request, reply) => {
    const { id = '' } = request.params;
    const { payload } = request;
    const caller = callerIn(door, request);
    if (payload !== 'post-as-get' && payload.status !== 'deactivated') {
      throw malformed(
        'An authorization is read with an empty payload, or given up with {"status": "deactivated"}.',
        '授权以空 payload 读取，或以 {"status": "deactivated"} 停用。',
      );
    }
    const one = await (payload === 'post-as-get'
      ? acmeAuthorizations.find(caller, id)
      : acmeAuthorizations.deactivate(caller, id));
    if (one.state === 'pending' && one.answered) reply.header('retry-after', RETRY_AFTER_SECONDS);
    return await authorizationView(one, request);
  });

  door.byAccount(`${ACME_PATHS.authorization}/:id/:type`, async (request, reply) => {
    const { id = '', type = '' } = request.params;
    if (!isAcmeMethod(type)) throw noChallenge();
    const caller = callerIn(door, request);
    const found = await acmeAuthorizations.find(caller, id);
    if (!(await methodsOf(found)).includes(type)) throw noChallenge();
    // An empty payload reads the challenge, an object answers it.
    const one = request.payload === 'post-as-get' ? found : await acmeAuthorizations.answer(caller, id, type);
    reply.header('link', `<${urlOf(one)}>;rel="up"`);
    if (one.state === 'pending' && one.answered) reply.header('retry-after', RETRY_AFTER_SECONDS);
    return challengeView(one, type, request);
  });
}

const noChallenge = (): AcmeProblem =>
  new AcmeProblem('notFound', { en: 'The authorization has no such challenge.', zh: '该授权没有此质询。' });
