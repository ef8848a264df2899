// GET /crl/{issuer}/{shard}.crl: CRLs for verifiers, without authentication. Caches may keep a CRL for minutes only, so
// that revocations spread quickly; conditional requests are cheap.
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../../domain/errors.ts';
import type { PublishedCrl } from '../../domain/revocation/ports.ts';
import type { CrlRef } from '../../domain/revocation/revocation.ts';

const MAX_AGE_SECONDS = 300;

export function crlEndpoint(app: FastifyInstance, serve: (crl: CrlRef) => Promise<PublishedCrl | undefined>): void {
  app.get<{ Params: { issuer: string; file: string } }>(
    '/crl/:issuer/:file',
    { schema: { hide: true } },
    async (request, reply) => {
      const { issuer, file } = request.params;
      const [, issuerId, shard] = /^([0-9a-z]+)\/(0|[1-9]\d?)\.crl$/.exec(`${issuer}/${file}`) ?? [];
      const crl = issuerId === undefined ? undefined : await serve({ issuerId, shard: Number(shard) });
      if (!crl) throw new Refusal('route_not_found');
      const etag = `"${crl.number}"`;
      reply
        .header('cache-control', `public, max-age=${MAX_AGE_SECONDS}, must-revalidate`)
        .header('etag', etag)
        .header('last-modified', new Date(crl.thisUpdate).toUTCString());
      // Compressing proxies send a weak validator, and caches may send several.
      const known = (request.headers['if-none-match'] ?? '').split(',').map((one) => one.trim().replace(/^W\//, ''));
      if (known.includes(etag) || known.includes('*')) return reply.code(304).send();
      // Not a copy: verifiers that read slowly would multiply it.
      const { buffer, byteOffset, length } = crl.der;
      return reply.type('application/pkix-crl').send(Buffer.from(buffer, byteOffset, length));
    },
  );
}
