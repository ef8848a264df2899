// GET /openapi/v3/orders, /orders/{id} and /certs/{id}. Extensions of the specification.
import Type from 'typebox';
import { pem } from '../../domain/certificate/pem.ts';
import type { ShowOrders } from '../../usecases/issuance/show-orders.ts';
import type { Api } from '../front/api.ts';
import { callerOf } from '../front/authentication.ts';
import { localeOf } from '../front/failures.ts';
import { nextAfter, PageQuery, pageOf } from '../front/paging.ts';
import { answers, success } from '../front/reply.ts';
import { moment } from '../front/values.ts';
import { revocationView } from '../revocation/revocation-view.ts';
import { cancellationView, contentOf, encryptionOf, orderView, summaryOf } from './order-view.ts';

const AnyObject = Type.Object({}, { additionalProperties: true });
const common = { tags: ['orders'], 'x-reseal-extension': true, response: answers(AnyObject) };
const params = Type.Object({ id: Type.String() });

export function orderOperations(
  api: Api,
  show: ShowOrders,
  chainOf: (issuerId: string) => readonly Uint8Array[],
): void {
  const read = { action: 'read' } as const;
  api.get(
    '/orders',
    { config: read, schema: { summary: 'List the orders', querystring: PageQuery, ...common } },
    async (request) => {
      const page = pageOf(request.query);
      const orders = await show.orders(callerOf(request).account.id, page);
      const ids = orders.map(({ id }) => id);
      return success({ orders: orders.map(summaryOf), next_after: nextAfter(ids, page) });
    },
  );

  api.get('/orders/:id', { config: read, schema: { summary: 'Show an order', params, ...common } }, async (request) => {
    return success(orderView(await show.order(callerOf(request).account.id, request.params.id), localeOf(request)));
  });

  api.get(
    '/certs/:id',
    { config: read, schema: { summary: 'Show a certificate', params, ...common } },
    async (request) => {
      const { certificate, replacedBy, history, seen } = await show.certificate(
        callerOf(request).account.id,
        request.params.id,
      );
      const issued = certificate.state === 'issued' ? certificate : null;
      const chain = issued ? chainOf(issued.preparation.issuerId) : [];
      const dates = 'preparation' in certificate ? certificate.preparation : null;
      return success({
        Certificate: {
          ...contentOf(certificate),
          order_id: certificate.orderId,
          canceled:
            certificate.state === 'canceled' && certificate.cancellation
              ? cancellationView(certificate.cancellation, localeOf(request))
              : null,
          ica_pem: chain.map((one) => pem('CERTIFICATE', one)).join(''),
          ...(issued && encryptionOf(issued)),
          cloud_key_id: certificate.cloudKeyId,
          serial_number: issued?.preparation.serial ?? null,
          not_before: moment(dates?.notBefore),
          not_after: moment(dates?.notAfter),
          version: issued?.version ?? null,
          replaces: issued?.replacesId ?? null,
          replaced_by: replacedBy,
          history: history.map(({ id, status, version, replacesId }) => ({
            id,
            status,
            version,
            replaces: replacesId,
          })),
          revocation: revocationView(certificate, seen),
        },
      });
    },
  );
}
