// Ports: what sign-in to the console needs from the store.
import type { AccountId } from '../ids.ts';
import type { Operator, Session, SessionOwner, SessionRecord } from './session.ts';

export interface Operators {
  /** False if there is one of that name. */
  insert(operator: Operator): Promise<boolean>;
  find(name: string): Promise<Operator | undefined>;
  /** By name. */
  list(): Promise<Operator[]>;
  count(): Promise<number>;
  /** Idempotent: disabling again keeps the earlier time. Ends sessions and links. Call in a transaction. */
  disable(name: string, at: number): Promise<Operator | undefined>;
}

export interface LoginLink {
  /** The store never sees the token itself. */
  readonly tokenHash: string;
  readonly operatorName: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface LoginLinks {
  /** Deletes the oldest links of the operator beyond `most`, this one included. Call in a transaction. */
  insert(link: LoginLink, most: number): Promise<void>;
  /** Deletes the link, so that it works once. Undefined if it is unknown, was used or has expired. */
  redeem(tokenHash: string, now: number): Promise<Operator | undefined>;
  deleteExpired(now: number, limit: number): Promise<number>;
}

export interface Sessions {
  /** Deletes the oldest sessions of the owner beyond `most`, this one included. Call in a transaction. */
  insert(session: SessionRecord & { readonly tokenHash: string }, owner: SessionOwner, most: number): Promise<void>;
  /**
   * With key and account, or operator, as they are now. Undefined if the session is unknown, has expired or was idle for
   * too long.
   */
  find(tokenHash: string, now: number): Promise<Session | undefined>;
  /** Live ones of the owner, the newest first. */
  listOf(owner: SessionOwner, now: number): Promise<SessionRecord[]>;
  /** Live ones of all owners, the newest first, at most `limit`. */
  list(now: number, limit: number): Promise<(SessionRecord & { readonly owner: SessionOwner })[]>;
  /** Never moves it back. */
  touch(id: string, at: number): Promise<void>;
  /** Whose it was; undefined if there is no such session, or it is not the given owner's. */
  delete(id: string, owner?: SessionOwner): Promise<SessionOwner | undefined>;
  /** Of all keys of the account. */
  deleteOf(accountId: AccountId): Promise<void>;
  /** And all links: what was ended or used since a backup must not live again in the restored store. */
  deleteAll(): Promise<void>;
  /** Expired or idle for too long. Returns the number of rows deleted, at most `limit`. */
  deleteExpired(now: number, limit: number): Promise<number>;
}
