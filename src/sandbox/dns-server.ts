// An authoritative name server, on UDP and TCP, with configured replies: the sandbox needs no real domain, and tests
// get names that change, fail or time out. It never forwards a query.
import dgram from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';
import {
  encodeName,
  encodeValue,
  MIN_UDP_BYTES,
  type Question,
  type Rcode,
  type RecordType,
  type RecordValues,
  type ResourceRecord,
  readName,
  readQuery,
  writeAnswer,
} from './dns-message.ts';

/** Records of that type; an empty answer for an existing name; an error; or no response at all. */
export type DnsReply<T extends RecordType> =
  | readonly RecordValues[T][]
  | 'nodata'
  | 'nxdomain'
  | 'servfail'
  | 'refused'
  | 'silence';

interface DnsEntry {
  readonly name: string;
  readonly type: RecordType;
  readonly answers: readonly DnsReply<RecordType>[];
}

export type EncodedReply = readonly ResourceRecord[] | Exclude<DnsReply<RecordType>, readonly unknown[]>;

/** Replies of a name by type, or undefined. They take precedence over entries set on the server. */
export type ReplySource = (name: string) => ReadonlyMap<string, EncodedReply> | undefined;

interface StoredEntry extends DnsEntry {
  /** The replies still to send; the last one is repeated. */
  readonly next: EncodedReply[];
}

interface Resolution {
  readonly rcode: Rcode | 'silence';
  readonly records: readonly ResourceRecord[];
}

const ADDRESSES: readonly RecordType[] = ['A', 'AAAA'];
const MAX_ALIASES = 8;
const MAX_LOGGED = 1_000;
/** Leaves room for the CNAMEs in front: a message has at most 65,535 bytes. */
const MAX_RECORDS_BYTES = 60_000;
const MAX_TCP_CLIENTS = 64;
const MAX_TCP_QUERY_BYTES = 4_096;
const MAX_TCP_ANSWER_BYTES = 65_535;
const MAX_TCP_UNREAD_BYTES = 1024 * 1024;
const TCP_IDLE_MS = 5_000;
const PORT_TRIES = 20;

export class DnsServer implements AsyncDisposable {
  /** The last queries, oldest first. */
  readonly queries: { readonly name: string; readonly type: string }[] = [];
  readonly port: number;
  readonly #udp: dgram.Socket;
  readonly #tcp: net.Server;
  readonly #clients = new Set<net.Socket>();
  readonly #entries = new Map<string, StoredEntry>();
  readonly #replies: ReplySource;
  readonly #fallback: ReplySource;

