// POST /csc/v1/… and /csc/v2/…: signing with cloud-held keys through the Cloud Signature Consortium API. Its credentials are
// our cloud-held keys. Responses and errors follow that specification, not our envelope.
import type { FastifyContextConfig, FastifyInstance, FastifyRequest } from 'fastify';
import { isPermitted } from '../../domain/access/credential.ts';
import { invalid } from '../../domain/errors.ts';
import { Secret } from '../../domain/secret.ts';
import { type Locale, preferredLocale } from '../../kernel/locale.ts';
import type { Log } from '../../kernel/log.ts';
import type { HeldKey } from '../../usecases/cloud-keys/operate-cloud-keys.ts';
import type { UseCloudKey } from '../../usecases/cloud-keys/use-cloud-key.ts';
import { actorOf, callerOf } from '../front/authentication.ts';
import { localeOf, sendError } from '../front/failures.ts';
import { type Routes, refuseUnknownRoutes } from '../front/routes.ts';
import { authenticateCsc, type LoginServices, loginOperations } from './csc-login.ts';
import { cscSchema } from './csc-schemas.ts';
import { type ChainOf, type CredentialRequest, credentialView, detailIn, infoView } from './csc-views.ts';
import {
  authorizedHashIn,
  type Body,
  bodyOf,
  booleanIn,
  type CscVersion,
  choiceIn,
  countIn,
  cscErrorResponse,
  digestsIn,
  integerIn,
  pinIn,
  signHashIn,
  stringIn,
} from './csc-wire.ts';

interface CscServices extends LoginServices {
  readonly log: Log;
  readonly cloudKeys: UseCloudKey;
  readonly authority: { readonly chainOf: ChainOf };
}

const MAX_LISTED = 1_000;

export function cscInterface(services: CscServices, routes: Routes, version: CscVersion) {
  const { log, cloudKeys, authority } = services;
  const toResponse = cscErrorResponse(version);
  return async (scope: FastifyInstance): Promise<void> => {
    scope.setErrorHandler((error, _request, reply) => sendError(error, reply, log, toResponse));
    authenticateCsc(scope, services);
    refuseUnknownRoutes(scope, routes);
    loginOperations(scope, services, version);

    /** The schema is documentation only: csc-wire.ts answers in the phrases of the specification. */
    const described = (id: Parameters<typeof cscSchema>[1], config: FastifyContextConfig) => ({
      ...{ config, attachValidation: true, schema: cscSchema(version, id) },
    });
    const read = { action: 'read' } as const;
    const use = { action: 'use_cloud_key' } as const;

    const credentialRequest = (request: FastifyRequest, body: Body): CredentialRequest => ({
      version,
      detail: detailIn(body),
      locale: languageOf(request, body),
      showsHint: isPermitted(callerOf(request).credential.kind, 'use_cloud_key'),
    });

    scope.post('/info', described('getSigningInfo', { ...read, isPublic: true }), async (request) =>
      infoView(version, languageOf(request, bodyOf(request.body))),
    );

    scope.post('/credentials/list', described('listSigningCredentials', read), async (request) => {
      const body = bodyOf(request.body);
      refuseUserId(body);
      const [wanted, onlyValid] = [credentialRequest(request, body), booleanIn(body, 'onlyValid')];
      const limit = countIn(body, 'maxResults', MAX_LISTED);
      const before = body.pageToken == null ? undefined : stringIn(body, 'pageToken');
      // One more than is shown tells whether there is another page.
      const found = await cloudKeys.listLive(callerOf(request).account.id, { before, limit: limit + 1 });
      const page = found.slice(-limit);
      const held = onlyValid ? page.filter(isUsable) : page;
      return {
        credentialIDs: held.map(({ key }) => key.id),
        ...(booleanIn(body, 'credentialInfo') && {
          credentialInfos: await Promise.all(
            held.map(async (one) => ({
              credentialID: one.key.id,
              ...(await credentialView(one, wanted, authority.chainOf)),
            })),
          ),
        }),
        ...(onlyValid && { onlyValid }),
        ...(found.length > limit && { nextPageToken: page[0]?.key.id }),
      };
    });

    scope.post('/credentials/info', described('getSigningCredential', read), async (request) => {
      const body = bodyOf(request.body);
      const [id, wanted] = [stringIn(body, 'credentialID'), credentialRequest(request, body)];
      const held = await cloudKeys.show(callerOf(request).account.id, id);
      return await credentialView(held, wanted, authority.chainOf);
    });

    scope.post('/credentials/authorize', described('authorizeSigning', use), async (request) => {
      const body = bodyOf(request.body);
      const id = stringIn(body, 'credentialID');
      const authorization = {
        numSignatures: integerIn(body, 'numSignatures'),
        digests: digestsIn(body),
        signHash: authorizedHashIn(body),
        pin: pinIn(body),
      };
      const { token, expiresInSeconds } = await cloudKeys.authorize(actorOf(request), id, authorization);
      return { SAD: token.reveal(), expiresIn: expiresInSeconds };
    });

    scope.post('/signatures/signHash', described('signHashes', use), async (request) => {
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

const languageOf = (request: FastifyRequest, body: Body): Locale =>
  (body.lang == null ? undefined : preferredLocale(stringIn(body, 'lang'))) ?? localeOf(request);

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
