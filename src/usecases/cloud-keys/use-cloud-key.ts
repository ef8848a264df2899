// Use a key that the service holds for an account: look at it, sign with it, give it another access code, destroy it.
//
// A try with an access code is counted as a wrong one, durably, before anything is compared; only the right code takes
// that back. So neither a crash nor many tries at once buy a further one. The right code is worth a grant: it signs the
// digests it was given for, once, within minutes.

import type { Actor } from '../../domain/access/credential.ts';
import type { AuditAction, AuditEntry } from '../../domain/access/ports.ts';
import type { SignHash } from '../../domain/certificate/sign-hash.ts';
import { lockAfter, requirePin } from '../../domain/cloud-keys/cloud-key.ts';
import {
  areAgreed,
  noGrant,
  notAgreed,
  requireCount,
  requireDigests,
  requireValidCertificate,
} from '../../domain/cloud-keys/cloud-signing.ts';
import type { KeyMaker } from '../../domain/cloud-keys/ports.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Page } from '../../domain/page.ts';
import type { Rate } from '../../domain/rate.ts';
import type { Secret } from '../../domain/secret.ts';
import type { Repositories } from '../../domain/store.ts';
import { keyedMutex } from '../../kernel/concurrency.ts';
import {
  allHeld,
  destroyKey,
  type HeldKey,
  keyAudit,
  listKeys,
  type OperatorTools,
  showKey,
} from './operate-cloud-keys.ts';
import { newGrant, openGrant, tokenHash } from './signing-grant.ts';

export interface SigningRequest {
  readonly signHash: SignHash;
  readonly digests: readonly Uint8Array[];
}

export interface UseCloudKey {
  /** Destroyed ones too. */
  list(accountId: AccountId, page: Page): Promise<HeldKey[]>;
  /** The last ones that are not destroyed, the earlier one first. */
  listLive(accountId: AccountId, limit: number): Promise<HeldKey[]>;
  show(accountId: AccountId, id: string): Promise<HeldKey>;
  authorize(
    by: Actor,
    id: string,
    wish: SigningRequest & { readonly pin: Secret; readonly numSignatures: number },
  ): Promise<{ readonly token: Secret; readonly expiresInSeconds: number }>;
  /** Signatures in the order of the digests. */
  sign(by: Actor, id: string, wish: SigningRequest & { readonly token: Secret }): Promise<Uint8Array[]>;
  changePin(
    by: Actor,
    id: string,
    wish: { readonly pin: Secret; readonly newPin: Secret; readonly newHint: string | undefined },
  ): Promise<HeldKey>;
  /** The key as it is afterwards. */
  destroy(by: Actor, id: string, pin: Secret): Promise<HeldKey>;
}

export interface CloudKeyTools extends OperatorTools {
  readonly keys: KeyMaker;
  readonly randomBytes: (count: number) => Uint8Array;
}

const GRANT_SECONDS = 300;
/** Access codes of one account: comparing one is made slow on purpose. */
const PIN_RATE: Rate = { burst: 30, everyMs: 2_000 };

/** With the text that the access code opened. */
interface Unlocked {
  readonly privateKey: Uint8Array;
  readonly locked: string;
}

