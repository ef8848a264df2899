// Nonces (RFC 8555, 6.5): time and random bits with a MAC under a secret that all instances share. Handing one out writes
// nothing; using one writes its id, until it would have expired anyway.
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import { badNonce, isCurrent, NONCE_MS, type Nonce } from '../../domain/acme/nonce.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Repositories } from '../../domain/store.ts';

export interface AcmeNonces {
  issue(): string;
  /** Throws `badNonce` for a text that is no nonce of this service, or has expired. Does not tell whether it was used. */
  read(text: string): Nonce;
  /** Throws `badNonce` if it was used before. */
  spend(db: Pick<Repositories, 'usedNonces'>, nonce: Nonce): Promise<void>;
}

interface NonceTools {
  readonly secret: Uint8Array;
  /** The clock that instances share. */
  readonly sharedNow: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
}

const TIME_BYTES = 6;
const RANDOM_BYTES = 12;
const MAC_BYTES = 16;
const ID_BYTES = TIME_BYTES + RANDOM_BYTES;

export function acmeNonces({ secret, sharedNow, randomBytes }: NonceTools): AcmeNonces {
  const key = createSecretKey(secret);
  const macOf = (id: Uint8Array): Uint8Array => createHmac('sha256', key).update(id).digest().subarray(0, MAC_BYTES);
  return {
    issue() {
      const id = Buffer.alloc(ID_BYTES);
      id.writeUIntBE(sharedNow(), 0, TIME_BYTES);
      id.set(randomBytes(RANDOM_BYTES), TIME_BYTES);
      return Buffer.concat([id, macOf(id)]).toString('base64url');
    },

    read(text) {
      const bytes = Buffer.from(text, 'base64url');
      // Another spelling of the same bytes would be another text in a log.
      if (bytes.length !== ID_BYTES + MAC_BYTES || bytes.toString('base64url') !== text) throw badNonce();
      const id = bytes.subarray(0, ID_BYTES);
      if (!timingSafeEqual(macOf(id), bytes.subarray(ID_BYTES))) throw badNonce();
      const issuedAt = id.readUIntBE(0, TIME_BYTES);
      if (!isCurrent(issuedAt, sharedNow())) throw badNonce();
      return { id: id.toString('base64url'), expiresAt: issuedAt + NONCE_MS };
    },

    async spend({ usedNonces }, nonce) {
      if (!(await usedNonces.spend(nonce))) throw badNonce();
    },
  };
}
