// Keys that the service holds: their state, the lock after wrong codes, another access code, destroying one.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { useChanges } from '../../shell/live.ts';
import type { PageProps } from '../../shell/pages.ts';
import { badge, consent, copyable, empty, fact, field, link, page, pager, problem, shown } from '../../shell/parts.ts';
import { useAction, useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { distance, moment } from '../../shell/time.ts';
import type { Data, Schema } from '../../shell/wire.ts';

const { button, details, div, dl, form, h2, input, p, section, summary } = tags;

const t = texts({
  en: {
    title: 'Cloud keys',
    lead: 'Private keys that the service keeps, and signs with after an access code.',
    none: 'No cloud-held key. Order or reissue with “The service does” as the holder of the private key.',
    id: 'Key id (credentialID of the signing API)',
    hint: 'Hint',
    made: 'Made',
    certificate: 'Latest certificate',
    ready: 'Can sign',
    locked: 'Locked',
    lockedUntil: 'Wrong access codes have locked it. The right one works again {when}.',
    destroyed: 'Destroyed',
    change: 'Change the access code…',
    old: 'Access code now',
    new: 'New access code',
    newHint: 'Stored nowhere: it cannot be recovered.',
    tip: 'New hint (optional)',
    save: 'Change the code',
    saved: 'The access code was changed.',
    destroy: 'Destroy the key…',
    destroyLead: 'Nothing brings it back. Certificates on it stay valid, but nothing can be signed with them any more.',
    code: 'Access code',
    sure: 'I know that this key is gone for good.',
    act: 'Destroy the key',
  },
  zh: {
    title: '云端密钥',
    lead: '由服务托管的私钥，凭访问控制码签名。',
    none: '没有云端密钥。下单或重签时选择“由服务托管”即可创建。',
    id: '密钥 ID（签名接口的 credentialID）',
    hint: '提示',
    made: '创建时间',
    certificate: '最新证书',
    ready: '可签名',
    locked: '已锁定',
    lockedUntil: '访问控制码多次错误，已锁定。{when}可再次使用。',
    destroyed: '已销毁',
    change: '更换访问控制码…',
    old: '当前访问控制码',
    new: '新访问控制码',
    newHint: '服务不保存，无法找回。',
    tip: '新提示（可选）',
    save: '更换',
    saved: '访问控制码已更换。',
    destroy: '销毁密钥…',
    destroyLead: '无法恢复。其证书仍然有效，但不能再用于签名。',
    code: '访问控制码',
    sure: '我知道该密钥将永久销毁。',
    act: '销毁密钥',
  },
});

type CloudKey = Schema<'CloudKey'>;
const LIMIT = 20;

export function Page({ query }: PageProps): View {
  const after = query.get('after') ?? undefined;
  const keys = useResource(
    (signal) => account<Data<'CloudKeyListResponse'>>('GET', 'cloud-keys', { query: { after, limit: LIMIT }, signal }),
    [after],
  );
  useChanges(keys.reload);
  return page(
    t('title'),
    p({ class: 'quiet' }, t('lead')),
    shown(keys, ({ cloud_keys, next_after }) => [
      cloud_keys.length === 0 && empty(t('none')),
      cloud_keys.map((one) => h(KeyView, { key: one.id, one, onChange: keys.reload })),
      pager(
        next_after ? href(['cloud-keys'], { after: next_after }) : undefined,
        after ? href(['cloud-keys']) : undefined,
      ),
    ]),
  );
}

const TYPES: Readonly<Record<CloudKey['key_type'], string>> = {
  ...{ rsa: 'RSA', p256: 'ECDSA P-256', p384: 'ECDSA P-384', p521: 'ECDSA P-521', ed25519: 'Ed25519', sm2: 'SM2' },
};

function stateOf({ destroyed_at, locked_until }: CloudKey): View {
  if (destroyed_at !== null) return badge('over', t('destroyed'));
  return locked_until === null ? badge('good', t('ready')) : badge('bad', t('locked'));
}

function KeyView({ one, onChange }: { one: CloudKey; onChange: () => void }): View {
  const isLive = one.destroyed_at === null;
  return section(
    { class: 'card', 'aria-label': one.id },
    h2(TYPES[one.key_type], one.key_type === 'rsa' && ` ${one.bits}`, ' ', stateOf(one)),
    one.locked_until !== null && isLive && p(t('lockedUntil', { when: distance(one.locked_until) })),
    dl(
      fact(t('id'), copyable(one.id, t('id'))),
      fact(t('hint'), one.hint),
      fact(t('made'), moment(one.created_at)),
      fact(t('destroyed'), moment(one.destroyed_at)),
      fact(
        t('certificate'),
        one.certificate_id && link(href(['certificates', one.certificate_id]), one.certificate_id),
      ),
    ),
    isLive && div(h(ChangeCode, { id: one.id, onChange }), h(Destroy, { id: one.id, onChange })),
  );
}

interface CodeInput {
  readonly name: string;
  readonly words: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly hint?: string;
}
const codeInput = ({ name, words, value, onInput, hint }: CodeInput): View =>
  field(
    words,
    (attributes) =>
      input({
        ...attributes,
        name,
        type: 'password',
        autocomplete: 'off',
        required: true,
        value,
        onInput: (event) => onInput(event.currentTarget.value),
      }),
    hint,
  );

interface KeyProps {
  readonly id: string;
  readonly onChange: () => void;
}

function ChangeCode({ id, onChange }: KeyProps): View {
  const [pin, setPin] = useState('');
  const [newPin, setNewPin] = useState('');
  const [tip, setTip] = useState('');
  const [isDone, setDone] = useState(false);
  const change = useAction(async () => {
    setDone(false);
    const body: Schema<'PinChange'> = { pin, new_pin: newPin, ...(tip !== '' && { new_pin_tip: tip }) };
    await account('PUT', `cloud-keys/${id}/pin`, { body });
    setPin('');
    setNewPin('');
    setTip('');
    setDone(true);
    onChange();
  });
  const submit = (event: Event) => {
    event.preventDefault();
    change.run();
  };
  return details(
    summary(t('change')),
    form(
      { onSubmit: submit },
      codeInput({ name: 'pin', words: t('old'), value: pin, onInput: setPin }),
      codeInput({ name: 'new_pin', words: t('new'), value: newPin, onInput: setNewPin, hint: t('newHint') }),
      field(t('tip'), (attributes) =>
        input({
          ...attributes,
          name: 'new_pin_tip',
          value: tip,
          onInput: (event) => setTip(event.currentTarget.value),
        }),
      ),
      button({ disabled: change.isRunning }, t('save')),
      isDone && p({ role: 'status' }, badge('good', t('saved'))),
      change.error && problem(change.error),
    ),
  );
}

function Destroy({ id, onChange }: KeyProps): View {
  const [pin, setPin] = useState('');
  const [isSure, setSure] = useState(false);
  const destroy = useAction(async () => {
    await account('DELETE', `cloud-keys/${id}`, { body: { pin } });
    onChange();
  });
  const submit = (event: Event) => {
    event.preventDefault();
    if (isSure) destroy.run();
  };
  return details(
    { class: 'danger' },
    summary(t('destroy')),
    p(t('destroyLead')),
    form(
      { onSubmit: submit },
      codeInput({ name: 'pin', words: t('code'), value: pin, onInput: setPin }),
      consent(isSure, setSure, t('sure')),
      button({ class: 'danger', disabled: !isSure || destroy.isRunning }, t('act')),
      destroy.error && problem(destroy.error),
    ),
  );
}
