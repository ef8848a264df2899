// What a root whose key is offline has to sign: a file from the service for the machine that has the key. Its digest detects
// damage on the way; it is no signature, so the person at the machine compares what is shown with what the service said.
import { hash } from 'node:crypto';
import { canonicalJson } from '../../../domain/canonical-json.ts';
import type { RevocationReason } from '../../../domain/certificate/certificate.ts';
import type { CrlEntry } from '../../../domain/revocation/ports.ts';
import { REASON_CODES } from '../../../domain/revocation/revocation.ts';
import { EXIT, Problem } from '../../../kernel/problem.ts';

const FORMAT = 'reseal crl request 1';
/** A root revokes authorities, of which there are few. */
const MAX_ENTRIES = 10_000;

export interface CrlRequest {
  readonly issuerId: string;
  /** SHA-256 of the root's certificate, hexadecimal. */
  readonly certificate: string;
  /** Of the list to be signed. */
  readonly number: number;
  readonly entries: readonly CrlEntry[];
}

const digestOf = (content: object): string => hash('sha256', canonicalJson(content));

export function crlRequestText({ issuerId, certificate, number, entries }: CrlRequest): string {
  const content = {
    ...{ format: FORMAT, issuer_id: issuerId, certificate_sha256: certificate, number },
    entries: entries.map(({ serial, reason, revokedAt }) => ({
      ...{ serial, reason, revoked_at: new Date(revokedAt).toISOString() },
    })),
  };
  return `${JSON.stringify({ ...content, digest: digestOf(content) }, null, 2)}\n`;
}

/** Throws a Problem. */
export function readCrlRequest(text: string): CrlRequest {
  try {
    const { digest, ...content } = JSON.parse(text);
    if (content.format !== FORMAT || digest !== digestOf(content)) throw new Error('format or digest');
    const { issuer_id: issuerId, certificate_sha256: certificate, number, entries } = content;
    if (!Number.isSafeInteger(number) || number < 1 || entries.length > MAX_ENTRIES) throw new Error('number');
    return { issuerId: String(issuerId), certificate: String(certificate), number, entries: entries.map(entryFrom) };
  } catch (error) {
    throw new Problem(
      EXIT.refused,
      'the file is not a request for a CRL, or was altered',
      'Make it with: reseal ca root crl-request ID OUT',
      { cause: error },
    );
  }
}

function entryFrom({ serial, reason, revoked_at }: Readonly<Record<string, unknown>>): CrlEntry {
  const revokedAt = Date.parse(String(revoked_at));
  if (!/^([0-9a-f]{2}){1,20}$/.test(String(serial)) || !Object.hasOwn(REASON_CODES, String(reason))) {
    throw new Error('entry');
  }
  if (!Number.isFinite(revokedAt)) throw new Error('revoked_at');
  return { serial: String(serial), reason: reason as RevocationReason, revokedAt };
}
