// PUT /openapi/v3/orders/{id}/dcv-method and /dcv-completed, and GET …/dcv-check. Our extension of the interface, with
// the paths and field names that clients of this API family use.
import Type from 'typebox';
import { CHECK_PROBLEMS, type CheckResult } from '../../domain/validation/check-result.ts';
import { inLocale, type Locale } from '../../kernel/locale.ts';
import type { ShowOrders } from '../../usecases/issuance/show-orders.ts';
import type { ChangeDcvMethod } from '../../usecases/validation/change-dcv-method.ts';
import type { ProveDomains } from '../../usecases/validation/prove-domains.ts';
import type { ShowValidation } from '../../usecases/validation/show-validation.ts';
import type { Api } from '../front/api.ts';
import { actorOf, callerOf } from '../front/authentication.ts';
import { localeOf } from '../front/failures.ts';
import { answers, success } from '../front/reply.ts';
import { list, moment, nullable, text, word } from '../front/values.ts';
import { CERTIFICATE_FIELDS, given, Method } from '../issuance/certificate-fields.ts';
import { CachedUntil, INSTRUCTION, OrderView, orderView } from '../issuance/order-view.ts';

const { dcv_scope, persist_until, persist_policy } = CERTIFICATE_FIELDS;
const Body = Type.Object(
  { dcv_method: text(Method), dcv_scope, persist_until, persist_policy },
  { title: 'DcvMethodChange' },
);
const RESULT = {
  result: word('CheckResult', ['ok', ...CHECK_PROBLEMS]),
  message: Type.String({ description: 'What is wrong and what to do; empty if nothing is.' }),
  cached_until: nullable(CachedUntil),
};
const Check = Type.Object(
  {
    ...INSTRUCTION,
    ...RESULT,
    perspectives: list(Type.Object(RESULT, { title: 'PerspectiveCheck' }), {
      description: 'What each resolver sees of the record, the primary one first. Empty where no record is needed.',
    }),
    caa: Type.Object(RESULT, { title: 'CaaCheck' }),
  },
  { title: 'DcvCheck' },
);
const Checks = Type.Object({ checks: list(Check) });

const common = {
  tags: ['validation'],
  'x-reseal-extension': true,
  params: Type.Object({ id: Type.String({ description: 'The id of the order.' }) }),
} as const;

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
      schema: {
        operationId: 'changeDcvMethod',
        summary: 'Change how the names of a waiting order are proven',
        description: 'The answer is the order, with what is to be published now.',
        ...common,
        body: Body,
        errors: ['order_not_found', 'order_state_conflict', 'invalid_dcv_method', 'product_not_found'],
        response: answers('Order', OrderView),
      },
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
        operationId: 'validateDomains',
        summary: 'Look at the records of a waiting order now',
        description: 'The answer is the order after the look; it is `issued` if nothing was missing.',
        ...common,
        errors: ['order_not_found', 'order_state_conflict', 'request_too_fast'],
        response: answers('Order', OrderView),
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
      schema: {
        operationId: 'checkDomains',
        summary: 'Say what DNS and web servers answer now; changes nothing',
        description: 'For people who wonder what the service sees. Limited like `dcv-completed`.',
        ...common,
        errors: ['order_not_found', 'order_state_conflict', 'request_too_fast'],
        response: answers('DcvCheckList', Checks),
      },
    },
    async (request) => {
      const locale = localeOf(request);
      const checks = await showValidation.check(callerOf(request).account.id, request.params.id);
      return success({
        checks: checks.map(({ name, challenge, control, perspectives, caa }) => ({
          domain: name,
          dcv_method: challenge?.method ?? ('' as const),
          auth_path: challenge?.path ?? '',
          auth_val: challenge?.value ?? '',
          ...resultView(control, locale),
          perspectives: perspectives.map((one) => resultView(one, locale)),
          caa: resultView(caa, locale),
        })),
      });
    },
  );
}

const resultView = (result: CheckResult, locale: Locale) => ({
  result: result.isOk ? ('ok' as const) : result.problem,
  message: result.isOk ? '' : inLocale(result.reason, locale),
  cached_until: moment(result.cachedUntil),
});
