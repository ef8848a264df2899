// Encodes OCSP responses (RFC 6960, 4.2). Clients with a nonce make the service build one per request, so that what a
// responder's answers have in common is encoded once, and the rest in one pass.

import type { SerialStatus } from '../../../domain/revocation/ports.ts';
import { REASON_CODES } from '../../../domain/revocation/revocation.ts';
import { DerPrepender } from '../../der/prepend.ts';
import {
  enumerated,
  explicit,
  generalizedTime,
  implicit,
  NULL,
  octetString,
  oid,
  sequence,
  TAG,
} from '../../der/writer.ts';

const BASIC = oid('1.3.6.1.5.5.7.48.1.1');
const NONCE = oid('1.3.6.1.5.5.7.48.1.2');
const SUCCESSFUL = enumerated(0);
const NO_UNUSED_BITS = Uint8Array.of(0);
/** [0] and [1] EXPLICIT. */
const [CONTEXT_0, CONTEXT_1] = [0xa0, 0xa1];
/** More than a response about one certificate. */
const CAPACITY = 4_096;

/** Error responses: unsigned, so they cost nothing. */
export const OCSP_ERRORS = {
  malformedRequest: sequence([enumerated(1)]),
  tryLater: sequence([enumerated(3)]),
  /** The issuer is not one of ours, or it has expired. */
  unauthorized: sequence([enumerated(6)]),
} as const;

interface SingleResponse {
  readonly certId: Uint8Array;
  readonly status: SerialStatus;
}

interface ResponseContent {
  readonly producedAt: number;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
  readonly responses: readonly SingleResponse[];
  readonly nonce: Uint8Array | null;
}

interface ResponseSigner {
  /** From `responderByKey` or `responderByName`. */
  readonly responderId: Uint8Array;
  readonly algorithm: Uint8Array;
  readonly certificate: Uint8Array;
  sign(bytes: Uint8Array): Promise<Uint8Array>;
}

/** Returns a signed OCSPResponse. */
export type SignResponse = (content: ResponseContent) => Promise<Uint8Array<ArrayBuffer>>;

const GOOD = implicit(0, NULL);
const UNKNOWN = implicit(2, NULL);

function statusBytes(status: SerialStatus): Uint8Array {
  if (status.kind !== 'revoked') return status.kind === 'good' ? GOOD : UNKNOWN;
  const { revokedAt, reason } = status;
  return implicit(1, sequence([generalizedTime(new Date(revokedAt)), explicit(0, enumerated(REASON_CODES[reason]))]));
}

/** `keyHash` is SHA-1, which the format fixes. */
export const responderByKey = (keyHash: Uint8Array): Uint8Array => explicit(2, octetString(keyHash));
export const responderByName = (name: Uint8Array): Uint8Array => explicit(1, name);

export function responseSigner({ responderId, algorithm, certificate, sign }: ResponseSigner): SignResponse {
  const certificates = explicit(0, sequence([certificate]));
  const writer = new DerPrepender(CAPACITY);
  const producedTime = wholeSecond((at) => generalizedTime(new Date(at)));
  const thisUpdateTime = wholeSecond((at) => generalizedTime(new Date(at)));
  const nextUpdateTime = wholeSecond((at) => explicit(0, generalizedTime(new Date(at))));

  function toBeSigned({ producedAt, thisUpdate, nextUpdate, responses, nonce }: ResponseContent): Uint8Array {
    const [begins, next] = [thisUpdateTime(thisUpdate), nextUpdateTime(nextUpdate)];
    writer.begin();
    if (nonce) {
      writer.put(nonce);
      writer.wrap(TAG.octetString, 0);
      writer.wrap(TAG.octetString, 0);
      writer.put(NONCE);
      writer.wrap(TAG.sequence, 0);
      writer.wrap(TAG.sequence, 0);
      writer.wrap(CONTEXT_1, 0);
    }
    const end = writer.length;
    for (const { certId, status } of responses.toReversed()) {
      const endOfOne = writer.length;
      writer.put(next);
      writer.put(begins);
      writer.put(statusBytes(status));
      writer.put(certId);
      writer.wrap(TAG.sequence, endOfOne);
    }
    writer.wrap(TAG.sequence, end);
    writer.put(producedTime(producedAt));
    writer.put(responderId);
    writer.wrap(TAG.sequence, 0);
    return writer.copy();
  }

  function response(signed: Uint8Array, signature: Uint8Array): Uint8Array<ArrayBuffer> {
    writer.begin();
    writer.put(certificates);
    const end = writer.length;
    writer.put(signature);
    writer.put(NO_UNUSED_BITS);
    writer.wrap(TAG.bitString, end);
    writer.put(algorithm);
    writer.put(signed);
    writer.wrap(TAG.sequence, 0);
    writer.wrap(TAG.octetString, 0);
    writer.put(BASIC);
    writer.wrap(TAG.sequence, 0);
    writer.wrap(CONTEXT_0, 0);
    writer.put(SUCCESSFUL);
    writer.wrap(TAG.sequence, 0);
    return writer.copy();
  }

  return async (content) => {
    const bytes = toBeSigned(content);
    return response(bytes, await sign(bytes));
  };
}

/** Encodes a time once per second. */
function wholeSecond(encode: (at: number) => Uint8Array): (at: number) => Uint8Array {
  let last: { second: number; bytes: Uint8Array } | undefined;
  return (at) => {
    const second = Math.floor(at / 1000);
    if (last?.second !== second) last = { second, bytes: encode(at) };
    return last.bytes;
  };
}
