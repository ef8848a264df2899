// GET /ca/{issuer}.crt: issuer certificates for verifiers, without authentication, at the URLs in the certificates.
// GET /ca/{issuer}.{fingerprint}.pem: the chain to another root, for an issuer that is cross-signed.
import type { FastifyInstance } from 'fastify';
import { pem } from '../../domain/certificate/pem.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AlternateChain } from '../../domain/issuance/custody.ts';

interface Chains {
  chainOf(id: string): Promise<readonly Uint8Array[]>;
  alternatesOf(id: string): Promise<readonly AlternateChain[]>;
}

export function pkiEndpoints(app: FastifyInstance, { chainOf, alternatesOf }: Chains): void {
  app.get<{ Params: { file: string } }>('/ca/:file', { schema: { hide: true } }, async (request, reply) => {
    const [, crossed, fingerprint] = /^([0-9a-z]+)\.([0-9a-f]{64})\.pem$/.exec(request.params.file) ?? [];
    if (crossed !== undefined) {
      const chain = (await alternatesOf(crossed)).find((one) => one.fingerprint === fingerprint);
      if (!chain) throw new Refusal('route_not_found');
      const text = chain.certificates.map((one) => pem('CERTIFICATE', one)).join('');
      return reply.type('application/x-pem-file').header('cache-control', 'public, max-age=86400').send(text);
    }
    const [, id = ''] = /^([0-9a-z]+)\.crt$/.exec(request.params.file) ?? [];
    const [certificate] = await chainOf(id);
    if (!certificate) throw new Refusal('route_not_found');
    return reply
      .type('application/pkix-cert')
      .header('cache-control', 'public, max-age=86400')
      .send(Buffer.from(certificate));
  });
}
