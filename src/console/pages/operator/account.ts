// An account with its keys and quotas. A new secret is shown once, and is forgotten when the page is left.
import { h } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { AccountDetails, IssuedKey, Key } from '../../../http/console/operator-schemas.ts';
import { operator } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import {
  badge,
  copyable,
  copyButton,
  empty,
  fact,
  field,
  group,
  link,
  page,
  problem,
  shown,
} from '../../shell/parts.ts';
import { useAction, useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import { confirmed, mayAct, tableOf, viewOnly } from './parts.ts';

const { button, code, div, dl, form, h2, input, meter, option, p, section, select, span, strong } = tags;

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
    keys: 'Keys',
    noKeys: 'The account has no keys yet. Create one, and hand key id and secret to its holder.',
    keyId: 'Key id',
    secret: 'Secret',
    expires: 'Expires',
    never: 'never',
    used: 'Last used',
    unused: 'not yet',
    newKey: 'New key',
    createKey: 'Create the key',
    days: 'Expires after days',
    daysHint: 'Empty: it does not expire.',
    rotate: 'Rotate…',
    rotateAsk:
      'A successor of the same kind is created, and its secret shown once. The old key works for another 24 hours.',
    rotateDo: 'Create the successor',
    disable: 'Disable…',
    disableAsk: 'Requests with this key are refused from now on. This cannot be undone.',
    disableDo: 'Disable the key',
    ofKey: 'key {id}',
    once: 'The secret is shown only now',
    onceText:
      'Copy it to where its holder keeps secrets. When you leave this page it is gone, and nothing can show it again.',
    kept: 'I have kept it',
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
    expired: 'expired',
    disabled: 'disabled',
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
    keys: '密钥',
    noKeys: '该账户还没有密钥。请创建一个，并将密钥 ID 和密钥交给持有人。',
    keyId: '密钥 ID',
    secret: '密钥',
    expires: '到期',
    never: '永不',
    used: '上次使用',
    unused: '尚未使用',
    newKey: '新建密钥',
    createKey: '创建密钥',
    days: '有效天数',
    daysHint: '留空则永不到期。',
    rotate: '轮换…',
    rotateAsk: '将创建同类型的新密钥，并只显示一次。旧密钥继续有效 24 小时。',
    rotateDo: '创建新密钥',
    disable: '禁用…',
    disableAsk: '此后使用该密钥的请求都会被拒绝，且无法撤销。',
    disableDo: '禁用密钥',
    ofKey: '密钥 {id}',
    once: '密钥仅此时显示',
    onceText: '请复制到持有人保存密钥的地方。离开本页后将无法再次显示。',
    kept: '我已保存',
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
    expired: '已过期',
    disabled: '已禁用',
  },
});

const KINDS = ['standard', 'cloud_manager_token', 'lite_client_oauth', 'integration_key'] as const;
const OVERLAP_HOURS = 24;

type Reload = () => void;

