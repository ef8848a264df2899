// DER writer (X.690): each function returns one complete element, so that calls nest. Callers keep constant elements, such
// as OIDs and algorithms, encoded. Invalid values throw TypeError or RangeError: untrusted input is validated before.

export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  enumerated: 0x0a,
  utf8String: 0x0c,
  numericString: 0x12,
  printableString: 0x13,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const;

const CONTEXT = 0x80;
const CONSTRUCTED = 0x20;
const LAST_SHORT_LENGTH = 0x7f;
const MAX_LENGTH_BYTES = 4;
const MAX_LOW_TAG = 30;
const DIGIT_0 = 0x30;
const LETTER_Z = 0x5a;

const utf8 = new TextEncoder();

/** An element of any tag. */
export const raw = (tag: number, content: Uint8Array): Uint8Array => element(tag, [content]);

/** Takes an array: a CRL has more parts than a call may have arguments. */
export const sequence = (parts: readonly Uint8Array[]): Uint8Array => element(TAG.sequence, parts);

/** SET OF: DER sorts the elements by their encoding. */
export const setOf = (parts: readonly Uint8Array[]): Uint8Array =>
  element(TAG.set, parts.length > 1 ? parts.toSorted(Buffer.compare) : parts);

/** From a number, or the big-endian bytes of one; never negative, minimal length. */
export function integer(value: number | Uint8Array): Uint8Array {
  const magnitude = typeof value === 'number' ? bytesOf(value) : value;
  let first = 0;
  while (magnitude[first] === 0) first += 1;
  if (first === magnitude.length) return Uint8Array.of(TAG.integer, 1, 0);
  const digits = first === 0 ? magnitude : magnitude.subarray(first);
  // A leading zero keeps it positive.
  return element(TAG.integer, (digits[0] ?? 0) >= 0x80 ? [Uint8Array.of(0), digits] : [digits]);
}

/** From dotted text such as `2.5.29.17`. Slow: call it once and keep the result. */
export function oid(dotted: string): Uint8Array {
  const [root, second, ...rest] = dotted.split('.').map((arc) => (/^(0|[1-9]\d*)$/.test(arc) ? Number(arc) : NaN));
  if (root === undefined || second === undefined || !(root <= 2 && second <= (root === 2 ? 2 ** 52 : 39))) {
    throw new RangeError(`${dotted} is not an object identifier`);
  }
  const content: number[] = [];
  for (const arc of [root * 40 + second, ...rest]) {
    if (!Number.isSafeInteger(arc)) throw new RangeError(`${dotted} is not an object identifier`);
    const digits = [arc % 128];
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) digits.unshift(0x80 | (left % 128));
    content.push(...digits);
  }
  return element(TAG.oid, [Uint8Array.from(content)]);
}

/** Without unused bits. For named bits see namedBits. */
export const bitString = (bytes: Uint8Array): Uint8Array => element(TAG.bitString, [Uint8Array.of(0), bytes]);

/** A named bit list such as KeyUsage, by bit number. DER omits trailing zero bits. */
export function namedBits(bits: readonly number[]): Uint8Array {
  const last = Math.max(-1, ...bits);
  const content = new Uint8Array(1 + Math.ceil((last + 1) / 8));
  content[0] = (content.length - 1) * 8 - (last + 1);
  for (const bit of bits) {
    const index = 1 + (bit >> 3);
    content[index] = (content[index] ?? 0) | (0x80 >> (bit & 7));
  }
  return element(TAG.bitString, [content]);
}

export const octetString = (bytes: Uint8Array): Uint8Array => element(TAG.octetString, [bytes]);

export const boolean = (value: boolean): Uint8Array => Uint8Array.of(TAG.boolean, 1, value ? 0xff : 0);

export const NULL: Uint8Array = Uint8Array.of(TAG.null, 0);

export const utf8String = (text: string): Uint8Array => {
  if (!text.isWellFormed()) throw new TypeError('a lone surrogate has no UTF-8 encoding');
  return element(TAG.utf8String, [utf8.encode(text)]);
};

