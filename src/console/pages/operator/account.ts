// An account: its state, its keys, its quotas.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import { operator } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import { badge, copyable, fact, field, link, page, problem, shown } from '../../shell/parts.ts';
import { useAction, useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import { Keys } from './keys.ts';
import { confirmed, mayAct, numberInput, viewOnly } from './parts.ts';
import type { AccountDetails } from './wire.ts';

const { button, div, dl, form, h2, input, meter, p, span } = tags;

const t = texts({
  en: {
    account: 'Account',
    id: 'Id',
    kind: 'Kind',
    locale: 'Language',
    created: 'Created',
    state: 'State',
    active: 'active',
    suspended: 'suspended',
    since: 'Suspended since',
    suspend: 'Suspend the account…',
    suspendAsk:
      'Its keys are refused, its sessions end, nothing is issued to it and its callbacks wait. Its certificates stay valid; revocations, CRLs and OCSP go on.',
    suspendDo: 'Suspend it',
    reason: 'Reason, for the audit',
    resume: 'Resume the account',
    quotas: 'Quotas',
    openOrders: 'Orders that wait',
    stored: 'Stored, MiB',
    usedOf: '{used} of {limit}',
    default: 'default',
    own: 'set for this account',
    change: 'Change the quotas',
    changeHint: 'Empty: the default of the service.',
    more: 'More about it',
    audit: 'Audit of the account',
    callbacks: 'Its callbacks',
    standard: 'standard',
    managed_pki: 'managed PKI',
  },
  zh: {
    account: '账户',
    id: 'ID',
    kind: '类型',
    locale: '语言',
    created: '创建时间',
    state: '状态',
    active: '正常',
    suspended: '已停用',
    since: '停用时间',
    suspend: '停用账户…',
    suspendAsk:
      '其密钥将被拒绝，会话结束，不再为其签发证书，回调暂停发送。已有证书仍然有效；吊销、CRL 和 OCSP 照常进行。',
    suspendDo: '停用',
    reason: '原因（记入审计）',
    resume: '恢复账户',
    quotas: '配额',
    openOrders: '等待中的订单',
    stored: '存储（MiB）',
    usedOf: '{used} / {limit}',
    default: '默认值',
    own: '为该账户设定',
    change: '修改配额',
    changeHint: '留空则使用服务的默认值。',
    more: '更多',
    audit: '该账户的审计',
    callbacks: '该账户的回调',
    standard: '标准',
    managed_pki: '托管 PKI',
  },
});

const MAX_QUOTA = 100_000_000;

type Reload = () => void;

export function Page({ parameters: [id = ''] }: PageProps): View {
  const account = useResource(
    (signal) => operator<AccountDetails>('GET', `accounts/${encodeURIComponent(id)}`, { signal }),
    [id],
  );
  return page(
    account.data?.account.name ?? t('account'),
    shown(account, (data) => [
      facts(data),
      mayAct() ? h(Suspension, { data, onChange: account.reload }) : viewOnly(),
      h(Keys, { id, keys: data.keys, onChange: account.reload }),
      h2(t('quotas')),
      h(Quotas, { data, onChange: account.reload }),
      h2(t('more')),
      p(link(href(['audit'], { account: id }), t('audit'))),
      p(link(href(['lanes', id]), t('callbacks'))),
    ]),
  );
}

const facts = ({ account }: AccountDetails): View =>
  dl(
    fact(t('state'), account.suspended_at === null ? badge('good', t('active')) : badge('bad', t('suspended'))),
    fact(t('since'), moment(account.suspended_at)),
    fact(t('id'), copyable(account.id, t('id'))),
    fact(t('kind'), t(account.kind)),
    fact(t('locale'), account.locale),
    fact(t('created'), moment(account.created_at)),
  );

function Suspension({ data: { account }, onChange }: { data: AccountDetails; onChange: Reload }): View {
  const [reason, setReason] = useState('');
  const path = `accounts/${encodeURIComponent(account.id)}`;
  const suspend = useAction(async () => {
    await operator('POST', `${path}/suspend`, { body: { reason } });
    onChange();
  });
  const resume = useAction(async () => {
    await operator('POST', `${path}/resume`, { body: {} });
    onChange();
  });
  if (account.suspended_at !== null) {
    return div(
      { class: 'actions' },
      button({ type: 'button', class: 'main', disabled: resume.isRunning, onClick: () => resume.run() }, t('resume')),
      resume.error && problem(resume.error),
    );
  }
  return div(
    confirmed({
      ...{ words: t('suspend'), confirm: t('suspendDo'), action: suspend },
      question: [
        t('suspendAsk'),
        field(t('reason'), (attributes) =>
          input({
            ...attributes,
            maxLength: 500,
            value: reason,
            onInput: (event) => setReason(event.currentTarget.value),
          }),
        ),
      ],
    }),
  );
}

function Quotas({ data: { account, quotas }, onChange }: { data: AccountDetails; onChange: Reload }): View {
  const shownAs = ({ limit, is_default: isDefault }: { limit: number; is_default: boolean }) =>
    isDefault ? '' : String(limit);
  const [orders, setOrders] = useState(shownAs(quotas.open_orders));
  const [mib, setMib] = useState(shownAs(quotas.stored_mib));
  const action = useAction(async () => {
    const limit = (text: string) => (text === '' ? null : Number(text));
    const body = { open_orders: limit(orders), stored_mib: limit(mib) };
    await operator('PUT', `accounts/${encodeURIComponent(account.id)}/quotas`, { body });
    onChange();
  });
  const submit = (event: Event) => {
    event.preventDefault();
    action.run();
  };
  const use = (name: string, { used, limit, is_default: isDefault }: AccountDetails['quotas']['open_orders']) =>
    fact(name, [
      t('usedOf', { used, limit }),
      span({ class: 'quiet' }, ` ${isDefault ? t('default') : t('own')} `),
      meter({ min: 0, max: Math.max(1, limit), value: used, 'aria-label': name }),
    ]);
  return div(
    dl(use(t('openOrders'), quotas.open_orders), use(t('stored'), quotas.stored_mib)),
    mayAct() &&
      form(
        { class: 'filters', onSubmit: submit },
        field(t('openOrders'), numberInput({ value: orders, onChange: setOrders, max: MAX_QUOTA }), t('changeHint')),
        field(t('stored'), numberInput({ value: mib, onChange: setMib, max: MAX_QUOTA }), t('changeHint')),
        button({ disabled: action.isRunning }, t('change')),
      ),
    action.error && problem(action.error),
  );
}
