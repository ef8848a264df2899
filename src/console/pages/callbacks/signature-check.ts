// Checks the signature that a receiver saw against the secret it should have used. Both stay in the page.
import { useState } from 'preact/hooks';
import { signatureOf } from '../../pki/webhook-signature.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge, copyable, field } from '../../shell/parts.ts';
import { useAction } from '../../shell/resource.ts';
import { moment } from '../../shell/time.ts';
import type { Schema } from '../../shell/wire.ts';

const { button, details, div, form, input, option, p, select, summary } = tags;

const t = texts({
  en: {
    title: 'Check the signature',
    lead: 'For a receiver that refuses the signature: computed in this page, nothing is sent.',
    attempt: 'Of which attempt',
    number: 'Attempt {number}',
    secret: 'Signing secret',
    secretHint: 'whsec_…, as your receiver has it.',
    seen: 'webhook-signature that your receiver saw (optional)',
    check: 'Compute',
    same: 'It matches: the secret is right, and the body arrived unchanged.',
    differs:
      'It does not match. Either the secret is another one, or your receiver verifies other bytes than it received: verify before parsing.',
    computed: 'webhook-signature with this secret',
    invalid: 'This is no signing secret: it begins with whsec_, then base64.',
  },
  zh: {
    title: '核对签名',
    lead: '用于排查接收端拒绝签名的问题：在本页面计算，不会发送任何内容。',
    attempt: '哪次尝试',
    number: '第 {number} 次',
    secret: '签名密钥',
    secretHint: 'whsec_…，与接收端配置一致。',
    seen: '接收端收到的 webhook-signature（可选）',
    check: '计算',
    same: '一致：密钥正确，内容未被改动。',
    differs: '不一致。密钥不同，或接收端验证的并非原始内容：请在解析前验证。',
    computed: '用该密钥计算的 webhook-signature',
    invalid: '不是有效的签名密钥：须以 whsec_ 开头，后接 base64。',
  },
});

interface Props {
  readonly id: string;
  readonly body: string;
  readonly attempts: readonly Schema<'DeliveryAttempt'>[];
}

export function SignatureCheck({ id, body, attempts }: Props): View {
  const [number, setNumber] = useState<number | undefined>();
  const chosen = attempts.find((one) => one.number === number) ?? attempts.at(-1);
  const [secret, setSecret] = useState('');
  const [seen, setSeen] = useState('');
  const [computed, setComputed] = useState('');
  const check = useAction(async () => {
    setComputed('');
    const timestamp = String(Math.floor(Date.parse(chosen?.at ?? '') / 1000));
    setComputed(await signatureOf(secret.trim(), { id, timestamp, body }));
  });
  const submit = (event: Event) => {
    event.preventDefault();
    check.run();
  };
  const isSame = seen.trim().split(/\s+/).includes(computed);
  return details(
    summary(t('title')),
    p({ class: 'quiet' }, t('lead')),
    form(
      { onSubmit: submit },
      field(t('attempt'), (attributes) =>
        select(
          { ...attributes, value: chosen?.number, onChange: (event) => setNumber(Number(event.currentTarget.value)) },
          attempts.map((one) =>
            option({ key: one.number, value: one.number }, t('number', { number: one.number }), ' · ', one.at),
          ),
        ),
      ),
      field(
        t('secret'),
        (attributes) =>
          input({
            ...attributes,
            type: 'password',
            autocomplete: 'off',
            required: true,
            value: secret,
            onInput: (event) => setSecret(event.currentTarget.value),
          }),
        t('secretHint'),
      ),
      field(t('seen'), (attributes) =>
        input({
          ...attributes,
          value: seen,
          spellcheck: false,
          onInput: (event) => setSeen(event.currentTarget.value),
        }),
      ),
      button({ disabled: check.isRunning || !chosen }, t('check')),
    ),
    check.error && p({ class: 'problem', role: 'alert' }, t('invalid')),
    computed !== '' &&
      div(
        { role: 'status' },
        p({ class: 'quiet' }, t('computed'), ' · ', moment(chosen?.at)),
        p(copyable(computed, t('computed'))),
        seen !== '' && p(badge(isSame ? 'good' : 'bad', t(isSame ? 'same' : 'differs'))),
      ),
  );
}
