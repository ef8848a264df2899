// One callback: what is sent, every attempt with what the receiver answered, the signature, and sending it again.
import { h } from 'preact';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { useChanges } from '../../shell/live.ts';
import type { PageProps } from '../../shell/pages.ts';
import { actButton, badge, copyable, fact, link, listing, page, problem, shown } from '../../shell/parts.ts';
import { useAction, useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { distance, moment } from '../../shell/time.ts';
import type { Schema } from '../../shell/wire.ts';
import { SignatureCheck } from './signature-check.ts';
import { actionWord, deliveryBadge, failureWord, whyWord } from './words.ts';

const { div, dl, h2, li, ol, p, section, span } = tags;

const t = texts({
  en: {
    title: 'Callback',
    back: 'All callbacks',
    id: 'webhook-id',
    order: 'Order',
    certificate: 'Certificate',
    created: 'Happened',
    next: 'Next attempt {when}',
    resend: 'Send it again',
    attempts: 'Attempts',
    none: 'It was never sent.',
    number: 'Attempt {number}',
    status: 'answered {status}',
    took: '{ms} ms',
    answer: 'Answer to attempt {number}',
    body: 'Body',
    headers: 'Headers of an attempt',
    key: 'THE-ACCESS-KEY',
    signature: 'one for each secret that is valid',
    time: 'Unix seconds of the attempt',
  },
  zh: {
    title: '回调',
    back: '全部回调',
    id: 'webhook-id',
    order: '订单',
    certificate: '证书',
    created: '发生时间',
    next: '下次尝试：{when}',
    resend: '重新发送',
    attempts: '投递尝试',
    none: '从未发送。',
    number: '第 {number} 次',
    status: '返回 {status}',
    took: '{ms} 毫秒',
    answer: '第 {number} 次的响应',
    body: '内容',
    headers: '请求头',
    key: '访问密钥',
    signature: '每个有效密钥一个',
    time: '该次尝试的 Unix 秒',
  },
});

type Content = Schema<'Delivery'> & { readonly body: string };

export function Page({ parameters: [id = ''] }: PageProps): View {
  const path = `account/callback/deliveries/${encodeURIComponent(id)}`;
  const read = useResource(
    async (signal) => (await account<{ delivery: Content }>('GET', path, { signal })).delivery,
    [id],
  );
  useChanges(read.reload, (notice) => notice.event_id === undefined || notice.event_id === id);
  const resend = useAction(async () => {
    await account('POST', `${path}/resend`);
    read.reload();
  });
  return page(
    read.data ? actionWord(read.data.action) : t('title'),
    p(link(href(['callbacks', 'deliveries']), t('back'))),
    shown(read, (delivery) => [
      p(
        { class: 'state', role: 'status' },
        deliveryBadge(delivery.state),
        delivery.next_attempt_at && [
          ' ',
          span({ class: 'quiet' }, t('next', { when: distance(delivery.next_attempt_at) })),
        ],
      ),
      delivery.reason && p(whyWord(delivery.reason)),
      div(
        { class: 'actions' },
        actButton(resend, t('resend'), { onClick: () => resend.run(), isMain: delivery.state === 'failed' }),
      ),
      resend.error && problem(resend.error),
      content(delivery),
    ]),
  );
}

const content = (delivery: Content): View =>
  div(
    { class: 'columns' },
    div(
      section({ 'aria-label': t('attempts') }, h2(t('attempts')), attemptList(delivery)),
      h(SignatureCheck, { id: delivery.id, body: delivery.body, attempts: delivery.attempts }),
    ),
    div(
      { class: 'aside' },
      dl(
        fact(t('id'), copyable(delivery.id, t('id'))),
        fact(t('order'), link(href(['orders', delivery.order_id]), delivery.order_id)),
        fact(t('certificate'), link(href(['certificates', delivery.cert_id]), delivery.cert_id)),
        fact(t('created'), moment(delivery.created_at)),
      ),
      listing(t('body'), delivery.body),
      listing(t('headers'), headersOf(delivery)),
    ),
  );

const headersOf = ({ id }: Content): string =>
  [
    'Content-Type: application/json',
    `X-CC-Callback-Auth: (${t('key')})`,
    `webhook-id: ${id}`,
    `webhook-timestamp: (${t('time')})`,
    `webhook-signature: v1,… (${t('signature')})`,
  ].join('\n');

function attemptList({ attempts }: Content): View {
  if (attempts.length === 0) return p({ class: 'quiet' }, t('none'));
  return ol({ class: 'attempts' }, attempts.toReversed().map(attemptView));
}

const attemptView = ({ number, at, ms, http_status, reason, excerpt }: Schema<'DeliveryAttempt'>): View =>
  li(
    { key: number },
    p(
      badge(
        http_status === 200 ? 'good' : 'bad',
        reason ? failureWord(reason) : t('status', { status: http_status ?? '–' }),
      ),
      ' ',
      span({ class: 'quiet' }, t('number', { number }), ' · ', moment(at), ' · ', t('took', { ms })),
    ),
    excerpt && listing(t('answer', { number }), excerpt),
  );
