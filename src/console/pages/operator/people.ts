// Operators of the console, and all live sessions, which can be ended.
import { h } from 'preact';
import { operator } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge, empty, listing, page, shown } from '../../shell/parts.ts';
import { useAction, useResource } from '../../shell/resource.ts';
import { moment } from '../../shell/time.ts';
import { confirmed, mayAct, tableOf, viewOnly } from './parts.ts';
import type { LiveSession, Operators } from './wire.ts';

const { code, h2, p } = tags;

const t = texts({
  en: {
    title: 'Operators and sessions',
    operators: 'Operators',
    sessions: 'Live sessions',
    name: 'Name',
    role: 'Role',
    state: 'State',
    created: 'Created',
    active: 'active',
    disabled: 'disabled',
    view: 'view: may look',
    act: 'act: may change',
    how: 'Operators are created and disabled at the command line, where the first of them signs in from:',
    noSessions: 'There is no live session.',
    owner: 'Who',
    operator: 'operator',
    account: 'key',
    began: 'Signed in',
    seen: 'Last seen',
    expires: 'Ends',
    network: 'From',
    end: 'End…',
    endAsk: 'Its browser is signed out at the next request.',
    endDo: 'End the session',
    of: 'session of {owner}',
  },
  zh: {
    title: '运维人员与会话',
    operators: '运维人员',
    sessions: '有效会话',
    name: '名称',
    role: '权限',
    state: '状态',
    created: '创建时间',
    active: '正常',
    disabled: '已停用',
    view: '查看',
    act: '操作',
    how: '运维人员通过命令行创建和停用，首位运维人员也由此登录：',
    noSessions: '当前没有人登录。',
    owner: '登录者',
    operator: '运维人员',
    account: '密钥',
    began: '登录时间',
    seen: '上次活动',
    expires: '到期',
    network: '来源',
    end: '结束…',
    endAsk: '其浏览器在下次请求时即退出登录。',
    endDo: '结束会话',
    of: '{owner} 的会话',
  },
});

const COMMANDS =
  'reseal operator create alice --role act\nreseal operator disable alice\nreseal console login --operator alice';

export function Page(): View {
  const people = useResource((signal) => operator<Operators>('GET', 'operators', { signal }), []);
  return page(
    t('title'),
    viewOnly(),
    shown(people, ({ operators, sessions }) => [
      h2(t('sessions')),
      sessions.length === 0 ? empty(t('noSessions')) : sessionsOf(sessions, people.reload),
      h2(t('operators')),
      operatorsOf(operators),
      p(t('how')),
      listing(t('operators'), COMMANDS),
    ]),
  );
}

const operatorsOf = (operators: Operators['operators']): View =>
  tableOf(operators, ({ name }) => name, [
    [t('name'), ({ name }) => name],
    [t('role'), ({ role }) => t(role)],
    [t('state'), ({ disabled_at: at }) => (at === null ? badge('good', t('active')) : badge('over', t('disabled')))],
    [t('created'), ({ created_at: at }) => moment(at)],
  ]);

const sessionsOf = (sessions: readonly LiveSession[], onChange: () => void): View =>
  tableOf(sessions, ({ id }) => id, [
    [t('owner'), ({ kind, owner }) => [t(kind), ' ', code(owner)]],
    [t('began'), ({ created_at: at }) => moment(at)],
    [t('seen'), ({ last_seen_at: at }) => moment(at)],
    [t('expires'), ({ expires_at: at }) => moment(at)],
    [t('network'), ({ network }) => network],
    ...(mayAct() ? [['', (one: LiveSession) => h(EndSession, { one, onChange })] as const] : []),
  ]);

function EndSession({ one, onChange }: { one: LiveSession; onChange: () => void }): View {
  const action = useAction(async () => {
    await operator('POST', `sessions/${encodeURIComponent(one.id)}/end`, { body: {} });
    onChange();
  });
  return confirmed({
    ...{ words: t('end'), question: t('endAsk'), confirm: t('endDo'), action, isSmall: true },
    about: t('of', { owner: one.owner }),
  });
}