export function Page({ parameters: [id = ''] }: PageProps): View {
  const account = useResource(
    (signal) => operator<AccountDetails>('GET', `accounts/${encodeURIComponent(id)}`, { signal }),
    [id],
  );
  const [issued, setIssued] = useState<IssuedKey | undefined>();
  // A page that the browser keeps for "back" must not keep the secret.
  useEffect(() => {
    const forget = () => setIssued(undefined);
    addEventListener('pagehide', forget);
    return () => removeEventListener('pagehide', forget);
  }, []);
  const onIssued = (key: IssuedKey) => {
    setIssued(key);
    account.reload();
  };
  return page(
    account.data?.account.name ?? t('account'),
    issued && h(Secret, { issued, onKept: () => setIssued(undefined) }),
    shown(account, (data) => [
      facts(data),
      mayAct() ? h(Suspension, { data, onChange: account.reload }) : viewOnly(),
      h2(t('keys')),
      data.keys.length === 0 ? empty(t('noKeys')) : keysOf(data.keys, { onIssued, onChange: account.reload }),
      mayAct() && h(NewKey, { id, onIssued }),
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

function Secret({ issued, onKept }: { issued: IssuedKey; onKept: () => void }): View {
  return section(
    { class: 'note secret', 'aria-label': t('once'), role: 'status' },
    p(strong(t('once'))),
    p(t('onceText')),
    dl(
      fact(t('keyId'), copyable(issued.key.key_id, t('keyId'))),
      fact(
        t('secret'),
        span({ class: 'copyable' }, code(issued.auth_key), ' ', copyButton(issued.auth_key, t('secret'))),
      ),
    ),
    button({ type: 'button', onClick: onKept }, t('kept')),
  );
}

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

interface KeyActs {
  readonly onIssued: (key: IssuedKey) => void;
  readonly onChange: Reload;
}

const keysOf = (keys: readonly Key[], acts: KeyActs): View =>
  tableOf(keys, ({ key_id: id }) => id, [
    [t('keyId'), ({ key_id: id }) => code({ class: 'id' }, id)],
    [t('state'), ({ state }) => badge(state === 'active' ? 'good' : 'over', t(state))],
    [t('kind'), ({ kind }) => kind],
    [t('created'), ({ created_at: at }) => moment(at)],
    [t('expires'), ({ expires_at: at }) => moment(at) ?? t('never')],
    [t('used'), ({ last_used_at: at }) => moment(at) ?? t('unused')],
    ...(mayAct() ? [['', (one: Key) => one.state === 'active' && h(ActsOnKey, { one, acts })] as const] : []),
  ]);

function ActsOnKey({ one, acts }: { one: Key; acts: KeyActs }): View {
  const path = `keys/${encodeURIComponent(one.key_id)}`;
  const rotate = useAction(async () =>
    acts.onIssued(await operator<IssuedKey>('POST', `${path}/rotate`, { body: { overlap_hours: OVERLAP_HOURS } })),
  );
  const disable = useAction(async () => {
    await operator('POST', `${path}/disable`, { body: {} });
    acts.onChange();
  });
  const common = { about: t('ofKey', { id: one.key_id }), isSmall: true };
  return div(
    { class: 'acts' },
    confirmed({ ...common, words: t('rotate'), question: t('rotateAsk'), confirm: t('rotateDo'), action: rotate }),
    confirmed({ ...common, words: t('disable'), question: t('disableAsk'), confirm: t('disableDo'), action: disable }),
  );
}

function NewKey({ id, onIssued }: { id: string; onIssued: KeyActs['onIssued'] }): View {
  const [kind, setKind] = useState<string>('standard');
  const [days, setDays] = useState('');
  const action = useAction(async () => {
    const body = { kind, ...(days !== '' && { expires_in_days: Number(days) }) };
    onIssued(await operator<IssuedKey>('POST', `accounts/${encodeURIComponent(id)}/keys`, { body }));
    scrollTo({ top: 0 });
  });
  const submit = (event: Event) => {
    event.preventDefault();
    action.run();
  };
  return form(
    { onSubmit: submit },
    group(
      t('newKey'),
      field(t('kind'), (attributes) =>
        select(
          { ...attributes, value: kind, onChange: (event) => setKind(event.currentTarget.value) },
          KINDS.map((one) => option({ key: one, value: one }, one)),
        ),
      ),
      field(t('days'), numberInput({ value: days, onChange: setDays, max: MAX_DAYS }), t('daysHint')),
      div({ class: 'actions' }, button({ class: 'main', disabled: action.isRunning }, t('createKey'))),
      action.error && problem(action.error),
    ),
  );
}

interface NumberField {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly max: number;
}
const numberInput =
  ({ value, onChange, max }: NumberField) =>
  (attributes: { id: string }): View =>
    input({
      ...attributes,
      ...{ type: 'number', inputMode: 'numeric', min: 0, max, step: 1, value },
      onInput: (event) => onChange(event.currentTarget.value),
    });
const MAX_DAYS = 3_650;
const MAX_QUOTA = 100_000_000;

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
