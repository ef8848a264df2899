// A customer's use of a cloud-held key: show, authorize, sign, change the access code, destroy.
//
// Each attempt is durably counted as wrong before the access code is compared, and only the right code resets the count.
// So neither a crash nor concurrent attempts buy a free guess. The right code yields a grant: a single-use token, valid
// for minutes, that signs exactly the digests it was authorized for.
import type { Actor } from '../../domain/access/credential.ts';
import type { SignHash } from '../../domain/certificate/sign-hash.ts';
import { GRANT_MS, lockoutMs, requirePin } from '../../domain/cloud-keys/cloud-key.ts';
import {
  areAuthorized,
  certificateStatus,
  hashNotAuthorized,
  impliedHash,
  invalidSad,
  requireDigests,
  requireSignatureCount,
  requireValidCertificate,
} from '../../domain/cloud-keys/cloud-signing.ts';
import type { KeyMakers, LivePage, SigningGrant } from '../../domain/cloud-keys/ports.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Page } from '../../domain/page.ts';
import type { Rate } from '../../domain/rate.ts';
import type { Secret } from '../../domain/secret.ts';
import type { Repositories } from '../../domain/store.ts';
import type { KeyedMutex } from '../../kernel/concurrency.ts';
import { SECOND_MS } from '../../kernel/durations.ts';
import { auditLog } from '../access/audit.ts';
import {
  destroyKey,
  type HeldKey,
  listKeys,
  type OperatorTools,
  showKey,
  withCertificates,
} from './operate-cloud-keys.ts';
import { newGrant, openGrant, tokenHash } from './signing-grant.ts';

export interface SigningRequest {
  readonly signHash: SignHash;
  readonly digests: readonly Uint8Array[];
}

export interface AuthorizationRequest extends Omit<SigningRequest, 'signHash'> {
  /** Undefined where the request names none, which version 1 of the signing API has no field for. */
  readonly signHash: SignHash | undefined;
  readonly pin: Secret;
  readonly numSignatures: number;
}

export interface UseCloudKey {
  /** Includes destroyed keys. */
  list(accountId: AccountId, page: Page): Promise<HeldKey[]>;
  /** The newest `limit` keys that are not destroyed, of those older than the key `before`; oldest first. */
  listLive(accountId: AccountId, page: LivePage): Promise<HeldKey[]>;
  show(accountId: AccountId, id: string): Promise<HeldKey>;
  authorize(
    by: Actor,
    id: string,
    request: AuthorizationRequest,
  ): Promise<{ readonly token: Secret; readonly expiresInSeconds: number }>;
  /** Signatures in the order of the digests. */
  sign(by: Actor, id: string, request: SigningRequest & { readonly token: Secret }): Promise<Uint8Array[]>;
  changePin(
    by: Actor,
    id: string,
    request: { readonly pin: Secret; readonly newPin: Secret; readonly newHint: string | undefined },
  ): Promise<HeldKey>;
  /** Returns the destroyed key. */
  destroy(by: Actor, id: string, pin: Secret): Promise<HeldKey>;
}

interface CloudKeyTools extends OperatorTools {
  readonly keys: KeyMakers;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Serializes attempts per key: concurrent ones with the right code would lock it, as each counts as wrong at first. */
  readonly withKeyLock: KeyedMutex;
}

/** Attempts per account: each costs an Argon2id computation, which is slow by design. */
const PIN_RATE: Rate = { burst: 30, everyMs: 2_000 };

interface UnwrappedKey {
  readonly privateKey: Uint8Array;
  readonly wrappedKey: string;
}

