// The account: who is signed in, quotas, sessions of this key, and what was done lately.
import { account, call } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import type { PageProps } from '../../shell/pages.ts';
import { badge, copyable, fact, page, problem, shown } from '../../shell/parts.ts';
import { useAction, useResource } from '../../shell/resource.ts';
import { readSession } from '../../shell/session.ts';
import { moment } from '../../shell/time.ts';
import type { Data, Schema } from '../../shell/wire.ts';

const { button, code, div, dl, h2, p, progress, section, span, table, tbody, td, th, thead, tr } = tags;

const t = texts({
  en: {
    title: 'Account',
    id: 'Account id',
    kind: 'Kind',
    standard: 'standard',
    managed_pki: 'managed PKI',
    locale: 'Language of messages',
    key: 'Signed in with key',
    keyKind: 'Kind of key',
    keyEnds: 'Key ends',
    created: 'Since',
    quotas: 'Quotas',
    open_orders: 'Orders that are not finished',
    stored_bytes: 'Stored data',
    used: '{used} of {limit}',
    quotaHint: 'The operator can raise them.',
    sessions: 'Sessions of this key',
    sessionsLead: 'Browsers that are signed in. Ending a session signs that browser out at once.',
    from: 'From',
    begun: 'Begun',
    seen: 'Last seen',
    ends: 'Ends',
    this: 'this browser',
    end: 'End',
  },
  zh: {
    title: '账户',
    id: '账户 ID',
    kind: '类型',
    standard: '标准',
    managed_pki: '托管 PKI',
    locale: '消息语言',
    key: '登录密钥',
    keyKind: '密钥类型',
    keyEnds: '密钥到期',
    created: '创建时间',
    quotas: '配额',
    open_orders: '未完成的订单',
    stored_bytes: '存储数据',
    used: '{used} / {limit}',
    quotaHint: '可联系运维人员提高。',
    sessions: '该密钥的会话',
    sessionsLead: '已登录的浏览器。结束会话会立即使其退出。',
    from: '来源',
    begun: '开始',
    seen: '最近活动',
    ends: '结束',
    this: '当前浏览器',
    end: '结束会话',
  },
});

interface ListedSession {
  readonly id: string;
  readonly is_current: boolean;
  readonly created_at: string;
  readonly last_seen_at: string;
  readonly expires_at: string;
  readonly network: string;
}

export function Page(_: PageProps): View {
  const read = useResource((signal) => account<Data<'AccountResponse'>>('GET', 'account', { signal }), []);
  const sessions = useResource((signal) => call<{ sessions: ListedSession[] }>('GET', 'sessions', { signal }), []);
  const end = useAction(async ({ id, is_current }: ListedSession) => {
    await call('DELETE', `sessions/${id}`);
    if (is_current) await readSession();
    else sessions.reload();
  });
  return page(
    read.data?.account.name ?? t('title'),
    shown(read, accountView),
    section(
      { 'aria-label': t('sessions') },
      h2(t('sessions')),
      p({ class: 'quiet' }, t('sessionsLead')),
      end.error && problem(end.error),
      shown(sessions, ({ sessions: found }) => sessionTable(found, (one) => end.run(one))),
    ),
  );
}

const accountView = ({ account: own, credential, quotas }: Data<'AccountResponse'>): View =>
  div(
    dl(
      fact(t('id'), copyable(own.id, t('id'))),
      fact(t('kind'), t(own.kind)),
      fact(t('locale'), own.locale),
      fact(t('created'), moment(own.created_at)),
      fact(t('key'), copyable(credential.key_id, t('key'))),
      fact(t('keyKind'), code(credential.kind)),
      fact(t('keyEnds'), moment(credential.expires_at)),
    ),
    section(
      { 'aria-label': t('quotas') },
      h2(t('quotas')),
      dl(
        quotaView(t('open_orders'), quotas.open_orders, (value) => value.toLocaleString()),
        quotaView(t('stored_bytes'), quotas.stored_bytes, bytes),
      ),
      p({ class: 'quiet' }, t('quotaHint')),
    ),
  );

const quotaView = (name: string, { used, limit }: Schema<'Quota'>, written: (value: number) => string) =>
  fact(name, [
    progress({ value: used, max: Math.max(limit, 1), 'aria-label': name }),
    ' ',
    t('used', { used: written(used), limit: written(limit) }),
  ]);

const MIB = 1024 * 1024;
const bytes = (value: number): string => `${(value / MIB).toLocaleString(undefined, { maximumFractionDigits: 1 })} MiB`;

const sessionTable = (sessions: readonly ListedSession[], end: (one: ListedSession) => void): View =>
  div(
    { class: 'table' },
    table(
      { class: 'cards' },
      thead(tr(th(t('from')), th(t('begun')), th(t('seen')), th(t('ends')), th(span({ class: 'heard' }, t('end'))))),
      tbody(
        sessions.map((one) =>
          tr(
            { key: one.id },
            td(code(one.network), one.is_current && [' ', badge('good', t('this'))]),
            td({ 'data-name': t('begun') }, moment(one.created_at)),
            td({ 'data-name': t('seen') }, moment(one.last_seen_at)),
            td({ 'data-name': t('ends') }, moment(one.expires_at)),
            td(
              button(
                {
                  type: 'button',
                  class: 'small',
                  'aria-label': `${t('end')}: ${one.network}`,
                  onClick: () => end(one),
                },
                t('end'),
              ),
            ),
          ),
        ),
      ),
    ),
  );
