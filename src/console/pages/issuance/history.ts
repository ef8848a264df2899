// The certificates of an order as one line: each replaces the one before it, revocations cut them short. The latest are read
// in full; older ones are listed.
import { account } from '../../shell/api.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { link, shown } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import type { Data, Schema } from '../../shell/wire.ts';
import { certificateBadge } from './states.ts';
import { axisLabels, axisOf, type Life, lifeBar, lifeWords } from './validity.ts';

const { details, div, h2, li, ol, section, span, summary, ul } = tags;

const t = texts({
  en: {
    title: 'History',
    version: 'Version {number}',
    unissued: 'Not issued',
    older: '{count} older certificates',
    now: 'current',
  },
  zh: { title: '历史', version: '第 {number} 版', unissued: '未签发', older: '更早的 {count} 张证书', now: '当前' },
});

type Certificate = Schema<'Certificate'>;
type Summary = Schema<'CertificateSummary'>;
const IN_FULL = 6;

export function History({
  certificate,
  currentId,
}: {
  certificate: Certificate;
  currentId: string | null;
}): View | null {
  const { history } = certificate;
  const latest = history.slice(-IN_FULL).toReversed();
  const older = history.slice(0, -IN_FULL).toReversed();
  const read = useResource(
    (signal) =>
      Promise.all(
        latest.map(async ({ id }) =>
          id === certificate.id
            ? certificate
            : (await account<Data<'CertificateResponse'>>('GET', `certs/${id}`, { signal })).Certificate,
        ),
      ),
    [history, certificate.revocation],
  );
  // One certificate is no history: its own card shows its life.
  if (history.length < 2) return null;
  return section(
    { 'aria-label': t('title') },
    h2(t('title')),
    shown(read, (found) => line(found, currentId)),
    older.length > 0 &&
      details(
        summary(t('older', { count: older.length })),
        ul(
          older.map((one) =>
            li({ key: one.id }, link(href(['certificates', one.id]), title(one)), ' ', certificateBadge(one.status)),
          ),
        ),
      ),
  );
}

const title = ({ version }: Pick<Summary, 'version'>): string =>
  version === null ? t('unissued') : t('version', { number: version });

const lifeOf = ({ not_before, not_after, revocation, pem }: Certificate): Life | undefined =>
  pem === null || not_before === null || not_after === null
    ? undefined
    : {
        from: Date.parse(not_before),
        to: Date.parse(not_after),
        cut: revocation ? Date.parse(revocation.revoked_at ?? revocation.due_at) : undefined,
      };

function line(certificates: readonly Certificate[], currentId: string | null): View {
  const lives = certificates.map(lifeOf);
  const axis = axisOf(lives.filter((life) => life !== undefined));
  return div(
    ol(
      { class: 'history' },
      certificates.map((one, index) => {
        const life = lives[index];
        return li(
          { key: one.id, class: one.id === currentId ? 'current' : '' },
          div(
            { class: 'what' },
            link(href(['certificates', one.id]), title(one)),
            certificateBadge(one.status, one.not_after),
            one.id === currentId && span({ class: 'quiet' }, t('now')),
          ),
          life && lifeBar(life, axis),
          span({ class: 'quiet' }, life ? lifeWords(life) : (one.canceled?.message ?? '')),
        );
      }),
    ),
    lives.some(Boolean) && axisLabels(axis),
  );
}
