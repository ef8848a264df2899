// POST /openapi/v3/certs/{id}/revoke, and PUT and DELETE /openapi/v3/certs/{id}/revocation: revoke now, or change a
// scheduled revocation. An extension: in the specification only reissues revoke.
import Type from 'typebox';
import type { AccountId } from '../../domain/ids.ts';
import { CUSTOMER_REASONS, parseDueAt, requireReason } from '../../domain/revocation/revocation.ts';
import type { ShowOrders } from '../../usecases/issuance/show-orders.ts';
import type { ChangeRevocation } from '../../usecases/revocation/change-revocation.ts';
import type { RevokeCertificate } from '../../usecases/revocation/revoke-certificate.ts';
import type { Api } from '../front/api.ts';
import { actorOf } from '../front/authentication.ts';
import { answers, success } from '../front/reply.ts';
import { nullable } from '../front/values.ts';
import { RevocationView, revocationView } from './revocation-view.ts';

const Reason = Type.String({
  enum: [...CUSTOMER_REASONS],
  description:
    'Left out, the service writes superseded for a certificate that was replaced, and cessation_of_operation otherwise. key_compromise also blocks the key for your account.',
});
const DueAt = Type.String({
  format: 'date-time',
  description: 'Earlier than now means now; later than before takes a product that lets revocations be put off.',
});
const Answer = Type.Object({
  certificate: Type.Object(
    { id: Type.String(), revocation: nullable(RevocationView) },
    { title: 'RevokedCertificate' },
  ),
});

const common = {
  tags: ['certificates'],
  'x-reseal-extension': true,
  params: Type.Object({ id: Type.String({ description: 'The id of the certificate.' }) }),
  response: answers('Revocation', Answer),
} as const;

export interface RevocationOperations {
  readonly revoke: RevokeCertificate;
  readonly changeRevocation: ChangeRevocation;
  readonly show: ShowOrders;
}

export function revocationOperations(api: Api, { revoke, changeRevocation, show }: RevocationOperations): void {
  const config = { action: 'revoke' } as const;
  const respond = async (accountId: AccountId, id: string) => {
    const { certificate, seen } = await show.certificate(accountId, id);
    return success({ certificate: { id, revocation: revocationView(certificate, seen) } });
  };

  api.post(
    '/certs/:id/revoke',
    {
      config,
      // The body is optional.
      preValidation: async (request) => {
        request.body ??= {};
      },
      schema: {
        operationId: 'revokeCertificate',
        summary: 'Revoke a certificate now',
        description:
          'CRL and OCSP show it at once. A revocation that is scheduled happens now instead; one that has happened is answered as it is, `key_compromise` replacing another reason.',
        ...common,
        errors: ['cert_not_found', 'revocation_state_conflict'],
        body: Type.Object({ reason: Type.Optional(Reason) }, { title: 'RevocationRequest' }),
        'x-optional-body': true,
      },
    },
    async (request) => {
      const by = actorOf(request);
      const { reason } = request.body;
      const revocation = reason === undefined ? {} : { reason: requireReason(reason, CUSTOMER_REASONS) };
      await revoke(by, request.params.id, revocation);
      return await respond(by.accountId, request.params.id);
    },
  );

  api.put(
    '/certs/:id/revocation',
    {
      config,
      schema: {
        operationId: 'rescheduleRevocation',
        summary: 'Bring a scheduled revocation forward, or put it off',
        description:
          'A reissue may schedule the revocation of earlier certificates, where the product has a period of grace.',
        ...common,
        errors: ['cert_not_found', 'revocation_state_conflict', 'product_not_found'],
        body: Type.Object({ due_at: DueAt }, { title: 'RevocationChange' }),
      },
    },
    async (request) => {
      const by = actorOf(request);
      await changeRevocation.reschedule(by, request.params.id, parseDueAt(request.body.due_at));
      return await respond(by.accountId, request.params.id);
    },
  );

  api.delete(
    '/certs/:id/revocation',
    {
      config,
      schema: {
        operationId: 'cancelRevocation',
        summary: 'Cancel a scheduled revocation',
        description: 'Where the product lets revocations be put off.',
        ...common,
        errors: ['cert_not_found', 'revocation_state_conflict', 'product_not_found'],
      },
    },
    async (request) => {
      const by = actorOf(request);
      await changeRevocation.cancel(by, request.params.id);
      return await respond(by.accountId, request.params.id);
    },
  );
}
