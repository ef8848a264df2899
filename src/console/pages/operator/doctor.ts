// The doctor as a page. A run takes seconds; what it has found so far is shown while it runs.

import { operator } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge, page, shown, type Tone } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { distance, moment } from '../../shell/time.ts';
import { found } from './overview.ts';
import { useEvery } from './parts.ts';
import type { Doctor, Finding } from './wire.ts';

const { button, div, li, p, ul } = tags;

const t = texts({
  en: {
    title: 'Doctor',
    about:
      'The same examination as “reseal doctor”: configuration, files, database, clocks, issuers, callbacks, revocation and resolvers. It changes nothing.',
    running: 'It runs since {ago}; checks done so far: {count}. It ends after a minute at the latest.',
    ended: 'Examined {ago}, in {seconds} s: problems: {problems}, warnings: {warnings}.',
    again: 'Examine again',
    ok: 'fine',
    warning: 'warning',
    problem: 'problem',
    every: 'A new examination begins at most every ten seconds.',
  },
  zh: {
    title: '诊断',
    about: '与 “reseal doctor” 相同的检查：配置、文件、数据库、时钟、颁发机构、回调、吊销和解析器。不做任何更改。',
    running: '始于{ago}，已完成 {count} 项检查，最迟一分钟后结束。',
    ended: '检查于{ago}，用时 {seconds} 秒：故障 {problems} 项，警告 {warnings} 项。',
    again: '重新检查',
    ok: '正常',
    warning: '警告',
    problem: '故障',
    every: '两次检查至少间隔十秒。',
  },
});

const TONES: Readonly<Record<Finding['state'], Tone>> = { ok: 'good', warning: 'waiting', problem: 'bad' };
const ORDER = ['problem', 'warning', 'ok'] as const;
const POLL_MS = 1_500;

export function Page(): View {
  const doctor = useResource((signal) => operator<Doctor>('GET', 'doctor', { signal }), []);
  const isRunning = doctor.data?.ended_at === null;
  useEvery(POLL_MS, () => isRunning && !doctor.isLoading && !doctor.error && doctor.reload());
  return page(
    t('title'),
    p(t('about')),
    shown(doctor, (data) => [
      div(
        { class: 'actions' },
        button({ type: 'button', disabled: isRunning || doctor.isLoading, onClick: doctor.reload }, t('again')),
        p({ role: 'status' }, stateOf(data)),
      ),
      ul(
        { class: 'findings' },
        ORDER.flatMap((state) => data.findings.filter((one) => one.state === state)).map((finding) =>
          li({ key: finding.check + finding.text }, badge(TONES[finding.state], t(finding.state)), found(finding)),
        ),
      ),
      p({ class: 'quiet' }, t('every'), ' ', moment(data.started_at)),
    ]),
  );
}

function stateOf({ started_at: start, ended_at: end, findings }: Doctor): string {
  if (end === null) return t('running', { ago: distance(start), count: findings.length });
  const count = (state: Finding['state']) => findings.filter((one) => one.state === state).length;
  const seconds = Math.max(1, Math.round((Date.parse(end) - Date.parse(start)) / 1000));
  return t('ended', { ago: distance(end), seconds, problems: count('problem'), warnings: count('warning') });
}
