// How requests to the signing API authenticate: with HTTP Basic, with the two headers, or with an access token, which
// POST auth/login gives for either of the others and POST auth/revoke takes back.
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Caller } from '../../domain/access/credential.ts';
import { Refusal } from '../../domain/errors.ts';
import { Secret } from '../../domain/secret.ts';
import type { UseAccessTokens } from '../../usecases/access/access-tokens.ts';
import type { AuthenticateCaller, PresentedCredential } from '../../usecases/access/authenticate-caller.ts';
import { actorOf, authenticateRequests, callerOf, headerCredentials } from '../front/authentication.ts';
import { cscSchema } from './csc-schemas.ts';
import { bodyOf, booleanIn, type CscVersion, choiceIn, stringIn } from './csc-wire.ts';

export interface LoginServices {
  readonly authenticate: AuthenticateCaller;
  readonly accessTokens: UseAccessTokens;
}

interface PresentedToken {
  readonly keyId?: undefined;
  readonly token: Secret;
}

export function authenticateCsc(scope: FastifyInstance, { authenticate, accessTokens }: LoginServices): void {
  const authenticateEither = (presented: PresentedCredential | PresentedToken): Promise<Caller> =>
    'token' in presented ? accessTokens.authenticate(presented.token) : authenticate(presented);
  authenticateRequests(scope, authenticateEither, presentedIn);
}

export function loginOperations(scope: FastifyInstance, { accessTokens }: LoginServices, version: CscVersion): void {
  const options = (id: Parameters<typeof cscSchema>[1]) =>
    ({ config: { action: 'read' }, attachValidation: true, schema: cscSchema(version, id) }) as const;

  scope.post('/auth/login', { ...options('logInToSign'), onRequest: refuseToken }, async (request) => {
    // A token that outlives the short one is not offered: the caller has the secret.
    booleanIn(bodyOf(request.body), 'rememberMe');
    const { token, expiresInSeconds } = await accessTokens.issue(actorOf(request), callerOf(request));
    return { access_token: token.reveal(), expires_in: expiresInSeconds };
  });

  scope.post('/auth/revoke', options('revokeSigningToken'), async (request, reply) => {
    const body = bodyOf(request.body);
    const token = new Secret(stringIn(body, 'token'));
    choiceIn(body, 'token_type_hint', ['access_token', 'refresh_token']);
    await accessTokens.revoke(actorOf(request), callerOf(request), token);
    return reply.code(204).send();
  });
}

/** Of the schemes that the interface knows, the one in Authorization decides, even if it is malformed. */
function presentedIn(headers: IncomingHttpHeaders): PresentedCredential | PresentedToken {
  const [, scheme = '', value = ''] = /^(basic|bearer)(?: +(.*))?$/i.exec(headers.authorization ?? '') ?? [];
  switch (scheme.toLowerCase()) {
    case 'basic':
      return basicCredentials(value);
    case 'bearer':
      return { token: new Secret(value) };
    default:
      return headerCredentials(headers);
  }
}

/** The secret may contain colons, the key id may not (RFC 7617). */
function basicCredentials(value: string): PresentedCredential {
  const text = /^[A-Za-z0-9+/]+={0,2}$/.test(value) ? Buffer.from(value, 'base64').toString('utf8') : '';
  const [, keyId, secret = ''] = /^([^:]*):(.*)$/s.exec(text) ?? [];
  return { keyId, authKey: new Secret(secret) };
}

/** A token that could be exchanged for another one would never end. */
async function refuseToken({ headers }: FastifyRequest): Promise<void> {
  if (!('token' in presentedIn(headers))) return;
  throw new Refusal('unauthenticated_request', {
    reason: {
      en: 'Authentication failed. auth/login takes key id and secret, and no access token.',
      zh: '身份验证失败：auth/login 需要密钥 ID 与密钥，不接受访问令牌。',
    },
  });
}
