// /ocsp: the status of a certificate (RFC 6960, and the caching of RFC 5019), by POST, or by GET with the request in
// the path. Without any key, and in OCSP's own words: what is not understood is a malformedRequest, not an envelope.
import type { FastifyInstance, FastifyReply } from 'fastify';

interface Answer {
  readonly der: Uint8Array;
  readonly validity: { readonly thisUpdate: number; readonly nextUpdate: number } | null;
}

/** Larger than any request that is answered: what is between is malformed, what is beyond is not read. */
const MAX_BODY_BYTES = 8 * 1024;
/** A cache may hand out a good answer for so long after the certificate was revoked. */
const MAX_AGE_SECONDS = 300;

export function ocspEndpoints(app: FastifyInstance, answer: (request: Uint8Array) => Promise<Answer>): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    // Whatever it says it is: only its bytes count.
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, async (_request: unknown, bytes: Buffer) => bytes);
    const options = { schema: { hide: true } } as const;

    scope.post('/ocsp', { ...options, bodyLimit: MAX_BODY_BYTES }, async (request, reply) =>
      send(reply, await answer(Buffer.isBuffer(request.body) ? request.body : new Uint8Array())),
    );

    scope.get('/ocsp/*', options, async (request, reply) => {
      const given = await answer(requestIn(request.raw.url ?? ''));
      if (given.validity) {
        const { thisUpdate } = given.validity;
        reply
          // No Expires: one at nextUpdate would let old caches keep a good answer long after a revocation.
          .header('cache-control', `public, max-age=${MAX_AGE_SECONDS}, no-transform, must-revalidate`)
          .header('last-modified', new Date(thisUpdate).toUTCString());
      }
      return send(reply, given);
    });
  });
}

const send = (reply: FastifyReply, { der }: Answer): FastifyReply =>
  reply.type('application/ocsp-response').send(Buffer.from(der));

/**
 * Base64 in the path. The router's own reading of the path is of no use: a slash at the end belongs to the request, and
 * some clients do not encode slashes and plus signs at all.
 */
function requestIn(url: string): Uint8Array {
  const [, encoded = ''] = /^\/ocsp\/([^?#]*)/.exec(url) ?? [];
  const text = decoded(encoded);
  // After the padding a slash can only be the one that makes no difference.
  return /^[A-Za-z0-9+/_-]*(={1,2}\/?)?$/.test(text) ? Buffer.from(text, 'base64') : new Uint8Array();
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '?';
  }
}
