// POST /openapi/v3/orders/{id}, where the id is the product's, GET /orders/alternate/{alternative_order_id} and
// PUT /orders/{id}/cancel. Extensions of the specification, at the paths that clients of this API family use.
import Type from 'typebox';
import { MAX_ALTERNATIVE_ID } from '../../domain/issuance/placement.ts';
import type { CancelOrder } from '../../usecases/issuance/cancel-order.ts';
import type { PlaceOrder } from '../../usecases/issuance/place-order.ts';
import type { ShowOrders } from '../../usecases/issuance/show-orders.ts';
import type { Api } from '../front/api.ts';
import { actorOf, callerOf } from '../front/authentication.ts';
import { localeOf } from '../front/failures.ts';
import { answers, success } from '../front/reply.ts';
import {
  CERTIFICATE_FIELDS,
  CertificateReference,
  FirstCertificate,
  given,
  ISSUANCE_ERRORS,
  optional,
  toPlacement,
} from './certificate-fields.ts';
import { type DigestOf, IdempotencyHeaders, idempotencyOf } from './idempotency-key.ts';
import { OrderView, orderView } from './order-view.ts';

const Body = Type.Object(
  {
    ...CERTIFICATE_FIELDS,
    certificate: FirstCertificate,
    validity_months: optional(
      Type.Integer({
        minimum: 1,
        description:
          'The term of the order in calendar months; the certificate ends with it, or earlier. Left out: the term of the product.',
      }),
    ),
    pay_product_id: optional(
      Type.Integer({
        description:
          'A number of the product, for clients that send one beside the path. 0, and a number that no product has, mean nothing.',
      }),
    ),
    alternative_order_id: optional(
      Type.String({
        maxLength: MAX_ALTERNATIVE_ID,
        description: 'Your own name for the order, unique in the account.',
      }),
    ),
  },
  { title: 'PlaceOrderRequest' },
);
const Placed = Type.Object({
  id: Type.String(),
  order_id: Type.String({ description: 'The same as `id`.' }),
  certificate: CertificateReference,
});
const common = { tags: ['orders'], 'x-reseal-extension': true } as const;

interface OrderServices {
  readonly placeOrder: PlaceOrder;
  readonly cancelOrder: CancelOrder;
  readonly show: ShowOrders;
}

export function placementOperations(
  api: Api,
  { placeOrder, cancelOrder, show }: OrderServices,
  digestOf: DigestOf,
): void {
  const idempotency = idempotencyOf(Body, digestOf);
  const order = { action: 'order' } as const;
  api.post(
    // One name for the parameter, whatever the method: in OpenAPI the two would be one path twice.
    '/orders/:id',
    {
      config: order,
      schema: {
        operationId: 'placeOrder',
        summary: 'Place an order',
        description:
          'The certificate is issued before the answer if every name is proven already; otherwise the order shows what to publish.',
        ...common,
        params: Type.Object({ id: Type.String({ description: 'The id of the product, or one of its numbers.' }) }),
        headers: IdempotencyHeaders,
        body: Body,
        errors: [
          ...ISSUANCE_ERRORS,
          'product_not_found',
          'duplicate_alternative_order_id',
          'idempotency_key_reused',
          // Products that certify the name of a holder are ordered by the operator.
          'permission_denied',
        ],
        response: answers('PlacedOrder', Placed),
      },
    },
    async (request) => {
      const { orderId, certificateId } = await placeOrder({
        ...actorOf(request),
        productId: request.params.id,
        payProductId: request.body.pay_product_id,
        alternativeId: given(request.body.alternative_order_id) ?? null,
        validityMonths: request.body.validity_months,
        idempotency: idempotency(request.headers['idempotency-key'], request.body, { product: request.params.id }),
        vouchesForNames: false,
        request: toPlacement(request.body),
      });
      request.orderId = orderId;
      request.certificateId = certificateId;
      return success({ id: orderId, order_id: orderId, certificate: { id: certificateId } });
    },
  );

  api.get(
    '/orders/alternate/:alternative_order_id',
    {
      config: { action: 'read' },
      schema: {
        operationId: 'getOrderByAlternativeId',
        summary: 'Show an order by your own name for it',
        description: 'For a client whose order was placed, and whose answer was lost.',
        ...common,
        params: Type.Object({ alternative_order_id: Type.String() }),
        errors: ['order_not_found'],
        response: answers('Order', OrderView),
      },
    },
    async (request) => {
      const { account } = callerOf(request);
      const shown = await show.orderByAlternative(account.id, request.params.alternative_order_id);
      return success(orderView(shown, localeOf(request)));
    },
  );

  api.put(
    '/orders/:id/cancel',
    {
      config: order,
      schema: {
        operationId: 'cancelOrder',
        summary: 'Cancel an order that waits, or a reissue that is pending',
        description: 'Canceling a pending reissue leaves the order with its earlier certificate.',
        ...common,
        params: Type.Object({ id: Type.String({ description: 'The id of the order.' }) }),
        errors: ['order_not_found', 'cancel_not_allowed'],
        response: answers('Order', OrderView),
      },
    },
    async (request) => {
      const by = actorOf(request);
      await cancelOrder(by, request.params.id);
      return success(orderView(await show.order(by.accountId, request.params.id), localeOf(request)));
    },
  );
}
