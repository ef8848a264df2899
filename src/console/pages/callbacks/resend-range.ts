// Sends a range of callbacks again, page by page as the service answers, with a count of what was sent.
import { useState } from 'preact/hooks';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { consent, field, problem } from '../../shell/parts.ts';
import { useAction } from '../../shell/resource.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { stateWord } from './words.ts';

const { button, details, div, form, input, option, p, select, summary } = tags;

const t = texts({
  en: {
    title: 'Send a range again…',
    lead: 'The oldest first, one after the other. Actions that the settings do not ask for are left out.',
    state: 'Those that are',
    since: 'From (your time, optional)',
    until: 'Until (your time, optional)',
    sure: 'I know that my receiver may get callbacks twice; their webhook-id stays the same.',
    send: 'Send them again',
    sent: '{count} callbacks are on their way again.',
    more: '{count} callbacks are on their way again. There are more: send once more to go on.',
    none: 'No callback is in this range.',
  },
  zh: {
    title: '批量重新发送…',
    lead: '按时间先后逐条发送，未启用的事件除外。',
    state: '状态为',
    since: '起始时间（您的时区，可选）',
    until: '截止时间（您的时区，可选）',
    sure: '我知道接收端可能重复收到回调，其 webhook-id 不变。',
    send: '重新发送',
    sent: '已重新发送 {count} 条回调。',
    more: '已重新发送 {count} 条回调。还有更多：再次发送以继续。',
    none: '该范围内没有回调。',
  },
});

const RESENDABLE = ['failed', 'suppressed', 'delivered'] as const;
type Resendable = Schema<'ResendRequest'>['state'];

interface Props {
  readonly state: string | undefined;
  readonly orderId: string | undefined;
  readonly onChange: () => void;
}

export function ResendRange({ state, orderId, onChange }: Props): View {
  const [chosen, setChosen] = useState<Resendable>(RESENDABLE.find((one) => one === state) ?? 'failed');
  const [since, setSince] = useState('');
  const [until, setUntil] = useState('');
  const [isSure, setSure] = useState(false);
  const [sent, setSent] = useState<Data<'ResentResponse'> | undefined>();
  const resend = useAction(async () => {
    const body: Schema<'ResendRequest'> = {
      state: chosen,
      ...(orderId !== undefined && { order_id: orderId }),
      ...(since !== '' && { since: new Date(since).toISOString() }),
      ...(until !== '' && { until: new Date(until).toISOString() }),
      ...(sent?.next_after && { after: sent.next_after }),
    };
    setSent(await account<Data<'ResentResponse'>>('POST', 'account/callback/deliveries/resend', { body }));
    onChange();
  });
  const change = (act: () => void) => {
    act();
    setSent(undefined);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (isSure) resend.run();
  };
  const time = (words: string, value: string, onInput: (value: string) => void) =>
    field(words, (attributes) =>
      input({
        ...attributes,
        type: 'datetime-local',
        value,
        onInput: (event) => change(() => onInput(event.currentTarget.value)),
      }),
    );
  return details(
    summary(t('title')),
    p({ class: 'quiet' }, t('lead')),
    form(
      { onSubmit: submit },
      div(
        { class: 'filters' },
        field(t('state'), (attributes) =>
          select(
            {
              ...attributes,
              value: chosen,
              onChange: (event) =>
                change(() => setChosen(RESENDABLE.find((one) => one === event.currentTarget.value) ?? 'failed')),
            },
            RESENDABLE.map((one) => option({ key: one, value: one }, stateWord(one))),
          ),
        ),
        time(t('since'), since, setSince),
        time(t('until'), until, setUntil),
      ),
      consent(isSure, setSure, t('sure')),
      button({ disabled: !isSure || resend.isRunning }, t('send')),
    ),
    sent &&
      p({ role: 'status' }, t(sent.next_after ? 'more' : sent.resent === 0 ? 'none' : 'sent', { count: sent.resent })),
    resend.error && problem(resend.error),
  );
}
