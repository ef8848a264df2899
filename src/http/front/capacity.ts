// Limits concurrent requests: load shedding instead of an unbounded queue. A place is taken once the
// request is complete, so that what a caller has yet to send costs others nothing, and held until the operation has ended,
// also when its caller is gone. Accounts share one pool of places, strangers another one; both fairly (places.ts). Health
// checks are exempt, or an orchestrator would kill a busy service.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { AccountId } from '../../domain/ids.ts';
import { sweeper } from '../../kernel/concurrency.ts';
import { limitReached } from '../../usecases/access/in-flight.ts';
import { Places } from './places.ts';
import { networkOf } from './remote-network.ts';

interface Place {
  readonly pool: Places;
  readonly key: string;
}
type Entered = (refusal?: Error) => void;

declare module 'fastify' {
  interface FastifyContextConfig {
    isHealthCheck?: true;
  }
  interface FastifyRequest {
    /** The place that it holds. */
    place: Place | null;
  }
  interface FastifyInstance {
    /** For requests that say in their body whose they are: changes the stranger's place for one of the account. */
    enterAs(reply: FastifyReply, accountId: AccountId): Promise<void>;
  }
}

/** Requests wait this long for a place; callers are told to retry after a second. */
const MAX_WAIT_MS = 1_000;
const SWEEP_MS = 100;
/** What strangers may ask for is cheap. */
const ACCOUNT_PLACES_PER_PUBLIC_PLACE = 4;

export function limitConcurrency(app: FastifyInstance, maxRequests: number): void {
  const accounts = new Places(maxRequests, loopSaturation());
  const strangers = new Places(Math.ceil(maxRequests / ACCOUNT_PLACES_PER_PUBLIC_PLACE));
  const sweepWaiters = sweeper(SWEEP_MS, () => {
    for (const pool of [accounts, strangers]) pool.sweep(performance.now() - MAX_WAIT_MS);
    return accounts.hasWaiters || strangers.hasWaiters;
  });

  /** Calls `done` once the request holds a place, or with the refusal. */
  const enter = (reply: FastifyReply, account: AccountId | undefined, done: Entered) => {
    const { request } = reply;
    const place =
      account === undefined ? { pool: strangers, key: networkOf(request.ip) } : { pool: accounts, key: account };
    if (!place.pool.take(place.key)) return wait(reply, place, done);
    request.place = place;
    done();
  };
  const wait = (reply: FastifyReply, place: Place, done: Entered) => {
    const { pool, key } = place;
    /** Strangers have no limit of their own to be told of. */
    const refusal = (isOwnShare: boolean) => limitReached(isOwnShare && pool === accounts ? 'account' : 'service');
    const admit = () => {
      reply.request.place = place;
      // The operation of a caller who is gone is not begun.
      done(reply.raw.destroyed ? limitReached('service') : undefined);
    };
    const refuse = (isOwnShare: boolean) => process.nextTick(done, refusal(isOwnShare));
    const waiter = { admit: () => process.nextTick(admit), refuse };
    if (!pool.wait(key, waiter, performance.now())) return done(refusal(pool.isShareUsed(key)));
    sweepWaiters();
  };

  app.decorateRequest('place', null);
  app.addHook('preValidation', (request, reply, done) => {
    if (request.route.isHealthCheck) return done();
    enter(reply, request.caller?.account.id, done);
  });
  app.decorate('enterAs', (reply: FastifyReply, accountId: AccountId) => {
    leave(reply.request);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    enter(reply, accountId, (refusal) => (refusal ? reject(refusal) : resolve()));
    return promise;
  });
  app.addHook('onSend', (request, _reply, payload, done) => {
    leave(request);
    done(null, payload);
  });
}

function leave(request: FastifyRequest): void {
  request.place?.pool.release(request.place.key);
  request.place = null;
}

const LOOK_EVERY_MS = 100;
const SATURATED = 0.9;

/** Whether the event loop was busy nearly all the time, of late. */
function loopSaturation(): () => boolean {
  let [at, last, isSaturated] = [0, performance.eventLoopUtilization(), false];
  return () => {
    const now = performance.now();
    if (now - at < LOOK_EVERY_MS) return isSaturated;
    const current = performance.eventLoopUtilization();
    isSaturated = performance.eventLoopUtilization(current, last).utilization > SATURATED;
    [at, last] = [now, current];
    return isSaturated;
  };
}
