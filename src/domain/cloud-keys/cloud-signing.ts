// Rules for signing with a cloud-held key: digests of the right length, a bounded number of them, only those its owner
// authorized, and only under a valid certificate. Field names are those of the CSC signing API.

import type { IssuedCertificate } from '../certificate/certificate.ts';
import type { KeyType } from '../certificate/public-key.ts';
import { DIGEST_BYTES, SIGN_HASHES, type SignHash } from '../certificate/sign-hash.ts';
import { invalid, type Refusal } from '../errors.ts';

/** Maximum number of signatures per authorization. */
export const MAX_SIGNATURES = 64;

/** SM2 keys sign SM3 digests only; all other keys sign SHA-2 digests only. */
const canSign = (type: KeyType, signHash: SignHash): boolean => (type === 'sm2') === (signHash === 'sm3');

/** The digest algorithm by key and length. Where none fits, one that makes `requireDigests` refuse the length. */
export function impliedHash(type: KeyType, [first]: readonly Uint8Array[]): SignHash {
  const possible = SIGN_HASHES.filter((one) => canSign(type, one));
  return possible.find((one) => DIGEST_BYTES[one] === first?.length) ?? possible[0] ?? 'sha256';
}

export function requireDigests(type: KeyType, signHash: SignHash, digests: readonly Uint8Array[]): void {
  if (!canSign(type, signHash)) {
    throw invalid(
      'hashAlgorithmOID',
      `Invalid parameter hashAlgorithmOID: a key of type ${type} does not sign ${signHash}.`,
      `hashAlgorithmOID 无效：${type} 类型的密钥不能对 ${signHash} 摘要签名。`,
    );
  }
  if (digests.length < 1 || digests.length > MAX_SIGNATURES) {
    throw invalid(
      'hashes',
      `Invalid parameter hashes: send 1 to ${MAX_SIGNATURES} of them.`,
      `hashes 无效：请发送 1 至 ${MAX_SIGNATURES} 个摘要。`,
    );
  }
  const length = DIGEST_BYTES[signHash];
  if (digests.some((one) => one.length !== length)) {
    throw invalid(
      'hashes',
      `Invalid digest value length: one of ${signHash} has ${length} bytes.`,
      `摘要长度无效：${signHash} 摘要为 ${length} 字节。`,
    );
  }
}

/** An authorization covers one signing call, so it must name as many signatures as hashes. */
export function requireSignatureCount(numSignatures: number, digests: number): void {
  if (numSignatures === digests) return;
  throw invalid(
    'numSignatures',
    `Invalid value for parameter numSignatures: it is the number of hashes, which is ${digests}.`,
    `numSignatures 无效：其值须等于 hashes 的个数，即 ${digests}。`,
  );
}

/** Whether `requested` is a sub-multiset of `authorized`: a hash may be signed as often as it was authorized. */
export function areAuthorized(authorized: readonly string[], requested: readonly string[]): boolean {
  const left = [...authorized];
  return requested.every((hash) => {
    const index = left.indexOf(hash);
    if (index >= 0) left.splice(index, 1);
    return index >= 0;
  });
}

export const CERTIFICATE_STATUSES = ['valid', 'expired', 'revoked'] as const;
export type CertificateStatus = (typeof CERTIFICATE_STATUSES)[number];

export function certificateStatus(
  { preparation, revocation }: Pick<IssuedCertificate, 'preparation' | 'revocation'>,
  now: number,
): CertificateStatus {
  if (revocation && revocation.dueAt <= now) return 'revoked';
  return preparation.notAfter < now ? 'expired' : 'valid';
}

/** Refuses to sign without a valid certificate, because no relying party could verify the signature. */
export function requireValidCertificate(status: CertificateStatus | 'missing' = 'missing'): void {
  if (status === 'valid') return;
  throw invalid(
    'credentialID',
    `Signing certificate is ${status}. Reissue the order to get another one.`,
    `签名证书${STATUS_ZH[status]}，请重签订单以获取新证书。`,
  );
}

const STATUS_ZH = { missing: '尚未签发', expired: '已过期', revoked: '已吊销' } as const;

export const invalidSad = (): Refusal =>
  invalid(
    'SAD',
    'Invalid parameter SAD: it is unknown, was used, or has run out. Authorize again.',
    'SAD 无效：未知、已使用或已过期，请重新授权。',
  );

export const hashNotAuthorized = (): Refusal =>
  invalid(
    'hashes',
    'Hash is not authorized by the SAD, which is used up now. Authorize the hashes that are to be signed.',
    '该摘要未经此 SAD 授权，此 SAD 已作废，请对需要签名的摘要重新授权。',
  );
