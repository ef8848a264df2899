// PUT /openapi/v3/orders/{id}/dcv-method and /dcv-completed, and GET …/dcv-check. Our extension of the interface, with
// the paths and field names that clients of this API family use.
import Type from 'typebox';
import { DCV_METHODS } from '../../domain/certificate/order.ts';
import type { CheckResult } from '../../domain/validation/check-result.ts';
import { inLocale, type Locale } from '../../kernel/locale.ts';
import type { ShowOrders } from '../../usecases/issuance/show-orders.ts';
import type { ChangeDcvMethod } from '../../usecases/validation/change-dcv-method.ts';
import type { ProveDomains } from '../../usecases/validation/prove-domains.ts';
import type { ShowValidation } from '../../usecases/validation/show-validation.ts';
import type { Api } from '../front/api.ts';
import { actorOf, callerOf } from '../front/authentication.ts';
import { localeOf } from '../front/failures.ts';
import { answers, success } from '../front/reply.ts';
import { CERTIFICATE_FIELDS, given } from '../issuance/certificate-fields.ts';
import { orderView } from '../issuance/order-view.ts';

const { dcv_scope, persist_until, persist_policy } = CERTIFICATE_FIELDS;
const Body = Type.Object({
  dcv_method: Type.String({ enum: [...DCV_METHODS] }),
  dcv_scope,
  persist_until,
  persist_policy,
});
const AnyObject = Type.Object({}, { additionalProperties: true });
const common = { tags: ['orders'], 'x-reseal-extension': true, response: answers(AnyObject) };
const params = Type.Object({ id: Type.String() });

export interface ValidationServices {
  readonly changeDcvMethod: ChangeDcvMethod;
  readonly proveDomains: ProveDomains;
  readonly showValidation: ShowValidation;
  readonly show: ShowOrders;
}

export function validationOperations(
  api: Api,
  { changeDcvMethod, proveDomains, showValidation, show }: ValidationServices,
): void {
  const order = { action: 'order' } as const;
  api.put(
    '/orders/:id/dcv-method',
    {
      config: order,
      schema: { summary: 'Change how the names of a waiting order are proven', params, body: Body, ...common },
    },
    async (request) => {
      const by = actorOf(request);
      const { id } = request.params;
      const { body } = request;
      await changeDcvMethod(by, id, {
        dcvMethod: body.dcv_method,
        dcvScope: given(body.dcv_scope),
        persistUntil: body.persist_until,
        persistPolicy: body.persist_policy,
      });
      return success(orderView(await show.order(by.accountId, id), localeOf(request)));
    },
  );

  api.put(
    '/orders/:id/dcv-completed',
    {
      config: order,
      schema: {
        summary: 'Look at the records of a waiting order now',
        description: 'The answer is the order after the look; it is `issued` if nothing was missing.',
        params,
        ...common,
      },
    },
    async (request) => {
      const { accountId } = actorOf(request);
      const { id } = request.params;
      await proveDomains.prove(accountId, id);
      return success(orderView(await show.order(accountId, id), localeOf(request)));
    },
  );

  api.get(
    '/orders/:id/dcv-check',
    {
      config: { action: 'read' },
      schema: { summary: 'Say what DNS and web servers answer now; changes nothing', params, ...common },
    },
    async (request) => {
      const locale = localeOf(request);
      const checks = await showValidation.check(callerOf(request).account.id, request.params.id);
      return success({
        checks: checks.map(({ name, challenge, control, caa }) => ({
          domain: name,
          dcv_method: challenge?.method ?? '',
          auth_path: challenge?.path ?? '',
          auth_val: challenge?.value ?? '',
          ...resultView(control, locale),
          caa: resultView(caa, locale),
        })),
      });
    },
  );
}

const resultView = (result: CheckResult, locale: Locale) => ({
  result: result.isOk ? 'ok' : result.problem,
  message: result.isOk ? '' : inLocale(result.reason, locale),
});
