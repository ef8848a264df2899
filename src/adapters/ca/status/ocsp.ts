// Answers OCSP requests. What is said is read from the store every time, so that a revocation shows at once whichever
// instance recorded it; only the signature is kept, for those who ask the same without a nonce.

import type { Clock } from '../../../domain/clock.ts';
import { Refusal } from '../../../domain/errors.ts';
import type { SerialStatus } from '../../../domain/revocation/ports.ts';
import type { Store } from '../../../domain/store.ts';
import { DerError } from '../../der/reader.ts';
import { mapKey } from '../../der/writer.ts';
import { type OcspRequest, type Question, readOcspRequest } from './ocsp-request.ts';
import type { Responders } from './ocsp-responders.ts';
import { OCSP_ERRORS, responseToBeSigned, type SingleAnswer, signedResponse } from './ocsp-response.ts';
import { digestOf, type StatusSigner, type StatusSigners } from './signers.ts';

const HOUR_MS = 3_600_000;
/** The Baseline Requirements want at least 8 hours; less would send every client back too often. */
const ANSWER_LIFE_MS = 12 * HOUR_MS;
/** A kept signature is made anew long before half of that has passed. */
const KEPT_MS = HOUR_MS;
const MAX_KEPT = 4_096;
const MAX_KEPT_REQUEST = 256;
/** Strangers ask, and every answer is signed: whoever has a key must not queue behind all of them. */
const MAX_AT_ONCE = 32;

/** What clients hash names and keys with. SHA-1 is what nearly all of them do; it guards nothing here. */
const HASHES: Readonly<Record<string, string>> = {
  '1.3.14.3.2.26': 'sha1',
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
  '1.2.156.10197.1.401': 'sm3',
};

export interface OcspAnswer {
  readonly der: Uint8Array;
  /** For how long the same question may get the same bytes from a cache; null when never. */
  readonly validity: { readonly thisUpdate: number; readonly nextUpdate: number } | null;
}
/** Always an answer: what cannot be answered is an error in OCSP's own words. */
export type AnswerOcsp = (request: Uint8Array) => Promise<OcspAnswer>;

export interface OcspTools {
  readonly store: Store;
  readonly now: Clock;
  readonly signers: () => StatusSigners;
  readonly responders: Responders;
}

interface Kept extends OcspAnswer {
  readonly said: string;
  readonly by: string;
  readonly until: number;
}

const error = (kind: keyof typeof OCSP_ERRORS): OcspAnswer => ({ der: OCSP_ERRORS[kind], validity: null });

export function answerOcsp({ store, now, signers, responders }: OcspTools): AnswerOcsp {
  const kept = new Map<string, Kept>();
  const issuersBy = issuerIndex(signers);

  async function answer(bytes: Uint8Array): Promise<OcspAnswer> {
    // Before anything is looked up: what is said was true then, and may have changed while it was signed.
    const at = now();
    const request = readOcspRequest(bytes);
    const { questions, nonce } = request;
    const able = issuersBy(questions[0]!);
    // One signature vouches for one issuer: who asks about several asks several times.
    if (able.length === 0 || !questions.every((one) => issuersBy(one)[0] === able[0])) return error('unauthorized');
    const { signer, answers } = await look(able, request);
    const responder = await responders.of(signer);
    if (!responder) return error('unauthorized');
    const mayKeep = nonce === null && questions.length === 1 && bytes.length <= MAX_KEPT_REQUEST;
    const key = mayKeep ? mapKey(bytes) : '';
    const said = JSON.stringify(answers.map(({ status }) => status));
    const known = kept.get(key);
    const isCurrent = known && known.said === said && known.by === responder.serial;
    if (isCurrent && known.validity!.thisUpdate <= at && at < known.until) return known;
    const nextUpdate = Math.min(at + ANSWER_LIFE_MS, responder.notAfter);
    const toBeSigned = responseToBeSigned({ keyHash: responder.keyHash, producedAt: at, nextUpdate, answers, nonce });
    const signature = await responder.sign(toBeSigned);
    const der = signedResponse(toBeSigned, responder.algorithm, signature, responder.certificate);
    const isKnown = answers.every(({ status }) => status.kind !== 'unknown');
    // An unknown one may be issued in the next moment, and strangers could fill the memory with them.
    if (!isKnown || nonce) return { der, validity: null };
    const fresh = { der, validity: { thisUpdate: at, nextUpdate }, said, by: responder.serial, until: at + KEPT_MS };
    if (mayKeep) keep(kept, key, fresh);
    return fresh;
  }

  /** An authority that was brought twice is there twice, under one key. */
  async function look(able: readonly StatusSigner[], { questions }: OcspRequest) {
    const answers: SingleAnswer[] = [];
    for (const { certId, serial } of questions) {
      let status: SerialStatus = { kind: 'unknown' };
      for (const { id } of serial === null ? [] : able) {
        status = await store.revokedSerials.statusOf(id, serial!);
        if (status.kind !== 'unknown') break;
      }
      answers.push({ certId, status });
    }
    return { signer: able[0]!, answers };
  }

  let underWay = 0;
  return async (bytes) => {
    if (underWay >= MAX_AT_ONCE) return error('tryLater');
    underWay += 1;
    try {
      return await answer(bytes);
    } catch (problem) {
      if (problem instanceof DerError) return error('malformedRequest');
      if (problem instanceof Refusal) return error('tryLater');
      throw problem;
    } finally {
      underWay -= 1;
    }
  };
}

/** Found by the hashes of their names and keys; all algorithms are worked out once. Roots have lists only. */
function issuerIndex(signers: () => StatusSigners): (question: Question) => readonly StatusSigner[] {
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

/** The oldest goes first: whoever is asked about often is signed again within a moment. */
function keep(kept: Map<string, Kept>, key: string, answer: Kept): void {
  kept.delete(key);
  kept.set(key, answer);
  if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value!);
}
