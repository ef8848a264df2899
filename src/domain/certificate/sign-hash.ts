// The digest a certificate is signed with, as callers spell it.
import { Refusal } from '../errors.ts';

export const SIGN_HASHES = ['sha256', 'sha384', 'sha512', 'sm3'] as const;
export type SignHash = (typeof SIGN_HASHES)[number];

/** How long each digest is. */
export const DIGEST_BYTES: Readonly<Record<SignHash, number>> = { sha256: 32, sha384: 48, sha512: 64, sm3: 32 };

const BROKEN = ['sha1', 'md5', 'md2'];

/** Case and hyphens do not matter; what is missing, unsafe or unknown is refused with the list of what there is. */
export function signHash(text: string): SignHash {
  const wanted = text.toLowerCase().replaceAll('-', '');
  const known = SIGN_HASHES.find((one) => one === wanted);
  if (known) return known;
  const list = SIGN_HASHES.join(', ');
  throw new Refusal('invalid_parameters', {
    field: 'certificate.sign_hash',
    reason: BROKEN.includes(wanted)
      ? {
          en: `${wanted} is not safe for signatures any more. Use one of ${list}.`,
          zh: `${wanted} 已不再安全，不能用于签名，可选值：${list}。`,
        }
      : { en: `Choose one of ${list}.`, zh: `可选值：${list}。` },
  });
}
