// What clients publish to answer challenges of ACME in a sandbox: DNS records, files and certificates, in memory, until
// the sandbox stops. The operations and their bodies are those of pebble-challtestsrv, so that test scripts of clients
// work here. Bounded; never throws anything but RangeError, for bodies that cannot be used.
import { hash } from 'node:crypto';
import { serverName } from '../domain/acme/challenge.ts';
import { type RecordType, type RecordValues, TYPES } from './dns-message.ts';
import { type EncodedReply, encodeReply, type ReplySource } from './dns-server.ts';

const MAX_ENTRIES = 1_000;
const MAX_VALUES = 100;
const MAX_TEXT = 4_096;
/** Names of the sandbox itself, one of which is missing on purpose. */
const OWN_NAMES = /(^|\.)sandbox\.test$/;
const HTTP_PATH = /^http:\/\/[^/]*\/\.well-known\/acme-challenge\/([A-Za-z0-9_-]+)$/;

type Body = Readonly<Record<string, unknown>>;

export class ChallengeWorld {
  readonly #records = new Map<string, Map<RecordType, EncodedReply>>();
  readonly #values = new Map<string, readonly RecordValues[RecordType][]>();
  readonly #files = new Map<string, string>();
  /** Digests of key authorizations, by server name. */
  readonly #alpn = new Map<string, { readonly host: string; readonly digest: Uint8Array }>();
  #defaults: Partial<Record<RecordType, string>> = { A: '127.0.0.1' };

  readonly replies: ReplySource = (name) => this.#records.get(name);

  /** For names without any record: they are on this machine, so that clients need no DNS to answer over HTTP and TLS. */
  readonly fallback: ReplySource = (name) => {
    if (OWN_NAMES.test(name)) return undefined;
    const types = Object.entries(this.#defaults) as [RecordType, string][];
    return new Map(types.map(([type, address]) => [type, encodeReply(name, type, [address])]));
  };

  readonly textAt = (url: string): string | undefined => this.#files.get(HTTP_PATH.exec(url)?.[1] ?? '');
  readonly alpnAt = (name: string) => this.#alpn.get(name.toLowerCase());

  /** By operation. Each throws RangeError for a body that it cannot use. */
  readonly operations: Readonly<Record<string, (body: Body) => void>> = {
    'set-txt': (body) => this.#add(body, 'TXT', [textOf(body, 'value')]),
    'clear-txt': (body) => this.#clear(body, 'TXT'),
    'add-a': (body) => this.#add(body, 'A', listOf(body, 'addresses').map(asText)),
    'clear-a': (body) => this.#clear(body, 'A'),
    'add-aaaa': (body) => this.#add(body, 'AAAA', listOf(body, 'addresses').map(asText)),
    'clear-aaaa': (body) => this.#clear(body, 'AAAA'),
    'add-caa': (body) => this.#add(body, 'CAA', listOf(body, 'policies').map(policyOf)),
    'clear-caa': (body) => this.#clear(body, 'CAA'),
    'set-cname': (body) => {
      this.#clear(body, 'CNAME');
      this.#add(body, 'CNAME', [canonical(textOf(body, 'target'))]);
    },
    'clear-cname': (body) => this.#clear(body, 'CNAME'),
    'set-servfail': (body) => {
      for (const type of TYPE_NAMES) this.#at(hostOf(body)).set(type, 'servfail');
    },
    'clear-servfail': (body) => {
      for (const type of TYPE_NAMES) this.#clear(body, type);
    },
    'set-default-ipv4': (body) => this.#setDefault('A', textOf(body, 'ip')),
    'set-default-ipv6': (body) => this.#setDefault('AAAA', textOf(body, 'ip')),
    'add-http01': (body) => put(this.#files, textOf(body, 'token'), textOf(body, 'content')),
    'del-http01': (body) => void this.#files.delete(textOf(body, 'token')),
    'add-tlsalpn01': (body) => {
      const host = hostOf(body);
      put(this.#alpn, serverName(host), { host, digest: hash('sha256', textOf(body, 'content'), 'buffer') });
    },
    'del-tlsalpn01': (body) => void this.#alpn.delete(serverName(hostOf(body))),
  };

  #at(host: string): Map<RecordType, EncodedReply> {
    const known = this.#records.get(host);
    if (known) return known;
    const fresh = new Map<RecordType, EncodedReply>();
    put(this.#records, host, fresh);
    return fresh;
  }

  /** Beside those that are there: several clients may answer for one name. */
  #add<T extends RecordType>(body: Body, type: T, added: readonly RecordValues[T][]): void {
    const host = hostOf(body);
    const key = `${host} ${type}`;
    const values = [...((this.#values.get(key) ?? []) as readonly RecordValues[T][]), ...added];
    if (values.length > MAX_VALUES) throw new RangeError(`more than ${MAX_VALUES} records`);
    const reply = encodeReply(host, type, values);
    this.#at(host).set(type, reply);
    this.#values.set(key, values);
  }

  #clear(body: Body, type: RecordType): void {
    const host = hostOf(body);
    this.#values.delete(`${host} ${type}`);
    this.#records.get(host)?.delete(type);
    if (this.#records.get(host)?.size === 0) this.#records.delete(host);
  }

  #setDefault(type: 'A' | 'AAAA', address: string): void {
    const { [type]: _, ...others } = this.#defaults;
    if (address !== '') encodeReply('name', type, [address]);
    this.#defaults = address === '' ? others : { ...others, [type]: address };
  }
}

const TYPE_NAMES = Object.keys(TYPES) as readonly RecordType[];

function put<T>(map: Map<string, T>, key: string, value: T): void {
  if (map.size >= MAX_ENTRIES && !map.has(key)) throw new RangeError(`more than ${MAX_ENTRIES} entries`);
  map.set(key, value);
}

const canonical = (name: string): string => name.toLowerCase().replace(/\.$/, '');
const hostOf = (body: Body): string => canonical(textOf(body, 'host'));
const textOf = (body: Body, field: string): string => asText(body[field], field);

function asText(value: unknown, field: unknown = 'a value'): string {
  if (typeof value === 'string' && value.length <= MAX_TEXT) return value;
  throw new RangeError(`${field} is a text of at most ${MAX_TEXT} characters`);
}

function listOf(body: Body, field: string): readonly unknown[] {
  const value = body[field];
  if (Array.isArray(value) && value.length > 0 && value.length <= MAX_VALUES) return value;
  throw new RangeError(`${field} is a list of 1 to ${MAX_VALUES}`);
}

function policyOf(value: unknown): RecordValues['CAA'] {
  const policy = (value ?? {}) as Body;
  return { flags: 0, tag: textOf(policy, 'tag'), value: textOf(policy, 'value') };
}
