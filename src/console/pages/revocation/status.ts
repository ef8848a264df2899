// The status of a revocation: when it was recorded, on which list it is, since when OCSP says so.
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { badge } from '../../shell/parts.ts';
import { moment } from '../../shell/time.ts';
import type { Schema } from '../../shell/wire.ts';
import { causeWord, reasonWord } from './words.ts';

const { li, ol, p, section, h2, span } = tags;

const t = texts({
  en: {
    title: 'Revocation',
    because: 'Because {cause}; published as: {reason}.',
    recorded: 'Recorded',
    ocsp: 'OCSP says revoked since',
    list: 'On list number {number} since',
    notListed: 'Not on a list yet: the next one that is published has it',
  },
  zh: {
    title: '吊销',
    because: '原因：{cause}；公布的理由：{reason}。',
    recorded: '记录时间',
    ocsp: 'OCSP 应答吊销，自',
    list: '已列入第 {number} 号 CRL，自',
    notListed: '尚未列入 CRL：将列入下一次发布的列表',
  },
});

export function RevocationStatus({ revocation }: { revocation: Schema<'Revocation'> }): View {
  const { reason, cause, revoked_at, ocsp_since, crl_number, crl_published_at } = revocation;
  return section(
    { 'aria-label': t('title') },
    h2(t('title')),
    p(t('because', { cause: causeWord(cause), reason: reasonWord(reason) })),
    ol(
      { class: 'steps' },
      li(badge('good', t('recorded')), ' ', moment(revoked_at)),
      li(badge('good', t('ocsp')), ' ', moment(ocsp_since)),
      li(
        crl_number === null
          ? badge('waiting', t('notListed'))
          : [badge('good', t('list', { number: crl_number })), ' ', span(moment(crl_published_at))],
      ),
    ),
  );
}
