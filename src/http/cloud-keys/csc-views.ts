// Responses of the signing API: service info and credentials (CSC API 1.0.4.0 and 2.0.0.2, 11.1 and 11.4). The versions
// differ in what info says besides, and in how a credential describes its access code.
import { X509Certificate } from 'node:crypto';
import { MAX_SIGNATURES } from '../../domain/cloud-keys/cloud-signing.ts';
import { inLocale, type Locale, type Localized } from '../../kernel/locale.ts';
import type { HeldKey } from '../../usecases/cloud-keys/operate-cloud-keys.ts';
import {
  ALL_ALGORITHMS,
  algorithmsOf,
  type Body,
  booleanIn,
  type CscVersion,
  CURVES,
  choiceIn,
  PIN,
} from './csc-wire.ts';

const METHODS = [
  'info',
  'auth/login',
  'auth/revoke',
  'credentials/list',
  'credentials/info',
  'credentials/authorize',
  'signatures/signHash',
] as const;

const LANGUAGES = { en: 'en-US', 'zh-CN': 'zh-CN' } as const;
const DESCRIPTION: Localized = { en: 'Signs with keys that Reseal holds.', zh: '使用 Reseal 托管的密钥签名。' };
const PIN_LABEL: Localized = { en: 'Access code', zh: '访问控制码' };

const VERSION_INFO = {
  v1: { specs: '1.0.4.0' },
  v2: {
    specs: '2.0.0.2',
    // Of later minor versions, whose clients require it: what is signed is the digest of the data to be signed.
    supportedHashTypes: ['dtbsr'],
    asynchronousOperationMode: false,
    validationInfo: false,
    signAlgorithms: { algos: ALL_ALGORITHMS },
    // Signs hashes only, no documents.
    signature_formats: { formats: [], envelope_properties: [] },
    conformance_levels: [],
  },
} as const satisfies Record<CscVersion, object>;

export const infoView = (version: CscVersion, locale: Locale) => ({
  ...VERSION_INFO[version],
  name: 'Reseal',
  // Required members, although the service has neither a logo nor a country.
  logo: '',
  region: 'ZZ',
  lang: LANGUAGES[locale],
  description: inLocale(DESCRIPTION, locale),
  authType: ['basic'],
  methods: METHODS,
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

export type ChainOf = (issuerId: string) => Promise<readonly Uint8Array[]>;

export interface CredentialRequest {
  readonly version: CscVersion;
  readonly detail: Detail;
  readonly locale: Locale;
  /** The hint is for those who may enter the code. */
  readonly showsHint: boolean;
}

export async function credentialView(held: HeldKey, request: CredentialRequest, chainOf: ChainOf) {
  const { version, detail, locale, showsHint } = request;
  const { key, isLocked } = held;
  const { type, bits } = key.publicKey;
  const curve = CURVES[type];
  const cert = await certificateView(held, detail, chainOf);
  const hint = showsHint ? key.hint : null;
  const code = {
    format: 'A',
    label: inLocale(PIN_LABEL, locale),
    ...(hint !== null && { description: hint }),
  };
  return {
    key: {
      status: isLocked ? 'disabled' : 'enabled',
      algo: algorithmsOf(type),
      len: bits,
      ...(curve && { curve }),
    },
    ...(cert && { cert }),
    ...AUTH_VIEWS[version](detail.authInfo ? code : undefined),
    // Sole control assurance level 2: an authorization covers specific hashes.
    SCAL: '2',
    multisign: MAX_SIGNATURES,
    lang: LANGUAGES[locale],
  };
}

/** How the access code is described; undefined if that was not asked for. */
type AuthView = (code: object | undefined) => object;
const AUTH_VIEWS: Readonly<Record<CscVersion, AuthView>> = {
  v1: (code) => ({
    authMode: 'explicit',
    ...(code && { PIN: { presence: 'true', ...code }, OTP: { presence: 'false' } }),
  }),
  v2: (code) => ({
    auth: { mode: 'explicit', ...(code && { expression: PIN, objects: [{ type: 'Password', id: PIN, ...code }] }) },
  }),
};

/** Undefined until a certificate was issued on the key. */
async function certificateView(
  { certificate, certificateStatus }: HeldKey,
  { certificates, certInfo }: Detail,
  chainOf: ChainOf,
) {
  if (!certificate) return undefined;
  const { der, preparation } = certificate;
  const { issuerId, serial, notBefore, notAfter } = preparation;
  const chain = certificates === 'chain' ? await chainOf(issuerId) : [];
  const shown = certificates === 'none' ? [] : [der, ...chain];
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
