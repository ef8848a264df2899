// Revocations of the account: those to come with their clocks, then what was revoked.
import { h } from 'preact';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { useChanges } from '../../shell/live.ts';
import type { PageProps } from '../../shell/pages.ts';
import { badge, empty, link, page, pager, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { calledBy } from '../issuance/states.ts';
import { type Scheduled, ScheduledRevocations } from './scheduled.ts';
import { reasonWord } from './words.ts';

const { code, div, h2, p, table, tbody, td, th, thead, tr } = tags;

const t = texts({
  en: {
    title: 'Revocations',
    none: 'No revocation is scheduled. A reissue schedules one if it removes a name, or if its product revokes what is replaced.',
    more: 'Only the next hundred are shown.',
    done: 'Revoked certificates',
    noneDone: 'No certificate of this account was revoked. Open a certificate to revoke it.',
    name: 'Name',
    reason: 'Published reason',
    at: 'Revoked',
    serial: 'Serial number',
  },
  zh: {
    title: '吊销',
    none: '没有计划中的吊销。重签删除名称，或产品规定吊销旧证书时，会产生计划。',
    more: '仅显示最近的一百项。',
    done: '已吊销的证书',
    noneDone: '该账户没有已吊销的证书。打开证书页面可进行吊销。',
    name: '名称',
    reason: '公布的理由',
    at: '吊销时间',
    serial: '序列号',
  },
});

const LIMIT = 25;

export function Page({ query }: PageProps): View {
  const after = query.get('after') ?? undefined;
  const scheduled = useResource(
    (signal) => account<{ revocations: Scheduled[]; has_more: boolean }>('GET', 'revocations', { signal }),
    [],
  );
  const revoked = useResource(
    (signal) =>
      account<Data<'CertificateListResponse'>>('GET', 'certs', {
        query: { status: 'revoked', after, limit: LIMIT },
        signal,
      }),
    [after],
  );
  const reload = () => {
    scheduled.reload();
    revoked.reload();
  };
  useChanges(reload);
  return page(
    t('title'),
    shown(scheduled, ({ revocations, has_more }) => [
      revocations.length === 0 ? p({ class: 'quiet' }, badge('good', t('none'))) : null,
      revocations.length > 0 && h(ScheduledRevocations, { revocations, onChange: reload }),
      has_more && p({ class: 'quiet' }, t('more')),
    ]),
    h2(t('done')),
    shown(revoked, ({ certificates, next_after }) => [
      certificates.length === 0 && !next_after && empty(t('noneDone')),
      certificates.length > 0 && revokedTable(certificates),
      pager(
        next_after ? href(['revocations'], { after: next_after }) : undefined,
        after ? href(['revocations']) : undefined,
      ),
    ]),
  );
}

const revokedTable = (certificates: readonly Schema<'CertificateEntry'>[]): View =>
  div(
    { class: 'table' },
    table(
      { class: 'cards' },
      thead(tr(th(t('name')), th(t('reason')), th(t('at')), th(t('serial')))),
      tbody(
        certificates.map((one) =>
          tr(
            { key: one.id },
            td({ class: 'name' }, link(href(['certificates', one.id]), calledBy(one))),
            td(reasonOf(one.revocation_reason)),
            td({ 'data-name': t('at') }, moment(one.revoked_at)),
            td({ class: 'serial' }, code(one.serial_number)),
          ),
        ),
      ),
    ),
  );

/** The list has it as text, which a later version may extend. */
const reasonOf = (reason: string | null): string =>
  reason === null ? '' : (reasonWord(reason as Schema<'RevocationReason'>) ?? reason);
