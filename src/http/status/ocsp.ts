// /ocsp: OCSP over HTTP (RFC 6960, caching by RFC 5019), as POST, or as GET with the request in the path. No
// authentication. Errors of the request are OCSP responses such as malformedRequest, not JSON envelopes.
import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify';

interface Answer {
  readonly der: Uint8Array;
  readonly validity: { readonly thisUpdate: number; readonly nextUpdate: number } | null;
}

/** Above the size limit of OCSP requests. Anything larger is not read. */
const MAX_BODY_BYTES = 8 * 1024;
/** Is answered malformedRequest. */
const NO_REQUEST = new Uint8Array();
/** How long a cache may serve a good response after the certificate was revoked. */
const MAX_AGE_SECONDS = 300;

export function ocspEndpoints(app: FastifyInstance, answer: (request: Uint8Array) => Promise<Answer>): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    // Ignores the content type.
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes));
    // Fastify's errors about a body: too large, or not as long as announced.
    scope.setErrorHandler(async (error: FastifyError, _request, reply) => {
      if (!error.code?.startsWith('FST_ERR_CTP_')) throw error;
      return send(reply.code(200), await answer(NO_REQUEST));
    });
    const options = { schema: { hide: true } } as const;

    scope.post('/ocsp', { ...options, bodyLimit: MAX_BODY_BYTES }, async (request, reply) =>
      send(reply, await answer(Buffer.isBuffer(request.body) ? request.body : NO_REQUEST)),
    );

    scope.get('/ocsp/*', options, async (request, reply) => {
      const given = await answer(requestIn(request.raw.url ?? ''));
      if (given.validity) {
        const { thisUpdate } = given.validity;
        reply
          // No Expires: at nextUpdate it would let old caches keep a good response long after a revocation.
          .header('cache-control', `public, max-age=${MAX_AGE_SECONDS}, no-transform, must-revalidate`)
          .header('last-modified', new Date(thisUpdate).toUTCString());
      }
      return send(reply, given);
    });
  });
}

const send = (reply: FastifyReply, { der }: Answer): FastifyReply =>
  reply.type('application/ocsp-response').send(Buffer.from(der.buffer, der.byteOffset, der.length));

/**
 * Decodes the base64 in the path. Reads the raw URL, not the router's: a trailing slash is part of the request, and some
 * clients do not percent-encode slashes and plus signs.
 */
function requestIn(url: string): Uint8Array {
  const [, encoded = ''] = /^\/ocsp\/([^?#]*)/.exec(url) ?? [];
  const text = decoded(encoded);
  // A slash after the padding is not part of the base64.
  return /^[A-Za-z0-9+/_-]*(={1,2}\/?)?$/.test(text) ? Buffer.from(text, 'base64') : NO_REQUEST;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '?';
  }
}
