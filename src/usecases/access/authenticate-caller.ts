// Who is calling? Both headers, looked up by key id. In this order: is there such a key, does the secret match, may
// the key still be used. An unknown id and a wrong secret take the same path and the same time, and the state of a
// key shows only to whoever holds its secret.
import { createHash, timingSafeEqual } from 'node:crypto';
import { type Caller, type Credential, requireUsable } from '../../domain/access/credential.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { Secret } from '../../domain/secret.ts';
import type { Store } from '../../domain/store.ts';

export interface Presented {
  readonly keyId: string | undefined;
  readonly authKey: Secret | undefined;
}

export type AuthenticateCaller = (presented: Presented) => Promise<Caller>;

// No secret has this hash: comparing against it takes as long as comparing against a real one.
const NOBODY = '0'.repeat(64);
// "Last used" is for people who clean up keys; a minute is fine enough, and spares a write on every request.
const TOUCH_EVERY_MS = 60_000;

export function authenticateCaller(store: Store, now: Clock, matches = hasHash): AuthenticateCaller {
  const touching = new Set<string>();
  return async ({ keyId, authKey }) => {
    const found = await store.credentials.findForAuthentication(keyId ?? '');
    const isRight = matches(authKey?.reveal() ?? '', found?.secretHash ?? NOBODY);
    if (!found || !isRight) throw new Refusal('unauthenticated_request');
    const { caller } = found;
    requireUsable(caller.credential, now());
    touch(caller.credential);
    return caller;
  };

  // Nobody waits for this: a store that can read but not write should still let readers in, at once.
  function touch({ keyId, lastUsedAt }: Credential): void {
    if ((lastUsedAt ?? 0) + TOUCH_EVERY_MS > now() || touching.has(keyId)) return;
    touching.add(keyId);
    const done = () => touching.delete(keyId);
    store.credentials.touch(keyId, now()).then(done, done);
  }
}

/** Keys carry 256 bits of randomness, so a plain hash is enough: there is nothing to guess. */
export const hashOfSecret = (secret: string): string => createHash('sha256').update(secret).digest('hex');

const hasHash = (secret: string, hash: string): boolean =>
  timingSafeEqual(Buffer.from(hashOfSecret(secret)), Buffer.from(hash));
