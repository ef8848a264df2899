// Certificates of ACME clients: download, revocation, renewal information.
import type { FastifyRequest } from 'fastify';
import { ACME_PATHS } from '../../domain/acme/directory.ts';
import { requireObject, requirePostAsGet } from '../../domain/acme/jws.ts';
import { parseReason } from '../../domain/acme/revocation.ts';
import { pem } from '../../domain/certificate/pem.ts';
import type { RevokeByAcme } from '../../usecases/acme/revoke-by-acme.ts';
import type { ShowAcmeOrders } from '../../usecases/acme/show-acme-orders.ts';
import type { AcmeDoor } from './door.ts';
import { callerIn, derIn } from './orders.ts';

export interface CertificateServices {
  readonly showAcmeOrders: ShowAcmeOrders;
  readonly revokeByAcme: RevokeByAcme;
  /** The issuer first, the root last. */
  readonly chainOf: (issuerId: string) => Promise<readonly Uint8Array[]>;
}

export function certificateResources(door: AcmeDoor, services: CertificateServices): void {
  const { showAcmeOrders, revokeByAcme, chainOf } = services;

  door.byAccount(`${ACME_PATHS.certificate}/:id`, async (request, reply) => {
    requirePostAsGet(request.payload);
    const { der, preparation } = await showAcmeOrders.certificate(callerIn(door, request), request.params.id ?? '');
    // Verifiers have the root.
    const chain = [der, ...(await chainOf(preparation.issuerId)).slice(0, -1)];
    reply.type('application/pem-certificate-chain');
    return chain.map((one) => pem('CERTIFICATE', one)).join('');
  });

  door.byEither(ACME_PATHS.revokeCert, async (request, reply) => {
    const { certificate, reason } = requireObject(request.payload);
    const revoker =
      request.signedBy === 'account'
        ? { bound: request }
        : { key: request.key.publicKey, spendNonce: request.spendNonce };
    const { requestId } = request;
    await revokeByAcme(revoker, {
      certificate: derIn(certificate, 'certificate'),
      reason: parseReason(reason),
      requestId,
    });
    return await reply.code(200).send();
  });

  door.scope.get(
    '/renewal-info/:id',
    { schema: { hide: true } },
    async (request: FastifyRequest<{ Params: { id: string } }>, reply) => {
      const { start, end, retryAfterSeconds } = await showAcmeOrders.renewalInfo(request.params.id);
      reply.header('retry-after', retryAfterSeconds);
      return { suggestedWindow: { start: new Date(start).toISOString(), end: new Date(end).toISOString() } };
    },
  );
}
