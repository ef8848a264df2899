// The callbacks of one account, with every attempt: what to tell its holder, and how to go on once the receiver works.

import { useState } from 'preact/hooks';
import { operator } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import { actButton, badge, empty, page, pager, problem, shown, type Tone } from '../../shell/parts.ts';
import { useAction, useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import { accountLink, confirmed, mayAct, storyLink, tableOf, viewOnly } from './parts.ts';
import type { LaneDeliveries, LaneDelivery, Resent } from './wire.ts';

const { code, details, div, li, ol, p, pre, span, summary } = tags;

const t = texts({
  en: {
    title: 'Callbacks of {name}',
    loading: 'Callbacks of an account',
    none: 'There are no callbacks in the log. They appear when an order of the account is issued or revoked, and are kept for some weeks.',
    resume: 'Try the receiver now',
    resumed: 'The lane is open again: what is pending is sent within seconds.',
    resend: 'Resend all that failed…',
    resendAsk:
      'Callbacks that were given up are sent again, the oldest first and one at a time. What the settings of the account suppress stays suppressed.',
    resendDo: 'Resend',
    resent: '{count} will be sent again.',
    resentMore: '{count} will be sent again; there are more. Resend again to go on.',
    event: 'Event',
    order: 'Order',
    state: 'State',
    created: 'Created',
    attempts: 'Attempts',
    noAttempt: 'none yet',
    attempt: '{number}. {outcome}, {ms} ms',
    answered: 'HTTP {status}',
    answer: 'Answer of the receiver',
    next: 'next',
    pending: 'pending',
    delivered: 'delivered',
    failed: 'failed',
    suppressed: 'suppressed',
  },
  zh: {
    title: '{name} 的回调',
    loading: '账户的回调',
    none: '日志中没有回调。账户的订单签发或吊销时会产生回调，并保留数周。',
    resume: '立即尝试接收端',
    resumed: '通道已重新打开：待发送的回调将在数秒内发出。',
    resend: '重新发送全部失败的回调…',
    resendAsk: '已放弃的回调将按时间先后逐个重新发送。被账户设置抑制的回调仍不发送。',
    resendDo: '重新发送',
    resent: '{count} 个将重新发送。',
    resentMore: '{count} 个将重新发送，还有更多。请再次重新发送以继续。',
    event: '事件',
    order: '订单',
    state: '状态',
    created: '创建时间',
    attempts: '尝试',
    noAttempt: '尚无',
    attempt: '第 {number} 次：{outcome}，{ms} 毫秒',
    answered: 'HTTP {status}',
    answer: '接收端的响应',
    next: '下次',
    pending: '待发送',
    delivered: '已送达',
    failed: '失败',
    suppressed: '已抑制',
  },
});

const TONES: Readonly<Record<LaneDelivery['state'], Tone>> = {
  pending: 'waiting',
  delivered: 'good',
  failed: 'bad',
  suppressed: 'over',
};

export function Page({ parameters: [id = ''], query }: PageProps): View {
  const after = query.get('after') ?? '';
  const path = `lanes/${encodeURIComponent(id)}`;
  const lane = useResource(
    (signal) => operator<LaneDeliveries>('GET', path, { query: { after }, signal }),
    [id, after],
  );
  const [done, setDone] = useState('');
  const resume = useAction(async () => {
    await operator('POST', `${path}/resume`, { body: {} });
    setDone(t('resumed'));
    lane.reload();
  });
  const resend = useAction(async () => {
    const { resent, is_complete: isComplete } = await operator<Resent>('POST', `${path}/resend-failed`, { body: {} });
    setDone(t(isComplete ? 'resent' : 'resentMore', { count: resent }));
    lane.reload();
  });
  const name = lane.data?.account.name;
  return page(
    name === undefined ? t('loading') : t('title', { name }),
    shown(lane, ({ account, deliveries, next_after: next }) => [
      p(accountLink(account.id, account.name)),
      mayAct()
        ? div(
            { class: 'actions' },
            actButton(resume, t('resume'), { onClick: () => resume.run() }),
            confirmed({ words: t('resend'), question: t('resendAsk'), confirm: t('resendDo'), action: resend }),
          )
        : viewOnly(),
      resume.error && problem(resume.error),
      p({ role: 'status' }, done),
      deliveries.length === 0 ? empty(t('none')) : listOf(deliveries),
      pager(
        next === null ? undefined : href(['lanes', id], { after: next }),
        after === '' ? undefined : href(['lanes', id]),
      ),
    ]),
  );
}

const listOf = (deliveries: readonly LaneDelivery[]): View =>
  tableOf(deliveries, ({ id }) => id, [
    [t('event'), ({ action }) => action],
    [
      t('state'),
      ({ state, reason, next_attempt_at: next }) => [
        badge(TONES[state], t(state)),
        reason !== null && p({ class: 'quiet' }, reason),
        next !== null && p({ class: 'quiet' }, t('next'), ' ', moment(next)),
      ],
    ],
    [t('created'), ({ created_at: at }) => moment(at)],
    [t('order'), ({ order_id: id }) => storyLink(id)],
    [t('attempts'), (one) => (one.attempts.length === 0 ? span({ class: 'quiet' }, t('noAttempt')) : attemptsOf(one))],
  ]);

const attemptsOf = ({ attempts }: LaneDelivery): View =>
  ol(
    { class: 'bare' },
    attempts.map(({ number, at, ms, http_status: status, reason, excerpt }) =>
      li(
        { key: number },
        t('attempt', { number, outcome: status === null ? (reason ?? '') : t('answered', { status }), ms }),
        ' ',
        moment(at),
        excerpt !== null && excerpt !== '' && details(summary(t('answer')), pre(code(excerpt))),
      ),
    ),
  );
