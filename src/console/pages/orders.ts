// Orders of the account: search, filters, what needs attention first.
import { account } from '../shell/api.ts';
import { tags, type View } from '../shell/html.ts';
import { texts } from '../shell/language.ts';
import type { PageProps } from '../shell/pages.ts';
import { page, shown } from '../shell/parts.ts';
import { useResource } from '../shell/resource.ts';

const { pre } = tags;
const t = texts({ en: { title: 'Orders' }, zh: { title: '订单' } });

export function Page({ query }: PageProps): View {
  const orders = useResource(
    (signal) => account<unknown>('GET', 'orders', { query: Object.fromEntries(query), signal }),
    [String(query)],
  );
  return page(
    t('title'),
    shown(orders, (data) => pre(JSON.stringify(data, null, 2))),
  );
}
