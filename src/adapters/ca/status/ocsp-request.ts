// Reads OCSP requests (RFC 6960, 4.1), which anybody may send. Strict, bounded, and without an opinion: a signature on a
// request is not looked at, because everybody gets the same answer.
import { DerError, DerReader } from '../../der/reader.ts';

/** A question, a long nonce and a few extensions fit several times. */
export const MAX_REQUEST_BYTES = 4_096;
/** Clients ask about one certificate; RFC 5019 knows no other request. */
const MAX_QUESTIONS = 16;
const MAX_EXTENSIONS = 16;
const NONCE = '1.3.6.1.5.5.7.48.1.2';
/** RFC 9654. */
const MAX_NONCE_BYTES = 128;
const MAX_SERIAL_BYTES = 20;

/** Whose certificate is asked about: hashes of the issuer's name and key, and the serial number. */
export interface Question {
  /** CertID as it was sent: the answer repeats it byte for byte. */
  readonly certId: Uint8Array;
  /** Dotted. */
  readonly hashAlgorithm: string;
  readonly issuerNameHash: Uint8Array;
  readonly issuerKeyHash: Uint8Array;
  /** Hexadecimal, lower case; null for a number that no certificate can have. */
  readonly serial: string | null;
}

export interface OcspRequest {
  readonly questions: readonly Question[];
  readonly nonce: Uint8Array | null;
}

/** Throws a DerError for whatever is not a request. */
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
  if (version?.integer().some((byte) => byte !== 0)) throw new DerError('another version');
  version?.end();
  const requestor = content.context(1);
  requestor?.any();
  requestor?.end();
  const list = content.sequence();
  const questions: Question[] = [];
  while (!list.isAtEnd) {
    if (questions.length === MAX_QUESTIONS) throw new DerError('too many questions');
    questions.push(readQuestion(list.sequence()));
  }
  if (questions.length === 0) throw new DerError('no question');
  const extensions = content.context(2);
  const nonce = extensions ? readExtensions(extensions) : null;
  content.end();
  return { questions, nonce };
}

function readQuestion(reader: DerReader): Question {
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
  if (number[0]! >= 0x80 || digits.length === 0 || digits.length > MAX_SERIAL_BYTES) return null;
  return Buffer.from(digits).toString('hex');
}

/** The nonce, if there is one. Of the other extensions none changes an answer; one that must, we cannot give. */
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
    if (next.tag !== 0x04) throw new DerError('an extension without a value');
    if (id !== NONCE) {
      if (isCritical) throw new DerError('a critical extension that is not known here');
      continue;
    }
    if (nonce) throw new DerError('two nonces');
    const inside = new DerReader(next.content);
    nonce = inside.octetString();
    inside.end();
    if (nonce.length === 0 || nonce.length > MAX_NONCE_BYTES) throw new DerError('a nonce of a length it cannot have');
  }
  return nonce;
}
