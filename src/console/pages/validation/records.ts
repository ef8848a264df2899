// What a waiting order waits for: records to copy, the live result of a check from every perspective, and another method.
import { h } from 'preact';
import { useState } from 'preact/hooks';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { actButton, badge, copyable, empty, listing, problem } from '../../shell/parts.ts';
import { useAction } from '../../shell/resource.ts';
import { distance, moment } from '../../shell/time.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { CheckResults } from './check-results.ts';
import { resultBadge } from './check-words.ts';
import { nsupdateLines, zoneLines } from './dns-lines.ts';
import { MethodForm } from './method-form.ts';

const { code, details, div, dd, dl, dt, h2, h3, p, section, span, summary } = tags;

const t = texts({
  en: {
    title: 'What it waits for',
    publish: 'Publish the records below. The service looks by itself, and issues as soon as it sees all of them.',
    next: 'Next look {when}',
    until: 'It waits until',
    check: 'Check now and issue',
    look: 'Only look',
    looking: 'Asking every resolver…',
    type: 'Type',
    host: 'Host',
    value: 'Value',
    address: 'Address',
    content: 'Content, exactly',
    proven: 'Proven',
    waiting: 'Waiting',
    nothing: 'Nothing to publish for this name.',
    nsupdate: 'All of them for nsupdate',
    zone: 'All of them for a zone file',
    asText: 'As commands and zone lines',
    seen: 'Last look',
    cached: 'The resolver may repeat this answer until',
    other: 'Prove the names in another way',
    cancel: 'Cancel…',
    cancelSure: 'Really cancel? Nothing is issued then.',
    yes: 'Yes, cancel',
    all: 'All names are proven. The certificate is about to be issued.',
  },
  zh: {
    title: '等待事项',
    publish: '请发布以下记录。服务会自动检查，全部可见后立即签发。',
    next: '下次检查：{when}',
    until: '等待截止',
    check: '立即检查并签发',
    look: '仅查看',
    looking: '正在查询所有解析器…',
    type: '类型',
    host: '主机记录',
    value: '记录值',
    address: '地址',
    content: '内容（须完全一致）',
    proven: '已验证',
    waiting: '等待中',
    nothing: '该名称无需发布记录。',
    nsupdate: '全部记录（nsupdate）',
    zone: '全部记录（区域文件）',
    asText: '命令与区域文件格式',
    seen: '上次检查',
    cached: '解析器可能重复此应答，直至',
    other: '更换验证方式',
    cancel: '取消…',
    cancelSure: '确定取消？取消后不会签发。',
    yes: '确定取消',
    all: '所有名称均已验证，即将签发。',
  },
});

type Order = Schema<'Order'>;
type DcvRecord = Schema<'DcvRecord'>;

export function Records({ order, onChange }: { order: Order; onChange: (order?: Order) => void }): View {
  const [checks, setChecks] = useState<Data<'DcvCheckListResponse'> | undefined>();
  const look = useAction(async () => setChecks(await account('GET', `orders/${order.id}/dcv-check`)));
  const complete = useAction(async () => {
    setChecks(undefined);
    onChange(await account<Order>('PUT', `orders/${order.id}/dcv-completed`));
  });
  const open = order.dcv_val.filter(({ verified }) => !verified);
  const txt = open.filter(({ dcv_method, auth_val }) => dcv_method !== 'file' && auth_val !== '');
  const lines = txt.map(({ auth_path, auth_val }) => ({ host: auth_path, value: auth_val }));
  return section(
    { 'aria-label': t('title'), class: 'waits' },
    h2(t('title')),
    p(open.length === 0 ? t('all') : t('publish')),
    p(
      { class: 'quiet' },
      order.dcv_next_check_at && [t('next', { when: distance(order.dcv_next_check_at) }), ' · '],
      order.dcv_expires_at && [t('until'), ' ', moment(order.dcv_expires_at)],
    ),
    order.dcv_val.map((record) => recordView(record)),
    lines.length > 0 &&
      details(summary(t('asText')), listing(t('nsupdate'), nsupdateLines(lines)), listing(t('zone'), zoneLines(lines))),
    div(
      { class: 'actions' },
      actButton(complete, t('check'), { onClick: () => complete.run(), isMain: true }),
      actButton(look, t('look'), { onClick: () => look.run() }),
    ),
    look.isRunning && p({ class: 'quiet', role: 'status' }, t('looking')),
    complete.error && problem(complete.error),
    look.error && problem(look.error),
    checks && h(CheckResults, checks),
    details(summary(t('other')), h(MethodForm, { order, onChange })),
    details(summary(t('cancel')), h(Cancel, { order, onChange })),
  );
}

function recordView(record: DcvRecord): View {
  const { domain, domain_unicode, dcv_method, auth_path, auth_val, verified, problem: found } = record;
  const isFile = dcv_method === 'file';
  return div(
    { class: verified ? 'record proven' : 'record', key: domain },
    h3(
      code(domain),
      domain_unicode !== domain && [' ', span({ class: 'quiet' }, domain_unicode)],
      ' ',
      badge(verified ? 'good' : 'waiting', t(verified ? 'proven' : 'waiting')),
    ),
    !verified && auth_val === '' && empty(t('nothing')),
    !verified &&
      auth_val !== '' &&
      dl(
        { class: 'copy' },
        !isFile && [dt(t('type')), dd(code('TXT'))],
        dt(t(isFile ? 'address' : 'host')),
        dd(isFile ? copyable(fileAddress(domain, auth_path), t('address')) : copyable(auth_path, t('host'))),
        dt(t(isFile ? 'content' : 'value')),
        dd(copyable(auth_val, t(isFile ? 'content' : 'value'))),
      ),
    !verified &&
      found &&
      p(
        { class: 'seen' },
        resultBadge(found.result),
        ' ',
        found.message,
        found.checked_at && span({ class: 'quiet' }, ' ', t('seen'), ' ', moment(found.checked_at), '. '),
        found.cached_until && span({ class: 'quiet' }, t('cached'), ' ', moment(found.cached_until), '.'),
      ),
  );
}

const fileAddress = (domain: string, path: string): string =>
  `http://${domain.includes(':') ? `[${domain}]` : domain}${path}`;

function Cancel({ order, onChange }: { order: Order; onChange: (order: Order) => void }): View {
  const cancel = useAction(async () => onChange(await account<Order>('PUT', `orders/${order.id}/cancel`)));
  return div(
    p(t('cancelSure')),
    actButton(cancel, t('yes'), { onClick: () => cancel.run(), isDanger: true }),
    cancel.error && problem(cancel.error),
  );
}
