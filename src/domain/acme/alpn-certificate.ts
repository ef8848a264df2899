// Judges the certificate of a tls-alpn-01 handshake (RFC 8737, 3; for IP addresses RFC 8738, 6). Pure: the bytes are read
// elsewhere.
import type { Localized } from '../../kernel/locale.ts';
import { type Address, parseAddress } from '../egress/addresses.ts';

export interface AlpnCertificate {
  readonly isSelfSigned: boolean;
  /** Null without the extension. */
  readonly altNames: readonly AltName[] | null;
  /** The acmeIdentifier extension; null without it. */
  readonly identifier: { readonly isCritical: boolean; readonly digest: Uint8Array } | null;
}

export type AltName =
  | { readonly kind: 'dns'; readonly name: string }
  | { readonly kind: 'ip'; readonly address: Address }
  | { readonly kind: 'other' };

/** Undefined if the bytes are no certificate that can be judged, one with an extension twice included. */
export type ReadAlpnCertificate = (der: Uint8Array) => AlpnCertificate | undefined;

/** Returns why the certificate does not answer the challenge, or null. `digest` is base64url. */
export function faultOf(certificate: AlpnCertificate | undefined, name: string, digest: string): Localized | null {
  if (!certificate) return UNREADABLE;
  const { altNames, identifier, isSelfSigned } = certificate;
  // Exactly one: a certificate that serves several names says nothing about who answers for this one.
  if (altNames?.length !== 1 || !altNames.every((one) => isName(one, name))) return WRONG_NAME;
  if (!identifier) return NO_IDENTIFIER;
  // Servers that know nothing of ACME cannot show a critical extension by mistake: their clients would refuse it.
  if (!identifier.isCritical) return NOT_CRITICAL;
  if (Buffer.from(identifier.digest).toString('base64url') !== digest) return WRONG_DIGEST;
  return isSelfSigned ? null : NOT_SELF_SIGNED;
}

function isName(altName: AltName, name: string): boolean {
  const address = parseAddress(name);
  if (altName.kind === 'ip') return address !== undefined && Buffer.compare(altName.address, address) === 0;
  // Only ASCII letters fold: lower-casing maps the Kelvin sign to a k.
  return altName.kind === 'dns' && !address && /^[!-~]+$/.test(altName.name) && altName.name.toLowerCase() === name;
}

const UNREADABLE: Localized = {
  en: 'its certificate cannot be read. It must be DER, with each extension once.',
  zh: '其证书无法读取，须为 DER 编码，且每个扩展只出现一次。',
};
const WRONG_NAME: Localized = {
  en: 'its certificate must have the name as its only subjectAltName, an iPAddress for an IP address. Another server may have answered.',
  zh: '其证书的 subjectAltName 须仅含该名称（IP 地址须为 iPAddress）。应答的可能是另一台服务器。',
};
const NO_IDENTIFIER: Localized = {
  en: 'its certificate has no acmeIdentifier extension. Another server may have answered.',
  zh: '其证书没有 acmeIdentifier 扩展。应答的可能是另一台服务器。',
};
const NOT_CRITICAL: Localized = {
  en: 'the acmeIdentifier extension of its certificate is not critical.',
  zh: '其证书的 acmeIdentifier 扩展未标记为关键。',
};
const WRONG_DIGEST: Localized = {
  en: 'the acmeIdentifier of its certificate is not the digest of this key authorization.',
  zh: '其证书的 acmeIdentifier 不是该密钥授权的摘要。',
};
const NOT_SELF_SIGNED: Localized = { en: 'its certificate is not self-signed.', zh: '其证书不是自签名证书。' };
