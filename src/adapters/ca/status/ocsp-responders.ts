// Who answers OCSP in the name of an issuer: a key and a certificate of days, so that the issuer's own key signs only
// once in a while. Made on first use, renewed by itself when a third of its life is left, shared through the store. The
// serial number is written down before it is signed, like every other.
import type { IssuerKeyType } from '../../../domain/certificate/authority.ts';
import { wholeSecond } from '../../../domain/certificate/validity.ts';
import type { Clock } from '../../../domain/clock.ts';
import type { OcspResponder } from '../../../domain/revocation/ports.ts';
import type { Store } from '../../../domain/store.ts';
import { newIssuerKey, openIssuerKey } from '../issuer-key.ts';
import { newSerial, OWN_HASH } from '../issuers.ts';
import { keyBitsOf, responderExtensions } from '../profiles.ts';
import { distinguishedName, SIGNATURE_ALGORITHMS, toBeSigned } from '../to-be-signed.ts';
import { digestOf, type StatusSigner } from './signers.ts';

const HOUR_MS = 3_600_000;
const LIFE_MS = 30 * 24 * HOUR_MS;
/** A verifier whose clock is a little behind must not find one that is not valid yet. */
const EARLIER_MS = HOUR_MS;

/** A P-384 signature takes several times as long, and answers live for hours. */
const RESPONDER_KEYS: Readonly<Record<IssuerKeyType, IssuerKeyType>> = {
  p256: 'p256',
  p384: 'p256',
  rsa: 'rsa',
  sm2: 'sm2',
};
const NAME = distinguishedName({ commonName: 'OCSP Responder' });

export interface Responder {
  readonly serial: string;
  readonly certificate: Uint8Array;
  readonly keyHash: Uint8Array;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly algorithm: Uint8Array;
  sign(bytes: Uint8Array): Promise<Uint8Array>;
}

export interface Responders {
  /** Undefined when the issuer has ended: nobody may speak for it any more. */
  of(signer: StatusSigner): Promise<Responder | undefined>;
  /** Renews those that somebody has asked for, in any instance. */
  renewDue(signers: Iterable<StatusSigner>): Promise<void>;
}

export interface ResponderTools {
  readonly store: Store;
  readonly now: Clock;
  readonly withLock: <T>(key: string, work: () => Promise<T>) => Promise<T>;
  readonly onError: (error: unknown) => void;
}

export function ocspResponders({ store, now, withLock, onError }: ResponderTools): Responders {
  const held = new Map<string, Responder>();
  const renewing = new Set<string>();

  const isValid = ({ notBefore, notAfter }: Pick<Responder, 'notBefore' | 'notAfter'>) =>
    notBefore <= now() && now() < notAfter;
  const isFresh = (one: Pick<Responder, 'notBefore' | 'notAfter'>, { notAfter: end }: StatusSigner) =>
    // One that ends with its issuer cannot be made to live longer.
    isValid(one) && (one.notAfter - now() > LIFE_MS / 3 || one.notAfter >= end);

  async function make(signer: StatusSigner): Promise<OcspResponder> {
    const at = now();
    const keyType = RESPONDER_KEYS[signer.keyType];
    const privateKey = await newIssuerKey(keyType, 'issuing');
    const { spki } = openIssuerKey(keyType, privateKey);
    const serial = newSerial();
    const responder = {
      serial: Buffer.from(serial).toString('hex'),
      issuerId: signer.id,
      notBefore: Math.max(signer.notBefore, wholeSecond(at - EARLIER_MS)),
      notAfter: Math.min(signer.notAfter, wholeSecond(at + LIFE_MS)),
    };
    const bytes = toBeSigned({
      ...{ serial, algorithm: signer.algorithm, issuer: signer.name, subject: NAME, spki },
      ...{ notBefore: responder.notBefore, notAfter: responder.notAfter },
      extensions: responderExtensions(spki, signer.keyId),
    });
    await store.ocspResponders.writeDown(responder, at);
    return { ...responder, certificate: await signer.signed(bytes), privateKey };
  }

  /** What is there already counts: another instance may have been faster. */
  const renew = (signer: StatusSigner): Promise<Responder> =>
    withLock(`ocsp ${signer.id}`, async () => {
      const known = held.get(signer.id);
      if (known && isFresh(known, signer)) return known;
      let found = await store.ocspResponders.current(signer.id, now());
      if (!found || !isFresh(found, signer)) {
        found = await make(signer);
        await store.ocspResponders.finish(found);
      }
      const opened = open(signer, found);
      held.set(signer.id, opened);
      return opened;
    });

  return {
    async of(signer) {
      if (signer.notAfter <= now()) return undefined;
      const known = held.get(signer.id);
      if (!known || !isValid(known)) return await renew(signer);
      // It still answers while the next one is made.
      if (!isFresh(known, signer) && !renewing.has(signer.id)) {
        renewing.add(signer.id);
        renew(signer)
          .catch(onError)
          .finally(() => renewing.delete(signer.id));
      }
      return known;
    },

    async renewDue(signers) {
      for (const signer of signers) {
        if (signer.isRoot || signer.notAfter <= now()) continue;
        const known = held.get(signer.id) ?? (await store.ocspResponders.current(signer.id, now()));
        if (known && !isFresh(known, signer)) await renew(signer);
      }
    },
  };
}

function open({ keyType }: StatusSigner, { serial, certificate, privateKey, notBefore, notAfter }: OcspResponder) {
  const ownType = RESPONDER_KEYS[keyType];
  const key = openIssuerKey(ownType, privateKey);
  const signHash = OWN_HASH[ownType];
  return {
    ...{ serial, certificate, notBefore, notAfter },
    keyHash: digestOf('sha1', keyBitsOf(key.spki)),
    algorithm: SIGNATURE_ALGORITHMS[ownType][signHash]!,
    sign: (bytes: Uint8Array) => key.sign(signHash, bytes),
  };
}
