// Encodes OCSP responses (RFC 6960, 4.2).

import type { SerialStatus } from '../../../domain/revocation/ports.ts';
import { REASON_CODES } from '../../../domain/revocation/revocation.ts';
import {
  bitString,
  enumerated,
  explicit,
  generalizedTime,
  implicit,
  NULL,
  octetString,
  oid,
  sequence,
} from '../../der/writer.ts';
import { extension } from '../to-be-signed.ts';

const BASIC = oid('1.3.6.1.5.5.7.48.1.1');
const NONCE = oid('1.3.6.1.5.5.7.48.1.2');
const SUCCESSFUL = enumerated(0);

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
  /** SHA-1 of the responder's key: the ResponderID, which the format fixes to SHA-1. */
  readonly keyHash: Uint8Array;
  readonly producedAt: number;
  readonly nextUpdate: number;
  readonly responses: readonly SingleResponse[];
  readonly nonce: Uint8Array | null;
}

const GOOD = implicit(0, NULL);
const UNKNOWN = implicit(2, NULL);

function statusBytes(status: SerialStatus): Uint8Array {
  if (status.kind !== 'revoked') return status.kind === 'good' ? GOOD : UNKNOWN;
  const { revokedAt, reason } = status;
  return implicit(1, sequence([generalizedTime(new Date(revokedAt)), explicit(0, enumerated(REASON_CODES[reason]))]));
}

export function responseToBeSigned({ keyHash, producedAt, nextUpdate, responses, nonce }: ResponseContent): Uint8Array {
  const [now, next] = [generalizedTime(new Date(producedAt)), explicit(0, generalizedTime(new Date(nextUpdate)))];
  return sequence([
    explicit(2, octetString(keyHash)),
    now,
    sequence(responses.map(({ certId, status }) => sequence([certId, statusBytes(status), now, next]))),
    ...(nonce ? [explicit(1, sequence([extension({ id: NONCE, isCritical: false, value: octetString(nonce) })]))] : []),
  ]);
}

export const signedResponse = (
  toBeSigned: Uint8Array,
  algorithm: Uint8Array,
  signature: Uint8Array,
  certificate: Uint8Array,
): Uint8Array =>
  sequence([
    SUCCESSFUL,
    explicit(
      0,
      sequence([
        BASIC,
        octetString(sequence([toBeSigned, algorithm, bitString(signature), explicit(0, sequence([certificate]))])),
      ]),
    ),
  ]);