export function useCloudKey(tools: CloudKeyTools): UseCloudKey {
  const { store, keys, now, newId, randomBytes } = tools;
  // Tries with one key follow each other: many at once with the right code would each count as wrong until compared.
  const withLock = keyedMutex();
  const audit = (tx: Repositories, by: Actor, action: AuditAction, id: string, details: AuditEntry['details'] = {}) =>
    tx.audit.append(keyAudit(newId(), now(), by, action, id, details));

  /** That the code was right, if it still is: meanwhile it may have been changed, or the key destroyed. */
  async function accept(tx: Repositories, accountId: AccountId, id: string, { locked }: Unlocked): Promise<void> {
    const key = await tx.cloudKeys.findForUpdate(accountId, id);
    if (!key) throw new Refusal('cloud_key_not_found');
    if (key.locked !== locked) throw new Refusal('sign_key_pin_wrong');
    await tx.cloudKeys.endAttempt(accountId, id);
  }

  /** The private key, which the caller wipes. That the code was right is for the caller to write down. */
  async function unlock(by: Actor, id: string, pin: Secret): Promise<Unlocked> {
    const at = now();
    const attempt = await store.transaction(async (tx) => {
      const waitMs = await tx.rateLimits.take(`cloud-key ${by.accountId}`, PIN_RATE, at);
      if (waitMs > 0) throw new Refusal('request_too_fast', { retryAfterSeconds: seconds(waitMs) });
      const begun = await tx.cloudKeys.beginAttempt(by.accountId, id, at);
      if (begun?.kind === 'locked') await audit(tx, by, 'cloud-key:refused', id, { reason: 'locked' });
      return begun;
    });
    if (!attempt) throw new Refusal('cloud_key_not_found');
    if (attempt.kind === 'locked') {
      throw new Refusal('sign_key_locked', { retryAfterSeconds: seconds(attempt.until - at) });
    }
    const privateKey = await keys.unlock(attempt.key.locked!, pin, id).catch(async (error) => {
      // We are at fault, not the code: whoever tries again must not find the key locked for that.
      await store.cloudKeys.withdrawAttempt(by.accountId, attempt.key);
      throw error;
    });
    if (privateKey) return { privateKey, locked: attempt.key.locked! };
    const wrongCodes = attempt.key.wrongCodes + 1;
    await audit(store, by, 'cloud-key:refused', id, { reason: 'wrong code', wrong_codes: wrongCodes });
    const lockMs = lockAfter(wrongCodes);
    throw new Refusal('sign_key_pin_wrong', { ...(lockMs > 0 && { retryAfterSeconds: seconds(lockMs) }) });
  }

  const authorize: UseCloudKey['authorize'] = async (by, id, { pin, numSignatures, signHash, digests }) => {
    const { accountId } = by;
    // Whatever is wrong without the access code is said before one is spent.
    const { key, certificateStatus } = await showKey(tools, accountId, id);
    requireDigests(key.publicKey.type, signHash, digests);
    requireCount(numSignatures, digests.length);
    requireValidCertificate(certificateStatus);
    const unlocked = await unlock(by, id, pin);
    const { privateKey } = unlocked;
    try {
      const terms = { accountId, keyId: id, hashes: digests.map(base64), expiresAt: now() + GRANT_SECONDS * 1000 };
      const { grant, token } = newGrant(terms, privateKey, randomBytes);
      await store.transaction(async (tx) => {
        await accept(tx, accountId, id, unlocked);
        await tx.signingGrants.insert(grant);
        await audit(tx, by, 'cloud-key:authorized', id, { hashes: digests.length, sign_hash: signHash });
      });
      return { token, expiresInSeconds: GRANT_SECONDS };
    } finally {
      privateKey.fill(0);
    }
  };

  const changePin: UseCloudKey['changePin'] = async (by, id, { pin, newPin, newHint }) => {
    requirePin(newPin, newHint, { pin: 'new_pin', hint: 'new_pin_tip' });
    const unlocked = await unlock(by, id, pin);
    const { privateKey } = unlocked;
    try {
      const locked = await keys.lock(privateKey, newPin, id);
      await store.transaction(async (tx) => {
        await accept(tx, by.accountId, id, unlocked);
        // A hint for the old code would mislead.
        await tx.cloudKeys.relock(by.accountId, id, locked, newHint || null);
        await audit(tx, by, 'cloud-key:changed', id);
      });
    } finally {
      privateKey.fill(0);
    }
    return await showKey(tools, by.accountId, id);
  };

  return {
    list: (accountId, page) => listKeys(tools, accountId, page),
    listLive: async (accountId, limit) => await allHeld(tools, await store.cloudKeys.listLive(accountId, limit)),
    show: (accountId, id) => showKey(tools, accountId, id),

    authorize: (by, id, wish) => withLock(`${by.accountId} ${id}`, () => authorize(by, id, wish)),
    changePin: (by, id, wish) => withLock(`${by.accountId} ${id}`, () => changePin(by, id, wish)),

    async sign(by, id, { token, signHash, digests }) {
      const { publicKey } = (await showKey(tools, by.accountId, id)).key;
      requireDigests(publicKey.type, signHash, digests);
      const grant = await store.signingGrants.take(by.accountId, id, tokenHash(token), now());
      if (!grant) throw noGrant();
      if (!areAgreed(grant.hashes, digests.map(base64))) {
        await audit(store, by, 'cloud-key:refused', id, { reason: 'hash not authorized' });
        throw notAgreed();
      }
      const privateKey = openGrant(grant, token);
      try {
        const signatures: Uint8Array[] = [];
        for (const digest of digests) signatures.push(await keys.sign(privateKey, publicKey, signHash, digest));
        // Before they are handed out: there is no signature that is not on record.
        await audit(store, by, 'cloud-key:signed', id, { hashes: digests.length, sign_hash: signHash });
        return signatures;
      } catch (error) {
        // Too much to do at the moment is no reason to ask for the access code again.
        if (error instanceof Refusal && error.code === 'service_busy') await store.signingGrants.insert(grant);
        throw error;
      } finally {
        privateKey.fill(0);
      }
    },

    async destroy(by, id, pin) {
      (await unlock(by, id, pin)).privateKey.fill(0);
      return await destroyKey(tools, by, id);
    },
  };
}

const seconds = (ms: number): number => Math.ceil(ms / 1000);
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
