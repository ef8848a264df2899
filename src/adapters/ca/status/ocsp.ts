// Answers OCSP requests. The status is read from the store every time, by one statement, so that a revocation shows at once
// whichever instance recorded it. Only signed responses to requests without a nonce are cached.

import { backdated } from '../../../domain/certificate/validity.ts';
import type { Clock } from '../../../domain/clock.ts';
import { Refusal } from '../../../domain/errors.ts';
import type { SerialStatus } from '../../../domain/revocation/ports.ts';
import type { Store } from '../../../domain/store.ts';
import { HOUR_MS } from '../../../kernel/durations.ts';
import { DerError } from '../../der/reader.ts';
import { mapKey } from '../../der/writer.ts';
import { answerCache, isCurrent, type SignedAnswer } from './ocsp-cache.ts';
import { readOcspRequest, type SingleRequest } from './ocsp-request.ts';
import type { Responders } from './ocsp-responders.ts';
import { OCSP_ERRORS } from './ocsp-response.ts';
import { digestOf, type StatusSigner, type StatusSigners } from './signers.ts';

/** The Baseline Requirements ask for at least 8 hours; less would make clients come back too often. */
const RESPONSE_LIFE_MS = 12 * HOUR_MS;
/** Thousands of answers: of the certificates that are asked about, a few are asked about all the time. */
const CACHE_BYTES = 8 * 1024 * 1024;
/** Requests need no credential and cost a signature each, so they must not starve authenticated callers. */
const MAX_CONCURRENT = 32;
/** Requests that wait for their turn, far more than arrive at once. */
const MAX_WAITING = 1_024;

/** Digests that clients use in CertID. Nearly all use SHA-1, which only identifies the issuer here. */
const HASHES: Readonly<Record<string, string>> = {
  '1.3.14.3.2.26': 'sha1',
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
  '1.2.156.10197.1.401': 'sm3',
};

export interface OcspAnswer {
  readonly der: Uint8Array;
  /** Null when a cache must not keep the response. */
  readonly validity: SignedAnswer['validity'] | null;
}
/** Malformed requests and overload are answered with OCSP error responses; only unexpected errors are thrown. */
export type AnswerOcsp = (request: Uint8Array) => Promise<OcspAnswer>;

interface OcspTools {
  readonly store: Store;
  readonly now: Clock;
  readonly signers: () => StatusSigners;
  /** Looks for issuers that another process may just have made. */
  readonly refresh: () => Promise<void>;
  readonly responders: Responders;
}

const error = (kind: keyof typeof OCSP_ERRORS): OcspAnswer => ({ der: OCSP_ERRORS[kind], validity: null });

export function answerOcsp({ store, now, signers, refresh, responders }: OcspTools): AnswerOcsp {
  const cache = answerCache(CACHE_BYTES);
  const issuersOf = issuerIndex(signers);

  async function answer(bytes: Uint8Array): Promise<OcspAnswer> {
    // Taken before the look-up: the status is as of this time, and may change while the response is signed.
    const at = now();
    const cached = cache.get(bytes);
    if (cached?.signers !== signers()) return await sign(bytes, at);
    const { issuers, serial } = cached;
    const status = await statusOf(issuers, serial);
    const responder = await responders.of(issuers[0]);
    if (responder && isCurrent(cached, { status, responderSerial: responder.serial }, at)) return cached;
    return await sign(bytes, at, cached.signers === signers() ? status : undefined);
  }

  /** `known` is the status of a request about one certificate that was looked up already. */
  async function sign(bytes: Uint8Array, at: number, known?: SerialStatus): Promise<OcspAnswer> {
    const { requests, nonce } = readOcspRequest(bytes);
    const [{ serial }] = requests;
    if (!isFilled(issuersOf(requests[0]))) await refresh();
    const from = signers();
    const issuers = issuersOf(requests[0]);
    // One response has one signature, hence one issuer.
    if (!isFilled(issuers) || !requests.every((one) => issuersOf(one)[0] === issuers[0])) return error('unauthorized');
    const responses = [];
    for (const one of requests) {
      responses.push({ certId: one.certId, status: known ?? (await statusOf(issuers, one.serial)) });
    }
    const responder = await responders.of(issuers[0]);
    if (!responder) return error('unauthorized');
    const nextUpdate = Math.min(at + RESPONSE_LIFE_MS, responder.notAfter);
    // For verifiers whose clocks are behind, a revoked status too: one that they refuse may leave them with none.
    const thisUpdate = Math.min(at, backdated(at, responder));
    const der = await responder.signed({ producedAt: at, thisUpdate, nextUpdate, responses, nonce });
    const statuses = responses.map(({ status }) => status);
    // An unknown serial number may be issued next; caching them would also let clients fill the cache.
    if (nonce || statuses.some(({ kind }) => kind === 'unknown')) return { der, validity: null };
    const validity = { thisUpdate, nextUpdate };
    const [status, ...others] = statuses;
    if (status && others.length === 0 && serial !== null) {
      cache.set(bytes, {
        ...{ der, producedAt: at, validity, signers: from, issuers, serial, status },
        responderSerial: responder.serial,
      });
    }
    return { der, validity };
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

  const turns = eventLoopTurns(MAX_CONCURRENT);
  let inFlight = 0;
  return async (bytes) => {
    if (turns.waiting >= MAX_WAITING) return error('tryLater');
    await turns.next();
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

/**
 * Requests of one turn of the event loop are answered after its I/O, one right after the other: the tables and code of
 * signatures and statements then stay in the processor's caches, which saves a third of an answer's cost. At most `most` in
 * a turn, so that other requests are not delayed for long.
 */
function eventLoopTurns(most: number) {
  const waiting: (() => void)[] = [];
  function release(): void {
    for (const resolve of waiting.splice(0, most)) resolve();
    if (waiting.length > 0) setImmediate(release);
  }
  return {
    get waiting(): number {
      return waiting.length;
    },
    next: (): Promise<void> =>
      new Promise((resolve) => {
        if (waiting.push(resolve) === 1) setImmediate(release);
      }),
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

const isFilled = <T>(list: readonly T[]): list is readonly [T, ...T[]] => list.length > 0;