export function useCloudKey(tools: CloudKeyTools): UseCloudKey {
  const { store, keys, randomBytes, withKeyLock } = tools;
  const audit = auditLog(tools);

  /** Resets the attempts, unless the code was changed or the key destroyed since `unwrap`. */
  async function accept(
    tx: Repositories,
    accountId: AccountId,
    id: string,
    { wrappedKey }: UnwrappedKey,
  ): Promise<void> {
    const key = await tx.cloudKeys.findForUpdate(accountId, id);
    if (!key) throw new Refusal('cloud_key_not_found');
    if (key.wrappedKey !== wrappedKey) throw new Refusal('sign_key_pin_wrong');
    await tx.cloudKeys.resetAttempts(accountId, id);
  }

  /** Returns the private key, which the caller wipes. The attempt counts as wrong until `accept`. */
  async function unwrap(by: Actor, id: string, pin: Secret): Promise<UnwrappedKey> {
    const at = store.sharedNow();
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
    const { wrappedKey } = attempt;
    const privateKey = await keys(by.accountId)
      .unwrap(wrappedKey, pin, id)
      .catch(async (error) => {
        // A failure of the service says nothing about the code and must not lock the key.
        await store.cloudKeys.withdrawAttempt(by.accountId, id, attempt);
        throw error;
      });
    if (privateKey) return { privateKey, wrappedKey };
    const wrongCodes = attempt.wrongCodes + 1;
    await audit(store, by, 'cloud-key:refused', id, { reason: 'wrong code', wrong_codes: wrongCodes });
    const lockMs = lockoutMs(wrongCodes);
    throw new Refusal('sign_key_pin_wrong', { ...(lockMs > 0 && { retryAfterSeconds: seconds(lockMs) }) });
  }

  /** The certificate that the grant was given under, which may have been revoked or have expired since. */
  async function requireCertificateOf(grant: SigningGrant, by: Actor): Promise<void> {
    const { accountId, keyId, certificateId } = grant;
    const certificate = certificateId
      ? await store.certificates.find(accountId, certificateId)
      : await store.certificates.findByCloudKey(accountId, keyId);
    const status = certificate?.state === 'issued' ? certificateStatus(certificate, tools.now()) : undefined;
    if (status !== 'valid') await audit(store, by, 'cloud-key:refused', keyId, { reason: 'certificate not valid' });
    requireValidCertificate(status);
  }

  const authorize: UseCloudKey['authorize'] = async (by, id, request) => {
    const { accountId } = by;
    const { pin, numSignatures, digests } = request;
    // Validate everything else first: an invalid request must not use up an attempt.
    const { key, certificate, certificateStatus: status } = await showKey(tools, accountId, id);
    const signHash = request.signHash ?? impliedHash(key.publicKey.type, digests);
    requireDigests(key.publicKey.type, signHash, digests);
    requireSignatureCount(numSignatures, digests.length);
    requireValidCertificate(status);
    const unwrapped = await unwrap(by, id, pin);
    const { privateKey } = unwrapped;
    try {
      const terms = {
        ...{ accountId, keyId: id, hashes: digests.map(base64), certificateId: certificate?.id ?? null },
        expiresAt: store.sharedNow() + GRANT_MS,
      };
      const { grant, token } = newGrant(terms, privateKey, randomBytes);
      await store.transaction(async (tx) => {
        await accept(tx, accountId, id, unwrapped);
        await tx.signingGrants.insert(grant);
        await audit(tx, by, 'cloud-key:authorized', id, { hashes: digests.length, sign_hash: signHash });
      });
      return { token, expiresInSeconds: GRANT_MS / SECOND_MS };
    } finally {
      privateKey.fill(0);
    }
  };

  const changePin: UseCloudKey['changePin'] = async (by, id, { pin, newPin, newHint }) => {
    requirePin(newPin, newHint, { pin: 'new_pin', hint: 'new_pin_tip' });
    const unwrapped = await unwrap(by, id, pin);
    const { privateKey } = unwrapped;
    try {
      const wrappedKey = await keys(by.accountId).wrap(privateKey, newPin, id);
      await store.transaction(async (tx) => {
        await accept(tx, by.accountId, id, unwrapped);
        // Without a new hint there is none: the old one describes the old code.
        await tx.cloudKeys.rewrap(by.accountId, id, wrappedKey, newHint || null);
        await audit(tx, by, 'cloud-key:changed', id);
      });
    } finally {
      privateKey.fill(0);
    }
    return await showKey(tools, by.accountId, id);
  };

  return {
    list: (accountId, page) => listKeys(tools, accountId, page),
    listLive: async (accountId, page) => await withCertificates(tools, await store.cloudKeys.listLive(accountId, page)),
    show: (accountId, id) => showKey(tools, accountId, id),

    authorize: (by, id, request) => withKeyLock(`${by.accountId} ${id}`, () => authorize(by, id, request)),
    changePin: (by, id, request) => withKeyLock(`${by.accountId} ${id}`, () => changePin(by, id, request)),

    async sign(by, id, { token, signHash, digests }) {
      const { publicKey } = (await showKey(tools, by.accountId, id)).key;
      requireDigests(publicKey.type, signHash, digests);
      const grant = await store.signingGrants.take(by.accountId, id, tokenHash(token), store.sharedNow());
      if (!grant) throw invalidSad();
      if (!areAuthorized(grant.hashes, digests.map(base64))) {
        await audit(store, by, 'cloud-key:refused', id, { reason: 'hash not authorized' });
        throw hashNotAuthorized();
      }
      await requireCertificateOf(grant, by);
      const privateKey = openGrant(grant, token);
      try {
        const signatures: Uint8Array[] = [];
        const maker = keys(by.accountId);
        for (const digest of digests) signatures.push(await maker.sign(privateKey, publicKey, signHash, digest));
        // Audit before returning: no signature leaves the service without a record.
        await audit(store, by, 'cloud-key:signed', id, { hashes: digests.length, sign_hash: signHash });
        return signatures;
      } catch (error) {
        // Overload: restore the grant, so that the caller can retry without the access code.
        if (error instanceof Refusal && error.code === 'service_busy') await store.signingGrants.insert(grant);
        throw error;
      } finally {
        privateKey.fill(0);
      }
    },

    async destroy(by, id, pin) {
      (await unwrap(by, id, pin)).privateKey.fill(0);
      return await destroyKey(tools, by, id);
    },
  };
}

const seconds = (ms: number): number => Math.ceil(ms / SECOND_MS);
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
