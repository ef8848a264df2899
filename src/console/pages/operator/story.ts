// The story of an order: who asked, what was certified and revoked, and what receivers answered.

import { operator } from '../../shell/api.ts';
import type { View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import { page, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { storyOf } from './parts.ts';
import type { Story } from './wire.ts';

const t = texts({ en: { title: 'Order {id}' }, zh: { title: '订单 {id}' } });

export function Page({ parameters: [id = ''] }: PageProps): View {
  const story = useResource(
    (signal) => operator<Story>('GET', `orders/${encodeURIComponent(id)}/story`, { signal }),
    [id],
  );
  return page(
    t('title', { id }),
    shown(story, (data) => storyOf(data)),
  );
}
