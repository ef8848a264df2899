// Responses of the signing API: service info and credentials (CSC API 2.0.0.2, 11.1 and 11.4).
import { X509Certificate } from 'node:crypto';
import { MAX_SIGNATURES } from '../../domain/cloud-keys/cloud-signing.ts';
import type { Locale } from '../../kernel/locale.ts';
import type { HeldKey } from '../../usecases/cloud-keys/operate-cloud-keys.ts';
import { ALL_ALGORITHMS, algorithmsOf, type Body, booleanIn, CURVES, choiceIn, PIN } from './csc-wire.ts';

const METHODS = [
  'info',
  'credentials/list',
  'credentials/info',
  'credentials/authorize',
  'signatures/signHash',
] as const;

const LANGUAGES = { en: 'en-US', 'zh-CN': 'zh-CN' } as const;

export const infoView = (locale: Locale) => ({
  specs: '2.0.0.2',
  name: 'Reseal',
  // Required members, although the service has neither a logo nor a country.
  logo: '',
  region: 'ZZ',
  lang: LANGUAGES[locale],
  description: locale === 'en' ? 'Signs with keys that Reseal holds.' : '使用 Reseal 托管的密钥签名。',
  authType: ['basic'],
  methods: METHODS,
  signAlgorithms: { algos: ALL_ALGORITHMS },
  // Signs hashes only, no documents.
  signature_formats: { formats: [], envelope_properties: [] },
  conformance_levels: [],
});

/** Which parts of a credential the caller requested. */
interface Detail {
  readonly certificates: 'single' | 'none' | 'chain';
  readonly certInfo: boolean;
  readonly authInfo: boolean;
}

export const detailIn = (body: Body): Detail => ({
  certificates: choiceIn(body, 'certificates', ['single', 'none', 'chain']),
  certInfo: booleanIn(body, 'certInfo'),
  authInfo: booleanIn(body, 'authInfo'),
});

export type ChainOf = (issuerId: string) => readonly Uint8Array[];

export function credentialView(held: HeldKey, detail: Detail, chainOf: ChainOf, locale: Locale) {
  const { key, isLocked } = held;
  const { type, bits } = key.publicKey;
  const curve = CURVES[type];
  const cert = certificateView(held, detail, chainOf);
  return {
    key: {
      status: isLocked ? 'disabled' : 'enabled',
      algo: algorithmsOf(type),
      len: bits,
      ...(curve && { curve }),
    },
    ...(cert && { cert }),
    auth: { mode: 'explicit', ...(detail.authInfo && { expression: PIN, objects: [pinObject(key.hint, locale)] }) },
    // Sole control assurance level 2: an authorization covers specific hashes.
    SCAL: '2',
    multisign: MAX_SIGNATURES,
    lang: LANGUAGES[locale],
  };
}

const pinObject = (hint: string | null, locale: Locale) => ({
  type: 'Password',
  id: PIN,
  label: locale === 'en' ? 'Access code' : '访问控制码',
  ...(hint !== null && { description: hint }),
});

/** Undefined until a certificate was issued on the key. */
function certificateView(
  { certificate, certificateStatus }: HeldKey,
  { certificates, certInfo }: Detail,
  chainOf: ChainOf,
) {
  if (!certificate) return undefined;
  const { der, preparation } = certificate;
  const { issuerId, serial, notBefore, notAfter } = preparation;
  const shown = { none: [], single: [der], chain: [der, ...chainOf(issuerId)] }[certificates];
  return {
    status: certificateStatus,
    ...(certificates !== 'none' && { certificates: shown.map((one) => Buffer.from(one).toString('base64')) }),
    ...(certInfo && {
      ...namesIn(der),
      serialNumber: serial.toUpperCase(),
      validFrom: generalizedTime(notBefore),
      validTo: generalizedTime(notAfter),
    }),
  };
}

/** RFC 4514 string: Node escapes the RDNs accordingly, but puts each on its own line and in reverse order. */
function namesIn(der: Uint8Array) {
  const { issuer, subject } = new X509Certificate(der);
  const printed = (name: string | undefined) => (name ?? '').split('\n').reverse().join(',');
  return { issuerDN: printed(issuer), subjectDN: printed(subject) };
}

const generalizedTime = (ms: number): string =>
  new Date(ms)
    .toISOString()
    .replace(/\.\d+Z$|[-:T]/g, '')
    .concat('Z');
