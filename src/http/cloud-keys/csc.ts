// POST /csc/v2/…: signing with cloud-held keys through the Cloud Signature Consortium API v2. Its credentials are our
// cloud-held keys. Responses and errors follow that specification, not our envelope.
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { invalid } from '../../domain/errors.ts';
import { Secret } from '../../domain/secret.ts';
import { type Locale, preferredLocale } from '../../kernel/locale.ts';
import type { Log } from '../../kernel/log.ts';
import type { AuthenticateCaller, PresentedCredential } from '../../usecases/access/authenticate-caller.ts';
import type { HeldKey } from '../../usecases/cloud-keys/operate-cloud-keys.ts';
import type { UseCloudKey } from '../../usecases/cloud-keys/use-cloud-key.ts';
import { actorOf, authenticateRequests, callerOf, headerCredentials } from '../front/authentication.ts';
import { localeOf, sendError } from '../front/failures.ts';
import { type Routes, refuseUnknownRoutes } from '../front/routes.ts';
import { type ChainOf, credentialView, detailIn, infoView } from './csc-views.ts';
import {
  type Body,
  bodyOf,
  booleanIn,
  choiceIn,
  cscErrorResponse,
  digestsIn,
  hashIn,
  integerIn,
  pinIn,
  signHashIn,
  stringIn,
} from './csc-wire.ts';

interface CscServices {
  readonly log: Log;
  readonly authenticate: AuthenticateCaller;
  readonly cloudKeys: UseCloudKey;
  readonly authority: { readonly chainOf: ChainOf };
}

/** The specification has no paging. Accounts with more keys see the newest ones. */
const MAX_LISTED = 1_000;

export function cscInterface({ log, authenticate, cloudKeys, authority: { chainOf } }: CscServices, routes: Routes) {
  return async (scope: FastifyInstance): Promise<void> => {
    scope.setErrorHandler((error, _request, reply) => sendError(error, reply, log, cscErrorResponse));
    authenticateRequests(scope, authenticate, basicOrTwoHeaders);
    refuseUnknownRoutes(scope, routes);

    const schema = { hide: true };
    const read = { config: { action: 'read' }, schema } as const;
    const use = { config: { action: 'use_cloud_key' }, schema } as const;

    scope.post('/info', { config: { action: 'read', isPublic: true }, schema }, async (request) =>
      infoView(languageOf(request, bodyOf(request.body))),
    );

    scope.post('/credentials/list', read, async (request) => {
      const body = bodyOf(request.body);
      refuseUserId(body);
      const [detail, onlyValid] = [detailIn(body), booleanIn(body, 'onlyValid')];
      const locale = languageOf(request, body);
      const all = await cloudKeys.listLive(callerOf(request).account.id, MAX_LISTED);
      const held = onlyValid ? all.filter(isUsable) : all;
      return {
        credentialIDs: held.map(({ key }) => key.id),
        ...(booleanIn(body, 'credentialInfo') && {
          credentialInfos: held.map((one) => ({
            credentialID: one.key.id,
            ...credentialView(one, detail, chainOf, locale),
          })),
        }),
        ...(onlyValid && { onlyValid }),
      };
    });

    scope.post('/credentials/info', read, async (request) => {
      const body = bodyOf(request.body);
      const [id, detail] = [stringIn(body, 'credentialID'), detailIn(body)];
      const held = await cloudKeys.show(callerOf(request).account.id, id);
      return credentialView(held, detail, chainOf, languageOf(request, body));
    });

    scope.post('/credentials/authorize', use, async (request) => {
      const body = bodyOf(request.body);
      const id = stringIn(body, 'credentialID');
      const authorization = {
        numSignatures: integerIn(body, 'numSignatures'),
        digests: digestsIn(body),
        signHash: hashIn(body),
        pin: pinIn(body),
      };
      const { token, expiresInSeconds } = await cloudKeys.authorize(actorOf(request), id, authorization);
      return { SAD: token.reveal(), expiresIn: expiresInSeconds };
    });

    scope.post('/signatures/signHash', use, async (request) => {
      const body = bodyOf(request.body);
      const id = stringIn(body, 'credentialID');
      const [token, digests] = [new Secret(stringIn(body, 'SAD')), digestsIn(body)];
      choiceIn(body, 'operationMode', ['S']);
      const by = actorOf(request);
      const { key } = await cloudKeys.show(by.accountId, id);
      const signHash = signHashIn(body, key.publicKey.type);
      const signatures = await cloudKeys.sign(by, id, { token, signHash, digests });
      return { signatures: signatures.map((one) => Buffer.from(one).toString('base64')) };
    });
  };
}

/** HTTP Basic, as CSC clients send it, or our two headers. */
function basicOrTwoHeaders(headers: IncomingHttpHeaders): PresentedCredential {
  const [, base64] = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(headers.authorization ?? '') ?? [];
  if (base64 === undefined) return headerCredentials(headers);
  const [, keyId, secret = ''] = /^([^:]*):(.*)$/s.exec(Buffer.from(base64, 'base64').toString('utf8')) ?? [];
  return { keyId, authKey: new Secret(secret) };
}

const languageOf = (request: FastifyRequest, { lang }: Body): Locale =>
  (typeof lang === 'string' ? preferredLocale(lang) : undefined) ?? localeOf(request);

/** The API key determines the account, so userID must be absent (11.4). */
function refuseUserId({ userID }: Body): void {
  if (userID == null) return;
  throw invalid(
    'userID',
    'userID parameter MUST be null: the account is that of the API key.',
    'userID 必须为空：账户由 API 密钥决定。',
  );
}

const isUsable = ({ isLocked, certificateStatus }: HeldKey): boolean => !isLocked && certificateStatus === 'valid';
