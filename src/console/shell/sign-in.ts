// The sign-in page: key id and secret for account holders; operators come by a link.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import { signedOut } from './api.ts';
import { tags, type View } from './html.ts';
import { texts } from './language.ts';
import { preferences } from './layout.ts';
import { field, problem } from './parts.ts';
import { useAction } from './resource.ts';
import { session, signIn } from './session.ts';

const { button, code, div, form, h1, input, main, p } = tags;

const t = texts({
  en: {
    title: 'Sign in to Reseal',
    keyId: 'Key id',
    secret: 'Secret',
    submit: 'Sign in',
    ended: 'Your session has ended. Sign in again to go on.',
    hint: 'Use a key of your account. The secret is sent once, in exchange for a session.',
    operators: 'Operators sign in by a link:',
  },
  zh: {
    title: '登录 Reseal',
    keyId: '密钥 ID',
    secret: '密钥',
    submit: '登录',
    ended: '会话已结束，请重新登录。',
    hint: '请使用账户的密钥。密钥只发送一次，用于换取会话。',
    operators: '运维人员通过链接登录：',
  },
});

export function SignIn({ linkError }: { linkError: Error | undefined }): View {
  return main(
    { class: 'sign-in' },
    h1({ id: 'title' }, t('title')),
    signedOut.value && session.value && p({ role: 'status' }, t('ended')),
    linkError && problem(linkError),
    h(KeyForm, {}),
    p({ class: 'quiet' }, t('operators'), ' ', code('reseal console login')),
    preferences(),
  );
}

/** Exchanges key id and secret for a session; the secret is forgotten then. */
export function KeyForm(): View {
  const [keyId, setKeyId] = useState('');
  const [secret, setSecret] = useState('');
  const action = useAction(async () => {
    await signIn(keyId.trim(), secret);
    setSecret('');
  });
  const submit = (event: Event) => {
    event.preventDefault();
    action.run();
  };
  return form(
    { onSubmit: submit },
    field(t('keyId'), (attributes) =>
      input({
        ...attributes,
        name: 'key_id',
        autocomplete: 'username',
        required: true,
        spellcheck: false,
        value: keyId,
        onInput: (event) => setKeyId(event.currentTarget.value),
      }),
    ),
    field(
      t('secret'),
      (attributes) =>
        input({
          ...attributes,
          name: 'secret',
          type: 'password',
          autocomplete: 'current-password',
          required: true,
          value: secret,
          onInput: (event) => setSecret(event.currentTarget.value),
        }),
      t('hint'),
    ),
    div({ class: 'actions' }, button({ class: 'main', disabled: action.isRunning }, t('submit'))),
    action.error && problem(action.error),
  );
}
