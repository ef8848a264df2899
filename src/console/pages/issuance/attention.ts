// What needs the account holder first: orders that wait for a record, certificates that end soon, revocations to come,
// callbacks that were given up. A few of each, by look-ups of an index; the lists behind them have the rest.
import type { ComponentChildren } from 'preact';
import { account, Problem } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { useChanges } from '../../shell/live.ts';
import { badge, link, problem } from '../../shell/parts.ts';
import { type Resource, useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { distance } from '../../shell/time.ts';
import type { Data } from '../../shell/wire.ts';
import { actionWord } from '../callbacks/words.ts';
import { calledBy } from './states.ts';

const { div, h2, li, p, section, span, ul } = tags;

const t = texts({
  en: {
    title: 'Needs you',
    nothing: 'Nothing waits for you: no records to publish, nothing that ends soon, no callback given up.',
    record: 'Publish a record',
    reissue: 'Publish a record for the reissue',
    ends: 'Ends {when}',
    ended: 'Ended {when}',
    failed: 'Callback given up',
    more: 'Show all',
    since: 'since {when}',
  },
  zh: {
    title: '需要处理',
    nothing: '没有待处理事项：无需发布记录，无即将到期的证书，无投递失败的回调。',
    record: '请发布解析记录',
    reissue: '请为重签发布解析记录',
    ends: '{when}到期',
    ended: '{when}已到期',
    failed: '回调投递失败',
    more: '显示全部',
    since: '{when}起',
  },
});

const FEW = 5;
export const SOON_DAYS = 30;
const DAY_MS = 86_400_000;

/** Rounded to the hour, so that a page that is shown again asks the same. */
export function soon(days = SOON_DAYS): { readonly expires_after: string; readonly expires_before: string } {
  const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000;
  return {
    expires_after: new Date(hour).toISOString(),
    expires_before: new Date(hour + days * DAY_MS).toISOString(),
  };
}

type Orders = Data<'OrderListResponse'>;

export function Attention(): View {
  const list = (query: Readonly<Record<string, string>>) =>
    useResource(
      (signal) => account<Orders>('GET', 'orders', { query: { ...query, limit: FEW }, signal }),
      ['orders', query],
    );
  const waiting = list({ status: 'domain_verifing' });
  const reissuing = list({ status: 'reissuing' });
  const ending = useResource(
    (signal) =>
      account<Data<'CertificateListResponse'>>('GET', 'certs', {
        query: { ...soon(), status: 'issued', limit: 4 * FEW },
        signal,
      }),
    [],
  );
  const failed = useResource(failedCallbacks, []);
  const all: readonly Resource<unknown>[] = [waiting, reissuing, ending, failed];
  const reload = () => {
    for (const one of all) one.reload();
  };
  useChanges(reload);

  const items: ComponentChildren[] = [
    ...orderItems(waiting.data, 'record', 'domain_verifing'),
    ...orderItems(reissuing.data, 'reissue', 'reissuing'),
    ...endingItems(ending.data),
    ...failedItems(failed.data),
  ];
  const error = all.find((one) => one.error)?.error;
  const isKnown = all.every(({ data }) => data !== undefined);
  return section(
    { class: 'attention', 'aria-label': t('title') },
    h2(t('title')),
    error && problem(error, reload),
    items.length > 0 && ul(...items),
    items.length === 0 && isKnown && p({ class: 'quiet' }, badge('good', t('nothing'))),
  );
}

/** Keys that may not read callbacks have none that could need them. */
async function failedCallbacks(signal: AbortSignal): Promise<Data<'DeliveryListResponse'>> {
  try {
    return await account('GET', 'account/callback/deliveries', { query: { state: 'failed', limit: FEW }, signal });
  } catch (error) {
    if (error instanceof Problem && error.code === 'permission_denied') return { deliveries: [], next_after: null };
    throw error;
  }
}

interface Item {
  readonly key: string;
  readonly tone: 'waiting' | 'bad';
  readonly what: string;
  readonly name: string;
  readonly address: string;
  readonly beside?: string;
}

const item = ({ key, tone, what, name, address, beside }: Item): View =>
  li({ key }, badge(tone, what), link(address, name), span({ class: 'quiet' }, beside));

const more = (key: string, address: string): View => li({ key }, div(link(address, t('more'))));

function orderItems(found: Orders | undefined, what: 'record' | 'reissue', status: string): View[] {
  const items = (found?.orders ?? []).map((order) =>
    item({
      ...{ key: order.id, tone: 'waiting', what: t(what), name: calledBy(order), address: href(['orders', order.id]) },
      beside: t('since', { when: distance(order.created_at) }),
    }),
  );
  return found?.next_after ? [...items, more(status, href(['orders'], { status }))] : items;
}

function endingItems(found: Data<'CertificateListResponse'> | undefined): View[] {
  // One that was replaced may end as it likes.
  const current = (found?.certificates ?? []).filter(({ is_current }) => is_current);
  const items = current.slice(0, FEW).map((one) =>
    item({
      ...{ key: one.id, tone: 'waiting', what: t('ends', { when: distance(one.not_after ?? '') }) },
      ...{ name: calledBy(one), address: href(['orders', one.order_id]) },
    }),
  );
  return found?.next_after || current.length > FEW
    ? [...items, more('ending', href(['certificates'], { ends: 'soon' }))]
    : items;
}

function failedItems(found: Data<'DeliveryListResponse'> | undefined): View[] {
  const address = (id: string) => href(['callbacks', 'deliveries'], { state: 'failed', order_id: id });
  const items = (found?.deliveries ?? []).map((one) =>
    item({
      ...{ key: one.id, tone: 'bad', what: t('failed'), name: `${actionWord(one.action)} · ${one.order_id}` },
      ...{ address: address(one.order_id), beside: distance(one.settled_at ?? one.created_at) },
    }),
  );
  return found?.next_after ? [...items, more('failed', href(['callbacks', 'deliveries'], { state: 'failed' }))] : items;
}
