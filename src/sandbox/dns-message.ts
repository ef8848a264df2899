// DNS messages (RFC 1035) for the sandbox's name server: parses queries, encodes answers. Pure. Parsing is strict and
// bounded: anything but a single standard query is undefined. Encoding throws a RangeError for values that do not fit
// their record type, so that mistakes surface where a value is set.
import { parseAddress } from '../domain/egress/addresses.ts';

export const TYPES = { A: 1, CNAME: 5, TXT: 16, AAAA: 28, CAA: 257 } as const;
export type RecordType = keyof typeof TYPES;

export const RCODES = { ok: 0, servfail: 2, nxdomain: 3, refused: 5 } as const;
export type Rcode = keyof typeof RCODES;

export interface RecordValues {
  readonly A: string;
  readonly AAAA: string;
  readonly CNAME: string;
  /** A text, to be split into character-strings of 255 bytes, or the character-strings. */
  readonly TXT: string | readonly string[];
  readonly CAA: { readonly flags: number; readonly tag: string; readonly value: string };
}

export interface Question {
  readonly id: number;
  readonly recursionDesired: boolean;
  /** Lower case, without a final dot; the root is empty. */
  readonly name: string;
  /** A known type, or its number (RFC 3597): `TYPE15`. */
  readonly type: RecordType | `TYPE${number}`;
  /** Name, type and class as received: resolvers may verify the random case of their query (0x20). */
  readonly bytes: Uint8Array;
  /** The UDP payload size of the OPT record (RFC 6891). Undefined without one; the answer has none then either. */
  readonly udpBytes: number | undefined;
}

export interface ResourceRecord {
  readonly name: string;
  readonly type: RecordType;
  readonly data: Uint8Array;
}

const HEADER_BYTES = 12;
const MAX_NAME_BYTES = 255;
const MAX_LABEL_BYTES = 63;
const MAX_STRING_BYTES = 255;
const IN = 1;
const OPT = 41;
/** DNS Flag Day 2020: the largest payload that avoids IP fragmentation. */
const OUR_UDP_BYTES = 1_232;
export const MIN_UDP_BYTES = 512;
/** No caching: the next answer may differ. */
const TTL = 0;
/** Header flags. */
const [RESPONSE, AUTHORITATIVE, TRUNCATED, RECURSION_DESIRED] = [0x8000, 0x0400, 0x0200, 0x0100];
const OPCODE = 0x7800;

export function readQuery(message: Uint8Array): Question | undefined {
  if (message.length < HEADER_BYTES) return undefined;
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  const [id, flags, ...counts] = [0, 2, 4, 6, 8, 10].map((offset) => view.getUint16(offset));
  const [questions, answers, authorities, additional = 0] = counts;
  if (id === undefined || flags === undefined || flags & (RESPONSE | OPCODE)) return undefined;
  if (questions !== 1 || answers !== 0 || authorities !== 0 || additional > 1) return undefined;
  const name = readName(message, HEADER_BYTES);
  if (!name || name.end + 4 > message.length || view.getUint16(name.end + 2) !== IN) return undefined;
  const end = name.end + 4;
  const number = view.getUint16(name.end);
  const opt = additional === 1 ? readOpt(view, end) : undefined;
  if ((opt?.end ?? (additional === 0 ? end : undefined)) !== message.length) return undefined;
  return {
    id,
    recursionDesired: (flags & RECURSION_DESIRED) !== 0,
    name: name.text,
    type: (Object.keys(TYPES) as RecordType[]).find((type) => TYPES[type] === number) ?? `TYPE${number}`,
    bytes: message.subarray(HEADER_BYTES, end),
    udpBytes: opt && Math.max(MIN_UDP_BYTES, Math.min(OUR_UDP_BYTES, opt.udpBytes)),
  };
}

/** Rejects compression pointers (RFC 1035, 4.1.4), and characters that have no plain dotted form. */
export function readName(
  bytes: Uint8Array,
  start: number,
): { readonly text: string; readonly end: number } | undefined {
  const labels: string[] = [];
  for (let offset = start; offset < Math.min(bytes.length, start + MAX_NAME_BYTES); ) {
    const length = bytes[offset]!;
    if (length === 0) return { text: labels.join('.').toLowerCase(), end: offset + 1 };
    const label = Buffer.from(bytes.subarray(offset + 1, offset + 1 + length)).toString('latin1');
    if (length > MAX_LABEL_BYTES || label.length !== length || !/^[!-\-/-~]+$/.test(label)) return undefined;
    labels.push(label);
    offset += 1 + length;
  }
  return undefined;
}

