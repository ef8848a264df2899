// Lives of certificates as bars on one axis of time, with today marked. The words beside a bar say the same.
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { dateLocale } from '../../shell/time.ts';

const { div, span } = tags;

const t = texts({
  en: {
    today: 'today',
    days: '{all} days',
    left: '{days} days left of {all}',
    soon: '{days} days left of {all}: reissue soon',
    ended: 'ended {days} days ago',
    ahead: 'begins in {days} days',
    from: 'from {from} to {to}',
    revoked: 'revoked on {at}',
    due: 'to be revoked on {at}',
  },
  zh: {
    today: '今天',
    days: '{all} 天',
    left: '共 {all} 天，剩余 {days} 天',
    soon: '共 {all} 天，剩余 {days} 天，请尽快重签',
    ended: '已于 {days} 天前到期',
    ahead: '{days} 天后生效',
    from: '{from} 至 {to}',
    revoked: '已于 {at} 吊销',
    due: '将于 {at} 吊销',
  },
});

const DAY_MS = 86_400_000;

export interface Life {
  readonly from: number;
  readonly to: number;
  /** When it was revoked, or will be. */
  readonly cut?: number | undefined;
}

export interface Axis {
  readonly start: number;
  readonly end: number;
}

/** From the first beginning to the last end, and today in any case. */
export const axisOf = (lives: readonly Life[], now = Date.now()): Axis => ({
  start: Math.min(now, ...lives.map(({ from }) => from)),
  end: Math.max(now, ...lives.map(({ to }) => to)),
});

const day = (at: number): string => new Date(at).toLocaleDateString(dateLocale(), { dateStyle: 'medium' });

export function lifeWords({ from, to, cut }: Life, now = Date.now()): string {
  const dates = t('from', { from: day(from), to: day(to) });
  return cut === undefined ? dates : `${dates}, ${t(cut <= now ? 'revoked' : 'due', { at: day(cut) })}`;
}

export const lifeDays = ({ from, to }: Life): string => t('days', { all: Math.round((to - from) / DAY_MS) });

/** Such as "121 days left of 199". */
export function daysLeft({ from, to }: Life, now = Date.now()): string {
  const days = (ms: number) => Math.floor(ms / DAY_MS);
  if (now > to) return t('ended', { days: days(now - to) });
  if (now < from) return t('ahead', { days: Math.ceil((from - now) / DAY_MS) });
  const all = Math.round((to - from) / DAY_MS);
  // A third of the life is when clients of the trade renew; ten days before the end it gets late.
  return t(to - now < Math.min(10 * DAY_MS, (to - from) / 3) ? 'soon' : 'left', { days: days(to - now), all });
}

/** The bar of one certificate. What is gone is solid, what is to come is outlined, what a revocation took is hatched. */
export function lifeBar(life: Life, { start, end }: Axis, now = Date.now()): View {
  const at = (time: number) => `${Math.min(100, Math.max(0, ((time - start) / (end - start || 1)) * 100))}%`;
  const part = (name: string, from: number, to: number) =>
    to > from && div({ class: name, style: { left: at(from), right: `calc(100% - ${at(to)})` } });
  const useful = Math.min(life.cut ?? life.to, life.to);
  return div(
    { class: 'life', role: 'img', 'aria-label': lifeWords(life, now) },
    part('spent', life.from, Math.min(useful, now)),
    part('ahead', Math.max(life.from, Math.min(useful, now)), useful),
    life.cut !== undefined && part('lost', Math.max(life.from, life.cut), life.to),
    div({ class: 'today', style: { left: at(now) } }),
  );
}

/** The ends of the axis and today, under the bars. */
export function axisLabels({ start, end }: Axis, now = Date.now()): View {
  const place = ((now - start) / (end - start || 1)) * 100;
  return div(
    { class: 'axis', 'aria-hidden': 'true' },
    place > 18 && span(day(start)),
    span({ class: 'now', style: { left: `${Math.min(96, Math.max(4, place))}%` } }, t('today')),
    place < 82 && span({ class: 'end' }, day(end)),
  );
}
