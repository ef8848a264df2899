// Idle connections, kept for the next delivery of the same account to the same receiver. Two accounts never share one, and
// none is used for an address that the attempt at hand has not judged itself.
import type { OutboundUrl } from '../../domain/egress/outbound.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Connection, VettedAddress } from './connection.ts';

export interface KeepLimits {
  /** Shorter than receivers wait by default, so that they rarely close a connection just as it is used. */
  readonly idleMs: number;
  /** How long the receiver's certificate is trusted without being shown again. */
  readonly ageMs: number;
  readonly exchanges: number;
  readonly perAccount: number;
  readonly total: number;
}

/** Those of one account to one receiver. */
interface IdleConnections {
  /** The most recently used one to any of these addresses. Closes those to other addresses. */
  take(addresses: readonly VettedAddress[]): Connection | undefined;
  closeAll(): void;
  /** Takes ownership, and closes the connection if a limit is reached. Call only if it can serve another exchange. */
  keep(connection: Connection): void;
}

interface Owner {
  readonly accountId: AccountId;
  readonly receiver: string;
}

interface Idle extends Owner {
  readonly connection: Connection;
  readonly timer: NodeJS.Timeout;
}

export class KeptConnections implements Disposable {
  readonly #limits: KeepLimits;
  /** Of each account the longest idle first. An account without any has no entry. */
  readonly #idle = new Map<AccountId, Set<Idle>>();
  #total = 0;
  #isClosed = false;

  constructor(limits: KeepLimits) {
    this.#limits = limits;
  }

  of(accountId: AccountId, { scheme, host, port }: OutboundUrl): IdleConnections {
    const owner = { accountId, receiver: `${scheme}://${host}:${port}` };
    return {
      take: (addresses) => this.#take(owner, addresses),
      closeAll: () => void this.#take(owner, []),
      keep: (connection) => this.#keep(owner, connection),
    };
  }

  /** Closes all, and whatever is to be kept later. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    for (const own of this.#idle.values()) for (const one of own) this.#close(one);
  }

  #take({ accountId, receiver }: Owner, addresses: readonly VettedAddress[]): Connection | undefined {
    let last: Idle | undefined;
    for (const one of this.#idle.get(accountId) ?? []) {
      if (one.receiver !== receiver) continue;
      if (one.connection.isOpen && one.connection.findIn(addresses)) last = one;
      else this.#close(one);
    }
    if (last) this.#remove(last);
    return last?.connection;
  }

  #keep(owner: Owner, connection: Connection): void {
    const { idleMs, ageMs, exchanges, perAccount, total } = this.#limits;
    const restMs = connection.openedAt + ageMs - performance.now();
    if (this.#isClosed || connection.exchanges >= exchanges || restMs <= 0) {
      connection.destroy();
      return;
    }
    const own = this.#idle.get(owner.accountId) ?? new Set();
    if (own.size >= perAccount) this.#closeFirst(own);
    else if (this.#total >= total) this.#closeFirst(this.#largest());
    const close = () => this.#close(one);
    const timer = setTimeout(close, Math.min(idleMs, restMs)).unref();
    const one: Idle = { ...owner, connection, timer };
    // No request is pending: bytes that arrive now would be read as the response to the next one.
    connection.listen({ onData: close, onEnd: close });
    this.#idle.set(owner.accountId, own.add(one));
    this.#total += 1;
  }

  /** Of the account with the most: no account displaces the connections of one that has fewer. */
  #largest(): ReadonlySet<Idle> {
    return [...this.#idle.values()].reduce((a, b) => (b.size > a.size ? b : a));
  }

  #closeFirst(idle: ReadonlySet<Idle>): void {
    const [first] = idle;
    if (first) this.#close(first);
  }

  #close(one: Idle): void {
    this.#remove(one);
    one.connection.destroy();
  }

  #remove(one: Idle): void {
    clearTimeout(one.timer);
    const own = this.#idle.get(one.accountId);
    if (!own?.delete(one)) return;
    this.#total -= 1;
    if (own.size === 0) this.#idle.delete(one.accountId);
  }
}
