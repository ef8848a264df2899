// Access tokens: a key that has authenticated with its secret gets a short-lived token that stands for it in the signing
// API. The store keeps digests only. A token is never more than its key: key and account are read with it each time, so
// that it ends with either of them.
import { type Actor, type Caller, tokenEnd } from '../../domain/access/credential.ts';
import type { Clock } from '../../domain/clock.ts';
import { invalid, Refusal } from '../../domain/errors.ts';
import type { NewId } from '../../domain/ids.ts';
import { Secret } from '../../domain/secret.ts';
import type { Store } from '../../domain/store.ts';
import { SECOND_MS } from '../../kernel/durations.ts';
import { auditLog } from './audit.ts';
import { admitCaller, hashOfSecret } from './authenticate-caller.ts';

export interface UseAccessTokens {
  /** Call only for a caller who has sent the secret: a token that yielded another one would never end. */
  issue(by: Actor, caller: Caller): Promise<{ readonly token: Secret; readonly expiresInSeconds: number }>;
  authenticate(token: Secret): Promise<Caller>;
  /** Refuses a token that is not one of the caller's key. */
  revoke(by: Actor, caller: Caller, token: Secret): Promise<void>;
}

interface TokenTools {
  readonly store: Store;
  readonly now: Clock;
  readonly newId: NewId;
  readonly randomBytes: (count: number) => Uint8Array;
}

const TOKEN_BYTES = 32;
/** Per key: more workers than sign with one key at a time. A further login ends the oldest. */
const MAX_TOKENS = 100;

export function useAccessTokens({ store, now, newId, randomBytes }: TokenTools): UseAccessTokens {
  const audit = auditLog({ now, newId });
  const admit = admitCaller(store, now);
  return {
    async issue(by, { credential }) {
      const { keyId } = credential;
      const createdAt = store.sharedNow();
      const expiresAt = tokenEnd(credential, createdAt);
      const token = new Secret(Buffer.from(randomBytes(TOKEN_BYTES)).toString('base64url'));
      const tokenHash = hashOfSecret(token.reveal());
      await store.transaction(async (tx) => {
        await tx.accessTokens.insert({ tokenHash, keyId, createdAt, expiresAt }, MAX_TOKENS);
        await audit(tx, by, 'access-token:issued', keyId, { expires_at: expiresAt });
      });
      return { token, expiresInSeconds: Math.floor((expiresAt - createdAt) / SECOND_MS) };
    },

    async authenticate(token) {
      const caller = await store.accessTokens.findCaller(hashOfSecret(token.reveal()), store.sharedNow());
      if (!caller) throw new Refusal('unauthenticated_request');
      return admit(caller);
    },

    revoke: (by, { credential: { keyId } }, token) =>
      store.transaction(async (tx) => {
        if (!(await tx.accessTokens.delete(keyId, hashOfSecret(token.reveal())))) throw unknownToken();
        await audit(tx, by, 'access-token:revoked', keyId);
      }),
  };
}

const unknownToken = (): Refusal =>
  invalid(
    'token',
    'Invalid string parameter token: it is no access token of this key, was revoked, or has expired.',
    'token 无效：不是该密钥的访问令牌，或已被撤销、已过期。',
  );
