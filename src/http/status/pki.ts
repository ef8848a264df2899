// GET /ca/{issuer}.crt: issuer certificates for verifiers, without authentication, at the URLs in the certificates.
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../../domain/errors.ts';

export function pkiEndpoints(app: FastifyInstance, chainOf: (id: string) => Promise<readonly Uint8Array[]>): void {
  app.get<{ Params: { file: string } }>('/ca/:file', { schema: { hide: true } }, async (request, reply) => {
    const [, id = ''] = /^([0-9a-z]+)\.crt$/.exec(request.params.file) ?? [];
    const [certificate] = await chainOf(id);
    if (!certificate) throw new Refusal('route_not_found');
    return reply
      .type('application/pkix-cert')
      .header('cache-control', 'public, max-age=86400')
      .send(Buffer.from(certificate));
  });
}
