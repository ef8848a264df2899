// Authenticates a caller by key id and secret. Checks, in this order: the key exists, the secret matches, the key is
// usable, its account is not suspended. An unknown id and a wrong secret cost the same hash and comparison, and only a
// caller with the right secret learns the state of a key or an account.
import { hash, timingSafeEqual } from 'node:crypto';
import { requireActive } from '../../domain/access/account.ts';
import { type Caller, type Credential, requireUsable } from '../../domain/access/credential.ts';
import { type Clock, isAhead } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { Secret } from '../../domain/secret.ts';
import type { Store } from '../../domain/store.ts';
import { MINUTE_MS } from '../../kernel/durations.ts';

export interface PresentedCredential {
  readonly keyId: string | undefined;
  readonly authKey: Secret | undefined;
}

export type AuthenticateCaller = (presented: PresentedCredential) => Promise<Caller>;

/** Compared against when the key id is unknown, for constant time. No secret has this hash. */
const DUMMY_HASH = '0'.repeat(64);
/** Resolution of "last used", which operators read to find unused keys. Spares a write on every request. */
const TOUCH_EVERY_MS = MINUTE_MS;

export function authenticateCaller(store: Store, now: Clock, matches = hasHash): AuthenticateCaller {
  const admit = admitCaller(store, now);
  return async ({ keyId, authKey }) => {
    const found = await store.credentials.findForAuthentication(keyId ?? '');
    const isMatch = matches(authKey?.reveal() ?? '', found?.secretHash ?? DUMMY_HASH);
    if (!found || !isMatch) throw new Refusal('unauthenticated_request');
    return admit(found.caller);
  };
}

/** Call only for a caller with the right secret. Returns the caller unless its key or account is refused. */
export function admitCaller(store: Store, now: Clock): (caller: Caller) => Caller {
  const touching = new Set<string>();
  return (caller) => {
    const at = now();
    requireUsable(caller.credential, at);
    requireActive(caller.account);
    touch(caller.credential, at);
    return caller;
  };

  // Fire and forget: a store that can read but not write must still authenticate callers.
  function touch({ keyId, lastUsedAt }: Credential, at: number): void {
    if (isAhead((lastUsedAt ?? 0) + TOUCH_EVERY_MS, at, TOUCH_EVERY_MS) || touching.has(keyId)) return;
    touching.add(keyId);
    const done = () => touching.delete(keyId);
    store.credentials.touch(keyId, at).then(done, done);
  }
}

/** A plain hash is enough: secrets have 256 random bits and cannot be brute-forced. */
export const hashOfSecret = (secret: string): string => hash('sha256', secret);

const hasHash = (secret: string, stored: string): boolean =>
  timingSafeEqual(Buffer.from(hashOfSecret(secret), 'latin1'), Buffer.from(stored, 'latin1'));
