// One certificate: its card, its place in the history of its order, its revocation.
import { h } from 'preact';
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { useChanges } from '../../shell/live.ts';
import type { PageProps } from '../../shell/pages.ts';
import { copyable, fact, link, page, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { Revoke } from '../revocation/revoke.ts';
import { ScheduledRevocations } from '../revocation/scheduled.ts';
import { RevocationStatus } from '../revocation/status.ts';
import { CertificateCard } from './certificate-card.ts';
import { History } from './history.ts';
import { calledBy } from './states.ts';

const { div, dl, p } = tags;

const t = texts({
  en: {
    title: 'Certificate',
    order: 'Order',
    id: 'Certificate id',
    replaces: 'Replaces',
    replacedBy: 'Replaced by',
    canceled: 'It was never issued: {why}',
  },
  zh: {
    title: '证书',
    order: '订单',
    id: '证书 ID',
    replaces: '取代',
    replacedBy: '被取代',
    canceled: '未签发：{why}',
  },
});

type Certificate = Schema<'Certificate'>;

export function Page({ parameters: [id = ''] }: PageProps): View {
  const read = useResource(
    async (signal) =>
      (await account<Data<'CertificateResponse'>>('GET', `certs/${encodeURIComponent(id)}`, { signal })).Certificate,
    [id],
  );
  useChanges(read.reload, (notice) => notice.order_id === undefined || notice.order_id === read.data?.order_id);
  return page(
    read.data ? calledBy(read.data) : t('title'),
    shown(read, (certificate) => certificateView(certificate, read.reload)),
  );
}

function certificateView(certificate: Certificate, reload: () => void): View {
  const { id, order_id, common_name, revocation, replaces, replaced_by } = certificate;
  const isRevoked = revocation?.revoked_at != null;
  const other = (of: string | null) => of !== null && link(href(['certificates', of]), of);
  return div(
    { class: 'columns' },
    div(
      h(CertificateCard, { certificate }),
      certificate.canceled && p({ class: 'note' }, t('canceled', { why: certificate.canceled.message })),
      h(History, { certificate, currentId: replaced_by === null && certificate.pem !== null ? id : null }),
    ),
    div(
      { class: 'aside' },
      dl(
        fact(t('order'), link(href(['orders', order_id]), order_id)),
        fact(t('id'), copyable(id, t('id'))),
        fact(t('replaces'), other(replaces) || null),
        fact(t('replacedBy'), other(replaced_by) || null),
      ),
      revocation && isRevoked && h(RevocationStatus, { revocation }),
      revocation &&
        !isRevoked &&
        h(ScheduledRevocations, {
          revocations: [{ ...revocation, certificate_id: id, order_id, common_name }],
          onChange: reload,
        }),
      certificate.pem !== null && !isRevoked && h(Revoke, { id, onChange: reload }),
    ),
  );
}
