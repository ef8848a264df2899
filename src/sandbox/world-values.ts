// Parses the values of the sandbox's DNS records and files as users type them. The file stores the same spelling, so
// that there is one parser. Pure; throws a Problem with an example of a valid value.
import { parseAddress } from '../domain/egress/addresses.ts';
import { EXIT, Problem } from '../kernel/problem.ts';
import { type RecordType, type RecordValues, TYPES } from './dns-message.ts';
import { type DnsReply, type EncodedReply, encodeReply } from './dns-server.ts';

const MAX_TEXT_BYTES = 64 * 1024;
const MAX_NAME_LENGTH = 253;
const MAX_URL_LENGTH = 2_048;
const MAX_EXCERPT = 60;

/** Keywords that stand alone, in place of values. */
const FAULTS = ['servfail', 'nxdomain', 'nodata', 'refused', 'silence'] as const satisfies readonly Exclude<
  DnsReply<RecordType>,
  readonly unknown[]
>[];

const usage = (message: string, remedy: string) => new Problem(EXIT.usage, message, remedy);

/** Bounded, and without control characters, which could forge log lines. */
export const excerpt = (text: string, length = MAX_EXCERPT): string =>
  text.slice(0, length).replace(/\p{C}/gu, '?') + (text.length > length ? '…' : '');

/** Returns the name in lower case, without a final dot. Allows underscores, as in `_validation-persist.example.com`. */
export function readName(text: string): string {
  const name = text.toLowerCase().replace(/\.$/, '');
  if (text.includes('*')) {
    throw usage(`${excerpt(text)} is not a name of records`, 'Leave out the *. : what proves it is at the name below.');
  }
  if (/[\u0080-\uffff]/.test(text)) {
    throw usage(`${excerpt(text)} is not a name as DNS knows it`, 'Write it with A-labels: xn--…');
  }
  const isName = name.length <= MAX_NAME_LENGTH && name.split('.').every((label) => /^[a-z0-9_-]{1,63}$/.test(label));
  if (!isName || /(^|\.)\d+$/.test(name)) {
    throw usage(`"${excerpt(text)}" is not a DNS name`, 'Write it like www.example.com.');
  }
  return name;
}

export function readType(text: string): RecordType {
  const types = Object.keys(TYPES) as RecordType[];
  const type = types.find((one) => one === text.toUpperCase());
  if (type) return type;
  throw usage(`"${excerpt(text)}" is not a type of records here`, `Use one of: ${types.join(', ')}.`);
}

const addressOf = (bytes: number) => (text: string) => (parseAddress(text)?.length === bytes ? text : undefined);

const VALUES: {
  readonly [T in RecordType]: { readonly read: (text: string) => RecordValues[T] | undefined; readonly like: string };
} = {
  A: { read: addressOf(4), like: '192.0.2.1' },
  AAAA: { read: addressOf(16), like: '2001:db8::1' },
  CNAME: { read: readName, like: 'www.example.net' },
  TXT: { read: (text) => text, like: 'any text' },
  CAA: { read: readCaa, like: `'0 issue "ca.example"', in quotes, so that it is one value` },
};

/** Flags, tag and value. The value is quoted as in a zone file, or unquoted. */
function readCaa(text: string): RecordValues['CAA'] | undefined {
  const [, digits, tag, rest] = /^(\d{1,3})[ \t]+([a-z0-9]{1,63})[ \t]+([^ \t].*)$/is.exec(text) ?? [];
  if (tag === undefined || rest === undefined || Number(digits) > 255) return undefined;
  const [, quoted] = /^"((?:[^"\\]|\\["\\])*)"$/s.exec(rest) ?? [];
  if (quoted === undefined && rest.includes('"')) return undefined;
  return { flags: Number(digits), tag, value: quoted?.replace(/\\(.)/gs, '$1') ?? rest };
}

/** Returns the reply that the name server sends. */
export function readReply<T extends RecordType>(name: string, type: T, texts: readonly string[]): EncodedReply {
  const fault = FAULTS.find((one) => texts.includes(one));
  if (fault && texts.length > 1) throw usage(`${fault} is an answer of its own`, 'Give it alone, or leave it out.');
  if (texts.length === 0) throw usage(`${name} ${type} has no value`, `Give at least one, like ${VALUES[type].like}.`);
  if (type === 'CNAME' && texts.length > 1) throw usage('a name is an alias of one other name', 'Give one value.');
  const values = fault ? [] : texts.map((text) => readValue(type, text));
  try {
    return encodeReply(name, type, fault ?? values);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw usage(`${name} ${type} cannot be sent: ${error.message}`, 'Give fewer or shorter values.');
  }
}

function readValue<T extends RecordType>(type: T, text: string): RecordValues[T] {
  const { read, like } = VALUES[type];
  const value = read(text);
  if (value !== undefined) return value;
  throw usage(`"${excerpt(text)}" is not a value of ${type} records`, `Write it like ${like}.`);
}

/** Parses the URL of a file as a validator requests it: without a port, which is always 80. */
export function readUrl(text: string): { readonly host: string; readonly url: string } {
  const parsed = text.length <= MAX_URL_LENGTH ? URL.parse(text) : null;
  const like = 'Write it like http://www.example.com/.well-known/pki-validation/fileauth.txt';
  if (parsed?.protocol !== 'http:' || !/^http:\/\//i.test(text)) {
    throw usage(`"${excerpt(text)}" is not an http:// address`, like);
  }
  const { port, username, password, search, hash, hostname, pathname } = parsed;
  if (port || username || password || search || hash) {
    throw usage(`${excerpt(text)} has more than a name and a path`, `Leave out port, user, query and #. ${like}`);
  }
  const host = readName(hostname);
  return { host, url: `http://${host}${pathname}` };
}

export function readText(text: string): string {
  if (Buffer.byteLength(text) <= MAX_TEXT_BYTES) return text;
  throw usage(`the text has more than ${MAX_TEXT_BYTES} bytes`, 'Give a shorter one: validators do not read as much.');
}
