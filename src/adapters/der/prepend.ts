// DER written from its end: every length is known when its header is written, so that nothing is encoded to be copied into
// the next element. For responses that are built per request; anything else nests the functions of writer.ts.

const LAST_SHORT_LENGTH = 0x7f;

export class DerPrepender {
  #bytes: Uint8Array;
  #start: number;

  /** Grows as needed. */
  constructor(capacity: number) {
    this.#bytes = new Uint8Array(capacity);
    this.#start = capacity;
  }

  /** Discards what was written, also by a caller that has failed half-way. */
  begin(): void {
    this.#start = this.#bytes.length;
  }

  /** Bytes written so far: pass it to `wrap` to enclose what is written from here on. */
  get length(): number {
    return this.#bytes.length - this.#start;
  }

  put(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#start -= bytes.length;
    this.#bytes.set(bytes, this.#start);
  }

  /** Makes one element of everything that was written since the length was `from`. */
  wrap(tag: number, from: number): void {
    const length = this.length - from;
    this.#reserve(6);
    let position = this.#start;
    if (length <= LAST_SHORT_LENGTH) {
      this.#bytes[--position] = length;
    } else {
      for (let rest = length; rest > 0; rest >>>= 8) this.#bytes[--position] = rest;
      this.#bytes[position - 1] = 0x80 | (this.#start - position);
      position -= 1;
    }
    this.#bytes[--position] = tag;
    this.#start = position;
  }

  /** Returns a copy of what was written. */
  copy(): Uint8Array<ArrayBuffer> {
    const copy = new Uint8Array(this.length);
    copy.set(this.#bytes.subarray(this.#start));
    return copy;
  }

  #reserve(count: number): void {
    if (count <= this.#start) return;
    const grown = new Uint8Array(2 * (this.#bytes.length + count));
    grown.set(this.#bytes.subarray(this.#start), grown.length - this.length);
    this.#start = grown.length - this.length;
    this.#bytes = grown;
  }
}
