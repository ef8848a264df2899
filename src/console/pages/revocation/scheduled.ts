// Revocations to come, each with a clock: keep the certificate, or move the time.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { actButton, badge, field, link, problem } from '../../shell/parts.ts';
import { useAction } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import type { Schema } from '../../shell/wire.ts';
import { Clock } from './clock.ts';
import { causeWord, reasonWord } from './words.ts';

const { button, code, details, div, form, h2, input, li, p, section, summary, ul } = tags;

const t = texts({
  en: {
    title: 'Revocations to come',
    due: 'Will be revoked',
    in: 'in',
    because: 'Because {cause}; published as: {reason}.',
    by: 'Caused by certificate',
    keep: 'Keep the certificate',
    move: 'Move the time',
    at: 'Revoke at (your time)',
    moveHint: 'Earlier is always possible; later where the product allows it.',
    save: 'Move',
    order: 'order',
  },
  zh: {
    title: '即将进行的吊销',
    due: '将被吊销',
    in: '剩余',
    because: '原因：{cause}；公布的理由：{reason}。',
    by: '起因证书',
    keep: '保留该证书',
    move: '调整时间',
    at: '吊销时间（您的时区）',
    moveHint: '可以提前；推迟须产品允许。',
    save: '调整',
    order: '订单',
  },
});

export type Scheduled = Schema<'ScheduledRevocation'> & {
  readonly order_id: string;
  readonly common_name: string | null;
};

interface Props {
  readonly revocations: readonly Scheduled[];
  readonly onChange: () => void;
}

export function ScheduledRevocations({ revocations, onChange }: Props): View {
  return section(
    { class: 'scheduled', 'aria-label': t('title') },
    h2(t('title')),
    ul(revocations.map((one) => h(Row, { key: one.certificate_id, one, onChange }))),
  );
}

function Row({ one, onChange }: { one: Scheduled; onChange: () => void }): View {
  const path = `certs/${one.certificate_id}/revocation`;
  const [at, setAt] = useState(() => localInput(one.due_at));
  const keep = useAction(async () => {
    await account('DELETE', path);
    onChange();
  });
  const move = useAction(async () => {
    await account('PUT', path, { body: { due_at: new Date(at).toISOString() } });
    onChange();
  });
  const submit = (event: Event) => {
    event.preventDefault();
    move.run();
  };
  return li(
    p(
      badge('waiting', t('due')),
      ' ',
      link(href(['certificates', one.certificate_id]), one.common_name ?? one.certificate_id),
    ),
    p(t('in'), ' ', h(Clock, { until: one.due_at })),
    p({ class: 'quiet' }, t('because', { cause: causeWord(one.cause), reason: reasonWord(one.reason) })),
    one.caused_by !== null &&
      p({ class: 'quiet' }, t('by'), ' ', link(href(['certificates', one.caused_by]), code(one.caused_by))),
    div(
      { class: 'actions' },
      actButton(keep, t('keep'), { onClick: () => keep.run() }),
      details(
        summary(t('move')),
        form(
          { onSubmit: submit },
          field(
            t('at'),
            (attributes) =>
              input({
                ...attributes,
                type: 'datetime-local',
                required: true,
                value: at,
                onInput: (event) => setAt(event.currentTarget.value),
              }),
            t('moveHint'),
          ),
          button({ disabled: move.isRunning }, t('save')),
        ),
      ),
    ),
    keep.error && problem(keep.error),
    move.error && problem(move.error),
  );
}

/** As an input of that type wants it: the reader's time, without a zone. */
function localInput(moment: string): string {
  const at = new Date(moment);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
