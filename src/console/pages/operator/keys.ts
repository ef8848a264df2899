// The keys of an account: create, rotate, disable. A new secret is shown once, and is forgotten when the page is left.
import { h } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { operator } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge, copyable, empty, fact, field, group, problem } from '../../shell/parts.ts';
import { useAction } from '../../shell/resource.ts';
import { moment } from '../../shell/time.ts';
import { confirmed, mayAct, numberInput, tableOf } from './parts.ts';
import type { IssuedKey, Key } from './wire.ts';

const { button, code, div, dl, form, h2, option, p, section, select, strong } = tags;

const t = texts({
  en: {
    keys: 'Keys',
    noKeys: 'The account has no keys yet. Create one, and hand key id and secret to its holder.',
    keyId: 'Key id',
    state: 'State',
    kind: 'Kind',
    created: 'Created',
    active: 'active',
    expired: 'expired',
    disabled: 'disabled',
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
  },
  zh: {
    keys: '密钥',
    noKeys: '该账户还没有密钥。请创建一个，并将密钥 ID 和密钥交给持有人。',
    keyId: '密钥 ID',
    state: '状态',
    kind: '类型',
    created: '创建时间',
    active: '正常',
    expired: '已过期',
    disabled: '已禁用',
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
  },
});

const KINDS = ['standard', 'cloud_manager_token', 'lite_client_oauth', 'integration_key'] as const;
const OVERLAP_HOURS = 24;
const MAX_DAYS = 3_650;

export function Keys({ id, keys, onChange }: { id: string; keys: readonly Key[]; onChange: () => void }): View {
  const [issued, setIssued] = useState<IssuedKey | undefined>();
  // A page that the browser keeps for "back" must not keep the secret.
  useEffect(() => {
    const forget = () => setIssued(undefined);
    addEventListener('pagehide', forget);
    return () => removeEventListener('pagehide', forget);
  }, []);
  const onIssued = (key: IssuedKey) => {
    setIssued(key);
    onChange();
  };
  return section(
    h2(t('keys')),
    issued && h(Secret, { issued, onKept: () => setIssued(undefined) }),
    keys.length === 0 ? empty(t('noKeys')) : keysOf(keys, { onIssued, onChange }),
    mayAct() && h(NewKey, { id, onIssued }),
  );
}

/** Takes the focus, so that it is seen and heard wherever the page was. */
function Secret({ issued, onKept }: { issued: IssuedKey; onKept: () => void }): View {
  const note = useRef<HTMLElement>(null);
  useEffect(() => note.current?.focus(), [issued]);
  return section(
    { class: 'note secret', ref: note, tabIndex: -1, 'aria-label': t('once') },
    p(strong(t('once'))),
    p(t('onceText')),
    dl(
      fact(t('keyId'), copyable(issued.key.key_id, t('keyId'))),
      fact(t('secret'), copyable(issued.auth_key, t('secret'))),
    ),
    button({ type: 'button', onClick: onKept }, t('kept')),
  );
}

interface KeyActs {
  readonly onIssued: (key: IssuedKey) => void;
  readonly onChange: () => void;
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
