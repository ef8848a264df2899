// A certificate: names, key, dates as a bar, chain, fingerprints, and the files to download.

import { type CertificateFacts, readCertificate } from '../../pki/certificate.ts';
import { decodePem } from '../../pki/pem.ts';
import { certificateBundle } from '../../pki/pkcs7.ts';
import { download, fileName } from '../../shell/download.ts';
import { tags, type View } from '../../shell/html.ts';
import { texts } from '../../shell/language.ts';
import { copyable, fact, link, listing } from '../../shell/parts.ts';
import { useResource } from '../../shell/resource.ts';
import { href } from '../../shell/router.ts';
import { moment } from '../../shell/time.ts';
import type { Schema } from '../../shell/wire.ts';
import { calledBy, certificateBadge } from './states.ts';
import { axisLabels, axisOf, daysLeft, lifeBar } from './validity.ts';

const { button, code, details, div, dl, li, ol, p, span, strong, summary, ul } = tags;

const t = texts({
  en: {
    names: 'Names',
    key: 'Key',
    serial: 'Serial number',
    begins: 'Begins',
    ends: 'Ends',
    version: 'Version',
    organization: 'Organization',
    cloudKey: 'Cloud-held key',
    chain: 'Chain',
    own: 'this certificate',
    issuer: 'issuer',
    root: 'root: verifiers have it',
    fingerprints: 'Fingerprints',
    downloads: 'Download',
    pem: 'Certificate (PEM)',
    full: 'With chain (PEM)',
    chainOnly: 'Chain only (PEM)',
    pkcs7: 'With chain (PKCS#7)',
    encryption: 'Encryption certificate (PEM)',
    show: 'Show the PEM',
    unreadable: 'The browser cannot read this certificate; the files are complete all the same.',
  },
  zh: {
    names: '名称',
    key: '密钥',
    serial: '序列号',
    begins: '生效时间',
    ends: '到期时间',
    version: '版本',
    organization: '组织',
    cloudKey: '云端密钥',
    chain: '证书链',
    own: '本证书',
    issuer: '签发者',
    root: '根证书：由验证方持有',
    fingerprints: '指纹',
    downloads: '下载',
    pem: '证书（PEM）',
    full: '含证书链（PEM）',
    chainOnly: '仅证书链（PEM）',
    pkcs7: '含证书链（PKCS#7）',
    encryption: '加密证书（PEM）',
    show: '显示 PEM',
    unreadable: '浏览器无法读取该证书；下载的文件仍然完整。',
  },
});

type Certificate = Schema<'Certificate'>;

export function CertificateCard({ certificate }: { certificate: Certificate }): View {
  const facts = useResource(() => chainFacts(certificate), [certificate.id, certificate.pem]);
  const { not_before, not_after, revocation } = certificate;
  const cut = revocation ? Date.parse(revocation.revoked_at ?? revocation.due_at) : undefined;
  const life = { from: Date.parse(not_before ?? ''), to: Date.parse(not_after ?? ''), cut };
  const isIssued = certificate.pem !== null;
  return div(
    { class: 'certificate' },
    p(
      { class: 'state' },
      certificateBadge(certificate.status, not_after),
      isIssued && certificate.status !== 'revoked' && span({ class: 'quiet' }, ' · ', daysLeft(life)),
    ),
    isIssued && [lifeBar(life, axisOf([life])), axisLabels(axisOf([life]))],
    dl(
      fact(t('begins'), moment(not_before)),
      fact(t('ends'), moment(not_after)),
      fact(t('key'), facts.data?.[0]?.key),
      fact(t('version'), certificate.version),
      fact(t('organization'), certificate.organization),
      fact(t('cloudKey'), certificate.cloud_key_id && link(href(['cloud-keys']), certificate.cloud_key_id)),
    ),
    namesOf(certificate),
    certificate.serial_number !== null &&
      dl({ class: 'wide' }, fact(t('serial'), copyable(certificate.serial_number, t('serial')))),
    facts.data && chainView(facts.data),
    facts.error && p({ class: 'quiet' }, t('unreadable')),
    isIssued && downloads(certificate),
  );
}

const chainFacts = (certificate: Certificate): Promise<CertificateFacts[]> =>
  Promise.all(decodePem(wholeChain(certificate) + certificate.root_pem, 'CERTIFICATE').map(readCertificate));

const wholeChain = ({ pem, ica_pem }: Certificate): string => (pem ?? '') + ica_pem;

/** The A-labels beside the letters: names that look alike differ there. */
function namesOf({ dns_names, dns_names_unicode }: Certificate): View | null {
  if (dns_names.length === 0) return null;
  return dl(
    { class: 'wide' },
    fact(
      t('names'),
      ul(
        { class: 'names' },
        dns_names.map((name, index) =>
          li(
            { key: name },
            code(name),
            dns_names_unicode[index] !== name && [' ', span({ class: 'quiet' }, dns_names_unicode[index])],
          ),
        ),
      ),
    ),
  );
}

const place = (index: number, count: number): string =>
  index === 0 ? t('own') : index === count - 1 ? t('root') : t('issuer');

const chainView = (chain: readonly CertificateFacts[]): View =>
  details(
    summary(t('chain'), ' · ', t('fingerprints')),
    ol(
      { class: 'chain' },
      chain.map((one, index) =>
        li(
          { key: one.sha256 || index },
          p(strong(one.subject || '–'), ' ', span({ class: 'quiet' }, place(index, chain.length), ' · ', one.key)),
          one.sha256 && p({ class: 'print' }, span({ class: 'quiet' }, 'SHA-256 '), copyable(one.sha256, 'SHA-256')),
          one.sha1 && p({ class: 'print' }, span({ class: 'quiet' }, 'SHA-1 '), copyable(one.sha1, 'SHA-1')),
        ),
      ),
    ),
  );

function downloads(certificate: Certificate): View {
  const { pem, ica_pem, encryption_pem } = certificate;
  const name = calledBy(certificate);
  const save = (words: string, extension: string, content: () => string | Uint8Array<ArrayBuffer>) =>
    button({ type: 'button', class: 'small', onClick: () => download(fileName(name, extension), content()) }, words);
  const bundle = () => certificateBundle(decodePem(wholeChain(certificate), 'CERTIFICATE'));
  return div(
    { class: 'downloads' },
    p({ class: 'quiet' }, t('downloads')),
    div(
      { class: 'buttons' },
      save(t('pem'), 'pem', () => pem ?? ''),
      save(t('full'), 'fullchain.pem', () => wholeChain(certificate)),
      ica_pem !== '' && save(t('chainOnly'), 'chain.pem', () => ica_pem),
      save(t('pkcs7'), 'p7b', bundle),
      encryption_pem && save(t('encryption'), 'encryption.pem', () => encryption_pem),
    ),
    details(summary(t('show')), listing('PEM', wholeChain(certificate))),
  );
}
