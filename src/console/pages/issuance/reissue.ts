// Reissue, seen before it is done: the form on the left, what will happen on the right, consents, the same as a curl command.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import { actButton, link, listing, page, problem, shown } from '../../shell/parts.ts';
import { useAction, useResource } from '../../shell/resource.ts';
import { go, href } from '../../shell/router.ts';
import { session } from '../../shell/session.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { useConsents } from './consents.ts';
import { curlOf } from './curl.ts';
import { useIdempotencyKey } from './idempotency.ts';
import { PlanView, usePlan } from './plan.ts';
import { bodyOf, formOf } from './request.ts';
import { RequestFields } from './request-fields.ts';
import { useStandIn } from './stand-in.ts';
import { calledBy } from './states.ts';

const { details, div, p, summary } = tags;

const t = texts({
  en: {
    title: 'Reissue {name}',
    loading: 'Reissue',
    back: 'Back to the order',
    send: 'Reissue now',
    unsaved: 'Save the private key first: it exists in this page only.',
    standIn: 'No signing request is given yet. The preview stands on a P-256 key that is thrown away.',
    incomplete: 'Give the consents above to go on.',
    curl: 'The same with curl',
    gone: 'The product {id} is not offered any more. Place a new order for another product.',
  },
  zh: {
    title: '重签 {name}',
    loading: '重签',
    back: '返回订单',
    send: '立即重签',
    unsaved: '请先保存私钥：它仅存在于本页面。',
    standIn: '尚未提供签名请求。以下预览使用一个即弃的 P-256 密钥。',
    incomplete: '请先勾选上述同意项。',
    curl: '等效的 curl 命令',
    gone: '产品 {id} 已不再提供，请选择其他产品重新下单。',
  },
});

type Order = Schema<'Order'>;

export function Page({ parameters: [id = ''] }: PageProps): View {
  const read = useResource(
    async (signal) => ({
      order: await account<Order>('GET', `orders/${encodeURIComponent(id)}`, { signal }),
      products: (await account<Data<'ProductListResponse'>>('GET', 'products', { signal })).products,
    }),
    [id],
  );
  return page(
    read.data ? t('title', { name: calledBy(read.data.order) }) : t('loading'),
    p(link(href(['orders', id]), t('back'))),
    shown(read, ({ order, products }) => {
      const product = products.find((one) => one.id === order.product);
      return product ? h(Form, { order, product }) : p(t('gone', { id: order.product }));
    }),
  );
}

function Form({ order, product }: { order: Order; product: Schema<'Product'> }): View {
  const [form, setForm] = useState(() => formOf(order, product));
  const [isUnsaved, setUnsaved] = useState(false);
  const body = bodyOf(form, product.kind === 'ssl');
  const standIn = useStandIn(product, form);
  const planned = usePlan(order.id, standIn.fill(body));
  const consents = useConsents(planned.plan);
  const whole = { ...body, ...consents.fields };
  const idempotencyKey = useIdempotencyKey(whole);
  const send = useAction(async () => {
    await account('POST', `orders/${order.id}/reissue`, {
      body: whole,
      headers: { 'idempotency-key': idempotencyKey },
    });
    go(['orders', order.id]);
  });
  const isPlanned = planned.plan !== undefined && planned.plan.missing_permissions.length === 0 && !planned.isStale;
  const path = `orders/${order.id}/reissue`;
  return div(
    { class: 'columns' },
    div(
      h(RequestFields, {
        form,
        product,
        isReissue: true,
        onChange: (change) => setForm((before) => ({ ...before, ...change })),
        onUnsavedKey: setUnsaved,
      }),
    ),
    div(
      { class: 'aside sticky' },
      h(PlanView, planned),
      standIn.isUsed && p({ class: 'quiet' }, t('standIn')),
      consents.view,
      isUnsaved && p({ class: 'quiet' }, t('unsaved')),
      planned.plan && !consents.isComplete && p({ class: 'quiet' }, t('incomplete')),
      actButton(send, t('send'), {
        onClick: () => send.run(),
        isMain: true,
        isDisabled: !isPlanned || standIn.isMissing || !consents.isComplete || isUnsaved,
      }),
      send.error && problem(send.error),
      details(
        summary(t('curl')),
        listing('curl', curlOf({ path, body: whole, keyId: session.value?.key_id ?? 'KEY-ID', idempotencyKey })),
      ),
    ),
  );
}
