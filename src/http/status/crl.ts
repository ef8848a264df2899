// GET /crl/{issuer}/{shard}.crl: lists of revocations, for verifiers, without any key. Caches may keep one for minutes
// only, so that a revocation reaches everybody behind them soon; asking whether it has changed costs next to nothing.
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../../domain/errors.ts';
import type { PublishedList } from '../../domain/revocation/ports.ts';
import type { ListRef } from '../../domain/revocation/revocation.ts';

const MAX_AGE_SECONDS = 300;

export function crlEndpoint(app: FastifyInstance, serve: (list: ListRef) => Promise<PublishedList | undefined>): void {
  app.get<{ Params: { issuer: string; file: string } }>(
    '/crl/:issuer/:file',
    { schema: { hide: true } },
    async (request, reply) => {
      const { issuer, file } = request.params;
      const [, issuerId, shard] = /^([0-9a-z]+)\/(0|[1-9]\d?)\.crl$/.exec(`${issuer}/${file}`) ?? [];
      const list = issuerId === undefined ? undefined : await serve({ issuerId, shard: Number(shard) });
      if (!list) throw new Refusal('route_not_found');
      const etag = `"${list.number}"`;
      reply
        .header('cache-control', `public, max-age=${MAX_AGE_SECONDS}, must-revalidate`)
        .header('etag', etag)
        .header('last-modified', new Date(list.thisUpdate).toUTCString());
      // Proxies that compress weaken it, and caches may know several.
      const known = (request.headers['if-none-match'] ?? '').split(',').map((one) => one.trim().replace(/^W\//, ''));
      if (known.includes(etag) || known.includes('*')) return reply.code(304).send();
      return reply.type('application/pkix-crl').send(Buffer.from(list.der));
    },
  );
}
