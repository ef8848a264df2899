// Revokes a certificate now: with its reason, and after a consent.
import { useState } from 'preact/hooks';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { consent, field, problem } from '../../shell/parts.ts';
import { useAction } from '../../shell/resource.ts';
import { reasonWord } from './words.ts';

const { button, details, form, option, p, select, summary } = tags;

const t = texts({
  en: {
    title: 'Revoke this certificate…',
    why: 'Browsers and clients stop trusting it at once, and nothing undoes it.',
    reason: 'Reason',
    standard: 'As the service sees it',
    sure: 'I know that every server that still uses this certificate will fail.',
    compromise: 'I know that my account cannot get another certificate on this key.',
    act: 'Revoke now',
  },
  zh: {
    title: '吊销该证书…',
    why: '浏览器和客户端将立即不再信任该证书，且无法撤销此操作。',
    reason: '理由',
    standard: '由服务判断',
    sure: '我知道仍在使用该证书的服务器将会出错。',
    compromise: '我知道我的账户不能再用该密钥申请证书。',
    act: '立即吊销',
  },
});

const REASONS = ['superseded', 'cessation_of_operation', 'key_compromise', 'affiliation_changed'] as const;

export function Revoke({ id, onChange }: { id: string; onChange: () => void }): View {
  const [reason, setReason] = useState('');
  const [isSure, setSure] = useState(false);
  const revoke = useAction(async () => {
    await account('POST', `certs/${id}/revoke`, { body: reason === '' ? {} : { reason } });
    onChange();
  });
  const submit = (event: Event) => {
    event.preventDefault();
    if (isSure) revoke.run();
  };
  return details(
    { class: 'danger' },
    summary(t('title')),
    form(
      { onSubmit: submit },
      p(t('why')),
      field(t('reason'), (attributes) =>
        select(
          {
            ...attributes,
            value: reason,
            onChange: (event) => {
              setReason(event.currentTarget.value);
              setSure(false);
            },
          },
          option({ value: '' }, t('standard')),
          REASONS.map((one) => option({ key: one, value: one }, reasonWord(one))),
        ),
      ),
      consent(isSure, setSure, t('sure'), reason === 'key_compromise' && [' ', t('compromise')]),
      button({ class: 'danger', disabled: !isSure || revoke.isRunning }, t('act')),
      revoke.error && problem(revoke.error),
    ),
  );
}
