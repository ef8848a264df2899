// Strict DER reader (X.690) for untrusted input. Refuses non-canonical encodings: indefinite and padded lengths, padded
// integers, constructed strings, trailing bytes. Callers read the elements in order and call `end()` after the last.
//
// A cursor that returns views, not copies. Work is linear in the bytes read, and nesting is bounded.
import { TAG } from './writer.ts';

const CLASS = 0xc0;
const CONTEXT = 0x80;
const CONSTRUCTED = 0x20;
const TAG_NUMBER = 0x1f;
const MAX_LENGTH_BYTES = 4;
const MAX_DEPTH = 16;
// The longest registered OIDs have about 20 bytes.
const MAX_OID_BYTES = 64;

/** The bytes are not valid DER, or not the element that was read for. */
export class DerError extends Error {}

/** 2.5.4, attributes of names, and 2.5.29, extensions: most of what is read. Their texts are made once. */
const UNDER_2_5 = 0x55;
const TEXTS_UNDER_2_5: Readonly<Record<number, readonly string[]>> = {
  4: Array.from({ length: 128 }, (_, arc) => `2.5.4.${arc}`),
  29: Array.from({ length: 128 }, (_, arc) => `2.5.29.${arc}`),
};

/** The bytes as text, one character each. */
export const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');

/** Bits of a big-endian number without leading zero bytes. */
export const bitLength = (bytes: Uint8Array): number => bytes.length * 8 - Math.clz32(bytes[0] ?? 0) + 24;

interface Element {
  readonly tag: number;
  readonly content: Uint8Array;
}

export class DerReader {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #depth: number;
  #position: number;
  // The element whose header was read last.
  #tag = 0;
  #contentStart = 0;
  #contentEnd = 0;

  /** Of a part of the bytes: what is nested is read in place. */
  constructor(bytes: Uint8Array, depth = 0, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#end = end;
    this.#depth = depth;
    this.#position = start;
  }

  get isAtEnd(): boolean {
    return this.#position === this.#end;
  }

  end(): void {
    if (!this.isAtEnd) throw new DerError(`${this.#end - this.#position} bytes too many`);
  }

  sequence(): DerReader {
    return this.#inside(TAG.sequence);
  }

  set(): DerReader {
    return this.#inside(TAG.set);
  }

  /** The content of [number] if it is next, else undefined: the element of an EXPLICIT tag, or those of an IMPLICIT one. */
  context(number: number): DerReader | undefined {
    const tag = CONTEXT | CONSTRUCTED | number;
    return !this.isAtEnd && this.#bytes[this.#position] === tag ? this.#inside(tag) : undefined;
  }

