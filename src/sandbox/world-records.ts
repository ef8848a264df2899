// The content of sandbox-world.json: its schema and limits, the changes that commands make, and the lookup tables of
// the name server and the web server. Pure.
import { EXIT, Problem } from '../kernel/problem.ts';
import type { RecordType } from './dns-message.ts';
import { type EncodedReply, encodeReply } from './dns-server.ts';
import { readName, readReply, readText, readType, readUrl } from './world-values.ts';

/** As typed. The keyword of a fault, such as `servfail`, is the only value. */
export interface DnsRecords {
  readonly name: string;
  readonly type: RecordType;
  readonly values: readonly string[];
}

export interface WebFile {
  readonly url: string;
  readonly text: string;
}

/** Sorted. Each name and type, and each URL, is unique. */
export interface SandboxWorld {
  readonly dns: readonly DnsRecords[];
  readonly http: readonly WebFile[];
}

interface Tables {
  readonly replies: ReadonlyMap<string, ReadonlyMap<string, EncodedReply>>;
  readonly texts: ReadonlyMap<string, string>;
}

export const EMPTY_WORLD: SandboxWorld = { dns: [], http: [] };
export const MAX_WORLD_BYTES = 4 * 1024 * 1024;
const MAX_NAMES = 1_000;
const LOOPBACK = '127.0.0.1';

const byKey = <T>(items: readonly T[], keyOf: (item: T) => string): T[] =>
  items.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
const dnsKey = ({ name, type }: Omit<DnsRecords, 'values'>): string => `${name} ${type}`;
/** Returns the same array if nothing matches. */
const without = <T>(items: readonly T[], isDeleted: (item: T) => boolean): readonly T[] =>
  items.some(isDeleted) ? items.filter((item) => !isDeleted(item)) : items;

/** Validates the arguments of a command, or an entry of the file. */
export function readRecords(name: string, type: string, values: readonly string[]): DnsRecords {
  const records = { name: readName(name), type: readType(type), values };
  readReply(records.name, records.type, values);
  return records;
}

export const readFile = (url: string, text: string): WebFile => ({ url: readUrl(url).url, text: readText(text) });

/** Replaces the records of that name and type. */
export function setRecords(world: SandboxWorld, records: DnsRecords): SandboxWorld {
  const others = without(world.dns, (one) => dnsKey(one) === dnsKey(records));
  return bounded({ ...world, dns: byKey([...others, records], dnsKey) });
}

/** Deletes the records of a name, or only those of one type. Returns the same world if there are none. */
export function clearRecords(world: SandboxWorld, name: string, type: RecordType | undefined): SandboxWorld {
  const dns = without(world.dns, (one) => one.name === name && (type ?? one.type) === one.type);
  return dns === world.dns ? world : { ...world, dns };
}

export function setFile(world: SandboxWorld, file: WebFile): SandboxWorld {
  const others = without(world.http, ({ url }) => url === file.url);
  return bounded({ ...world, http: byKey([...others, file], ({ url }) => url) });
}

export function clearFile(world: SandboxWorld, url: string): SandboxWorld {
  const http = without(world.http, (one) => one.url === url);
  return http === world.http ? world : { ...world, http };
}

export function printWorld(world: SandboxWorld): string {
  const text = `${JSON.stringify(world, null, 2)}\n`;
  if (Buffer.byteLength(text) > MAX_WORLD_BYTES) throw full(`${MAX_WORLD_BYTES} bytes`);
  return text;
}

/** Strict: throws for anything that no command would have written. */
export function parseWorld(text: string): SandboxWorld {
  const { dns, http } = fieldsOf(JSON.parse(text), 'the file', ['dns', 'http']);
  const records = listOf(dns, 'dns').map((one): DnsRecords => {
    const fields = fieldsOf(one, 'an entry of dns', ['name', 'type', 'values']);
    const values = listOf(fields.values, 'values').map((value) => textOf(value, 'a value'));
    return readRecords(textOf(fields.name, 'a name'), textOf(fields.type, 'a type'), values);
  });
  const files = listOf(http, 'http').map((one): WebFile => {
    const { url, text } = fieldsOf(one, 'an entry of http', ['url', 'text']);
    return readFile(textOf(url, 'a url'), textOf(text, 'a text'));
  });
  requireUnique(records.map(dnsKey));
  requireUnique(files.map(({ url }) => url));
  return bounded({ dns: records, http: files });
}

/** A host with files resolves to loopback, over IPv4 only, unless it has address records of its own. */
export function tablesOf({ dns, http }: SandboxWorld): Tables {
  const replies = new Map<string, Map<string, EncodedReply>>();
  const at = (name: string) => {
    const known = replies.get(name) ?? new Map<string, EncodedReply>();
    replies.set(name, known);
    return known;
  };
  for (const { name, type, values } of dns) at(name).set(type, readReply(name, type, values));
  for (const host of new Set(http.map(({ url }) => readUrl(url).host))) {
    const known = at(host);
    if (!known.has('A') && !known.has('CNAME')) known.set('A', encodeReply(host, 'A', [LOOPBACK]));
  }
  return { replies, texts: new Map(http.map(({ url, text }) => [url, text])) };
}

function requireUnique(keys: readonly string[]): void {
  const seen = new Set<string>();
  for (const key of keys) {
    if (seen.has(key)) throw new Error(`${key} is there twice`);
    seen.add(key);
  }
}

function bounded(world: SandboxWorld): SandboxWorld {
  const names = new Set([...world.dns.map(({ name }) => name), ...world.http.map(({ url }) => readUrl(url).host)]);
  if (names.size > MAX_NAMES) throw full(`${MAX_NAMES} names`);
  return world;
}

const full = (limit: string) =>
  new Problem(
    EXIT.refused,
    `the sandbox’s outside world holds at most ${limit}`,
    'Clear what is not needed: reseal sandbox dns list, reseal sandbox http list',
  );

function fieldsOf<K extends string>(value: unknown, what: string, keys: readonly K[]): Record<K, unknown> {
  const given = typeof value === 'object' && value !== null ? Object.keys(value) : [];
  if (given.length === keys.length && keys.every((key) => given.includes(key))) return value as Record<K, unknown>;
  throw new Error(`${what} must have ${keys.join(', ')}, and nothing else`);
}

function listOf(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new Error(`${what} must be a list`);
}

function textOf(value: unknown, what: string): string {
  if (typeof value === 'string') return value;
  throw new Error(`${what} must be a text`);
}