export const printableString = (text: string): Uint8Array =>
  restrictedString(TAG.printableString, text, /^[A-Za-z0-9 '()+,\-./:=?]*$/);

export const ia5String = (text: string): Uint8Array => restrictedString(TAG.ia5String, text, /^\p{ASCII}*$/u);

/** [number] EXPLICIT: wraps the element. */
export const explicit = (number: number, inner: Uint8Array): Uint8Array =>
  element(CONTEXT | CONSTRUCTED | lowTag(number), [inner]);

/** [number] IMPLICIT: replaces the tag, and keeps the constructed bit. */
export function implicit(number: number, encoded: Uint8Array): Uint8Array {
  const tagged = new Uint8Array(encoded);
  tagged[0] = CONTEXT | ((encoded[0] ?? 0) & CONSTRUCTED) | lowTag(number);
  return tagged;
}

/** RFC 5280, 4.1.2.5: UTCTime until 2049, GeneralizedTime from 2050, whole seconds. */
export function time(date: Date): Uint8Array {
  const year = date.getUTCFullYear();
  if (year < 1950) throw new RangeError(`${date.toISOString()} cannot be written in a certificate`);
  return year < 2050 ? timeElement(TAG.utcTime, date) : generalizedTime(date);
}

/** Whole seconds; OCSP has no UTCTime. */
export const generalizedTime = (date: Date): Uint8Array => timeElement(TAG.generalizedTime, date);

/** YYYYMMDDHHMMSSZ, without fractions of a second; UTCTime leaves the century out. */
function timeElement(tag: number, date: Date): Uint8Array {
  const year = date.getUTCFullYear();
  if (!(year >= 0 && year <= 9999)) throw new RangeError(`the year ${year} cannot be written`);
  const pairs = [year % 100, date.getUTCMonth() + 1, date.getUTCDate()];
  pairs.push(date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds());
  if (tag !== TAG.utcTime) pairs.unshift(Math.floor(year / 100));
  const content = new Uint8Array(2 * pairs.length + 1);
  for (let index = 0; index < pairs.length; index += 1) {
    content[2 * index] = DIGIT_0 + Math.floor(pairs[index]! / 10);
    content[2 * index + 1] = DIGIT_0 + (pairs[index]! % 10);
  }
  content[content.length - 1] = LETTER_Z;
  return element(tag, [content]);
}

/** One byte, which is enough for CRL reasons and OCSP statuses. */
export const enumerated = (value: number): Uint8Array => Uint8Array.of(TAG.enumerated, 1, value);

/** A Map key for bytes: a Map compares byte arrays by identity. */
export const mapKey = (der: Uint8Array): string =>
  Buffer.from(der.buffer, der.byteOffset, der.length).toString('latin1');

function element(tag: number, parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  let lengthBytes = 0;
  // Multiplied, not shifted: a four-byte length exceeds the range of shifts.
  if (length > LAST_SHORT_LENGTH) for (let most = 1; most <= length; most *= 256) lengthBytes += 1;
  if (lengthBytes > MAX_LENGTH_BYTES) throw new RangeError(`${length} bytes do not fit into one element`);
  const header = 2 + lengthBytes;
  const whole = new Uint8Array(header + length);
  whole[0] = tag;
  whole[1] = lengthBytes === 0 ? length : 0x80 | lengthBytes;
  for (let index = 0; index < lengthBytes; index += 1) whole[header - 1 - index] = length >>> (8 * index);
  let position = header;
  for (const part of parts) {
    whole.set(part, position);
    position += part.length;
  }
  return whole;
}

/** Big-endian. */
function bytesOf(value: number): Uint8Array {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${value} is not a non-negative safe integer`);
  const bytes: number[] = [];
  for (let left = value; left > 0; left = Math.floor(left / 256)) bytes.unshift(left % 256);
  return Uint8Array.from(bytes);
}

function restrictedString(tag: number, text: string, allowed: RegExp): Uint8Array {
  if (!allowed.test(text)) throw new TypeError(`${JSON.stringify(text)} has characters its string type does not have`);
  return asciiElement(tag, text);
}

/** Faster than an encoder for texts as short as names and times. */
function asciiElement(tag: number, text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  return element(tag, [bytes]);
}

function lowTag(number: number): number {
  if (!Number.isInteger(number) || number < 0 || number > MAX_LOW_TAG) throw new RangeError(`no tag ${number}`);
  return number;
}
