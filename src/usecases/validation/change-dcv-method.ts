// Changes the validation method of a waiting order. Names already proven stay proven.

import type { Actor } from '../../domain/access/credential.ts';
import { productOf } from '../../domain/catalog/products.ts';
import type { Order } from '../../domain/certificate/order.ts';
import { Refusal } from '../../domain/errors.ts';
import type { OrderId } from '../../domain/ids.ts';
import { type DcvRequest, domainValidation } from '../../domain/issuance/domain-validation.ts';
import { isSignerAlive } from '../../domain/issuance/ports.ts';
import { checkBackoff } from '../../domain/validation/check-result.ts';
import type { ValidationTools } from './check-names.ts';
import { notWaiting } from './pending-certificates.ts';
import { provenNames } from './proven-names.ts';

/** Returns the changed order. */
export type ChangeDcvMethod = (by: Actor, orderId: OrderId, request: DcvRequest) => Promise<Order>;

export function changeDcvMethod(tools: ValidationTools): ChangeDcvMethod {
  const { store, now, audit } = tools;
  return async (by, orderId, request) =>
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
      // Either being signed right now, or its signer is lost and the sweep will void the issuance.
      if (signing)
        throw new Refusal('service_busy', { retryAfterSeconds: isSignerAlive(signing, tx.sharedNow()) ? 1 : 10 });
      const product = productOf(tools.products, order.productId);
      const { names } = record;
      const validatedNames = await provenNames(tools, tx, { accountId, names, product, now: at });
      const { dcv } = domainValidation(request, { now: at, order, product, validatedNames }, names);
      const changed = { ...order, ...dcv };
      await tx.orders.save(changed);
      await tx.waiting.update({ ...waiting, tries: 0, dueAt: tx.sharedNow() + checkBackoff(0), findings: {} });
      const details = { from: order.dcvMethod, to: dcv.dcvMethod, scope: dcv.dcvScope };
      await audit(tx, by, 'order:dcv_method_changed', orderId, details);
      return changed;
    });
}
