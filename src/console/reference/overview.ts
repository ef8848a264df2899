// What the reader sees first: what the interface is, how to authenticate, all operations and events.
import { tags, type View } from '../shell/html.ts';
import { texts } from '../shell/language.ts';
import { fact, listing, page } from '../shell/parts.ts';
import { session } from '../shell/session.ts';
import { documentUrl, type Reference, shortPath } from './document.ts';
import { hrefOf } from './place.ts';
import { breakable, capitalized, prose } from './prose.ts';
import { variableOf } from './request.ts';

const { a, code, dl, h2, li, p, section, span, ul } = tags;

const t = texts({
  en: {
    title: '{name} API reference',
    server: 'Server',
    version: 'Version',
    document: 'Document',
    authentication: 'Authentication',
    keys: 'A call carries the headers {headers}. Set them once in your shell, and the commands can be pasted as they are.',
    key: 'Your key',
    console:
      'Pages of this service use a session instead, under /console only: sign in there or in any operation, and send from here.',
    events: 'Events',
  },
  zh: {
    title: '{name} API 参考',
    server: '服务器',
    version: '版本',
    document: '文档',
    authentication: '身份验证',
    keys: '每次调用都携带请求头 {headers}。在终端中设置一次，之后的命令可直接粘贴执行。',
    key: '您的密钥',
    console: '本服务的页面改用会话，且仅限 /console：在控制台或任一接口处登录后，即可在此发送请求。',
    events: '事件',
  },
});

export function Overview({ reference }: { reference: Reference }): View {
  const { document, groups, events } = reference;
  const { info, servers, security, components } = document;
  const headers = Object.keys(security[0] ?? {}).flatMap((name) => components.securitySchemes[name]?.name ?? []);
  const keyId = session.value?.key_id;
  const exports = headers.map((name) => `export ${variableOf(name)}='${(name.endsWith('ID') && keyId) || '…'}'`);
  return page(
    t('title', { name: info.title }),
    ...prose(info.description),
    dl(
      fact(t('server'), code(...breakable(servers[0]?.url ?? ''))),
      fact(t('version'), info.version),
      fact(t('document'), a({ href: documentUrl() }, 'openapi.json')),
    ),
    section(
      { id: 'authentication' },
      h2(t('authentication')),
      p(t('keys', { headers: headers.join(', ') })),
      listing(t('key'), exports.join('\n')),
      p(t('console')),
    ),
    groups.map(({ tag, about, members }) =>
      section(
        { id: `tag-${tag.replaceAll(' ', '-')}`, key: tag },
        h2(capitalized(tag)),
        ...prose(about),
        ul(
          { class: 'operations' },
          members.map(({ id, method, path, summary }) =>
            li({ key: id }, a({ href: hrefOf(id) }, summary), ' ', span({ class: 'quiet' }, route(method, path))),
          ),
        ),
      ),
    ),
    section(
      { id: 'events' },
      h2(t('events')),
      ...prose(document.tags.find(({ name }) => name === 'events')?.description),
      ul(
        { class: 'operations' },
        events.map(({ id, name, post }) =>
          li({ key: id }, a({ href: hrefOf(id) }, name), ' ', span({ class: 'quiet' }, post.summary)),
        ),
      ),
    ),
  );
}

const route = (method: string, path: string) => [span({ class: 'method' }, method), ' ', ...breakable(shortPath(path))];
