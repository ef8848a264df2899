// Finds what a text that a customer quotes stands for, in any account, and tells the stories of the orders it leads to.
import { useState } from 'preact/hooks';
import { operator } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import { empty, field, link, page, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { go, href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import { detailsOf, storyLink, storyOf, tableOf } from './parts.ts';
import type { Findings } from './wire.ts';

const { button, code, div, form, h2, input, li, p, ul } = tags;

const t = texts({
  en: {
    title: 'Find',
    text: 'What the customer quotes',
    hint: 'A name, a serial number, a key fingerprint; the id of an order, a certificate, a delivery, a request, a key or an account',
    find: 'Find',
    nothing:
      'Nothing is known under that. A request leaves a trace here only if it changed something; one that was refused or that only read is in the log of the service.',
    found: 'Found as',
    kind: 'Kind',
    as: 'Text',
    account: 'Account',
    order: 'Order',
    request: 'What the request did',
    further: 'Further orders',
    accountKind: 'account',
    key: 'API key',
    orderKind: 'order',
    alternative_id: 'own id of an order',
    certificate: 'certificate',
    serial: 'serial number',
    key_fingerprint: 'key fingerprint',
    blocked_key: 'blocked key',
    name: 'name',
    delivery: 'callback',
    cloud_key: 'cloud-held key',
  },
  zh: {
    title: '查找',
    text: '客户提供的内容',
    hint: '名称、序列号、密钥指纹；订单、证书、回调、请求、密钥或账户的 ID',
    find: '查找',
    nothing: '没有找到。请求只有改变了某些内容才会在此留下记录；被拒绝或只读的请求见服务日志。',
    found: '查找结果',
    kind: '类型',
    as: '内容',
    account: '账户',
    order: '订单',
    request: '该请求的操作',
    further: '其他订单',
    accountKind: '账户',
    key: 'API 密钥',
    orderKind: '订单',
    alternative_id: '订单的自定义 ID',
    certificate: '证书',
    serial: '序列号',
    key_fingerprint: '密钥指纹',
    blocked_key: '被阻止的密钥',
    name: '名称',
    delivery: '回调',
    cloud_key: '云端密钥',
  },
});

export function Page({ query }: PageProps): View {
  const given = query.get('text') ?? '';
  const [text, setText] = useState(given);
  const findings = useResource(
    async (signal) =>
      given === '' ? null : await operator<Findings>('GET', 'find', { query: { text: given }, signal }),
    [given],
  );
  const search = (event: Event) => {
    event.preventDefault();
    go(['find'], { text: text.trim() });
  };
  return page(
    t('title'),
    form(
      { class: 'search', role: 'search', onSubmit: search },
      field(
        t('text'),
        (attributes) =>
          input({
            ...attributes,
            type: 'search',
            required: true,
            maxLength: 300,
            spellcheck: false,
            value: text,
            onInput: (event) => setText(event.currentTarget.value),
          }),
        t('hint'),
      ),
      button({ class: 'main' }, t('find')),
    ),
    shown(findings, (found) => found && findingsOf(found)),
  );
}

const KIND = { account: 'accountKind', order: 'orderKind' } as const;
const kindOf = (kind: Findings['found'][number]['kind']): string =>
  t(kind === 'account' || kind === 'order' ? KIND[kind] : kind);

function findingsOf({ found, request, stories, further_orders: further }: Findings): View {
  if (found.length + request.length + stories.length === 0) return empty(t('nothing'));
  return div(
    found.length > 0 && [
      h2(t('found')),
      tableOf(found, (one) => Object.values(one).join(' '), [
        [t('kind'), ({ kind }) => kindOf(kind)],
        [t('as'), ({ text }) => code(text)],
        [t('account'), ({ account_id: id }) => id !== null && link(href(['accounts', id]), code({ class: 'id' }, id))],
        [t('order'), ({ order_id: id }) => id !== null && storyLink(id)],
      ]),
    ],
    request.length > 0 && [
      h2(t('request')),
      ul(
        { class: 'bare' },
        request.map(({ id, at, action, subject, details }) =>
          li({ key: id }, moment(at), ' ', action, ' ', code(subject), ' ', detailsOf(details)),
        ),
      ),
    ],
    stories.map((story) => storyOf(story, true)),
    further.length > 0 && [h2(t('further')), p(further.map((id) => [storyLink(id), ' ']))],
  );
}
