// An order: what it waits for, its certificate, its history, and the audit beside it. Follows what happens to it.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { useChanges } from '../../shell/live.ts';
import type { PageProps } from '../../shell/pages.ts';
import { copyable, fact, page, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { ScheduledRevocations } from '../revocation/scheduled.ts';
import { methodWord, scopeWord } from '../validation/method-words.ts';
import { Records } from '../validation/records.ts';
import { CertificateCard } from './certificate-card.ts';
import { History } from './history.ts';
import { OrderAudit } from './order-audit.ts';
import { calledBy, orderBadge } from './states.ts';

const { a, div, dl, h2, p, section } = tags;

const t = texts({
  en: {
    title: 'Order',
    certificate: 'Certificate',
    waitingFor: 'The current certificate stays valid while the reissue waits.',
    none: 'Nothing was issued.',
    reissue: 'Reissue…',
    callbacks: 'Callbacks of this order',
    id: 'Order id',
    own: 'Your own id',
    product: 'Product',
    placed: 'Placed',
    term: 'Term ends',
    method: 'Names are proven by',
    scope: 'Of which domain',
    organization: 'Organization',
    ended: 'The last attempt ended without a certificate: {why}',
    back: 'All orders',
  },
  zh: {
    title: '订单',
    certificate: '证书',
    waitingFor: '重签等待期间，当前证书仍然有效。',
    none: '未签发证书。',
    reissue: '重签…',
    callbacks: '该订单的回调',
    id: '订单 ID',
    own: '您自己的编号',
    product: '产品',
    placed: '下单时间',
    term: '期限截止',
    method: '验证方式',
    scope: '验证范围',
    organization: '组织',
    ended: '上一次尝试未签发证书：{why}',
    back: '全部订单',
  },
});

type Order = Schema<'Order'>;

export function Page({ parameters: [id = ''] }: PageProps): View {
  const [round, setRound] = useState(0);
  const order = useResource((signal) => account<Order>('GET', `orders/${encodeURIComponent(id)}`, { signal }), [id]);
  const refresh = () => {
    order.reload();
    setRound((before) => before + 1);
  };
  useChanges(refresh, (notice) => notice.order_id === undefined || notice.order_id === id);
  return page(
    order.data ? calledBy(order.data) : t('title'),
    shown(order, (data) => orderView(data, round, refresh)),
  );
}

function orderView(order: Order, round: number, refresh: () => void): View {
  const isWaiting = order.pending_certificate_id !== null;
  const state = `${order.status} ${round}`;
  return div(
    p({ class: 'state', role: 'status' }, orderBadge(order.status)),
    div(
      { class: 'columns' },
      div(
        isWaiting && h(Records, { key: order.pending_certificate_id, order, onChange: refresh }),
        (order.certificate_id !== null || !isWaiting) &&
          section(
            { 'aria-label': t('certificate') },
            div(
              { class: 'headed' },
              h2(t('certificate')),
              order.certificate_id !== null &&
                !isWaiting &&
                a({ class: 'button main', href: href(['orders', order.id, 'reissue']) }, t('reissue')),
            ),
            isWaiting && order.certificate_id !== null && p({ class: 'quiet' }, t('waitingFor')),
            order.canceled && p({ class: 'note' }, t('ended', { why: order.canceled.message })),
            order.certificate_id === null && !isWaiting && p({ class: 'quiet' }, t('none')),
          ),
        (order.certificate_id ?? order.pending_certificate_id) !== null &&
          h(Certificates, { order, state, key: order.certificate_id ?? order.pending_certificate_id }),
      ),
      div(
        { class: 'aside' },
        dl(
          fact(t('id'), copyable(order.id, t('id'))),
          fact(t('own'), order.alternative_order_id && copyable(order.alternative_order_id, t('own'))),
          fact(t('product'), order.product),
          fact(t('placed'), moment(order.created_at)),
          fact(t('term'), moment(order.term_ends_at)),
          fact(t('method'), order.dcv_method && methodWord(order.dcv_method)),
          fact(t('scope'), order.dcv_method && scopeWord(order.dcv_scope)),
          fact(t('organization'), order.organization),
        ),
        p(a({ href: href(['callbacks', 'deliveries'], { order_id: order.id }) }, t('callbacks'))),
        order.revocations.length > 0 &&
          h(ScheduledRevocations, {
            revocations: order.revocations.map((one) => ({ ...one, order_id: order.id, common_name: null })),
            onChange: refresh,
          }),
        h(OrderAudit, { orderId: order.id, round: state }),
      ),
    ),
  );
}

/** The current certificate, or the one that waits, with the line of all of them. */
function Certificates({ order, state }: { order: Order; state: string }): View {
  const id = order.certificate_id ?? order.pending_certificate_id ?? '';
  const read = useResource(
    async (signal) => (await account<Data<'CertificateResponse'>>('GET', `certs/${id}`, { signal })).Certificate,
    [id],
    state,
  );
  return div(
    shown(read, (certificate) => [
      order.certificate_id !== null && h(CertificateCard, { certificate }),
      h(History, { certificate, currentId: order.certificate_id }),
    ]),
  );
}
