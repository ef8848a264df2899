// DNS messages (RFC 1035, RFC 6891) as a stub resolver sees them: encodes one question, decodes the response to it. Pure.
// Decoding is strict and bounded, because responses are untrusted: whatever is not well formed is a MalformedMessage, never
// an empty answer. The sandbox has a codec of its own for the other direction, so that each checks the other.
import type { CaaRecord } from '../../domain/validation/dns.ts';
import { type ExtendedError, isOfDnssec } from '../../domain/validation/extended-error.ts';

const TYPES = { NS: 2, TXT: 16, CAA: 257 } as const;
export type QueryType = keyof typeof TYPES;

export interface Question {
  /** Dotted, without a final dot; see `isName`. Or `ROOT`. */
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
  | Answered
  | { readonly kind: 'truncated' }
  /** The resolver could not find out, or DNSSEC validation failed. */
  | { readonly kind: 'servfail'; readonly extended: ExtendedError | undefined }
  /** The server does not resolve this: REFUSED, another error, or a referral. */
  | { readonly kind: 'refused' };

export interface Answered {
  readonly kind: 'answer';
  /** The data of the records at the end of the CNAME chain. None: the name, or the record, does not exist. */
  readonly records: readonly Buffer[];
  /** Seconds for which the sender may give the answer again; of one without records by RFC 2308. */
  readonly ttl: number;
  /** The end of the chain, printable; undefined without a CNAME. */
  readonly alias: string | undefined;
}

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
const [CNAME, SOA, OPT] = [5, 6, 41];
/** Two names, each the root at least, and five numbers, of which the last is the TTL of negative answers. */
const MIN_SOA_BYTES = 22;
/** RFC 2181: a TTL with the highest bit set is zero. */
const MAX_TTL = 0x7fff_ffff;
/** RFC 8914. */
const EXTENDED_ERROR = 15;
const MAX_ERROR_TEXT = 120;
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

/** The root's name servers are what every resolver knows. */
export const ROOT = '.';

/** Whether a name can be asked for: labels of 1 to 63 printable ASCII characters. */
export const isName = (name: string): boolean => name.length <= MAX_NAME_LENGTH && NAME.test(name);
const NAME = /^[!-\-/-~]{1,63}(\.[!-\-/-~]{1,63})*$/;

/**
 * Letters are in upper case where a bit of `caseBits` is set, which a server echoes (0x20): more for an off-path attacker
 * to guess than the id. Throws a RangeError unless `isName` or `ROOT`.
 */
export function encodeQuery({ name: asked, type }: Question, id: number, caseBits: Uint8Array): Query {
  if (!isName(asked) && asked !== ROOT) throw new RangeError('not a DNS name');
  const name = asked === ROOT ? '' : asked;
  const questionEnd = HEADER_BYTES + (name === '' ? 1 : name.length + 2) + QUESTION_TAIL_BYTES;
  // From the pool: a small buffer of its own would be copied out of the heap when it is sent.
  const message = Buffer.allocUnsafe(questionEnd + OPT_BYTES).fill(0);
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
  for (let index = HEADER_BYTES; index < questionEnd; index += 1) {
    const [sent, received] = [message[index]!, response[index]!];
    if (sent !== received && !(ignoresCase && folded(sent) === folded(received))) return false;
  }
  return true;
}

/** Takes a response that `isResponseTo` the query. Throws a MalformedMessage. */
export function decodeResponse({ type, questionEnd }: Query, message: Buffer): Response {
  const flags = message.readUInt16BE(2);
  if (flags & TRUNCATED) return { kind: 'truncated' };
  const answers = message.readUInt16BE(6);
  const authorities = message.readUInt16BE(8);
  const others = authorities + message.readUInt16BE(10);
  if (answers + others > MAX_RECORDS) throw new MalformedMessage('too many records');
  let chain: Chain | undefined;
  let offset = questionEnd;
  // The upper bits are in the OPT record: BADVERS alone would look like NOERROR without records.
  let rcode = flags & RCODE;
  let opt: ResourceRecord | undefined;
  let negativeTtl = 0;
  for (let index = 0; index < answers + others; index += 1) {
    const start = offset;
    const record = readRecord(message, start);
    offset = record.end;
    if (index < answers) {
      chain ??= new Chain(TYPES[type]);
      chain.add(message, nameAt(message, start), record);
    } else if (index < answers + authorities) {
      if (record.type === SOA) negativeTtl = negativeTtlOf(message, record);
    } else if (record.type === OPT) {
      if (opt || nameAt(message, start) !== '') throw new MalformedMessage('an OPT record too many, or of a name');
      opt = record;
      rcode |= (record.ttl >>> 24) << 4;
    }
  }
  if (offset !== message.length) throw new MalformedMessage('bytes after the last record');
  const extended = opt && extendedErrorIn(message, opt);
  if (rcode === SERVFAIL) return { kind: 'servfail', extended };
  // Neither from a zone nor from a resolver: a referral, whose empty answer says nothing about the name.
  const isLame = !(flags & (AUTHORITATIVE | RECURSION_AVAILABLE));
  if (isLame || (rcode !== NOERROR && rcode !== NXDOMAIN)) return { kind: 'refused' };
  if (!chain) return { kind: 'answer', records: [], ttl: negativeTtl, alias: undefined };
  const { records, ttl, alias } = chain.follow(nameAt(message, HEADER_BYTES));
  if (rcode === NXDOMAIN && records.length > 0) throw new MalformedMessage('records of a name that does not exist');
  return { kind: 'answer', records, ttl: records.length > 0 ? ttl : Math.min(ttl, negativeTtl), alias };
}

/** RFC 2308: without an SOA record, an answer without records is not cached. */
function negativeTtlOf(message: Buffer, { ttl, dataStart, end }: ResourceRecord): number {
  if (end - dataStart < MIN_SOA_BYTES) throw new MalformedMessage('an SOA record that is cut off');
  return Math.min(boundedTtl(ttl), boundedTtl(message.readUInt32BE(end - 4)));
}

const boundedTtl = (ttl: number): number => (ttl > MAX_TTL ? 0 : ttl);

/** The first one, or the first that explains why DNSSEC does not verify. */
function extendedErrorIn(message: Buffer, { dataStart, end }: ResourceRecord): ExtendedError | undefined {
  const errors: ExtendedError[] = [];
  for (let offset = dataStart; offset < end; ) {
    if (offset + 4 > end) throw new MalformedMessage('an option that is cut off');
    const [option, length] = [message.readUInt16BE(offset), message.readUInt16BE(offset + 2)];
    const start = offset + 4;
    offset = start + length;
    if (offset > end) throw new MalformedMessage('an option that is cut off');
    if (option !== EXTENDED_ERROR) continue;
    if (length < 2) throw new MalformedMessage('an extended error without a code');
    const text = message.toString('latin1', start + 2, Math.min(offset, start + 2 + MAX_ERROR_TEXT));
    errors.push({ code: message.readUInt16BE(start), text: printable(text.replace(/\0+$/, '')) });
  }
  return errors.find(isOfDnssec) ?? errors[0];
}

const printable = (text: string): string => text.replace(/[^\x20-\x7e]/g, '?');

interface ResourceRecord {
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
  #ttl = MAX_TTL;

