// The door of ACME resources: a POST is a signed request (RFC 8555, 6.2), authenticated before its handler sees it. Handlers
// get typed requests: of an account, or of a key that the request brings along.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Actor } from '../../domain/access/credential.ts';
import { acmeActor } from '../../domain/acme/account.ts';
import { AcmeProblem, malformed } from '../../domain/acme/problem.ts';
import type { Locale } from '../../kernel/locale.ts';
import type { AccountSigned, AuthenticateAcme, KeySigned, SignedBy } from '../../usecases/acme/authenticate-request.ts';
import { localeOf } from '../front/failures.ts';

interface Asked {
  readonly requestId: string;
  /** Of problem details inside the answer. */
  readonly locale: Locale;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
}

/** A request of an account. The account, its binding and its tenant are usable. */
export interface AcmeRequest extends AccountSigned, Asked {
  /** Who acts, for the audit log. */
  readonly by: Actor;
  /** In resources of one product. */
  readonly product: string | undefined;
}

/** A request signed by a key that need not have an account. Its handler must spend the nonce. */
export interface AcmeKeyRequest extends KeySigned, Asked {}

/** The result is sent as JSON, unless the handler returns the reply. */
type Handler<Request> = (request: Request, reply: FastifyReply) => Promise<unknown>;

export interface AcmeDoor {
  readonly scope: FastifyInstance;
  /** The absolute URL of a path that begins with /acme. */
  url(path: string): string;
  /** Paths begin with /acme. */
  byAccount(path: string, handle: Handler<AcmeRequest>): void;
  byKey(path: string, handle: Handler<AcmeKeyRequest>): void;
  byEither(path: string, handle: Handler<AcmeRequest | AcmeKeyRequest>): void;
}

export const ACME_PREFIX = '/acme';
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function acmeDoor(scope: FastifyInstance, authenticate: AuthenticateAcme, publicUrl: () => string): AcmeDoor {
  parseSignedBodies(scope);
  const url = (path: string): string => publicUrl() + path;

  function post(path: string, by: SignedBy, handle: Handler<AcmeRequest & AcmeKeyRequest>): void {
    scope.post(path.slice(ACME_PREFIX.length), { schema: { hide: true } }, async (request, reply) => {
      requireMediaType(request);
      const signed = await authenticate({ text: textIn(request.body), url: url(request.url) }, by);
      const asked = await admit(request, reply, signed);
      if (signed.signedBy === 'account') return await handle(asked as AcmeRequest & AcmeKeyRequest, reply);
      let isSpent = false;
      const spendNonce: KeySigned['spendNonce'] = async (db) => {
        await signed.spendNonce(db);
        isSpent = true;
      };
      const answer = await handle({ ...asked, spendNonce } as AcmeRequest & AcmeKeyRequest, reply);
      // The request could be sent again, by anyone who has seen it.
      if (!isSpent) throw new Error(`the handler of ${path} has not spent the nonce`);
      return answer;
    });
  }
  return {
    scope,
    url,
    byAccount: (path, handle) => post(path, 'account', handle),
    byKey: (path, handle) => post(path, 'key', handle),
    byEither: (path, handle) => post(path, 'either', handle),
  };
}

async function admit(request: FastifyRequest, reply: FastifyReply, signed: AccountSigned | KeySigned) {
  if (signed.signedBy === 'account') {
    request.tenant = signed.tenant;
    await request.server.enterAs(reply, signed.tenant.id);
  }
  const params = request.params as Readonly<Record<string, string>>;
  return {
    ...signed,
    requestId: request.id,
    locale: localeOf(request),
    params,
    query: request.query as Readonly<Record<string, unknown>>,
    ...(signed.signedBy === 'account' && { by: acmeActor(signed, request.id), product: params.product }),
  };
}

function parseSignedBodies(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes));
}

/** From the raw headers: the parsed one was replaced where it is not JSON (front/bodies.ts). */
function requireMediaType({ raw: { rawHeaders } }: FastifyRequest): void {
  const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-type');
  if (at >= 0 && /^application\/jose\+json\s*(;|$)/i.test(rawHeaders[at + 1] ?? '')) return;
  throw new AcmeProblem('unsupportedMediaType', {
    en: 'Send the JWS with Content-Type: application/jose+json.',
    zh: '请使用 Content-Type: application/jose+json 发送 JWS。',
  });
}

function textIn(body: unknown): string {
  try {
    return utf8.decode(body as Buffer | undefined);
  } catch {
    throw malformed('The body is not UTF-8.', '请求体不是 UTF-8 编码。');
  }
}
