// DNS messages (RFC 1035, RFC 6891) as a stub resolver sees them: encodes one question, decodes the response to it. Pure.
// Decoding is strict and bounded, because responses are untrusted: whatever is not well formed is a MalformedMessage, never
// an empty answer. The sandbox has a codec of its own for the other direction, so that each checks the other.
import type { CaaRecord } from '../../domain/validation/dns.ts';

const TYPES = { TXT: 16, CAA: 257 } as const;
export type QueryType = keyof typeof TYPES;

export interface Question {
  /** Dotted, without a final dot; see `isName`. */
  readonly name: string;
  readonly type: QueryType;
}

export interface Query {
  readonly id: number;
  readonly type: QueryType;
  readonly message: Buffer;
  /** Where the question ends in the message. */
  readonly questionEnd: number;
}

export type Response =
  /** The data of the records at the end of the CNAME chain. None: the name, or the record, does not exist. */
  | { readonly kind: 'answer'; readonly records: readonly Buffer[] }
  | { readonly kind: 'truncated' }
  /** The resolver could not find out, or DNSSEC validation failed. */
  | { readonly kind: 'servfail' }
  /** The server does not resolve this: REFUSED, another error, or a referral. */
  | { readonly kind: 'refused' };

export class MalformedMessage extends Error {}

export const MAX_NAME_LENGTH = 253;
const MAX_LABEL_BYTES = 63;
/** A name on the wire, with the length of each label and the root. */
const MAX_NAME_BYTES = 255;
const HEADER_BYTES = 12;
/** Type and class. */
const QUESTION_TAIL_BYTES = 4;
/** Type, class, TTL and length of the data. */
const RECORD_BYTES = 10;
const OPT_BYTES = 11;
const MAX_RECORDS = 500;
const MAX_ALIASES = 16;
const IN = 1;
const CNAME = 5;
const OPT = 41;
/** DNS Flag Day 2020: the largest payload that avoids IP fragmentation. */
export const MAX_UDP_BYTES = 1_232;
/** RFC 3225: DNSSEC OK. Checking is never disabled (CD): a validating resolver answers SERVFAIL to bogus records. */
const DNSSEC_OK = 0x8000;
const [RESPONSE, OPCODE, AUTHORITATIVE, TRUNCATED] = [0x8000, 0x7800, 0x0400, 0x0200];
const [RECURSION_DESIRED, RECURSION_AVAILABLE, RCODE] = [0x0100, 0x0080, 0x000f];
const [NOERROR, SERVFAIL, NXDOMAIN] = [0, 2, 3];
/** The bit that distinguishes the cases of an ASCII letter. */
const CASE = 0x20;
const POINTER = 0xc0;

/** Whether a name can be asked for: labels of 1 to 63 printable ASCII characters. */
export const isName = (name: string): boolean => name.length <= MAX_NAME_LENGTH && NAME.test(name);
const NAME = /^[!-\-/-~]{1,63}(\.[!-\-/-~]{1,63})*$/;

/**
 * Letters are in upper case where a bit of `caseBits` is set, which a server echoes (0x20): more for an off-path attacker
 * to guess than the id. Throws a RangeError unless `isName`.
 */
export function encodeQuery({ name, type }: Question, id: number, caseBits: Uint8Array): Query {
  if (!isName(name)) throw new RangeError('not a DNS name');
  const questionEnd = HEADER_BYTES + name.length + 2 + QUESTION_TAIL_BYTES;
  const message = Buffer.alloc(questionEnd + OPT_BYTES);
  message.writeUInt16BE(id, 0);
  message.writeUInt16BE(RECURSION_DESIRED, 2);
  message.writeUInt16BE(1, 4);
  message.writeUInt16BE(1, 10);
  let length = HEADER_BYTES;
  for (let index = 0; index < name.length; index += 1) {
    const at = HEADER_BYTES + 1 + index;
    const byte = name.charCodeAt(index);
    if (byte === 0x2e) length = at;
    else {
      message[length]! += 1;
      const isUpper = isLetter(byte) && ((caseBits[index >> 3] ?? 0) >> (index & 7)) & 1;
      message[at] = isUpper ? byte & ~CASE : folded(byte);
    }
  }
  message.writeUInt16BE(TYPES[type], questionEnd - 4);
  message.writeUInt16BE(IN, questionEnd - 2);
  message.writeUInt16BE(OPT, questionEnd + 1);
  message.writeUInt16BE(MAX_UDP_BYTES, questionEnd + 3);
  message.writeUInt16BE(DNSSEC_OK, questionEnd + 7);
  return { id, type, message, questionEnd };
}

