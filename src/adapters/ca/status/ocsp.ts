// Answers OCSP requests. The status is read from the store every time, so that a revocation shows at once whichever
// instance recorded it. Only signed responses to requests without a nonce are cached.

import type { Clock } from '../../../domain/clock.ts';
import { Refusal } from '../../../domain/errors.ts';
import type { SerialStatus } from '../../../domain/revocation/ports.ts';
import type { Store } from '../../../domain/store.ts';
import { HOUR_MS } from '../../../kernel/durations.ts';
import { DerError } from '../../der/reader.ts';
import { mapKey } from '../../der/writer.ts';
import { readOcspRequest, type SingleRequest } from './ocsp-request.ts';
import type { Responders } from './ocsp-responders.ts';
import { OCSP_ERRORS, responseToBeSigned, signedResponse } from './ocsp-response.ts';
import { digestOf, type StatusSigner, type StatusSigners } from './signers.ts';

/** The Baseline Requirements ask for at least 8 hours; less would make clients come back too often. */
const RESPONSE_LIFE_MS = 12 * HOUR_MS;
/** A cached response is replaced well before half of its life has passed. */
const CACHE_MS = HOUR_MS;
const MAX_CACHED = 4_096;
const MAX_CACHED_REQUEST = 256;
/** Requests need no credential and cost a signature each, so they must not starve authenticated callers. */
const MAX_CONCURRENT = 32;

/** Digests that clients use in CertID. Nearly all use SHA-1, which only identifies the issuer here. */
const HASHES: Readonly<Record<string, string>> = {
  '1.3.14.3.2.26': 'sha1',
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
  '1.2.156.10197.1.401': 'sm3',
};

interface UpdateTimes {
  readonly thisUpdate: number;
  readonly nextUpdate: number;
}

export interface OcspAnswer {
  readonly der: Uint8Array;
  /** Null when a cache must not keep the response. */
  readonly validity: UpdateTimes | null;
}
/** Malformed requests and overload are answered with OCSP error responses; only unexpected errors are thrown. */
export type AnswerOcsp = (request: Uint8Array) => Promise<OcspAnswer>;

interface OcspTools {
  readonly store: Store;
  readonly now: Clock;
  readonly signers: () => StatusSigners;
  readonly responders: Responders;
}

interface CachedAnswer extends OcspAnswer {
  readonly validity: UpdateTimes;
  readonly statuses: string;
  readonly responderSerial: string;
  readonly expiresAt: number;
}

const error = (kind: keyof typeof OCSP_ERRORS): OcspAnswer => ({ der: OCSP_ERRORS[kind], validity: null });

export function answerOcsp({ store, now, signers, responders }: OcspTools): AnswerOcsp {
  const cache = new Map<string, CachedAnswer>();
  const issuersOf = issuerIndex(signers);

  async function answer(bytes: Uint8Array): Promise<OcspAnswer> {
    // Taken before the look-up: the status is as of this time, and may change while the response is signed.
    const at = now();
    const { requests, nonce } = readOcspRequest(bytes);
    const issuers = issuersOf(requests[0]);
    const [signer] = issuers;
    // One response has one signature, hence one issuer.
    if (!signer || !requests.every((one) => issuersOf(one)[0] === signer)) return error('unauthorized');
    const responses = [];
    for (const { certId, serial } of requests) responses.push({ certId, status: await statusOf(issuers, serial) });
    const responder = await responders.of(signer);
    if (!responder) return error('unauthorized');
    const isCacheable = nonce === null && requests.length === 1 && bytes.length <= MAX_CACHED_REQUEST;
    const key = isCacheable ? mapKey(bytes) : '';
    const statuses = JSON.stringify(responses.map(({ status }) => status));
    const cached = cache.get(key);
    const isCurrent = cached?.statuses === statuses && cached.responderSerial === responder.serial;
    if (isCurrent && cached.validity.thisUpdate <= at && at < cached.expiresAt) return cached;
    const { serial: responderSerial, keyHash, algorithm, certificate } = responder;
    const nextUpdate = Math.min(at + RESPONSE_LIFE_MS, responder.notAfter);
    const toBeSigned = responseToBeSigned({ keyHash, producedAt: at, nextUpdate, responses, nonce });
    const der = signedResponse(toBeSigned, algorithm, await responder.sign(toBeSigned), certificate);
    const isUnknown = responses.some(({ status }) => status.kind === 'unknown');
    // An unknown serial number may be issued next; caching them would also let clients fill the cache.
    if (isUnknown || nonce) return { der, validity: null };
    const validity = { thisUpdate: at, nextUpdate };
    const fresh = { der, validity, statuses, responderSerial, expiresAt: at + CACHE_MS };
    if (isCacheable) put(cache, key, fresh);
    return fresh;
  }

  /** Asks every issuer with this name and key: an imported authority may be there twice. */
  async function statusOf(issuers: readonly StatusSigner[], serial: string | null): Promise<SerialStatus> {
    if (serial !== null) {
      for (const { id } of issuers) {
        const status = await store.revokedSerials.statusOf(id, serial);
        if (status.kind !== 'unknown') return status;
      }
    }
    return { kind: 'unknown' };
  }

  let inFlight = 0;
  return async (bytes) => {
    if (inFlight >= MAX_CONCURRENT) return error('tryLater');
    inFlight += 1;
    try {
      return await answer(bytes);
    } catch (problem) {
      if (problem instanceof DerError) return error('malformedRequest');
      if (problem instanceof Refusal) return error('tryLater');
      throw problem;
    } finally {
      inFlight -= 1;
    }
  };
}

/** Issuers by the hashes of their names and keys, computed once for every algorithm. Roots answer no OCSP. */
function issuerIndex(signers: () => StatusSigners): (request: SingleRequest) => readonly StatusSigner[] {
  let index: { of: StatusSigners; byHashes: Map<string, StatusSigner[]> } | undefined;
  const keyOf = (algorithm: string, name: Uint8Array, key: Uint8Array) => `${algorithm} ${mapKey(name)} ${mapKey(key)}`;
  return ({ hashAlgorithm, issuerNameHash, issuerKeyHash }) => {
    const of = signers();
    if (index?.of !== of) {
      const byHashes = new Map<string, StatusSigner[]>();
      for (const signer of of.values()) {
        if (signer.isRoot) continue;
        for (const [id, hash] of Object.entries(HASHES)) {
          const key = keyOf(id, digestOf(hash, signer.name), digestOf(hash, signer.keyBits));
          byHashes.set(key, [...(byHashes.get(key) ?? []), signer]);
        }
      }
      index = { of, byHashes };
    }
    return index.byHashes.get(keyOf(hashAlgorithm, issuerNameHash, issuerKeyHash)) ?? [];
  };
}

/** Evicts the oldest entry when full. */
function put(cache: Map<string, CachedAnswer>, key: string, answer: CachedAnswer): void {
  cache.delete(key);
  cache.set(key, answer);
  const oldest = cache.keys().next();
  if (cache.size > MAX_CACHED && !oldest.done) cache.delete(oldest.value);
}
