// DER for the browser: enough to write a CSR and a bundle of certificates, and to read what a certificate says of its key.

export const concat = (parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> => {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let position = 0;
  for (const part of parts) {
    whole.set(part, position);
    position += part.length;
  }
  return whole;
};

export function element(tag: number, ...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const content = concat(parts);
  const length: number[] = [];
  for (let left = content.length; left > 0; left >>>= 8) length.unshift(left & 0xff);
  const header = content.length < 0x80 ? [content.length] : [0x80 | length.length, ...length];
  return concat([Uint8Array.of(tag, ...header), content]);
}

export const sequence = (...parts: readonly Uint8Array[]) => element(0x30, ...parts);
export const set = (...parts: readonly Uint8Array[]) => element(0x31, ...parts);
export const octets = (bytes: Uint8Array) => element(0x04, bytes);
export const bits = (bytes: Uint8Array) => element(0x03, Uint8Array.of(0), bytes);
export const utf8 = (text: string) => element(0x0c, new TextEncoder().encode(text));
/** Of one byte, positive. */
export const small = (value: number) => Uint8Array.of(0x02, 1, value);
/** [number] with content of its own. */
export const tagged = (number: number, ...parts: readonly Uint8Array[]) => element(0xa0 | number, ...parts);

export function oid(dotted: string): Uint8Array<ArrayBuffer> {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const content = [first * 40 + second, ...rest].flatMap((arc) => {
    const digits = [arc & 0x7f];
    for (let left = arc >>> 7; left > 0; left >>>= 7) digits.unshift(0x80 | (left & 0x7f));
    return digits;
  });
  return element(0x06, Uint8Array.from(content));
}

/** Big-endian, not negative, as DER wants it: without leading zeros, but positive. */
export function integer(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const first = bytes.findIndex((byte) => byte !== 0);
  const digits = first < 0 ? Uint8Array.of(0) : bytes.subarray(first);
  return (digits[0] ?? 0) >= 0x80 ? element(0x02, Uint8Array.of(0), digits) : element(0x02, digits);
}

export interface Element {
  readonly tag: number;
  readonly content: Uint8Array<ArrayBuffer>;
  /** With tag and length. */
  readonly whole: Uint8Array<ArrayBuffer>;
}

/** The elements one after another in the bytes. Throws a RangeError if they are cut off. */
export function elements(bytes: Uint8Array<ArrayBuffer>): Element[] {
  const found: Element[] = [];
  for (let at = 0; at < bytes.length; ) {
    let length = bytes[at + 1] ?? 0;
    let start = at + 2;
    if (length >= 0x80) {
      const count = length & 0x7f;
      length = bytes.subarray(start, start + count).reduce((sum, byte) => sum * 256 + byte, 0);
      start += count;
    }
    const end = start + length;
    if (end > bytes.length) throw new RangeError('the element is cut off');
    found.push({ tag: bytes[at] ?? 0, content: bytes.subarray(start, end), whole: bytes.subarray(at, end) });
    at = end;
  }
  return found;
}
