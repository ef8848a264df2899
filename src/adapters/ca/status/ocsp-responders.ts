// Delegated OCSP responders (RFC 6960, 4.2.2.2): a short-lived key and certificate per issuer, so that the issuer's own
// key signs rarely. Created on first use, renewed when a third of the lifetime is left, shared through the store. The
// serial number is recorded before it is signed, like every other.

import type { IssuerKeyType } from '../../../domain/certificate/authority.ts';
import { backdated, floorToSecond } from '../../../domain/certificate/validity.ts';
import type { Clock } from '../../../domain/clock.ts';
import type { OcspResponder } from '../../../domain/revocation/ports.ts';
import type { Store } from '../../../domain/store.ts';
import type { KeyedMutex } from '../../../kernel/concurrency.ts';
import { DAY_MS } from '../../../kernel/durations.ts';
import { readCertificate } from '../certificate-reader.ts';
import { newIssuerKey, openIssuerKey } from '../issuer-key.ts';
import { newSerial } from '../issuers.ts';
import { keyBitsOf, responderExtensions } from '../profiles.ts';
import { DEFAULT_HASH, defaultAlgorithm, toBeSigned } from '../to-be-signed.ts';
import { responderByKey, responderByName, responseSigner, type SignResponse } from './ocsp-response.ts';
import { digestOf, type StatusSigner } from './signers.ts';

const LIFE_MS = 30 * DAY_MS;

/** P-256 also for P-384 issuers: it signs several times faster, and responses live for hours only. */
const RESPONDER_KEYS: Readonly<Record<IssuerKeyType, IssuerKeyType>> = {
  p256: 'p256',
  p384: 'p256',
  rsa: 'rsa',
  sm2: 'sm2',
};

export interface Responder {
  readonly serial: string;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly signed: SignResponse;
}

export interface Responders {
  /** The issuer's responder. Undefined when the issuer has expired. */
  of(signer: StatusSigner): Promise<Responder | undefined>;
  /** Renews responders that exist, whichever instance created them. */
  renewDue(signers: Iterable<StatusSigner>): Promise<void>;
}

interface ResponderTools {
  readonly store: Store;
  readonly now: Clock;
  readonly withLock: KeyedMutex;
  readonly onError: (error: unknown) => void;
  readonly onMade: (responder: OcspResponder) => void;
}

export function ocspResponders({ store, now, withLock, onError, onMade }: ResponderTools): Responders {
  const cache = new Map<string, Responder>();
  const renewing = new Set<string>();

  const isValid = ({ notBefore, notAfter }: Pick<Responder, 'notBefore' | 'notAfter'>) =>
    notBefore <= now() && now() < notAfter;
  const isFresh = (one: Pick<Responder, 'notBefore' | 'notAfter'>, { notAfter: end }: StatusSigner) =>
    // A responder that ends with its issuer cannot be renewed for longer.
    isValid(one) && (one.notAfter - now() > LIFE_MS / 3 || one.notAfter >= end);

  async function create(signer: StatusSigner): Promise<OcspResponder> {
    const at = now();
    const keyType = RESPONDER_KEYS[signer.keyType];
    const privateKey = await newIssuerKey(keyType, 'responder');
    const { spki } = openIssuerKey(keyType, privateKey);
    const serial = newSerial(at);
    const responder = {
      serial: Buffer.from(serial).toString('hex'),
      issuerId: signer.id,
      notBefore: backdated(at, signer),
      notAfter: Math.min(signer.notAfter, floorToSecond(at + LIFE_MS)),
    };
    const bytes = toBeSigned({
      ...{ serial, algorithm: signer.algorithm, issuer: signer.name, subject: signer.responder.subject, spki },
      ...{ notBefore: responder.notBefore, notAfter: responder.notAfter },
      extensions: responderExtensions(spki, signer.keyId, signer.responder.policies),
    });
    await store.ocspResponders.prepare(responder, at);
    return { ...responder, certificate: await signer.signed(bytes), privateKey };
  }

  /** Takes a fresh responder from the cache or the store, where another instance may have put it, or creates one. */
  const renew = (signer: StatusSigner): Promise<Responder> =>
    withLock(`ocsp ${signer.id}`, async () => {
      const known = cache.get(signer.id);
      if (known && isFresh(known, signer)) return known;
      let found = await store.ocspResponders.current(signer.id, now());
      if (!found || !isFresh(found, signer)) {
        found = await create(signer);
        await store.ocspResponders.finish(found);
        onMade(found);
      }
      const opened = open(signer, found);
      cache.set(signer.id, opened);
      return opened;
    });

  return {
    async of(signer) {
      if (signer.notAfter <= now()) return undefined;
      const known = cache.get(signer.id);
      if (!known || !isValid(known)) return await renew(signer);
      // Keeps answering with the current one while the next one is created.
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
        const known = cache.get(signer.id) ?? (await store.ocspResponders.current(signer.id, now()));
        if (known && !isFresh(known, signer)) await renew(signer);
      }
    },
  };
}

function open(signer: StatusSigner, responder: OcspResponder): Responder {
  const { serial, certificate, privateKey, notBefore, notAfter } = responder;
  const keyType = RESPONDER_KEYS[signer.keyType];
  const key = openIssuerKey(keyType, privateKey);
  const signed = responseSigner({
    certificate,
    // By name for GmSSL, which has no SHA-1. By key otherwise, which is shorter.
    responderId:
      keyType === 'sm2'
        ? responderByName(readCertificate(certificate).subject)
        : responderByKey(digestOf('sha1', keyBitsOf(key.spki))),
    algorithm: defaultAlgorithm(keyType),
    sign: (bytes) => key.sign(DEFAULT_HASH[keyType], bytes),
  });
  return { serial, notBefore, notAfter, signed };
}