  constructor(udp: dgram.Socket, tcp: net.Server, { replies, fallback }: Sources) {
    this.#udp = udp;
    this.#tcp = tcp;
    this.#replies = replies;
    this.#fallback = fallback;
    this.port = udp.address().port;
    // An undeliverable datagram surfaces as a socket error; ignore it.
    udp.on('error', () => {});
    udp.on('message', (message, from) => {
      const answer = this.#answer(message, ({ udpBytes = MIN_UDP_BYTES }) => udpBytes);
      if (answer && from.port > 0) udp.send(answer, from.port, from.address, () => {});
    });
    tcp.on('error', () => {});
    tcp.maxConnections = MAX_TCP_CLIENTS;
    tcp.on('connection', (client) => this.#serve(client));
  }

  /** Replaces an entry. Several answers are sent one after the other; the last one is repeated. */
  set<T extends RecordType>(name: string, type: T, ...answers: readonly DnsReply<T>[]): void {
    if (answers.length === 0) throw new RangeError('an entry without an answer');
    const owner = canonical(name);
    const next = answers.map((answer) => encodeReply(owner, type, answer));
    this.#entries.set(`${owner} ${type}`, { name: owner, type, answers, next });
  }

  /** Removes the entries of a name, or only those of one type. */
  clear(name: string, type?: RecordType): void {
    for (const [key, entry] of this.#entries) {
      if (entry.name === canonical(name) && (type ?? entry.type) === entry.type) this.#entries.delete(key);
    }
  }

  list(): DnsEntry[] {
    return Array.from(this.#entries.values(), ({ name, type, answers }) => ({ name, type, answers }));
  }

  /** Lets the process exit while the server runs. */
  unref(): void {
    this.#udp.unref();
    this.#tcp.unref();
  }

  async close(): Promise<void> {
    const closed = Promise.all([once(this.#udp, 'close'), once(this.#tcp, 'close')]);
    this.#udp.close();
    this.#tcp.close();
    for (const client of this.#clients) client.destroy();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** TCP framing (RFC 1035, 4.2.2): each message is prefixed with its length in two bytes. */
  #serve(client: net.Socket): void {
    let received = Buffer.alloc(0);
    this.#clients.add(client);
    client.on('close', () => this.#clients.delete(client));
    client.on('error', () => {});
    client.setTimeout(TCP_IDLE_MS, () => client.destroy());
    client.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 2) {
        const length = received.readUInt16BE(0);
        if (length > MAX_TCP_QUERY_BYTES || client.writableLength > MAX_TCP_UNREAD_BYTES) return void client.destroy();
        if (received.length < 2 + length) return;
        const answer = this.#answer(received.subarray(2, 2 + length), () => MAX_TCP_ANSWER_BYTES);
        received = received.subarray(2 + length);
        if (answer) client.write(Buffer.concat([Uint8Array.of(answer.length >> 8, answer.length & 255), answer]));
      }
    });
  }

  #answer(message: Uint8Array, maxBytes: (question: Question) => number): Uint8Array | undefined {
    const question = readQuery(message);
    if (!question) return undefined;
    this.queries.push({ name: question.name, type: question.type });
    if (this.queries.length > MAX_LOGGED) this.queries.shift();
    const { rcode, records } = this.#find(question.name, question.type);
    return rcode === 'silence' ? undefined : writeAnswer(question, rcode, records, maxBytes(question));
  }

  /** Follows CNAMEs, as a recursive resolver would. A CNAME loop ends after a few hops with the records so far. */
  #find(queried: string, type: Question['type']): Resolution {
    const records: ResourceRecord[] = [];
    let name = queried;
    for (let hop = 0; hop < MAX_ALIASES; hop += 1) {
      const alias = type === 'CNAME' ? undefined : this.#take(name, 'CNAME');
      const found = Array.isArray(alias) ? alias : (this.#take(name, type) ?? alias ?? this.#missing(name, type));
      if (typeof found === 'string') return { rcode: found === 'nodata' ? 'ok' : found, records };
      records.push(...found);
      if (found !== alias || !found[0]) break;
      name = readName(found[0].data, 0)?.text ?? '';
    }
    return { rcode: 'ok', records };
  }

  #take(name: string, type: string): EncodedReply | undefined {
    const known = this.#replies(name)?.get(type);
    if (known) return known;
    const next = this.#entries.get(`${name} ${type}`)?.next;
    return next && next.length > 1 ? next.shift() : next?.[0];
  }

  /** A name without addresses has those of the fallback; other records are missing all the same. */
  #missing(name: string, type: string): EncodedReply {
    const known = this.#replies(name);
    const set = this.list().filter((entry) => entry.name === name);
    const hasAddress = ADDRESSES.some((one) => known?.has(one) || set.some((entry) => entry.type === one));
    const given = hasAddress ? undefined : this.#fallback(name)?.get(type);
    return given ?? (known || set.length > 0 ? 'nodata' : 'nxdomain');
  }
}

/** Takes the name in `canonical` form. Throws a RangeError for values that do not fit into a message. */
export function encodeReply<T extends RecordType>(name: string, type: T, reply: DnsReply<T>): EncodedReply {
  encodeName(name);
  if (typeof reply === 'string') return reply;
  const records = reply.map((value: RecordValues[T]) => ({ name, type, data: encodeValue[type](value) }));
  if (sizeOf(records) > MAX_RECORDS_BYTES) throw new RangeError(`more than ${MAX_RECORDS_BYTES} bytes of records`);
  return records;
}

/** A record is its encoded name, ten fixed bytes and its data. */
const sizeOf = (records: readonly ResourceRecord[]): number =>
  records.reduce((bytes, { name, data }) => bytes + name.length + 2 + 10 + data.length, 0);

const canonical = (name: string): string => name.toLowerCase().replace(/\.$/, '');

interface Sources {
  readonly replies: ReplySource;
  /** Addresses of names that have none. */
  readonly fallback: ReplySource;
}

interface DnsOptions extends Partial<Sources> {
  readonly host: string;
  readonly port: number;
}

const NONE: ReplySource = () => undefined;

/** Port 0 picks a free port. Retries, because it must be free for both UDP and TCP. */
export async function startDnsServer({ host, port, replies = NONE, fallback = NONE }: DnsOptions): Promise<DnsServer> {
  for (let tries = 1; ; tries += 1) {
    const [tcp, udp] = [net.createServer(), dgram.createSocket(net.isIPv6(host) ? 'udp6' : 'udp4')];
    try {
      tcp.listen(port, host);
      await once(tcp, 'listening');
      udp.bind((tcp.address() as net.AddressInfo).port, host);
      await once(udp, 'listening');
      return new DnsServer(udp, tcp, { replies, fallback });
    } catch (error) {
      tcp.close();
      udp.close();
      if (port !== 0 || tries === PORT_TRIES || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}