/**
 * Whether a message is a response to the query: its id and its question. UDP compares bytes, case included; over TCP, where an
 * off-path attacker cannot answer, a server that changes the case is accepted.
 */
export function isResponseTo({ id, message, questionEnd }: Query, response: Buffer, ignoresCase = false): boolean {
  if (response.length < questionEnd || response.readUInt16BE(0) !== id) return false;
  if ((response.readUInt16BE(2) & (RESPONSE | OPCODE)) !== RESPONSE || response.readUInt16BE(4) !== 1) return false;
  const isSame = (byte: number, index: number) =>
    byte === message[index] || (ignoresCase && folded(byte) === folded(message[index] ?? 0));
  for (let index = HEADER_BYTES; index < questionEnd; index += 1) {
    if (!isSame(response[index] ?? 0, index)) return false;
  }
  return true;
}

/** Takes a response that `isResponseTo` the query. Throws a MalformedMessage. */
export function decodeResponse({ type, questionEnd }: Query, message: Buffer): Response {
  const flags = message.readUInt16BE(2);
  if (flags & TRUNCATED) return { kind: 'truncated' };
  const answers = message.readUInt16BE(6);
  const others = message.readUInt16BE(8) + message.readUInt16BE(10);
  if (answers + others > MAX_RECORDS) throw new MalformedMessage('too many records');
  const chain = new Chain(TYPES[type]);
  let offset = questionEnd;
  // The upper bits are in the OPT record: BADVERS alone would look like NOERROR without records.
  let rcode = flags & RCODE;
  for (let index = 0; index < answers + others; index += 1) {
    const record = readRecord(message, offset);
    offset = record.end;
    if (index < answers) chain.add(message, record);
    else if (record.type === OPT) rcode |= (record.ttl >>> 24) << 4;
  }
  if (offset !== message.length) throw new MalformedMessage('bytes after the last record');
  if (rcode === SERVFAIL) return { kind: 'servfail' };
  // Neither from a zone nor from a resolver: a referral, whose empty answer says nothing about the name.
  const isLame = !(flags & (AUTHORITATIVE | RECURSION_AVAILABLE));
  if (isLame || (rcode !== NOERROR && rcode !== NXDOMAIN)) return { kind: 'refused' };
  const records = chain.follow(readName(message, HEADER_BYTES).key);
  if (rcode === NXDOMAIN && records.length > 0) throw new MalformedMessage('records of a name that does not exist');
  return { kind: 'answer', records };
}

interface ResourceRecord {
  /** Name, folded; see `readName`. */
  readonly owner: string;
  readonly type: number;
  readonly ttl: number;
  readonly dataStart: number;
  readonly end: number;
}

/** The answer section: CNAME records, in any order, and the records that were asked for. Others are ignored. */
class Chain {
  readonly #type: number;
  readonly #aliases = new Map<string, string>();
  readonly #found: { readonly owner: string; readonly data: Buffer }[] = [];

  constructor(type: number) {
    this.#type = type;
  }

