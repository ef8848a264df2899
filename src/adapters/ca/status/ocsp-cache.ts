// Cache of signed OCSP answers by the bytes of their requests; the least recently used go first. It says nothing about the
// status of a certificate: an answer is used only if the store, asked anew, still has the status that was signed.

import type { SerialStatus } from '../../../domain/revocation/ports.ts';
import { HOUR_MS } from '../../../kernel/durations.ts';
import { mapKey } from '../../der/writer.ts';
import type { StatusSigner, StatusSigners } from './signers.ts';

interface SignedFor {
  readonly status: SerialStatus;
  readonly responderSerial: string;
}

export interface SignedAnswer extends SignedFor {
  readonly der: Uint8Array;
  readonly producedAt: number;
  readonly validity: { readonly thisUpdate: number; readonly nextUpdate: number };
  /** What the request was about, so that it is read once. Issuers are those of `signers` only. */
  readonly signers: StatusSigners;
  readonly issuers: readonly [StatusSigner, ...StatusSigner[]];
  readonly serial: string;
}

/** Replaced well before half of its life has passed. */
const CACHE_MS = HOUR_MS;
const MAX_REQUEST_BYTES = 256;
/** Map entry and objects of an answer, rounded up. */
const OVERHEAD_BYTES = 512;

export function isCurrent({ producedAt, validity, ...known }: SignedAnswer, facts: SignedFor, at: number): boolean {
  // By when it was signed, which `thisUpdate` does not tell.
  // Less than an hour where the responder expires soon.
  const until = Math.min(producedAt + CACHE_MS, (producedAt + validity.nextUpdate) / 2);
  // An answer from the future was signed before the clock went back.
  const isInTime = producedAt <= at && at < until;
  return isInTime && known.responderSerial === facts.responderSerial && isSameStatus(known.status, facts.status);
}

function isSameStatus(one: SerialStatus, other: SerialStatus): boolean {
  if (one.kind !== 'revoked' || other.kind !== 'revoked') return one.kind === other.kind;
  return one.revokedAt === other.revokedAt && one.reason === other.reason;
}

export interface AnswerCache {
  get(request: Uint8Array): SignedAnswer | undefined;
  /** Ignores requests that are longer than those of real clients. */
  set(request: Uint8Array, answer: SignedAnswer): void;
}

export function answerCache(maxBytes: number): AnswerCache {
  const answers = new Map<string, SignedAnswer>();
  let bytes = 0;
  const sizeOf = (key: string, { der }: SignedAnswer): number => key.length + der.length + OVERHEAD_BYTES;

  function remove(key: string): void {
    const known = answers.get(key);
    if (known && answers.delete(key)) bytes -= sizeOf(key, known);
  }

  return {
    get(request) {
      if (request.length > MAX_REQUEST_BYTES) return undefined;
      const key = mapKey(request);
      const known = answers.get(key);
      if (!known) return undefined;
      answers.delete(key);
      answers.set(key, known);
      return known;
    },

    set(request, answer) {
      if (request.length > MAX_REQUEST_BYTES) return;
      const key = mapKey(request);
      remove(key);
      answers.set(key, answer);
      bytes += sizeOf(key, answer);
      for (const oldest of answers.keys()) {
        if (bytes <= maxBytes) break;
        remove(oldest);
      }
    },
  };
}
