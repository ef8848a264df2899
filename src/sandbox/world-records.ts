// The sandbox's outside world as data: its shape in the file, its bounds, how a command changes it, and the tables that
// the name server and the web answerer look things up in. Pure.
import { EXIT, Problem } from '../kernel/problem.ts';
import type { RecordType } from './dns-message.ts';
import { type Encoded, encodeAnswer } from './dns-server.ts';
import { readAnswer, readName, readText, readType, readUrl } from './world-values.ts';

/** As they were typed; one of the words for a fault stands alone. */
export interface DnsRecords {
  readonly name: string;
  readonly type: RecordType;
  readonly values: readonly string[];
}

export interface WebFile {
  readonly url: string;
  readonly text: string;
}

/** Each name and type once, each address once, in the order of the alphabet. */
export interface World {
  readonly dns: readonly DnsRecords[];
  readonly http: readonly WebFile[];
}

export interface Tables {
  readonly records: ReadonlyMap<string, ReadonlyMap<string, Encoded>>;
  readonly texts: ReadonlyMap<string, string>;
}

export const EMPTY: World = { dns: [], http: [] };
export const MAX_WORLD_BYTES = 4 * 1024 * 1024;
const MAX_NAMES = 1_000;
const LOOPBACK = '127.0.0.1';

const byKey = <T>(items: readonly T[], keyOf: (item: T) => string): T[] =>
  items.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
const dnsKey = ({ name, type }: Omit<DnsRecords, 'values'>): string => `${name} ${type}`;
const without = <T>(items: readonly T[], isGone: (item: T) => boolean): readonly T[] =>
  items.some(isGone) ? items.filter((item) => !isGone(item)) : items;

/** From the words of a command, or of the file. */
export function readRecords(name: string, type: string, values: readonly string[]): DnsRecords {
  const records = { name: readName(name), type: readType(type), values };
  readAnswer(records.name, records.type, values);
  return records;
}

export const readFile = (url: string, text: string): WebFile => ({ url: readUrl(url).url, text: readText(text) });

/** In place of what that name and type had. */
export function setRecords(world: World, records: DnsRecords): World {
  const others = without(world.dns, (one) => dnsKey(one) === dnsKey(records));
  return bounded({ ...world, dns: byKey([...others, records], dnsKey) });
}

/** All of a name, or of one type; the same world when there is nothing. */
export function clearRecords(world: World, name: string, type: RecordType | undefined): World {
  const dns = without(world.dns, (one) => one.name === name && (type ?? one.type) === one.type);
  return dns === world.dns ? world : { ...world, dns };
}

export function setFile(world: World, file: WebFile): World {
  const others = without(world.http, ({ url }) => url === file.url);
  return bounded({ ...world, http: byKey([...others, file], ({ url }) => url) });
}

export function clearFile(world: World, url: string): World {
  const http = without(world.http, (one) => one.url === url);
  return http === world.http ? world : { ...world, http };
}

export function printWorld(world: World): string {
  const text = `${JSON.stringify(world, null, 2)}\n`;
  if (Buffer.byteLength(text) > MAX_WORLD_BYTES) throw full(`${MAX_WORLD_BYTES} bytes`);
  return text;
}

/** Strict: what no command would have written is an error. */
export function parseWorld(text: string): World {
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
  requireOnce(records.map(dnsKey));
  requireOnce(files.map(({ url }) => url));
  return bounded({ dns: records, http: files });
}

/** A host with files is on this machine, over IPv4 alone, unless records of its own say otherwise. */
export function tablesOf({ dns, http }: World): Tables {
  const records = new Map<string, Map<string, Encoded>>();
  const at = (name: string) => {
    const known = records.get(name) ?? new Map<string, Encoded>();
    records.set(name, known);
    return known;
  };
  for (const { name, type, values } of dns) at(name).set(type, readAnswer(name, type, values));
  for (const host of new Set(http.map(({ url }) => readUrl(url).host))) {
    const known = at(host);
    if (!known.has('A') && !known.has('CNAME')) known.set('A', encodeAnswer(host, 'A', [LOOPBACK]));
  }
  return { records, texts: new Map(http.map(({ url, text }) => [url, text])) };
}

function requireOnce(keys: readonly string[]): void {
  const seen = new Set<string>();
  for (const key of keys) {
    if (seen.has(key)) throw new Error(`${key} is there twice`);
    seen.add(key);
  }
}

function bounded(world: World): World {
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
