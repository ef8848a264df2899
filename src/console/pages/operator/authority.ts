// The authority: roots and issuers, what they sign for, their expiry, their lists and responders.

import { operator } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge, copyable, empty, fact, page, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { distance, moment, parseTime } from '../../shell/time.ts';
import type { Authority, Issuer } from './wire.ts';

const { article, code, div, dl, h2, h3, p, span, table, tbody, td, th, thead, tr } = tags;

const t = texts({
  en: {
    title: 'Authority',
    none: 'There are no issuers yet: roots are created at the first start, issuing authorities when they are first needed.',
    issuing: 'Issuing authorities',
    roots: 'Roots and authorities above',
    noIssuing:
      'Each issuing authority is made when it is first needed: place an order, or import your own with “reseal ca import”.',
    active: 'active',
    retired: 'retired',
    revoked: 'revoked',
    ends: 'Expires',
    soon: 'less than a year left: what it signs is shortened',
    signs: 'Signs for',
    key: 'Key',
    here: '{type}, here',
    elsewhere: '{type}, elsewhere',
    counts: 'Certificates',
    counted: '{issued} issued, {revoked} revoked',
    responder: 'OCSP responder until',
    noResponder: 'made with the first request',
    fingerprint: 'SHA-256',
    id: 'Id',
    lists: 'Revocation lists',
    noLists: 'No revocation list yet: the first is published when it is asked for, or with the first revocation.',
    shard: 'Part',
    number: 'Number',
    entries: 'Entries',
    published: 'Published',
    next: 'Next at the latest',
    late: 'expired',
  },
  zh: {
    title: '证书颁发机构',
    none: '还没有颁发机构：首次启动时创建根证书，签发机构在首次需要时创建。',
    issuing: '签发机构',
    roots: '根证书及上级机构',
    noIssuing: '签发机构在首次需要时创建：请下订单，或用 “reseal ca import” 导入自己的机构。',
    active: '使用中',
    retired: '已退役',
    revoked: '已吊销',
    ends: '到期',
    soon: '剩余不足一年：其签发的证书有效期将缩短',
    signs: '用途',
    key: '密钥',
    here: '{type}，在本服务',
    elsewhere: '{type}，在别处',
    counts: '证书',
    counted: '已签发 {issued}，已吊销 {revoked}',
    responder: 'OCSP 响应者有效至',
    noResponder: '首次请求时创建',
    fingerprint: 'SHA-256',
    id: 'ID',
    lists: '吊销列表',
    noLists: '还没有吊销列表：首次被请求或首次吊销时发布。',
    shard: '分片',
    number: '编号',
    entries: '条目',
    published: '发布时间',
    next: '最迟下次更新',
    late: '已过期',
  },
});

const YEAR_MS = 365 * 86_400_000;

export function Page(): View {
  const authority = useResource((signal) => operator<Authority>('GET', 'authority', { signal }), []);
  return page(
    t('title'),
    shown(authority, ({ issuers }) => {
      if (issuers.length === 0) return empty(t('none'));
      const issuing = issuers.filter(({ role, has_key: hasKey }) => role === 'issuing' && hasKey);
      return [
        h2(t('issuing')),
        issuing.length === 0 ? empty(t('noIssuing')) : div({ class: 'issuers' }, issuing.map(cardOf)),
        h2(t('roots')),
        div({ class: 'issuers' }, issuers.filter((one) => !issuing.includes(one)).map(cardOf)),
      ];
    }),
  );
}

const isPast = (time: string, ms = 0): boolean => parseTime(time).getTime() < Date.now() + ms;

const cardOf = (one: Issuer): View =>
  article(
    { key: one.id, class: 'issuer' },
    h3(one.subject, ' ', badge(one.state === 'active' ? 'good' : 'over', t(one.state))),
    dl(
      fact(t('ends'), [
        moment(one.not_after),
        !isPast(one.not_after, 2 * YEAR_MS) ? '' : ` (${distance(one.not_after)})`,
        one.state === 'active' && isPast(one.not_after, YEAR_MS) && [' ', badge('waiting', t('soon'))],
      ]),
      one.purposes.length > 0 && fact(t('signs'), one.purposes.join(', ')),
      fact(t('key'), t(one.has_key ? 'here' : 'elsewhere', { type: one.key_type })),
      one.role === 'issuing' && fact(t('counts'), t('counted', { issued: one.issued, revoked: one.revoked })),
      one.role === 'issuing' && fact(t('responder'), moment(one.responder_not_after) ?? t('noResponder')),
      fact(t('id'), code(one.id)),
    ),
    p(span({ class: 'quiet' }, t('fingerprint')), ' ', copyable(one.fingerprint, `${t('fingerprint')} ${one.subject}`)),
    one.role === 'issuing' &&
      one.has_key &&
      (one.crls.length === 0 ? p({ class: 'quiet' }, t('noLists')) : listsOf(one)),
  );

const listsOf = ({ crls, subject }: Issuer): View =>
  div(
    { class: 'table' },
    table(
      { 'aria-label': `${t('lists')} ${subject}` },
      thead(
        tr(
          ...(['shard', 'number', 'entries', 'published', 'next'] as const).map((key) =>
            th({ key, scope: 'col' }, t(key)),
          ),
        ),
      ),
      tbody(
        crls.map(({ shard, number, entries, this_update: published, next_update: next }) =>
          tr(
            { key: shard },
            td(shard),
            td(number),
            td(entries),
            td(moment(published)),
            td(moment(next), isPast(next) && [' ', badge('bad', t('late'))]),
          ),
        ),
      ),
    ),
  );
