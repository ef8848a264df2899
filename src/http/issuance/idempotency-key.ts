// The header Idempotency-Key of placing and reissuing: its schema, and the digest of the body that goes with a key.
import Type from 'typebox';
import { invalid } from '../../domain/errors.ts';
import type { Idempotency } from '../../usecases/issuance/idempotency.ts';
import { optional } from './certificate-fields.ts';

const MAX_IDEMPOTENCY_KEY = 255;

export const IdempotencyHeaders = Type.Object({
  'idempotency-key': optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_IDEMPOTENCY_KEY,
      pattern: '^[!-~]*$',
      description: 'The same key with the same body gives the same answer for 24 hours.',
    }),
  ),
});

/** Keyed: a short access code could be brute-forced from a plain hash of the body. */
export type DigestOf = (text: string) => string;

interface KeyedBody {
  readonly certificate: { readonly csr_from?: string };
}
interface KeyedSchema {
  readonly properties: { readonly certificate: { readonly properties: object } };
}

/**
 * Digests what the operation knows of a body, in one order: a retry with its members in another order still matches.
 * Unknown fields are ignored here too, because a digest of all that may be nested in them costs more than the request.
 */
export function idempotencyOf({ properties }: KeyedSchema, digestOf: DigestOf) {
  const fields = Object.keys(properties).sort();
  // An access code that is not used leaves no trace, not even in the digest (contract reissue 7).
  const withoutCode = fields.filter((name) => name !== 'sign_key_pin' && name !== 'sign_key_pin_tip');
  const certificateFields = Object.keys(properties.certificate.properties).sort();
  /** `scope` is what the request says outside of its body. */
  return (key: string | undefined, body: KeyedBody, scope: object = {}): Idempotency | null => {
    if (key === undefined) return null;
    requireKey(key);
    const known = pick(body, body.certificate.csr_from === 'sign-cloud-csc' ? fields : withoutCode);
    const text = JSON.stringify({ ...scope, ...known, certificate: pick(body.certificate, certificateFields) });
    return { key, requestHash: digestOf(text) };
  };
}

function requireKey(key: string): void {
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return;
  throw invalid(
    'Idempotency-Key',
    `Idempotency-Key has 1 to ${MAX_IDEMPOTENCY_KEY} printable characters.`,
    `Idempotency-Key 须为 1 至 ${MAX_IDEMPOTENCY_KEY} 个可打印字符。`,
  );
}

const pick = (object: object, names: readonly string[]): object =>
  Object.fromEntries(names.map((name) => [name, object[name as keyof typeof object]]));
