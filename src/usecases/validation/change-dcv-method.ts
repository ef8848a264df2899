// Change how the names of a waiting order are proven. What was proven already stays so.

import type { Actor } from '../../domain/access/credential.ts';
import { productOf } from '../../domain/catalog/products.ts';
import type { Order } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { OrderId } from '../../domain/ids.ts';
import { type DcvRequest, domainValidation } from '../../domain/issuance/domain-validation.ts';
import { waitAfter } from '../../domain/validation/check-result.ts';
import type { ValidationTools } from './check-names.ts';
import { notWaiting } from './pending-certificates.ts';
import { provenAmong } from './proven-names.ts';

/** The order as it is afterwards. */
export type ChangeDcvMethod = (by: Actor, orderId: OrderId, wish: DcvRequest) => Promise<Order>;

export function changeDcvMethod(tools: ValidationTools): ChangeDcvMethod {
  const { store, now, newId } = tools;
  return async (by, orderId, wish) =>
    await store.transaction(async (tx) => {
      const { accountId } = by;
      const found = await tx.orders.findForUpdate(accountId, orderId);
      if (!found) throw new Refusal('order_not_found');
      const { order, signing } = found;
      const certificateId = order.pendingCertificateId;
      const waiting = certificateId === null ? undefined : await tx.waiting.find(accountId, certificateId);
      const record = waiting && (await tx.certificates.find(accountId, waiting.certificateId));
      if (!waiting || !record) throw notWaiting(order);
      const at = now();
      // It is being signed at this moment, or its signer is lost and will be cleared up behind.
      if (signing) throw new Refusal('service_busy', { retryAfterSeconds: signing.until > at ? 1 : 10 });
      const product = productOf(tools.products, order.productId);
      const provenBy = await provenAmong(tools, tx, accountId, record.names, product, at);
      const { dcv } = domainValidation(
        wish,
        { now: at, order, product, validatedNames: new Set(provenBy.keys()) },
        record.names,
      );
      const changed = { ...order, ...dcv };
      await tx.orders.save(changed);
      await tx.waiting.update({ ...waiting, tries: 0, dueAt: at + waitAfter(0), findings: {} });
      await tx.audit.append({
        ...{ id: newId(), at, ...by, action: 'order:dcv_method_changed', subject: orderId },
        details: { from: order.dcvMethod, to: dcv.dcvMethod, scope: dcv.dcvScope },
      });
      return changed;
    });
}
