// Callbacks: settings on one side, the test on the other, and what is suppressed.
import { h } from 'preact';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import { link, page, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { TestCall } from './probe.ts';
import { SettingsForm } from './settings.ts';
import { tabs } from './tabs.ts';

const { div, p } = tags;

const t = texts({
  en: {
    title: 'Callbacks',
    suppressed: '{count} callbacks were not sent while callbacks were paused, the oldest of',
    suppressedMore: 'More than {count} callbacks were not sent while callbacks were paused, the oldest of',
    see: 'See and send them',
  },
  zh: {
    title: '回调',
    suppressed: '暂停期间有 {count} 条回调未发送，最早的发生于',
    suppressedMore: '暂停期间有超过 {count} 条回调未发送，最早的发生于',
    see: '查看并发送',
  },
});

export function Page(_: PageProps): View {
  const read = useResource(
    (signal) => account<Data<'CallbackSettingsResponse'>>('GET', 'account/callback', { signal }),
    [],
  );
  return page(
    t('title'),
    tabs('settings'),
    shown(read, ({ callback }) => [
      callback && suppressedNote(callback.suppressed),
      div(
        { class: 'columns' },
        div(h(SettingsForm, { settings: callback, onChange: read.reload })),
        div({ class: 'aside' }, h(TestCall, {})),
      ),
    ]),
  );
}

function suppressedNote({ count, has_more, since }: Schema<'SuppressedEvents'>): View | null {
  if (count === 0) return null;
  const address = href(['callbacks', 'deliveries'], { state: 'suppressed' });
  return p(
    { class: 'note' },
    t(has_more ? 'suppressedMore' : 'suppressed', { count }),
    ' ',
    moment(since),
    '. ',
    link(address, t('see')),
  );
}
