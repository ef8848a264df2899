// Idempotency keys of reissues: the same key and body within a day get the same answer, and no second certificate.

import { Refusal } from '../../domain/errors.ts';
import type { AccountId, CertificateId, OrderId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';
import { DAY_MS } from '../../kernel/durations.ts';

export const IDEMPOTENCY_MS = DAY_MS;

export interface Idempotency {
  readonly key: string;
  /** Keyed digest of the body. */
  readonly requestHash: string;
}

/** The certificate that an earlier request with this key was answered with. Throws when its body was another one. */
export async function earlierAnswer(
  { idempotencyKeys }: Pick<Repositories, 'idempotencyKeys'>,
  { accountId, orderId, at }: { readonly accountId: AccountId; readonly orderId: OrderId; readonly at: number },
  { key, requestHash }: Idempotency,
): Promise<CertificateId | undefined> {
  const entry = await idempotencyKeys.find(accountId, orderId, key, at - IDEMPOTENCY_MS);
  if (entry && entry.requestHash !== requestHash) throw new Refusal('idempotency_key_reused');
  return entry?.certificateId;
}
