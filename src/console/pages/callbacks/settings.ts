// The callback settings: address, access key, which actions, paused or not; and the signing secret, shown once.
import { h } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { actButton, badge, consent, copyable, fact, field, group, problem } from '../../shell/parts.ts';
import { useAction } from '../../shell/resource.ts';
import { moment } from '../../shell/time.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { ACTION_IDS, actionWord } from './words.ts';

const { button, code, details, div, dl, form, h2, input, label, p, section, span, strong, summary } = tags;

const t = texts({
  en: {
    title: 'Settings',
    none: 'No address is saved: every callback is suppressed. Save an address and a key, then test them.',
    on: 'Callbacks are sent',
    paused: 'Callbacks are paused',
    changed: 'changed',
    url: 'Address',
    urlHint: 'https, reachable from the service.',
    key: 'Access key',
    keyHint: 'Travels in X-CC-Callback-Auth. Never shown again. Address and key are changed together.',
    keep: 'Left empty, address and key stay as they are.',
    actions: 'Which events',
    pause: 'Pause callbacks',
    save: 'Save',
    secret: 'Signing secret',
    shown: 'This is shown this once. Keep it where your receiver verifies webhook-signature.',
    rotate: 'Make a new signing secret…',
    rotateLead:
      'For a while callbacks carry two signatures, of the new secret and of the old: change your receiver meanwhile.',
    rotateSure: 'I can put the new secret into my receiver now.',
    rotateAct: 'Make a new secret',
    remove: 'Delete the settings…',
    removeLead: 'Events are suppressed until there are settings again. They can be sent later.',
    removeSure: 'I know that no callback is sent from now on.',
    removeAct: 'Delete the settings',
  },
  zh: {
    title: '设置',
    none: '没有保存回调地址：所有回调都不会发送。请保存地址和密钥，然后测试。',
    on: '回调已启用',
    paused: '回调已暂停',
    changed: '更新于',
    url: '地址',
    urlHint: '须为 https，且服务可以访问。',
    key: '访问密钥',
    keyHint: '通过 X-CC-Callback-Auth 发送，不再显示。地址和密钥须同时更改。',
    keep: '留空则保持不变。',
    actions: '事件',
    pause: '暂停回调',
    save: '保存',
    secret: '签名密钥',
    shown: '仅显示这一次。请保存到接收端，用于验证 webhook-signature。',
    rotate: '更换签名密钥…',
    rotateLead: '一段时间内回调会同时携带新旧两个签名，请在此期间更新接收端。',
    rotateSure: '我现在可以将新密钥配置到接收端。',
    rotateAct: '生成新密钥',
    remove: '删除设置…',
    removeLead: '重新设置之前，事件不会发送，但以后可以补发。',
    removeSure: '我知道此后不再发送任何回调。',
    removeAct: '删除设置',
  },
});

type Settings = Schema<'CallbackSettings'>;
type Answer = Data<'CallbackSettingsResponse'>;
/** Those that are called back unless the settings say otherwise. */
const DEFAULT_ACTIONS = ACTION_IDS.filter((action) => action !== 'order:expiring');

interface Props {
  readonly settings: Settings | null;
  readonly onChange: () => void;
}

export function SettingsForm({ settings, onChange }: Props): View {
  const [url, setUrl] = useState('');
  const [accessKey, setAccessKey] = useState('');
  const [isPaused, setPaused] = useState(settings?.disabled ?? false);
  const [actions, setActions] = useState<readonly string[]>(settings?.enabled_actions ?? DEFAULT_ACTIONS);
  const [secret, setSecret] = useState<string | undefined>();
  // A page that the browser keeps for "back" must not keep the secret.
  useEffect(() => {
    const forget = () => setSecret(undefined);
    addEventListener('pagehide', forget);
    return () => removeEventListener('pagehide', forget);
  }, []);
  const keep = ({ callback }: Answer) => {
    if (callback?.signing_secret) setSecret(callback.signing_secret);
    onChange();
  };
  const save = useAction(async () => {
    const target = url === '' && accessKey === '' ? {} : { url, access_key: accessKey };
    const body = { ...target, disabled: isPaused, enabled_actions: actions };
    keep(await account<Answer>('PUT', 'account/callback', { body }));
    setUrl('');
    setAccessKey('');
  });
  const submit = (event: Event) => {
    event.preventDefault();
    save.run();
  };
  return section(
    { 'aria-label': t('title') },
    h2(t('title')),
    settings
      ? dl(
          { class: 'wide' },
          fact(badge(settings.disabled ? 'waiting' : 'good', t(settings.disabled ? 'paused' : 'on')), [
            copyable(settings.url, t('url')),
            ' ',
            span({ class: 'quiet' }, t('changed'), ' ', moment(settings.updated_at)),
          ]),
        )
      : p(badge('waiting', t('none'))),
    secret && secretView(secret),
    form(
      { onSubmit: submit },
      field(
        t('url'),
        (attributes) =>
          input({
            ...attributes,
            name: 'url',
            type: 'url',
            value: url,
            placeholder: settings?.url ?? 'https://',
            maxLength: 256,
            required: settings === null,
            onInput: (event) => setUrl(event.currentTarget.value),
          }),
        [t('urlHint'), settings && [' ', t('keep')]],
      ),
      field(
        t('key'),
        (attributes) =>
          input({
            ...attributes,
            name: 'access_key',
            type: 'password',
            autocomplete: 'off',
            value: accessKey,
            maxLength: 256,
            required: settings === null,
            onInput: (event) => setAccessKey(event.currentTarget.value),
          }),
        t('keyHint'),
      ),
      group(
        t('actions'),
        ACTION_IDS.map((action) =>
          label(
            { class: 'consent', key: action },
            input({
              type: 'checkbox',
              checked: actions.includes(action),
              onChange: (event) =>
                setActions(
                  event.currentTarget.checked ? [...actions, action] : actions.filter((one) => one !== action),
                ),
            }),
            span(actionWord(action), ' ', code({ class: 'quiet' }, action)),
          ),
        ),
      ),
      consent(isPaused, setPaused, t('pause')),
      div({ class: 'actions' }, button({ class: 'main', disabled: save.isRunning }, t('save'))),
      save.error && problem(save.error),
    ),
    settings && [
      h(Sure, {
        ...{ title: t('rotate'), lead: t('rotateLead'), sure: t('rotateSure'), words: t('rotateAct') },
        act: async () => keep(await account<Answer>('POST', 'account/callback/rotate-secret')),
      }),
      h(Sure, {
        ...{ title: t('remove'), lead: t('removeLead'), sure: t('removeSure'), words: t('removeAct') },
        act: async () => keep(await account<Answer>('DELETE', 'account/callback')),
        isDanger: true,
      }),
    ],
  );
}

const secretView = (secret: string): View =>
  div({ class: 'note', role: 'status' }, p(strong(t('secret'))), p(copyable(secret, t('secret'))), p(t('shown')));

interface SureProps {
  readonly title: string;
  readonly lead: string;
  readonly sure: string;
  readonly words: string;
  readonly act: () => Promise<void>;
  readonly isDanger?: boolean;
}

/** An act behind a consent of its own. */
function Sure({ title, lead, sure, words, act, isDanger = false }: SureProps): View {
  const [isSure, setSure] = useState(false);
  const action = useAction(async () => {
    await act();
    setSure(false);
  });
  return details(
    summary(title),
    p(lead),
    consent(isSure, setSure, sure),
    actButton(action, words, { onClick: () => action.run(), isDanger, isDisabled: !isSure }),
    action.error && problem(action.error),
  );
}
