// What the signing interface tells about itself and about a credential: CSC API 2.0.0.2, 11.1 and 11.4.
import { X509Certificate } from 'node:crypto';
import type { CertificateRecord } from '../../domain/certificate/order.ts';
import { MAX_SIGNATURES } from '../../domain/cloud-keys/cloud-signing.ts';
import type { Locale } from '../../kernel/locale.ts';
import type { HeldKey } from '../../usecases/cloud-keys/operate-cloud-keys.ts';
import { ALL_ALGORITHMS, algorithmsOf, type Body, CURVES, choice, flag, PIN } from './csc-wire.ts';

export const METHODS = [
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
  // The service has no picture and no country of its own; both members are required all the same.
  logo: '',
  region: 'ZZ',
  lang: LANGUAGES[locale],
  description: locale === 'en' ? 'Signs with keys that Reseal holds.' : '使用 Reseal 托管的密钥签名。',
  authType: ['basic'],
  methods: METHODS,
  signAlgorithms: { algos: ALL_ALGORITHMS },
  // Documents are not signed here, only hashes.
  signature_formats: { formats: [], envelope_properties: [] },
  conformance_levels: [],
});

/** How much of a credential is asked for. */
export interface Detail {
  readonly certificates: 'single' | 'none' | 'chain';
  readonly certInfo: boolean;
  readonly authInfo: boolean;
}

export const detailIn = (body: Body): Detail => ({
  certificates: choice(body, 'certificates', ['single', 'none', 'chain']),
  certInfo: flag(body, 'certInfo'),
  authInfo: flag(body, 'authInfo'),
});

export type ChainOf = (issuerId: string) => readonly Uint8Array[];

export function credentialView(held: HeldKey, detail: Detail, chainOf: ChainOf, locale: Locale) {
  const { key, isLocked } = held;
  const { type, bits } = key.publicKey;
  const curve = CURVES[type];
  return {
    key: {
      status: isLocked ? 'disabled' : 'enabled',
      algo: algorithmsOf(type),
      len: bits,
      ...(curve && { curve }),
    },
    ...(held.certificate && { cert: certificateView(held, held.certificate, detail, chainOf) }),
    auth: { mode: 'explicit', ...(detail.authInfo && { expression: PIN, objects: [pinObject(key.hint, locale)] }) },
    // Authorizations are for certain hashes.
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

function certificateView(
  { certificateStatus }: HeldKey,
  certificate: CertificateRecord,
  { certificates, certInfo }: Detail,
  chainOf: ChainOf,
) {
  const der = certificate.der!;
  const { issuerId, serial, notBefore, notAfter } = certificate.preparation!;
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

/** RFC 4514 writes a name backwards, with commas; Node escapes its parts as that asks for, and puts each on a line. */
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
