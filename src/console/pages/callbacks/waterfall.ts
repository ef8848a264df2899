// The phases of one call, drawn one after the other to the same scale: where the time went, and where it broke.
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge } from '../../shell/parts.ts';
import type { Schema } from '../../shell/wire.ts';

const { div, li, ol, span } = tags;

type Report = Schema<'CallbackReport'>;
type Stage = Schema<'CallbackStage'>;

const STAGES = ['resolve', 'connect', 'tls', 'request', 'response'] as const satisfies readonly Stage[];

const t = texts({
  en: {
    resolve: 'Resolve the name',
    connect: 'Connect',
    tls: 'TLS',
    request: 'Send',
    response: 'Wait for the answer',
    failed: 'failed here',
    skipped: 'not reached',
    phases: 'Phases of the call',
    ms: '{ms} ms',
  },
  zh: {
    resolve: '解析域名',
    connect: '建立连接',
    tls: 'TLS 握手',
    request: '发送',
    response: '等待响应',
    failed: '在此失败',
    skipped: '未到达',
    phases: '调用各阶段',
    ms: '{ms} 毫秒',
  },
});

/** `hasFailed`: also an answer with another status than 200 fails, in the last stage. */
export function waterfall({ phases_ms, stage }: Report, hasFailed: boolean): View {
  const total = STAGES.reduce((sum, one) => sum + (phases_ms[one] ?? 0), 0);
  let before = 0;
  return ol(
    { class: 'waterfall', 'aria-label': t('phases') },
    STAGES.map((one) => {
      const ms = phases_ms[one];
      const isBroken = hasFailed && one === stage;
      const start = before;
      before += ms ?? 0;
      return li(
        { key: one, class: isBroken ? 'broken' : ms === undefined ? 'skipped' : '' },
        span({ class: 'stage' }, t(one)),
        div(
          { class: 'track' },
          ms !== undefined &&
            div({
              class: 'bar',
              style: { left: `${(start / (total || 1)) * 100}%`, width: `${((ms || 0) / (total || 1)) * 100}%` },
            }),
        ),
        span(
          { class: 'ms' },
          ms !== undefined && t('ms', { ms }),
          isBroken && [' ', badge('bad', t('failed'))],
          ms === undefined && !isBroken && span({ class: 'quiet' }, t('skipped')),
        ),
      );
    }),
  );
}
