// Callback lanes: one per account, with the state of the circuit breaker in front of its receiver.

import { operator } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import { badge, empty, link, page, pager, shown, type Tone } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import { tableOf, useEvery } from './parts.ts';
import type { Lane, LaneList } from './wire.ts';

const { a, nav } = tags;

const t = texts({
  en: {
    title: 'Callback lanes',
    shown: 'Which lanes are shown',
    failing: 'Failing',
    all: 'All',
    noFailing: 'Every receiver answers. A lane appears here when its receiver has failed several times in a row.',
    none: 'No account has a lane yet: the first event of an account with callbacks makes one.',
    account: 'Account',
    state: 'State',
    failures: 'Failures in a row',
    pending: 'Pending',
    since: 'Failing since',
    next: 'Next attempt',
    healthy: 'healthy',
    degraded: 'degraded',
    closed: 'closed',
    held: 'held: account suspended',
  },
  zh: {
    title: '回调通道',
    shown: '显示哪些通道',
    failing: '故障中',
    all: '全部',
    noFailing: '所有接收端均正常响应。接收端连续多次失败时，其通道会显示在此处。',
    none: '还没有通道：配置了回调的账户产生首个事件时创建。',
    account: '账户',
    state: '状态',
    failures: '连续失败次数',
    pending: '待发送',
    since: '故障起始',
    next: '下次尝试',
    healthy: '正常',
    degraded: '降级',
    closed: '关闭',
    held: '暂停：账户已停用',
  },
});

const TONES: Readonly<Record<Lane['state'], Tone>> = {
  healthy: 'good',
  degraded: 'waiting',
  closed: 'bad',
  held: 'over',
};
const REFRESH_MS = 15_000;

export function Page({ query }: PageProps): View {
  const [all, after] = [query.get('all') ?? '', query.get('after') ?? ''];
  const lanes = useResource(
    (signal) => operator<LaneList>('GET', 'lanes', { query: { all, after }, signal }),
    [all, after],
  );
  useEvery(REFRESH_MS, lanes.reload);
  const tab = (word: 'failing' | 'all', value: string) =>
    a({ href: href(['lanes'], { all: value }), ...(all === value && { 'aria-current': 'true' as const }) }, t(word));
  return page(
    t('title'),
    nav({ class: 'choices', 'aria-label': t('shown') }, tab('failing', ''), tab('all', 'true')),
    shown(lanes, ({ lanes: rows, next_after: next }) => [
      rows.length === 0 ? empty(all === '' ? t('noFailing') : t('none')) : listOf(rows),
      pager(
        next === null ? undefined : href(['lanes'], { all, after: next }),
        after === '' ? undefined : href(['lanes'], { all }),
      ),
    ]),
  );
}

const listOf = (lanes: readonly Lane[]): View =>
  tableOf(lanes, ({ account }) => account.id, [
    [t('account'), ({ account }) => link(href(['lanes', account.id]), account.name)],
    [t('state'), ({ state }) => badge(TONES[state], t(state))],
    [t('failures'), ({ failures }) => failures],
    [t('pending'), ({ pending }) => pending],
    [t('since'), ({ degraded_since: since }) => moment(since)],
    [t('next'), ({ closed_until: closed, next_at: next }) => moment(closed ?? next)],
  ]);
