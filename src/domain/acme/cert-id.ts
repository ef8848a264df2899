// The name of a certificate in renewal information (RFC 9773, 4.1): the key identifier of its issuer and its serial number,
// each as base64url of what the certificate has.

export interface CertId {
  /** Hexadecimal, lower case. */
  readonly issuerKeyId: string;
  /** Hexadecimal, lower case, without the leading zero of its DER. */
  readonly serial: string;
}

/** A key identifier is a digest, and a serial number has 20 bytes and perhaps a leading zero. */
const MAX_CHARACTERS = 128;

/** Undefined unless it is the one spelling that the certificate has. */
export function parseCertId(text: string): CertId | undefined {
  if (text.length > MAX_CHARACTERS || !/^[\w-]+\.[\w-]+$/.test(text)) return undefined;
  const [key, number] = text.split('.').map((part) => Buffer.from(part, 'base64url')) as [Buffer, Buffer];
  const hasSign = number[0] === 0;
  // In DER a serial number is positive, and has a leading zero only where its first bit is set.
  if (hasSign ? (number[1] ?? 0) < 0x80 : (number[0] ?? 0x80) >= 0x80) return undefined;
  const id = { issuerKeyId: key.toString('hex'), serial: number.subarray(hasSign ? 1 : 0).toString('hex') };
  return certIdText(id) === text ? id : undefined;
}

export function certIdText({ issuerKeyId, serial }: CertId): string {
  const sign = Number.parseInt(serial.slice(0, 2), 16) >= 0x80 ? '00' : '';
  return [issuerKeyId, sign + serial].map((hex) => Buffer.from(hex, 'hex').toString('base64url')).join('.');
}
