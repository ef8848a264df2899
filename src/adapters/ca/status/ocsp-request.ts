// Reads OCSP requests (RFC 6960, 4.1) from unauthenticated clients: strictly, and with bounds. Signatures on requests are
// ignored, because every client gets the same response.
import { DerError, DerReader } from '../../der/reader.ts';

/** Several times the size of a request with a long nonce and a few extensions. */
const MAX_REQUEST_BYTES = 4_096;
/** Clients ask about one certificate per request; RFC 5019 allows no more. */
const MAX_REQUESTS = 16;
const MAX_EXTENSIONS = 16;
const NONCE = '1.3.6.1.5.5.7.48.1.2';
/** RFC 9654. */
const MAX_NONCE_BYTES = 128;
const MAX_SERIAL_BYTES = 20;

/** One requested certificate: hashes of its issuer's name and key, and its serial number. */
export interface SingleRequest {
  /** CertID as it was sent: the response repeats it byte for byte. */
  readonly certId: Uint8Array;
  /** Dotted OID. */
  readonly hashAlgorithm: string;
  readonly issuerNameHash: Uint8Array;
  readonly issuerKeyHash: Uint8Array;
  /** Hexadecimal, lower case; null when it cannot be a serial number of ours: negative, or too long. */
  readonly serial: string | null;
}

interface OcspRequest {
  readonly requests: readonly [SingleRequest, ...SingleRequest[]];
  readonly nonce: Uint8Array | null;
}

/** Throws DerError when the bytes are not a request. */
export function readOcspRequest(bytes: Uint8Array): OcspRequest {
  if (bytes.length > MAX_REQUEST_BYTES) throw new DerError('too long');
  const outer = new DerReader(bytes);
  const request = outer.sequence();
  outer.end();
  const content = request.sequence();
  const signature = request.context(0);
  if (signature) signature.any();
  signature?.end();
  request.end();

  const version = content.context(0);
  if (version?.integer().some((byte) => byte !== 0)) throw new DerError('unknown version');
  version?.end();
  const requestor = content.context(1);
  requestor?.any();
  requestor?.end();
  const list = content.sequence();
  const first = readSingleRequest(list.sequence());
  const rest: SingleRequest[] = [];
  while (!list.isAtEnd) {
    if (rest.length + 1 === MAX_REQUESTS) throw new DerError('too many requests');
    rest.push(readSingleRequest(list.sequence()));
  }
  const extensions = content.context(2);
  const nonce = extensions ? readExtensions(extensions) : null;
  content.end();
  return { requests: [first, ...rest], nonce };
}

function readSingleRequest(reader: DerReader): SingleRequest {
  const certId = reader.any();
  const extensions = reader.context(0);
  if (extensions) readExtensions(extensions);
  reader.end();
  const parts = new DerReader(certId).sequence();
  const algorithm = parts.sequence();
  const hashAlgorithm = algorithm.oid();
  if (!algorithm.isAtEnd) algorithm.any();
  algorithm.end();
  const issuerNameHash = parts.octetString();
  const issuerKeyHash = parts.octetString();
  const serial = parts.integer();
  parts.end();
  return { certId, hashAlgorithm, issuerNameHash, issuerKeyHash, serial: serialText(serial) };
}

function serialText(number: Uint8Array): string | null {
  const digits = number[0] === 0 ? number.subarray(1) : number;
  const isNegative = (number[0] ?? 0) >= 0x80;
  if (isNegative || digits.length === 0 || digits.length > MAX_SERIAL_BYTES) return null;
  return Buffer.from(digits).toString('hex');
}

/** Returns the nonce, if any. Other extensions are ignored unless critical, which makes the request malformed. */
function readExtensions(outer: DerReader): Uint8Array | null {
  const list = outer.sequence();
  outer.end();
  let nonce: Uint8Array | null = null;
  for (let count = 0; !list.isAtEnd; count += 1) {
    if (count === MAX_EXTENSIONS) throw new DerError('too many extensions');
    const one = list.sequence();
    const id = one.oid();
    let next = one.primitive();
    let isCritical = false;
    if (next.tag === 0x01) {
      isCritical = next.content[0] !== 0;
      next = one.primitive();
    }
    one.end();
    if (next.tag !== 0x04) throw new DerError('extension without a value');
    if (id !== NONCE) {
      if (isCritical) throw new DerError('unknown critical extension');
      continue;
    }
    if (nonce) throw new DerError('two nonces');
    const inside = new DerReader(next.content);
    nonce = inside.octetString();
    inside.end();
    if (nonce.length === 0 || nonce.length > MAX_NONCE_BYTES) throw new DerError('nonce of invalid length');
  }
  return nonce;
}
