// Reads DER (X.690) that strangers sent, and refuses whatever has another form that means the same: indefinite and
// padded lengths, padded integers, constructed strings, bytes left over. It decides what is well-formed, never what
// is wanted: that is the caller's, who asks for the elements in order and says `end()` after the last.
//
// A cursor over bytes that are not copied: what it returns are views. Work is linear in the bytes read, depth bounded.
import { TAG } from './writer.ts';

const CLASS = 0xc0;
const CONTEXT = 0x80;
const CONSTRUCTED = 0x20;
const TAG_NUMBER = 0x1f;
const MAX_LENGTH_BYTES = 4;
const MAX_DEPTH = 16;
// The longest registered ones have about 20 bytes; a number of 10 000 digits is no name.
const MAX_OID_BYTES = 64;

/** The bytes are not the DER that was asked for. */
export class DerError extends Error {}

export interface Element {
  readonly tag: number;
  readonly content: Uint8Array;
}

export class DerReader {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #depth: number;
  #position: number;
  // Of the element whose header was read last.
  #tag = 0;
  #contentStart = 0;
  #contentEnd = 0;

  constructor(bytes: Uint8Array, depth = 0) {
    this.#bytes = bytes;
    this.#end = bytes.length;
    this.#depth = depth;
    this.#position = 0;
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

  /** What is inside [number], if that comes next: an explicit tag's element, or the elements of an implicit one. */
  context(number: number): DerReader | undefined {
    const tag = CONTEXT | CONSTRUCTED | number;
    return !this.isAtEnd && this.#bytes[this.#position] === tag ? this.#inside(tag) : undefined;
  }

  /** Two's complement, in as few bytes as it needs. */
  integer(): Uint8Array {
    const content = this.#content(TAG.integer);
    const [first, second] = content;
    if (first === undefined) throw new DerError('an integer without bytes');
    if (second !== undefined && ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80))) {
      throw new DerError('a padded integer');
    }
    return content;
  }

  /** The big-endian bytes of an integer above zero, without the zero that keeps it positive. */
  positive(): Uint8Array {
    const content = this.integer();
    if (content[0]! >= 0x80 || (content[0] === 0 && content.length === 1)) throw new DerError('not above zero');
    return content[0] === 0 ? content.subarray(1) : content;
  }

  /** Dotted. Arcs that a number cannot hold are refused: no name we know has one. */
  oid(): string {
    const content = this.#content(TAG.oid);
    if (content.length > MAX_OID_BYTES || !(content.at(-1)! < 0x80)) throw new DerError('not an object identifier');
    let dotted = '';
    let arc = 0;
    let isFresh = true;
    for (const byte of content) {
      if (isFresh && byte === 0x80) throw new DerError('a padded object identifier');
      arc = arc * 128 + (byte & 0x7f);
      if (arc > Number.MAX_SAFE_INTEGER) throw new DerError('an arc too large');
      isFresh = byte < 0x80;
      if (!isFresh) continue;
      // The first two arcs share one number; the root is 0, 1 or 2, and only under 2 is there room above 39.
      const root = Math.min(2, Math.floor(arc / 40));
      dotted += dotted === '' ? `${root}.${arc - root * 40}` : `.${arc}`;
      arc = 0;
    }
    return dotted;
  }

  /** Whole bytes only, as keys and signatures are. */
  bitString(): Uint8Array {
    const content = this.#content(TAG.bitString);
    if (content[0] !== 0) throw new DerError('not a bit string of whole bytes');
    return content.subarray(1);
  }

  octetString(): Uint8Array {
    return this.#content(TAG.octetString);
  }

  /** A primitive element of whichever tag. */
  primitive(): Element {
    this.#header(this.#end);
    if (this.#tag & CONSTRUCTED) throw new DerError('not a primitive element');
    return { tag: this.#tag, content: this.#take() };
  }

  /** The next element, whatever it is, with its header; every element inside it has been walked over. */
  any(): Uint8Array {
    const start = this.#position;
    this.#header(this.#end);
    const end = this.#contentEnd;
    const ends: number[] = [];
    for (let enclosing = end; ; this.#header(enclosing)) {
      if (this.#tag & CONSTRUCTED) {
        if (this.#depth + ends.length >= MAX_DEPTH) throw new DerError('nested too deeply');
        ends.push(this.#contentEnd);
        this.#position = this.#contentStart;
      } else {
        this.#position = this.#contentEnd;
      }
      while (ends.at(-1) === this.#position) ends.pop();
      const innermost = ends.at(-1);
      if (innermost === undefined) break;
      enclosing = innermost;
    }
    return this.#bytes.subarray(start, end);
  }

  #inside(tag: number): DerReader {
    const content = this.#content(tag);
    if (this.#depth >= MAX_DEPTH) throw new DerError('nested too deeply');
    return new DerReader(content, this.#depth + 1);
  }

  #content(tag: number): Uint8Array {
    this.#header(this.#end);
    if (this.#tag !== tag) throw new DerError(`tag ${this.#tag} where ${tag} belongs`);
    return this.#take();
  }

  #take(): Uint8Array {
    this.#position = this.#contentEnd;
    return this.#bytes.subarray(this.#contentStart, this.#contentEnd);
  }

  /** Reads tag and length at the cursor, which stays; the content may not go beyond `limit`. */
  #header(limit: number): void {
    const bytes = this.#bytes;
    let position = this.#position;
    if (position + 2 > limit) throw new DerError('cut short');
    const tag = bytes[position++]!;
    if ((tag & TAG_NUMBER) === TAG_NUMBER) throw new DerError('a high tag number');
    // Of the universal types only these two are constructed in DER, and they always are; tag 0 ends what BER began.
    const isUniversal = (tag & CLASS) === 0;
    const isList = (tag | CONSTRUCTED) === TAG.sequence || (tag | CONSTRUCTED) === TAG.set;
    if (isUniversal && (isList !== ((tag & CONSTRUCTED) !== 0) || tag === 0)) throw new DerError(`tag ${tag}`);
    let length = bytes[position++]!;
    if (length >= 0x80) {
      const count = length & 0x7f;
      if (count > MAX_LENGTH_BYTES || position + count > limit) throw new DerError('a length of too many bytes');
      // An indefinite length has no bytes here, and is refused with the padded ones.
      length = 0;
      for (let left = count; left > 0; left -= 1) length = length * 256 + bytes[position++]!;
      if (length < 0x80 || length < 256 ** (count - 1)) throw new DerError('a padded or indefinite length');
    }
    if (length > limit - position) throw new DerError('an element longer than what holds it');
    this.#tag = tag;
    this.#contentStart = position;
    this.#contentEnd = position + length;
  }
}