  /** Two's complement, without padding. */
  integer(): Uint8Array {
    const content = this.#content(TAG.integer);
    const first = content[0];
    const second = content[1];
    if (first === undefined) throw new DerError('empty integer');
    if (second !== undefined && ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80))) {
      throw new DerError('padded integer');
    }
    return content;
  }

  /** The big-endian bytes of a positive integer, without the leading zero of its sign. */
  positive(): Uint8Array {
    const content = this.integer();
    const first = content[0] ?? 0;
    if (first >= 0x80 || (first === 0 && content.length === 1)) throw new DerError('not positive');
    return first === 0 ? content.subarray(1) : content;
  }

  /** Dotted. Refuses arcs above Number.MAX_SAFE_INTEGER. */
  oid(): string {
    const content = this.#content(TAG.oid);
    if (content.length > MAX_OID_BYTES || (content.at(-1) ?? 0x80) >= 0x80)
      throw new DerError('not an object identifier');
    const known =
      content.length === 3 && content[0] === UNDER_2_5 ? TEXTS_UNDER_2_5[content[1]!]?.[content[2]!] : undefined;
    if (known !== undefined) return known;
    let dotted = '';
    let arc = 0;
    let isFresh = true;
    for (const byte of content) {
      if (isFresh && byte === 0x80) throw new DerError('padded object identifier');
      arc = arc * 128 + (byte & 0x7f);
      if (arc > Number.MAX_SAFE_INTEGER) throw new DerError('arc too large');
      isFresh = byte < 0x80;
      if (!isFresh) continue;
      // The first two arcs are one number, 40 * root + second; only under root 2 may the second exceed 39.
      const root = Math.min(2, Math.floor(arc / 40));
      dotted += dotted === '' ? `${root}.${arc - root * 40}` : `.${arc}`;
      arc = 0;
    }
    return dotted;
  }

  /** Without unused bits, as keys and signatures are. */
  bitString(): Uint8Array {
    const content = this.#content(TAG.bitString);
    if (content[0] !== 0) throw new DerError('not a bit string of whole bytes');
    return content.subarray(1);
  }

  octetString(): Uint8Array {
    return this.#content(TAG.octetString);
  }

  /** A primitive element of any tag. */
  primitive(): Element {
    this.#header(this.#end);
    if (this.#tag & CONSTRUCTED) throw new DerError('not a primitive element');
    return { tag: this.#tag, content: this.#take() };
  }

  /** The next element of any tag with its header, after every element inside it was checked. */
  any(): Uint8Array {
    const start = this.#position;
    this.#header(this.#end);
    this.#pass(this.#depth);
    return this.#bytes.subarray(start, this.#position);
  }

  /** Moves behind the element whose header was read last, after every element inside it was checked. */
  #pass(depth: number): void {
    const end = this.#contentEnd;
    if (this.#tag & CONSTRUCTED) {
      if (depth >= MAX_DEPTH) throw new DerError('nested too deeply');
      this.#position = this.#contentStart;
      while (this.#position < end) {
        this.#header(end);
        this.#pass(depth + 1);
      }
    }
    this.#position = end;
  }

  #inside(tag: number): DerReader {
    this.#expect(tag);
    if (this.#depth >= MAX_DEPTH) throw new DerError('nested too deeply');
    this.#position = this.#contentEnd;
    return new DerReader(this.#bytes, this.#depth + 1, this.#contentStart, this.#contentEnd);
  }

  #content(tag: number): Uint8Array {
    this.#expect(tag);
    return this.#take();
  }

  #expect(tag: number): void {
    this.#header(this.#end);
    if (this.#tag !== tag) throw new DerError(`tag ${this.#tag} where ${tag} belongs`);
  }

  #take(): Uint8Array {
    this.#position = this.#contentEnd;
    return this.#bytes.subarray(this.#contentStart, this.#contentEnd);
  }

  /** Reads tag and length without moving the cursor; the content must end by `limit`. */
  #header(limit: number): void {
    const bytes = this.#bytes;
    let position = this.#position;
    if (position + 2 > limit) throw new DerError('truncated');
    const tag = bytes[position++]!;
    if ((tag & TAG_NUMBER) === TAG_NUMBER) throw new DerError('high tag number');
    // In DER, SEQUENCE and SET are always constructed and no other universal type is; tag 0 is BER's end-of-contents.
    const isUniversal = (tag & CLASS) === 0;
    const isList = (tag | CONSTRUCTED) === TAG.sequence || (tag | CONSTRUCTED) === TAG.set;
    if (isUniversal && (isList !== ((tag & CONSTRUCTED) !== 0) || tag === 0)) throw new DerError(`tag ${tag}`);
    let length = bytes[position++]!;
    if (length >= 0x80) {
      const count = length & 0x7f;
      if (count > MAX_LENGTH_BYTES || position + count > limit) throw new DerError('length too long');
      // An indefinite length has count 0, and is refused with the padded ones.
      length = 0;
      for (let left = count; left > 0; left -= 1) length = length * 256 + bytes[position++]!;
      if (length < 0x80 || length < 256 ** (count - 1)) throw new DerError('padded or indefinite length');
    }
    if (length > limit - position) throw new DerError('element exceeds its container');
    this.#tag = tag;
    this.#contentStart = position;
    this.#contentEnd = position + length;
  }
}
