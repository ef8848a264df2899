// A real name server, on UDP and TCP, that says what it is told: the sandbox's answer to "I own no domain", and the
// tests' answer to names that change, fail or stay silent. It knows no other server and asks nobody.
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

/** Records of that type; none although the name exists; an error; or no answer at all. */
export type DnsAnswer<T extends RecordType> =
  | readonly RecordValues[T][]
  | 'nodata'
  | 'nxdomain'
  | 'servfail'
  | 'refused'
  | 'silence';

export interface DnsEntry {
  readonly name: string;
  readonly type: RecordType;
  readonly answers: readonly DnsAnswer<RecordType>[];
}

export type Encoded = readonly ResourceRecord[] | Exclude<DnsAnswer<RecordType>, readonly unknown[]>;

/** What another place knows about a name, by type; it goes before what was set here. Undefined if it knows nothing. */
export type Records = (name: string) => ReadonlyMap<string, Encoded> | undefined;

interface Stored extends DnsEntry {
  /** Still to be given; the last one stays. */
  readonly next: Encoded[];
}

interface Found {
  readonly rcode: Rcode | 'silence';
  readonly records: readonly ResourceRecord[];
}

const MAX_ALIASES = 8;
const MAX_LOGGED = 1_000;
/** With room for aliases in front: no message, nor any length within it, can be longer than 65,535. */
const MAX_RECORDS_BYTES = 60_000;
const MAX_TCP_CLIENTS = 64;
const MAX_TCP_QUERY_BYTES = 4_096;
const MAX_TCP_ANSWER_BYTES = 65_535;
const MAX_TCP_UNREAD_BYTES = 1024 * 1024;
const TCP_IDLE_MS = 5_000;
const PORT_TRIES = 20;

export class DnsServer implements AsyncDisposable {
  /** What was asked, oldest first. */
  readonly queries: { readonly name: string; readonly type: string }[] = [];
  readonly port: number;
  readonly #udp: dgram.Socket;
  readonly #tcp: net.Server;
  readonly #clients = new Set<net.Socket>();
  readonly #entries = new Map<string, Stored>();
  readonly #records: Records;

  constructor(udp: dgram.Socket, tcp: net.Server, records: Records) {
    this.#udp = udp;
    this.#tcp = tcp;
    this.#records = records;
    this.port = udp.address().port;
    // A datagram that cannot be delivered is an error of the socket, and none of ours.
    udp.on('error', () => {});
    udp.on('message', (message, from) => {
      const answer = this.#answer(message, ({ udpBytes = MIN_UDP_BYTES }) => udpBytes);
      if (answer && from.port > 0) udp.send(answer, from.port, from.address, () => {});
    });
    tcp.on('error', () => {});
    tcp.maxConnections = MAX_TCP_CLIENTS;
    tcp.on('connection', (client) => this.#serve(client));
  }

  /** Several answers are given one after the other, and the last one from then on. */
  set<T extends RecordType>(name: string, type: T, ...answers: readonly DnsAnswer<T>[]): void {
    if (answers.length === 0) throw new RangeError('an entry without an answer');
    const owner = canonical(name);
    const next = answers.map((answer) => encodeAnswer(owner, type, answer));
    this.#entries.set(`${owner} ${type}`, { name: owner, type, answers, next });
  }

  /** All of a name, or of one type. */
  clear(name: string, type?: RecordType): void {
    for (const [key, entry] of this.#entries) {
      if (entry.name === canonical(name) && (type ?? entry.type) === entry.type) this.#entries.delete(key);
    }
  }

  list(): DnsEntry[] {
    return Array.from(this.#entries.values(), ({ name, type, answers }) => ({ name, type, answers }));
  }

  /** It no longer keeps the process alive. */
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

  /** A message of two bytes of length and a query, any number of times. */
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

  /** Follows aliases, as a resolver would on the asker's behalf; a circle of them ends in what there is. */
  #find(asked: string, type: Question['type']): Found {
    const records: ResourceRecord[] = [];
    let name = asked;
    for (let hop = 0; hop < MAX_ALIASES; hop += 1) {
      const alias = type === 'CNAME' ? undefined : this.#take(name, 'CNAME');
      const found = Array.isArray(alias) ? alias : (this.#take(name, type) ?? alias ?? this.#unset(name));
      if (typeof found === 'string') return { rcode: found === 'nodata' ? 'ok' : found, records };
      records.push(...found);
      if (found !== alias || !found[0]) break;
      name = readName(found[0].data, 0)?.text ?? '';
    }
    return { rcode: 'ok', records };
  }

  #take(name: string, type: string): Encoded | undefined {
    const known = this.#records(name)?.get(type);
    if (known) return known;
    const next = this.#entries.get(`${name} ${type}`)?.next;
    return next && next.length > 1 ? next.shift() : next?.[0];
  }

  #unset(name: string): 'nodata' | 'nxdomain' {
    return this.#records(name) || this.list().some((entry) => entry.name === name) ? 'nodata' : 'nxdomain';
  }
}

/** As it is kept and sent; the name as `canonical` spells it. Values that cannot be sent are a RangeError. */
export function encodeAnswer<T extends RecordType>(name: string, type: T, answer: DnsAnswer<T>): Encoded {
  encodeName(name);
  if (typeof answer === 'string') return answer;
  const records = answer.map((value: RecordValues[T]) => ({ name, type, data: encodeValue[type](value) }));
  if (sizeOf(records) > MAX_RECORDS_BYTES) throw new RangeError(`more than ${MAX_RECORDS_BYTES} bytes of records`);
  return records;
}

/** Besides its data, a record has ten bytes and a name. */
const sizeOf = (records: readonly ResourceRecord[]): number =>
  records.reduce((bytes, { name, data }) => bytes + name.length + 2 + 10 + data.length, 0);

const canonical = (name: string): string => name.toLowerCase().replace(/\.$/, '');

interface DnsOptions {
  readonly host: string;
  readonly port: number;
  readonly records?: Records;
}

/** On a free port if it is 0: one that is free for both protocols, which takes a try or two. */
export async function startDnsServer({ host, port, records = () => undefined }: DnsOptions): Promise<DnsServer> {
  for (let tries = 1; ; tries += 1) {
    const [tcp, udp] = [net.createServer(), dgram.createSocket(net.isIPv6(host) ? 'udp6' : 'udp4')];
    try {
      tcp.listen(port, host);
      await once(tcp, 'listening');
      udp.bind((tcp.address() as net.AddressInfo).port, host);
      await once(udp, 'listening');
      return new DnsServer(udp, tcp, records);
    } catch (error) {
      tcp.close();
      udp.close();
      if (port !== 0 || tries === PORT_TRIES || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}
