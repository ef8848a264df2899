// POST /openapi/v3/orders/{product_id}, GET /orders/alternate/{alternative_order_id} and PUT /orders/{id}/cancel.
// Extensions of the specification, at the paths that clients of this API family use.
import Type from 'typebox';
import type { CancelOrder } from '../../usecases/issuance/cancel-order.ts';
import type { PlaceOrder } from '../../usecases/issuance/place-order.ts';
import type { ShowOrders } from '../../usecases/issuance/show-orders.ts';
import type { Api } from '../front/api.ts';
import { actorOf, callerOf } from '../front/authentication.ts';
import { localeOf } from '../front/failures.ts';
import { answers, success } from '../front/reply.ts';
import { CERTIFICATE_FIELDS, given, optional, toRequest } from './certificate-fields.ts';
import { orderView } from './order-view.ts';

const Body = Type.Object({
  ...CERTIFICATE_FIELDS,
  alternative_order_id: optional(
    Type.String({ maxLength: 64, description: 'Your own name for the order, unique in the account.' }),
  ),
});
const Placed = Type.Object({
  id: Type.String(),
  certificate: Type.Object({ id: Type.String({ description: 'It may still be pending.' }) }),
});
const AnyObject = Type.Object({}, { additionalProperties: true });
const common = { tags: ['orders'], 'x-reseal-extension': true };

interface OrderServices {
  readonly placeOrder: PlaceOrder;
  readonly cancelOrder: CancelOrder;
  readonly show: ShowOrders;
}

export function placementOperations(api: Api, { placeOrder, cancelOrder, show }: OrderServices): void {
  const order = { action: 'order' } as const;
  api.post(
    '/orders/:product_id',
    {
      config: order,
      schema: {
        summary: 'Place an order',
        ...common,
        params: Type.Object({ product_id: Type.String() }),
        body: Body,
        response: answers(Placed),
      },
    },
    async (request) => {
      const { orderId, certificateId } = await placeOrder({
        ...actorOf(request),
        productId: request.params.product_id,
        alternativeId: given(request.body.alternative_order_id) ?? null,
        vouchesForNames: false,
        request: toRequest(request.body),
      });
      request.orderId = orderId;
      request.certificateId = certificateId;
      return success({ id: orderId, certificate: { id: certificateId } });
    },
  );

  api.get(
    '/orders/alternate/:alternative_order_id',
    {
      config: { action: 'read' },
      schema: {
        summary: 'Show an order by your own name for it',
        ...common,
        params: Type.Object({ alternative_order_id: Type.String() }),
        response: answers(AnyObject),
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
        summary: 'Cancel an order that waits, or a reissue that is pending',
        ...common,
        params: Type.Object({ id: Type.String() }),
        response: answers(AnyObject),
      },
    },
    async (request) => {
      const by = actorOf(request);
      await cancelOrder(by, request.params.id);
      return success(orderView(await show.order(by.accountId, request.params.id), localeOf(request)));
    },
  );
}
