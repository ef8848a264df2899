// Questions to one resolver over UDP. Off-path attackers have to guess the source port (chosen by the kernel), the id and
// the case of the name, and get one guess: a connected socket accepts datagrams of the resolver's address only, and the
// first one that is no response to a question of the socket retires it and repeats its questions over TCP. Sockets are
// few, used in rotation, and bounded in questions and age. They never keep the process running; timers of lookups do.
import dgram from 'node:dgram';
import { randomBytes } from '../seal/random.ts';
import { type Ask, type AskedQuestion, type Outcome, outcomeOf, type ServerAddress, type Settle } from './exchange.ts';
import { encodeQuery, isResponseTo, MAX_UDP_BYTES, type Query, type Question } from './message.ts';

const SOCKETS = 8;
const MAX_QUESTIONS = 64;
const MAX_AGE_MS = 10_000;
const ID_BYTES = 2;

/** Opens sockets when questions need them. */
export function udpPool(address: ServerAddress): Ask {
  const pool: (UdpSocket | undefined)[] = Array(SOCKETS).fill(undefined);
  let turn = 0;
  return (question, settle) => {
    turn = (turn + 1) % SOCKETS;
    const kept = pool[turn];
    const socket = kept?.isOpen ? kept : new UdpSocket(address);
    pool[turn] = socket;
    return socket.ask(question, settle);
  };
}

class Asked implements AskedQuestion {
  readonly query: Query;
  readonly #socket: UdpSocket;
  /** Undefined once settled. The question is kept, because a late or second response to it is no forgery. */
  settle: Settle<Outcome> | undefined;

  constructor(socket: UdpSocket, query: Query, settle: Settle<Outcome>) {
    this.#socket = socket;
    this.query = query;
    this.settle = settle;
  }

  withdraw(): void {
    this.#socket.settle(this);
  }
}

class UdpSocket {
  /** Whether it takes another question. */
  isOpen = true;
  readonly #socket: dgram.Socket;
  readonly #asked = new Map<number, Asked>();
  readonly #age: NodeJS.Timeout;
  #waiting = 0;
  #isConnected = false;
  #isClosed = false;

  constructor({ host, family, port }: ServerAddress) {
    this.#socket = dgram.createSocket(family === 6 ? 'udp6' : 'udp4');
    this.#socket.on('error', () => this.#settleAll({ kind: 'unreachable' }));
    this.#socket.on('message', (message) => this.#receive(message));
    this.#socket.on('connect', () => {
      this.#isConnected = true;
      for (const { query, settle } of this.#asked.values()) if (settle) this.#send(query);
    });
    // Exclusive: a port of its own, also in a process that shares its listeners.
    this.#socket.bind({ port: 0, exclusive: true }, () => this.#socket.connect(port, host));
    this.#socket.unref();
    this.#age = setTimeout(() => this.#retire(), MAX_AGE_MS).unref();
  }

  ask(question: Question, settle: Settle<Outcome>): Asked {
    const query = this.#newQuery(question);
    const asked = new Asked(this, query, settle);
    this.#asked.set(query.id, asked);
    this.#waiting += 1;
    if (this.#asked.size === MAX_QUESTIONS) this.#retire();
    if (this.#isConnected) this.#send(query);
    return asked;
  }

  /** With an id that no other question of the socket has had. */
  #newQuery(question: Question): Query {
    for (;;) {
      const caseBytes = Math.ceil(question.name.length / 8);
      const random = randomBytes(caseBytes + ID_BYTES);
      const id = ((random[caseBytes] ?? 0) << 8) | (random[caseBytes + 1] ?? 0);
      if (!this.#asked.has(id)) return encodeQuery(question, id, random);
    }
  }

  #send({ message }: Query): void {
    this.#socket.send(message, this.#sent);
  }

  readonly #sent = (error: Error | null): void => {
    if (error) this.#settleAll({ kind: 'unreachable' });
  };

  #receive(message: Buffer): void {
    const isSized = message.length >= ID_BYTES && message.length <= MAX_UDP_BYTES;
    const asked = isSized ? this.#asked.get(message.readUInt16BE(0)) : undefined;
    if (!asked || !isResponseTo(asked.query, message)) this.#settleAll({ kind: 'odd' });
    else if (asked.settle) this.settle(asked, outcomeOf(asked.query, message));
  }

  /** Without an outcome, the question is withdrawn. */
  settle(asked: Asked, outcome?: Outcome): void {
    const { settle } = asked;
    if (!settle) return;
    asked.settle = undefined;
    this.#waiting -= 1;
    if (!this.isOpen) this.#retire();
    if (outcome) settle(outcome);
  }

  #settleAll(outcome: Outcome): void {
    this.#retire();
    for (const asked of this.#asked.values()) this.settle(asked, outcome);
  }

  /** Takes no more questions, and closes after the last outcome. */
  #retire(): void {
    this.isOpen = false;
    clearTimeout(this.#age);
    if (this.#waiting > 0 || this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close();
  }
}
