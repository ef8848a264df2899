// What a cloud-held key signs: digests of the right length, a bounded number of them, and only those its owner agreed
// to; under a certificate that is good for something. Pure. The fields are those of the signing interface.

import type { CertificateRecord } from '../certificate/order.ts';
import type { KeyType } from '../certificate/public-key.ts';
import { DIGEST_BYTES, type SignHash } from '../certificate/sign-hash.ts';
import { invalid, type Refusal } from '../errors.ts';

/** Signatures under one authorization. */
export const MAX_SIGNATURES = 64;

/** An SM2 key signs SM3 and nothing else does; every other key signs SHA-2. */
export const signs = (type: KeyType, signHash: SignHash): boolean => (type === 'sm2') === (signHash === 'sm3');

export function requireDigests(type: KeyType, signHash: SignHash, digests: readonly Uint8Array[]): void {
  if (!signs(type, signHash)) {
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

/** All at once: what is authorized now is signed in one call. */
export function requireCount(numSignatures: number, digests: number): void {
  if (numSignatures === digests) return;
  throw invalid(
    'numSignatures',
    `Invalid value for parameter numSignatures: it is the number of hashes, which is ${digests}.`,
    `numSignatures 无效：其值须等于 hashes 的个数，即 ${digests}。`,
  );
}

/** Whether each was agreed to, as often as it comes. */
export function areAgreed(agreed: readonly string[], asked: readonly string[]): boolean {
  const left = [...agreed];
  return asked.every((one) => {
    const index = left.indexOf(one);
    if (index >= 0) left.splice(index, 1);
    return index >= 0;
  });
}

export type CertificateStatus = 'valid' | 'expired' | 'revoked';

export function certificateStatus(
  { preparation, revocation }: Pick<CertificateRecord, 'preparation' | 'revocation'>,
  now: number,
): CertificateStatus {
  if (revocation && revocation.dueAt <= now) return 'revoked';
  return preparation && preparation.notAfter < now ? 'expired' : 'valid';
}

/** A signature that nobody could verify is not worth an access code. */
export function requireValidCertificate(status: CertificateStatus | 'missing' = 'missing'): void {
  if (status === 'valid') return;
  throw invalid(
    'credentialID',
    `Signing certificate is ${status}. Reissue the order to get another one.`,
    `签名证书${WORDS[status]}，请重签订单以获取新证书。`,
  );
}

const WORDS = { missing: '尚未签发', expired: '已过期', revoked: '已吊销' } as const;

export const noGrant = (): Refusal =>
  invalid(
    'SAD',
    'Invalid parameter SAD: it is unknown, was used, or has run out. Authorize again.',
    'SAD 无效：未知、已使用或已过期，请重新授权。',
  );

export const notAgreed = (): Refusal =>
  invalid(
    'hashes',
    'Hash is not authorized by the SAD, which is used up now. Authorize the hashes that are to be signed.',
    '该摘要未经此 SAD 授权，此 SAD 已作废，请对需要签名的摘要重新授权。',
  );