  constructor(type: number) {
    this.#type = type;
  }

  add(message: Buffer, owner: string, { type, ttl, dataStart, end }: ResourceRecord): void {
    if (message.readUInt16BE(dataStart - RECORD_BYTES + 2) !== IN)
      throw new MalformedMessage('a record of another class');
    if (type === this.#type || type === CNAME) this.#ttl = Math.min(this.#ttl, boundedTtl(ttl));
    if (type === this.#type) this.#found.push({ owner, data: message.subarray(dataStart, end) });
    if (type !== CNAME) return;
    if (endOfName(message, dataStart) !== end) throw new MalformedMessage('a CNAME with more than a name');
    const target = nameAt(message, dataStart);
    if ((this.#aliases.get(owner) ?? target) !== target) throw new MalformedMessage('two CNAMEs of one name');
    this.#aliases.set(owner, target);
  }

  /** Fails closed: a record of the type beside the chain might have been meant for the name. */
  follow(queried: string): Omit<Answered, 'kind'> {
    let name = queried;
    for (let hops = 0; ; hops += 1) {
      const target = this.#aliases.get(name);
      if (target === undefined) break;
      if (hops === MAX_ALIASES) throw new MalformedMessage('a CNAME chain that is too long, or a loop');
      name = target;
    }
    if (this.#found.some(({ owner }) => owner !== name)) throw new MalformedMessage('a record of another name');
    const alias = name === queried ? undefined : dotted(name);
    return { records: this.#found.map(({ data }) => data), ttl: this.#ttl, alias };
  }
}

function readRecord(message: Buffer, start: number): ResourceRecord {
  const ownerEnd = endOfName(message, start);
  const dataStart = ownerEnd + RECORD_BYTES;
  if (dataStart > message.length) throw new MalformedMessage('a record that is cut off');
  const end = dataStart + message.readUInt16BE(dataStart - 2);
  if (end > message.length) throw new MalformedMessage('data that is cut off');
  return { type: message.readUInt16BE(ownerEnd), ttl: message.readUInt32BE(ownerEnd + 4), dataStart, end };
}

/** Throws unless there is a name. Pointers lead backwards only, each before all that was read, so that none can loop. */
function endOfName(message: Buffer, start: number): number {
  let end: number | undefined;
  let floor = start;
  let bytes = 0;
  for (let offset = start; ; ) {
    const length = message[offset];
    if (length === undefined) throw new MalformedMessage('a name that is cut off');
    if (length === 0) return end ?? offset + 1;
    if (length >= POINTER) {
      const target = pointerAt(message, offset);
      if (offset + 1 >= message.length || target >= floor || target < HEADER_BYTES)
        throw new MalformedMessage('a pointer that does not lead backwards');
      end ??= offset + 2;
      offset = target;
      floor = target;
      continue;
    }
    offset += 1 + length;
    bytes += 1 + length;
    if (length > MAX_LABEL_BYTES || offset > message.length) throw new MalformedMessage('a label that is too long');
    if (bytes >= MAX_NAME_BYTES) throw new MalformedMessage('a name that is too long');
  }
}

/**
 * Returns a name that has an `endOfName`, uncompressed, folded to lower case, one character per byte, labels with their
 * lengths: labels may have dots in them.
 */
function nameAt(message: Buffer, start: number): string {
  let name = '';
  for (let offset = start; ; ) {
    const length = message[offset] ?? 0;
    if (length === 0) return name;
    if (length >= POINTER) {
      offset = pointerAt(message, offset);
      continue;
    }
    const next = offset + 1 + length;
    for (; offset < next; offset += 1) name += String.fromCharCode(folded(message[offset] ?? 0));
  }
}

const pointerAt = (message: Buffer, offset: number): number =>
  (((message[offset] ?? 0) & ~POINTER) << 8) | (message[offset + 1] ?? 0);

/** A name of `nameAt` for people: whatever is not printable, dots in labels included, is a question mark. */
function dotted(name: string): string {
  const labels: string[] = [];
  for (let offset = 0; offset < name.length; ) {
    const end = offset + 1 + name.charCodeAt(offset);
    labels.push(name.slice(offset + 1, end).replace(/[^!-\-/-~]/g, '?'));
    offset = end;
  }
  return labels.join('.') || ROOT;
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
