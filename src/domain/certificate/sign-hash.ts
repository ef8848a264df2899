// The digest a certificate is signed with, as callers spell it.
import { invalid } from '../errors.ts';

export const SIGN_HASHES = ['sha256', 'sha384', 'sha512', 'sm3'] as const;
export type SignHash = (typeof SIGN_HASHES)[number];

export const DIGEST_BYTES: Readonly<Record<SignHash, number>> = { sha256: 32, sha384: 48, sha512: 64, sm3: 32 };

const BROKEN = ['sha1', 'md5', 'md2'];

/** Ignores case and hyphens. Refuses missing, broken and unknown digests, and lists the supported ones. */
export function parseSignHash(text: string): SignHash {
  const wanted = text.toLowerCase().replaceAll('-', '');
  const known = SIGN_HASHES.find((one) => one === wanted);
  if (known) return known;
  const list = SIGN_HASHES.join(', ');
  const field = 'certificate.sign_hash';
  if (!BROKEN.includes(wanted)) throw invalid(field, `Choose one of ${list}.`, `可选值：${list}。`);
  throw invalid(
    field,
    `${wanted} is not safe for signatures any more. Use one of ${list}.`,
    `${wanted} 已不再安全，不能用于签名，可选值：${list}。`,
  );
}
