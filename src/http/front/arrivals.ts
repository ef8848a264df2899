// Bounds requests whose body has yet to arrive. They hold no place (capacity.ts), but a socket and a buffer: so each has a
// deadline, each sender may have a few, and all together are bounded. A body that came with its head, as nearly all do,
// costs nothing here.
//
// The sender is the account or, before authentication, the network. A body that is not read, because the answer did not need
// it, is awaited as well: to close a connection with bytes unread would reset it, and the caller might lose the answer.
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Refusal } from '../../domain/errors.ts';
import { sweeper } from '../../kernel/concurrency.ts';
import { limitReached } from '../../usecases/access/in-flight.ts';
import { networkOf } from './remote-network.ts';
import { TransportRefusal } from './reply.ts';

interface Bounds {
  readonly deadlineMs: number;
  readonly perSender: number;
  /** With the size limit of a body, this bounds memory. */
  readonly total: number;
}

const STRANGERS: Bounds = { deadlineMs: 3_000, perSender: 32, total: 1_024 };
/** 256 KiB in time even at 26 KB/s. */
const ACCOUNTS: Bounds = { deadlineMs: 10_000, perSender: 32, total: 256 };
const SWEEP_MS = 250;

interface Arrival {
  readonly reply: FastifyReply;
  readonly sender: string;
  readonly dueAt: number;
}

export function boundArrivals(app: FastifyInstance): void {
  const strangers = new Arrivals(STRANGERS);
  const accounts = new Arrivals(ACCOUNTS);
  const expire = sweeper(SWEEP_MS, () => {
    const now = performance.now();
    for (const arrivals of [strangers, accounts]) arrivals.expire(now);
    return strangers.isWaiting || accounts.isWaiting;
  });
  /** False if the sender has too many. */
  const begin = (request: FastifyRequest, reply: FastifyReply): boolean => {
    const account = request.caller?.account.id;
    const hasBegun =
      account === undefined ? strangers.begin(reply, networkOf(request.ip)) : accounts.begin(reply, account);
    if (hasBegun) expire();
    return hasBegun;
  };

  app.addHook('preParsing', (request, reply, payload, done) => {
    if (!isIncomplete(request.raw)) return done(null, payload);
    // Node runs ticks and promises between a head and the rest of what arrived with it.
    setImmediate(() => {
      if (!isIncomplete(request.raw) || begin(request, reply)) return done(null, payload);
      reply.header('connection', 'close');
      done(limitReached(request.caller ? 'account' : 'service'));
    });
  });
  app.addHook('onSend', (request, reply, payload, done) => {
    if (isIncomplete(request.raw) && !isAwaited(reply) && !begin(request, reply)) reply.header('connection', 'close');
    done(null, payload);
  });
  const isAwaited = (reply: FastifyReply) => strangers.has(reply) || accounts.has(reply);
}

function isIncomplete({ complete, destroyed, headers }: IncomingMessage): boolean {
  if (complete || destroyed) return false;
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return length !== '0' || encoding !== undefined;
}

class Arrivals {
  readonly #bounds: Bounds;
  /** The oldest first. */
  readonly #all = new Map<FastifyReply, Arrival>();
  readonly #perSender = new Map<string, number>();

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  get isWaiting(): boolean {
    return this.#all.size > 0;
  }

  has(reply: FastifyReply): boolean {
    return this.#all.has(reply);
  }

  begin(reply: FastifyReply, sender: string): boolean {
    const { deadlineMs, perSender, total } = this.#bounds;
    const count = this.#perSender.get(sender) ?? 0;
    if (count >= perSender) return false;
    const [oldest] = this.#all.values();
    // An honest sender is done long before the oldest of so many.
    if (oldest && this.#all.size >= total) this.#giveUp(oldest);
    const arrival = { reply, sender, dueAt: performance.now() + deadlineMs };
    this.#all.set(reply, arrival);
    this.#perSender.set(sender, count + 1);
    reply.request.raw.once('close', () => this.#forget(arrival));
    return true;
  }

  expire(now: number): void {
    for (const arrival of this.#all.values()) {
      if (arrival.dueAt > now) return;
      this.#giveUp(arrival);
    }
  }

  /** Answers 408 where the body is awaited; an answer that went out already was answer enough. */
  #giveUp(arrival: Arrival): void {
    this.#forget(arrival);
    const { raw } = arrival.reply.request;
    if (arrival.reply.sent || raw.listenerCount('error') === 0) raw.socket.destroy();
    else raw.emit('error', tooSlow());
  }

  #forget({ reply, sender }: Arrival): void {
    if (!this.#all.delete(reply)) return;
    const count = this.#perSender.get(sender) ?? 0;
    if (count > 1) this.#perSender.set(sender, count - 1);
    else this.#perSender.delete(sender);
  }
}

const tooSlow = (): Refusal =>
  new TransportRefusal(
    408,
    'invalid_parameters',
    { en: 'The body took too long to arrive. Send it at once.', zh: '请求体发送超时，请立即发送完整内容。' },
    { connection: 'close' },
  );
