// What pages of the account show beside the operations of /openapi/v3: the audit of an order, revocations to come in all
// orders, a callback with its body. Reads only; docs/console.md lists them.
import Type from 'typebox';
import type { ManageDeliveries } from '../../usecases/callbacks/manage-deliveries.ts';
import type { ShowOrders } from '../../usecases/issuance/show-orders.ts';
import type { SearchAudit } from '../../usecases/support/search-audit.ts';
import { AuditEntryView, auditEntryView } from '../access/audit.ts';
import { DeliveryView, deliveryView } from '../callbacks/deliveries.ts';
import type { Api } from '../front/api.ts';
import { callerOf } from '../front/authentication.ts';
import { NextAfter, PageQuery, pageOf } from '../front/paging.ts';
import { answers, success } from '../front/reply.ts';
import { list, nullable } from '../front/values.ts';
import { ScheduledRevocation, scheduleView } from '../revocation/revocation-view.ts';

const MAX_SCHEDULED = 100;

const Audit = Type.Object({ audit: list(AuditEntryView), next_after: NextAfter });
const Revocation = Type.Object({
  ...ScheduledRevocation.properties,
  order_id: Type.String(),
  common_name: nullable(Type.String()),
});
const Revocations = Type.Object({ revocations: list(Revocation), has_more: Type.Boolean() });
const Delivery = Type.Object({ delivery: Type.Object({ ...DeliveryView.properties, body: Type.String() }) });

interface ViewServices {
  readonly show: ShowOrders;
  readonly searchAudit: SearchAudit;
  readonly deliveries: ManageDeliveries;
}

export function accountViews(api: Api, { show, searchAudit, deliveries }: ViewServices): void {
  const ofId = { params: Type.Object({ id: Type.String() }), hide: true } as const;

  // The newest first, where the list of the account has the oldest first.
  api.get(
    '/orders/:id/audit',
    {
      config: { action: 'read_audit' },
      schema: { ...ofId, querystring: PageQuery, response: answers('OrderAudit', Audit) },
    },
    async (request) => {
      const accountId = callerOf(request).account.id;
      // Another account's order is not found; a search would answer with nothing, and so tell that it exists.
      const { order } = await show.order(accountId, request.params.id);
      const page = pageOf(request.query, PageQuery);
      const query = { accountId, order: order.id, since: order.createdAt };
      // One read, whose cost is bounded: in an account of many orders a page may be short, and goes on at next_after.
      const { entries, nextAfter } = await searchAudit(query, page, 1);
      return success({ audit: entries.map(auditEntryView), next_after: nextAfter });
    },
  );

  api.get(
    '/revocations',
    { config: { action: 'read' }, schema: { hide: true, response: answers('ScheduledRevocations', Revocations) } },
    async (request) => {
      const found = await show.scheduledRevocations(callerOf(request).account.id, MAX_SCHEDULED + 1);
      const revocations = found.slice(0, MAX_SCHEDULED).map((one) => ({
        ...{ certificate_id: one.certificateId, order_id: one.orderId, common_name: one.commonName },
        ...scheduleView(one),
      }));
      return success({ revocations, has_more: found.length > MAX_SCHEDULED });
    },
  );

  api.get(
    '/account/callback/deliveries/:id',
    { config: { action: 'configure_callback' }, schema: { ...ofId, response: answers('DeliveryContent', Delivery) } },
    async (request) => {
      const delivery = await deliveries.show(callerOf(request).account.id, request.params.id);
      return success({ delivery: { ...deliveryView(delivery), body: delivery.body } });
    },
  );
}
