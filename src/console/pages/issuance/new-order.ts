// Places an order, with the same fields as a reissue. Products that certify a holder are ordered by the operator.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import { actButton, empty, fact, field, group, link, listing, page, problem, shown } from '../../shell/parts.ts';
import { useAction, useResource } from '../../shell/resource.ts';
import { go, href } from '../../shell/router.ts';
import { session } from '../../shell/session.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { curlOf } from './curl.ts';
import { useIdempotencyKey } from './idempotency.ts';
import { bodyOf, EMPTY_FORM, type RequestForm } from './request.ts';
import { RequestFields } from './request-fields.ts';

const { details, div, dl, h2, input, option, p, section, select, summary } = tags;

const t = texts({
  en: {
    title: 'Place an order',
    back: 'All orders',
    product: 'Product',
    none: 'The operator offers no product that can be ordered here. Ask the operator to place the order.',
    allows: 'What the product allows',
    maxDays: 'Longest certificate',
    days: '{count} days',
    term: 'Term of the order',
    reuse: 'A proof serves for',
    previous: 'A reissue',
    revokes: 'revokes the previous certificate after {hours} hours',
    keeps: 'keeps the previous certificate',
    own: 'Your own id (optional)',
    ownHint: 'Finds the order later; unique in the account.',
    months: 'Term in months (optional)',
    order: 'Order',
    send: 'Place the order',
    after: 'Names that are proven already are issued at once; otherwise the order shows what to publish.',
    unsaved: 'Save the private key first: it exists in this page only.',
    curl: 'The same with curl',
  },
  zh: {
    title: '下单',
    back: '全部订单',
    product: '产品',
    none: '没有可在此订购的产品，请联系运维人员下单。',
    allows: '产品说明',
    maxDays: '证书最长有效期',
    days: '{count} 天',
    term: '订单期限',
    reuse: '验证结果可用',
    previous: '重签时',
    revokes: '{hours} 小时后吊销旧证书',
    keeps: '保留旧证书',
    own: '您自己的编号（可选）',
    ownHint: '用于日后查找订单，在账户内唯一。',
    months: '期限（月，可选）',
    order: '订单',
    send: '下单',
    after: '已验证的名称立即签发；否则订单页会显示需要发布的记录。',
    unsaved: '请先保存私钥：它仅存在于本页面。',
    curl: '等效的 curl 命令',
  },
});

type Product = Schema<'Product'>;

export function Page(_: PageProps): View {
  const read = useResource((signal) => account<Data<'ProductListResponse'>>('GET', 'products', { signal }), []);
  return page(
    t('title'),
    p(link(href(['orders']), t('back'))),
    shown(read, ({ products }) => {
      const offered = products.filter(({ kind }) => kind === 'ssl');
      const [first] = offered;
      return first ? h(Form, { products: offered, first }) : empty(t('none'));
    }),
  );
}

const startOf = (product: Product): RequestForm => ({
  ...EMPTY_FORM,
  signHash: product.sign_hashes[0] ?? 'sha256',
  keySource: product.key_sources.includes('caller') ? '' : 'sign-cloud-csc',
  dcvMethod: product.dcv_methods[0] ?? '',
  dcvScope: product.dcv_scopes[0] ?? '',
});

function Form({ products, first }: { products: readonly Product[]; first: Product }): View {
  const [product, setProduct] = useState(first);
  const [form, setForm] = useState(() => startOf(first));
  const [own, setOwn] = useState('');
  const [months, setMonths] = useState('');
  const [isUnsaved, setUnsaved] = useState(false);
  const body = {
    ...bodyOf(form, true),
    ...(own.trim() !== '' && { alternative_order_id: own.trim() }),
    ...(months !== '' && { validity_months: Number(months) }),
  };
  const idempotencyKey = useIdempotencyKey([product.id, body]);
  const path = `orders/${product.id}`;
  const send = useAction(async () => {
    const placed = await account<Data<'PlacedOrderResponse'>>('POST', path, {
      body,
      headers: { 'idempotency-key': idempotencyKey },
    });
    go(['orders', placed.id]);
  });
  const choose = (id: string) => {
    const chosen = products.find((one) => one.id === id) ?? first;
    setProduct(chosen);
    // What was typed stays; what depends on the product begins anew.
    setForm(({ commonName, names, csr }) => ({ ...startOf(chosen), commonName, names, csr }));
  };
  return div(
    { class: 'columns' },
    div(
      field(t('product'), (attributes) =>
        select(
          { ...attributes, value: product.id, onChange: (event) => choose(event.currentTarget.value) },
          products.map(({ id, name }) => option({ key: id, value: id }, name)),
        ),
      ),
      h(RequestFields, {
        form,
        product,
        isReissue: false,
        onChange: (change) => setForm((before) => ({ ...before, ...change })),
        onUnsavedKey: setUnsaved,
      }),
      group(
        t('order'),
        field(
          t('own'),
          (attributes) =>
            input({
              ...attributes,
              value: own,
              spellcheck: false,
              onInput: (event) => setOwn(event.currentTarget.value),
            }),
          t('ownHint'),
        ),
        field(t('months'), (attributes) =>
          input({
            ...attributes,
            type: 'number',
            min: 1,
            value: months,
            onInput: (event) => setMonths(event.currentTarget.value),
          }),
        ),
      ),
    ),
    div(
      { class: 'aside sticky' },
      rulesOf(product),
      p({ class: 'quiet' }, t('after')),
      isUnsaved && p({ class: 'quiet' }, t('unsaved')),
      actButton(send, t('send'), { onClick: () => send.run(), isMain: true, isDisabled: isUnsaved }),
      send.error && problem(send.error),
      details(
        summary(t('curl')),
        listing('curl', curlOf({ path, body, keyId: session.value?.key_id ?? 'KEY-ID', idempotencyKey })),
      ),
    ),
  );
}

const rulesOf = (product: Product): View =>
  section(
    { 'aria-label': t('allows'), class: 'plan' },
    h2(t('allows')),
    dl(
      fact(t('maxDays'), t('days', { count: product.max_validity_days })),
      fact(t('term'), t('days', { count: product.term_days })),
      fact(t('reuse'), t('days', { count: product.reuse_days })),
      fact(
        t('previous'),
        product.revokes_previous_on_reissue ? t('revokes', { hours: product.revocation_grace_hours }) : t('keeps'),
      ),
    ),
  );
