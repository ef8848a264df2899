// The two sides of callbacks: how they are sent, and what was sent.
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { href } from '../../shell/router.ts';

const { a, nav } = tags;

const t = texts({
  en: { label: 'Callbacks', settings: 'Settings and test', deliveries: 'Deliveries' },
  zh: { label: '回调', settings: '设置与测试', deliveries: '投递记录' },
});

export const tabs = (current: 'settings' | 'deliveries'): View =>
  nav(
    { class: 'tabs', 'aria-label': t('label') },
    (['settings', 'deliveries'] as const).map((one) =>
      a(
        {
          key: one,
          href: href(one === 'settings' ? ['callbacks'] : ['callbacks', 'deliveries']),
          ...(one === current && { 'aria-current': 'page' as const }),
        },
        t(one),
      ),
    ),
  );
