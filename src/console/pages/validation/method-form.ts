// Changes how the names of a waiting order are proven.
import { useState } from 'preact/hooks';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { field, problem, shown } from '../../shell/parts.ts';
import { useAction, useResource } from '../../shell/resource.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { methodWord, scopeWord } from './method-words.ts';

const { button, form, option, select } = tags;

const t = texts({
  en: { method: 'Method', scope: 'Of which domain', change: 'Change the method' },
  zh: { method: '验证方式', scope: '验证范围', change: '更换验证方式' },
});

type Order = Schema<'Order'>;
interface Props {
  readonly order: Order;
  readonly onChange: (order: Order) => void;
}

export function MethodForm({ order, onChange }: Props): View {
  const products = useResource((signal) => account<Data<'ProductListResponse'>>('GET', 'products', { signal }), []);
  const [method, setMethod] = useState<string>(order.dcv_method ?? 'dns');
  const [scope, setScope] = useState<string>(order.dcv_scope);
  const change = useAction(async () =>
    onChange(
      await account<Order>('PUT', `orders/${order.id}/dcv-method`, { body: { dcv_method: method, dcv_scope: scope } }),
    ),
  );
  const submit = (event: Event) => {
    event.preventDefault();
    change.run();
  };
  return form(
    { onSubmit: submit },
    shown(products, (found) => {
      const product = found.products.find(({ id }) => id === order.product);
      return [
        field(t('method'), (attributes) =>
          select(
            { ...attributes, value: method, onChange: (event) => setMethod(event.currentTarget.value) },
            (product?.dcv_methods ?? []).map((one) => option({ key: one, value: one }, methodWord(one))),
          ),
        ),
        field(t('scope'), (attributes) =>
          select(
            { ...attributes, value: scope, onChange: (event) => setScope(event.currentTarget.value) },
            (product?.dcv_scopes ?? []).map((one) => option({ key: one, value: one }, scopeWord(one))),
          ),
        ),
      ];
    }),
    button({ disabled: change.isRunning }, t('change')),
    change.error && problem(change.error),
  );
}