/** Only the payload size is used; flags and options are ignored. */
function readOpt(view: DataView, offset: number): { udpBytes: number; end: number } | undefined {
  if (offset + 11 > view.byteLength || view.getUint8(offset) !== 0 || view.getUint16(offset + 1) !== OPT)
    return undefined;
  return { udpBytes: view.getUint16(offset + 3), end: offset + 11 + view.getUint16(offset + 9) };
}

/** An answer larger than `maxBytes` becomes empty with the TC bit: the resolver retries over TCP. */
export function writeAnswer(
  question: Question,
  rcode: Rcode,
  records: readonly ResourceRecord[],
  maxBytes: number,
): Uint8Array {
  const body = records.map(({ name, type, data }) =>
    Buffer.concat([encodeName(name), uint16(TYPES[type], IN, 0, TTL, data.length), data]),
  );
  const opt =
    question.udpBytes === undefined ? [] : [Buffer.concat([Uint8Array.of(0), uint16(OPT, OUR_UDP_BYTES, 0, 0, 0)])];
  const encode = (answers: readonly Uint8Array[], flag: number) => {
    const flags = RESPONSE | AUTHORITATIVE | flag | (question.recursionDesired ? RECURSION_DESIRED : 0) | RCODES[rcode];
    const header = uint16(question.id, flags, 1, answers.length, 0, opt.length);
    return Buffer.concat([header, question.bytes, ...answers, ...opt]);
  };
  const answer = encode(body, 0);
  return answer.length <= maxBytes ? answer : encode([], TRUNCATED);
}

export const encodeValue: { readonly [T in RecordType]: (value: RecordValues[T]) => Uint8Array } = {
  A: (text) => encodeAddress(text, 4),
  AAAA: (text) => encodeAddress(text, 16),
  CNAME: (name) => encodeName(name),
  TXT: (value) =>
    Buffer.concat((typeof value === 'string' ? split(value) : value).map((one) => characterString(Buffer.from(one)))),
  CAA: ({ flags, tag, value }) => {
    if (!(flags >= 0 && flags <= 255)) throw new RangeError(`${flags} is not a byte`);
    return Buffer.concat([Uint8Array.of(flags), characterString(Buffer.from(tag)), Buffer.from(value)]);
  },
};

/** Accepts names with and without a final dot. */
export function encodeName(name: string): Uint8Array {
  const dotted = name.replace(/\.$/, '');
  const labels = dotted === '' ? [] : dotted.split('.').map((label) => Buffer.from(label, 'latin1'));
  const bytes = Buffer.concat([...labels.flatMap((label) => [Uint8Array.of(label.length), label]), Uint8Array.of(0)]);
  if (bytes.length > MAX_NAME_BYTES || labels.some(({ length }) => length === 0 || length > MAX_LABEL_BYTES)) {
    throw new RangeError(`${name} is not a name`);
  }
  return bytes;
}

function encodeAddress(text: string, length: number): Uint8Array {
  const bytes = parseAddress(text);
  if (bytes?.length !== length) throw new RangeError(`${text} is not an address of ${length} bytes`);
  return bytes;
}

/** Returns at least one string, even if empty: a TXT record without any is malformed. */
function split(text: string): Uint8Array[] {
  const bytes = Buffer.from(text);
  const count = Math.max(1, Math.ceil(bytes.length / MAX_STRING_BYTES));
  return Array.from({ length: count }, (_, index) =>
    bytes.subarray(index * MAX_STRING_BYTES, (index + 1) * MAX_STRING_BYTES),
  );
}

function characterString(bytes: Uint8Array): Uint8Array {
  if (bytes.length > MAX_STRING_BYTES) throw new RangeError('a string of more than 255 bytes');
  return Buffer.concat([Uint8Array.of(bytes.length), bytes]);
}

function uint16(...values: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc(2 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt16BE(value, 2 * index);
  return bytes;
}
