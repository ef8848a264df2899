// The time that is left until a moment, counted down in the page.
import { useEffect, useState } from 'preact/hooks';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { moment, parseTime } from '../../shell/time.ts';

const { span } = tags;

const t = texts({
  en: { days: '{d} d {h} h {m} min', hours: '{h} h {m} min {s} s', now: 'now' },
  zh: { days: '{d} 天 {h} 小时 {m} 分', hours: '{h} 小时 {m} 分 {s} 秒', now: '现在' },
});

export function Clock({ until }: { until: string }): View {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  // A timer would speak every second to a screen reader: it hears the date only.
  return span(
    { class: 'clock' },
    span({ class: 'left', 'aria-hidden': 'true' }, left(parseTime(until).getTime() - now)),
    ' ',
    span({ class: 'quiet' }, moment(until)),
  );
}

function left(ms: number): string {
  if (ms <= 0) return t('now');
  const seconds = Math.floor(ms / 1000);
  const [d, h, m, s] = [seconds / 86_400, (seconds / 3600) % 24, (seconds / 60) % 60, seconds % 60].map(Math.floor);
  return t(d ? 'days' : 'hours', { d: d ?? 0, h: h ?? 0, m: m ?? 0, s: s ?? 0 });
}
