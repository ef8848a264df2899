// The operator's first page: what needs attention, and charts of the service's own metrics over the last hours.
import { useState } from 'preact/hooks';
import { operator } from '../../shell/api.ts';
import { chart } from '../../shell/chart.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge, empty, link, page, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { distance, moment } from '../../shell/time.ts';
import { useEvery } from './parts.ts';
import type { AttentionItem, AttentionList, Finding, History } from './wire.ts';

const { button, code, div, fieldset, h2, legend, li, p, span, ul } = tags;

const t = texts({
  en: {
    title: 'Overview',
    attention: 'Needs attention',
    fine: 'Nothing needs your attention.',
    examined: 'The doctor looked {ago}.',
    examining: 'The doctor is looking; its findings appear here.',
    problem: 'Problem',
    warning: 'Warning',
    store: 'The database could not be read. The log of the service says why; the doctor examines it.',
    waiting:
      'Orders that wait for validation: {count}. The first began to wait {ago}; its holder may need help with DNS.',
    revocations:
      'Scheduled revocations that are overdue: {count}. The first was due {ago}. The log of the service says why.',
    lanes: 'Accounts whose receiver keeps failing: {count}. They get their callbacks later.',
    toStore: 'Doctor',
    toWaiting: 'Waiting orders',
    toRevocations: 'Doctor',
    toLanes: 'Callback lanes',
    toDoctor: 'Doctor',
    charts: 'The last hours',
    span: 'Time shown',
    hours: '{count} h',
    issued: 'Certificates issued',
    issuedSeries: 'issued',
    refused: 'Requests refused or failed',
    refusedSeries: 'refused',
    latency: 'Time to answer, at most',
    median: 'half of them',
    slow: '95 %',
    backlog: 'Backlog',
    waitingSeries: 'waiting orders',
    pending: 'pending callbacks',
    none: 'The first numbers appear half a minute after the service has started. They are kept in memory for six hours.',
  },
  zh: {
    title: '概览',
    attention: '需要关注',
    fine: '没有需要关注的事项。',
    examined: '上次诊断：{ago}。',
    examining: '正在诊断，结果将显示在此处。',
    problem: '故障',
    warning: '警告',
    store: '无法读取数据库。原因见服务日志，也可运行诊断。',
    waiting: '等待验证的订单：{count} 个，最早的始于{ago}。其持有人可能需要 DNS 方面的帮助。',
    revocations: '{count} 项计划吊销已逾期，最早的始于{ago}。原因见服务日志。',
    lanes: '{count} 个账户的接收端持续失败，其回调将延后发送。',
    toStore: '诊断',
    toWaiting: '等待中的订单',
    toRevocations: '诊断',
    toLanes: '回调通道',
    toDoctor: '诊断',
    charts: '最近数小时',
    span: '显示时段',
    hours: '{count} 小时',
    issued: '签发的证书',
    issuedSeries: '已签发',
    refused: '被拒绝或失败的请求',
    refusedSeries: '被拒绝',
    latency: '响应时间上限',
    median: '半数请求',
    slow: '95% 的请求',
    backlog: '积压',
    waitingSeries: '等待中的订单',
    pending: '待发送的回调',
    none: '服务启动约半分钟后出现首批数据，数据在内存中保留六小时。',
  },
});

const HOURS = ['1', '6'] as const;
const REFRESH_MS = 15_000;

export function Page(): View {
  const [hours, setHours] = useState<(typeof HOURS)[number]>('1');
  const attention = useResource((signal) => operator<AttentionList>('GET', 'attention', { signal }), []);
  const history = useResource((signal) => operator<History>('GET', 'history', { query: { hours }, signal }), [hours]);
  useEvery(REFRESH_MS, () => {
    attention.reload();
    history.reload();
  });
  return page(
    t('title'),
    h2(t('attention')),
    shown(attention, attentionOf),
    h2(t('charts')),
    fieldset(
      { class: 'choice' },
      legend({ class: 'heard' }, t('span')),
      HOURS.map((one) =>
        button(
          { key: one, type: 'button', class: 'small', 'aria-pressed': one === hours, onClick: () => setHours(one) },
          t('hours', { count: one }),
        ),
      ),
    ),
    shown(history, charts),
  );
}

const attentionOf = ({ attention, examined_at: at }: AttentionList): View =>
  div(
    attention.length === 0
      ? p({ class: 'fine' }, badge('good', t('fine')))
      : ul({ class: 'findings' }, attention.map(item)),
    p({ class: 'quiet' }, at === null ? t('examining') : t('examined', { ago: distance(at) })),
  );

const PAGE_OF = {
  doctor: ['doctor', 'toDoctor'],
  store: ['doctor', 'toStore'],
  waiting: ['waiting', 'toWaiting'],
  revocations: ['doctor', 'toRevocations'],
  lanes: ['lanes', 'toLanes'],
} as const;
/** A finding of the doctor leads to the page that shows more of it. */
const PAGE_OF_CHECK: Readonly<Record<string, string>> = {
  issuers: 'authority',
  revocation: 'authority',
  callbacks: 'lanes',
};

function item({ kind, severity, finding, count, since }: AttentionItem, index: number): View {
  const [path, name] = PAGE_OF[kind];
  return li(
    { key: index },
    badge(severity === 'problem' ? 'bad' : 'waiting', t(severity)),
    div(
      finding
        ? found(finding)
        : kind !== 'doctor' &&
            p(
              t(kind, { count: count ?? 0, ago: since === null ? '' : distance(since) }),
              since !== null && [' ', moment(since)],
            ),
      p(link(href([PAGE_OF_CHECK[finding?.check ?? ''] ?? path]), t(name))),
    ),
  );
}

/** The doctor speaks English, as the command line does. */
export const found = ({ check, text, remedy }: Finding): View =>
  div(
    { lang: 'en' },
    p(span({ class: 'check' }, check), ': ', text),
    remedy !== null && p({ class: 'remedy' }, commandsIn(remedy)),
  );

/** Commands in a remedy can be told from its words. */
const commandsIn = (remedy: string): (string | View)[] =>
  remedy
    .split(/(reseal [a-z][^.;:]*)/)
    .filter((part) => part !== '')
    .map((part, index) => (index % 2 === 1 || part.startsWith('reseal ') ? code({ key: index }, part) : part));

function charts({ points }: History): View {
  if (points.length === 0) return empty(t('none'));
  const times = points.map(({ at }) => at);
  return div(
    { class: 'charts' },
    chart({
      ...{ name: t('issued'), times, as: 'bars' },
      series: [{ name: t('issuedSeries'), values: points.map(({ issued }) => issued) }],
    }),
    chart({
      ...{ name: t('refused'), times, as: 'bars' },
      series: [{ name: t('refusedSeries'), values: points.map(({ refused }) => refused) }],
    }),
    chart({
      ...{ name: t('latency'), times, as: 'lines', unit: ' ms' },
      series: [
        { name: t('median'), values: points.map(({ median_ms: ms }) => ms) },
        { name: t('slow'), values: points.map(({ slow_ms: ms }) => ms) },
      ],
    }),
    chart({
      ...{ name: t('backlog'), times, as: 'lines' },
      series: [
        { name: t('waitingSeries'), values: points.map(({ waiting }) => waiting) },
        { name: t('pending'), values: points.map(({ pending }) => pending) },
      ],
    }),
  );
}
