// What a certificate says of its key and its issuer, and its fingerprints. Shown only: the service decides everything.
import { type Element, elements } from './der.ts';

const KEYS: Readonly<Record<string, string>> = {
  '2a8648ce3d030107': 'ECDSA P-256',
  '2b81040022': 'ECDSA P-384',
  '2b81040023': 'ECDSA P-521',
  '2a811ccf5501822d': 'SM2',
};
const RSA = '2a864886f70d010101';
const ED25519 = '2b6570';
const COMMON_NAME = '550403';

export interface CertificateFacts {
  readonly key: string;
  readonly subject: string;
  readonly issuer: string;
  readonly sha256: string;
  readonly sha1: string;
}

export const hex = (bytes: Uint8Array, separator = ''): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(separator);

/** Throws if the bytes are no certificate. */
export async function readCertificate(der: Uint8Array<ArrayBuffer>): Promise<CertificateFacts> {
  const [certificate] = elements(der);
  const [toBeSigned] = inside(certificate);
  const parts = inside(toBeSigned).filter(({ tag }) => tag !== 0xa0);
  const [, , issuer, , subject, publicKey] = parts;
  const digest = async (name: string) => hex(new Uint8Array(await crypto.subtle.digest(name, der)), ':').toUpperCase();
  return {
    key: keyOf(publicKey),
    subject: commonName(subject),
    issuer: commonName(issuer),
    // Without a secure context the browser has no digests.
    sha256: globalThis.isSecureContext ? await digest('SHA-256') : '',
    sha1: globalThis.isSecureContext ? await digest('SHA-1') : '',
  };
}

const inside = (one: Element | undefined): Element[] => elements(one?.content ?? new Uint8Array());

function keyOf(publicKey: Element | undefined): string {
  const [algorithm, value] = inside(publicKey);
  const [name, curve] = inside(algorithm).map(({ content }) => hex(content));
  if (name === ED25519) return 'Ed25519';
  if (name !== RSA) return KEYS[curve ?? ''] ?? 'unknown';
  const [modulus] = inside(elements((value?.content ?? new Uint8Array()).subarray(1))[0]);
  const digits = modulus?.content ?? new Uint8Array();
  return `RSA ${(digits[0] === 0 ? digits.length - 1 : digits.length) * 8}`;
}

/** Of the last relative name that has one, as it is most specific. */
function commonName(name: Element | undefined): string {
  const attributes = inside(name).flatMap((one) => inside(one));
  const named = attributes.map((one) => inside(one)).filter(([type]) => type && hex(type.content) === COMMON_NAME);
  return new TextDecoder().decode(named.at(-1)?.[1]?.content ?? new Uint8Array());
}
