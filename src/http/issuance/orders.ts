// GET /openapi/v3/orders/{id} and /certs/{id}. Extensions of the specification.
import Type from 'typebox';
import type { ShowOrders } from '../../usecases/issuance/show-orders.ts';
import type { Api } from '../front/api.ts';
import { callerOf } from '../front/authentication.ts';
import { localeOf } from '../front/failures.ts';
import { answers, success } from '../front/reply.ts';
import { CertificateView, certificateView, OrderView, orderView } from './order-view.ts';

const read = { action: 'read' } as const;

export function orderOperations(
  api: Api,
  show: ShowOrders,
  chainOf: (issuerId: string) => readonly Uint8Array[],
): void {
  api.get(
    '/orders/:id',
    {
      config: read,
      schema: {
        operationId: 'getOrder',
        summary: 'Show an order',
        description: 'With its current certificate, what is to be published for each name, and scheduled revocations.',
        tags: ['orders'],
        'x-reseal-extension': true,
        params: Type.Object({ id: Type.String({ description: 'The id of the order.' }) }),
        errors: ['order_not_found'],
        response: answers('Order', OrderView),
      },
    },
    async (request) =>
      success(orderView(await show.order(callerOf(request).account.id, request.params.id), localeOf(request))),
  );

  api.get(
    '/certs/:id',
    {
      config: read,
      schema: {
        operationId: 'getCertificate',
        summary: 'Show a certificate',
        description: 'With its chain, its place in the history of the order, and its revocation.',
        tags: ['certificates'],
        'x-reseal-extension': true,
        params: Type.Object({ id: Type.String({ description: 'The id of the certificate.' }) }),
        errors: ['cert_not_found'],
        response: answers('Certificate', Type.Object({ Certificate: CertificateView })),
      },
    },
    async (request) => {
      const shown = await show.certificate(callerOf(request).account.id, request.params.id);
      return success({ Certificate: certificateView(shown, chainOf, localeOf(request)) });
    },
  );
}
