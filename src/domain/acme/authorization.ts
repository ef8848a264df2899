// An authorization: control of one name, shown for one order. It is answered by one challenge; the outcome of that decides.
import type { AccountId, OrderId } from '../ids.ts';
import type { AcmeMethod } from '../validation/method.ts';
import type { StoredProblem } from './stored-problem.ts';

interface AuthorizationFacts {
  readonly id: string;
  readonly orderId: OrderId;
  readonly accountId: AccountId;
  readonly acmeAccountId: string;
  /** With `*.` for a wildcard. */
  readonly name: string;
  /** Of all of its challenges. */
  readonly token: string;
  readonly expiresAt: number;
}

/** Waits for the client, or for the validation of the challenge that the client answered. */
export interface PendingAuthorization extends AuthorizationFacts {
  readonly state: 'pending';
  readonly answered: { readonly method: AcmeMethod; readonly dueAt: number } | null;
}

interface ValidAuthorization extends AuthorizationFacts {
  readonly state: 'valid';
  readonly method: AcmeMethod;
  readonly validatedAt: number;
}

interface InvalidAuthorization extends AuthorizationFacts {
  readonly state: 'invalid';
  readonly method: AcmeMethod;
  readonly problem: StoredProblem;
}

/** Given up by the client, or pending when its order ended. */
interface EndedAuthorization extends AuthorizationFacts {
  readonly state: 'deactivated' | 'expired';
}

export type Authorization = PendingAuthorization | ValidAuthorization | InvalidAuthorization | EndedAuthorization;

export const authorizationStatus = ({ state, expiresAt }: Authorization, now: number): Authorization['state'] =>
  (state === 'pending' || state === 'valid') && expiresAt <= now ? 'expired' : state;

export const factsOf = (one: Authorization): AuthorizationFacts => ({
  ...{ id: one.id, orderId: one.orderId, accountId: one.accountId, acmeAccountId: one.acmeAccountId },
  ...{ name: one.name, token: one.token, expiresAt: one.expiresAt },
});

/** What a change compares: nothing else may have happened to the authorization meanwhile. */
export type SeenAuthorization = { readonly state: 'pending' | 'valid'; readonly dueAt: number | null };
export const seenOf = (one: PendingAuthorization | ValidAuthorization): SeenAuthorization => ({
  state: one.state,
  dueAt: one.state === 'pending' ? (one.answered?.dueAt ?? null) : null,
});
