// May this key be certified at all? Weak ones are told by looking, compromised ones by asking the store.

import type { Product } from '../../domain/catalog/products.ts';
import type { PublicKey } from '../../domain/certificate/public-key.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';

/** The store is asked before the plan is made; a CSR that cannot be read is refused when its turn comes. */
export async function isKeyBlocked(
  db: Repositories,
  accountId: AccountId,
  csr: string,
  readCsr: (text: string) => PublicKey,
): Promise<boolean> {
  let fingerprint: string;
  try {
    ({ fingerprint } = readCsr(csr));
  } catch {
    return false;
  }
  return await db.blockedKeys.has(fingerprint, accountId);
}

export const keyPolicy =
  (
    { requireStrongKey }: { readonly requireStrongKey: (key: PublicKey) => void },
    { trust }: Product,
    isBlocked: boolean,
  ) =>
  (key: PublicKey): void => {
    if (trust === 'public') requireStrongKey(key);
    if (!isBlocked) return;
    throw new Refusal('invalid_csr', {
      field: 'certificate.csr',
      reason: {
        en: 'This key is listed as compromised. Make a new one.',
        zh: '该密钥已被列为泄露密钥，请重新生成密钥。',
      },
    });
  };

/** Two thirds of a reissue is verifying the CSR: once is enough. A refusal is remembered too. */
export function once(read: (text: string) => PublicKey): (text: string) => PublicKey {
  let result: { key: PublicKey } | { error: unknown } | undefined;
  return (text) => {
    if (!result) {
      try {
        result = { key: read(text) };
      } catch (error) {
        result = { error };
      }
    }
    if ('error' in result) throw result.error;
    return result.key;
  };
}