  add(message: Buffer, { owner, type, dataStart, end }: ResourceRecord): void {
    if (message.readUInt16BE(dataStart - RECORD_BYTES + 2) !== IN)
      throw new MalformedMessage('a record of another class');
    if (type === this.#type) this.#found.push({ owner, data: message.subarray(dataStart, end) });
    if (type !== CNAME) return;
    const target = readName(message, dataStart);
    if (target.end !== end) throw new MalformedMessage('a CNAME with more than a name');
    if ((this.#aliases.get(owner) ?? target.key) !== target.key) throw new MalformedMessage('two CNAMEs of one name');
    this.#aliases.set(owner, target.key);
  }

  /** Fails closed: a record of the type beside the chain might have been meant for the name. */
  follow(queried: string): Buffer[] {
    let name = queried;
    for (let hops = 0; ; hops += 1) {
      const target = this.#aliases.get(name);
      if (target === undefined) break;
      if (hops === MAX_ALIASES) throw new MalformedMessage('a CNAME chain that is too long, or a loop');
      name = target;
    }
    if (this.#found.some(({ owner }) => owner !== name)) throw new MalformedMessage('a record of another name');
    return this.#found.map(({ data }) => data);
  }
}

function readRecord(message: Buffer, start: number): ResourceRecord {
  const owner = readName(message, start);
  const dataStart = owner.end + RECORD_BYTES;
  if (dataStart > message.length) throw new MalformedMessage('a record that is cut off');
  const end = dataStart + message.readUInt16BE(dataStart - 2);
  if (end > message.length) throw new MalformedMessage('data that is cut off');
  return {
    owner: owner.key,
    type: message.readUInt16BE(owner.end),
    ttl: message.readUInt32BE(owner.end + 4),
    dataStart,
    end,
  };
}

/**
 * Returns the uncompressed name, folded to lower case, one character per byte, labels with their lengths: labels may have
 * dots in them. Pointers lead backwards only, each before all that was read, so that none can loop.
 */
function readName(message: Buffer, start: number): { readonly key: string; readonly end: number } {
  let key = '';
  let end: number | undefined;
  let floor = start;
  for (let offset = start; ; ) {
    const length = message[offset];
    if (length === undefined) throw new MalformedMessage('a name that is cut off');
    if (length === 0) return { key, end: end ?? offset + 1 };
    if (length >= POINTER) {
      const target = ((length & ~POINTER) << 8) | (message[offset + 1] ?? 0);
      if (offset + 1 >= message.length || target >= floor || target < HEADER_BYTES)
        throw new MalformedMessage('a pointer that does not lead backwards');
      end ??= offset + 2;
      offset = target;
      floor = target;
      continue;
    }
    const next = offset + 1 + length;
    if (length > MAX_LABEL_BYTES || next > message.length) throw new MalformedMessage('a label that is too long');
    for (let index = offset; index < next; index += 1) key += String.fromCharCode(folded(message[index] ?? 0));
    if (key.length >= MAX_NAME_BYTES) throw new MalformedMessage('a name that is too long');
    offset = next;
  }
}

const isLetter = (byte: number): boolean => (byte | CASE) >= 0x61 && (byte | CASE) <= 0x7a;
const folded = (byte: number): number => (isLetter(byte) ? byte | CASE : byte);

/** Returns the strings of a TXT record, joined, one character per byte. */
export function decodeTxt(data: Buffer): string {
  if (data.length === 0) throw new MalformedMessage('a TXT record without a string');
  let text = '';
  for (let offset = 0; offset < data.length; ) {
    const end = offset + 1 + (data[offset] ?? 0);
    if (end > data.length) throw new MalformedMessage('a string that is cut off');
    text += data.toString('latin1', offset + 1, end);
    offset = end;
  }
  return text;
}

/** The value is the rest of the record, whatever its bytes: truncated at a NUL, a restriction would be lost. */
export function decodeCaa(data: Buffer): CaaRecord {
  const [flags, length] = data;
  if (flags === undefined || length === undefined || 2 + length > data.length)
    throw new MalformedMessage('a CAA record that is cut off');
  const tag = data.toString('latin1', 2, 2 + length);
  // RFC 8659, section 4.1. What an unreadable tag was meant to restrict is unknown.
  if (!/^[A-Za-z0-9]+$/.test(tag)) throw new MalformedMessage('a CAA tag that is none');
  return { flags, tag, value: data.toString('latin1', 2 + length) };
}
