// Which names an account need not prove again, because a proof of it may still serve.

import type { Product } from '../../domain/catalog/products.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';
import { coveringProofs } from '../../domain/validation/challenge.ts';

const DAY_MS = 86_400_000;
/** The method under which names an operator vouched for are recorded. */
export const VOUCHED = 'operator';

export interface ProofTools {
  readonly registrableDomain: (name: string) => string | undefined;
}

/** With the methods of the proofs. A persistent record is never kept as one: it is asked each time. */
export async function provenAmong(
  { registrableDomain }: ProofTools,
  { proofs }: Repositories,
  accountId: AccountId,
  names: readonly string[],
  { reuseDays, dcvMethods, dcvScopes }: Product,
  now: number,
): Promise<Map<string, string[]>> {
  // A product that wants more than others is not served what was proven for them.
  const mayServe = (method: string) => method === VOUCHED || dcvMethods.some((one) => one === method);
  const covering = names.map((name) => {
    const kept = coveringProofs(name, registrableDomain);
    return [name, dcvScopes.includes('base_domain') ? kept : [name]] as const;
  });
  const asked = [...new Set(covering.flatMap(([, kept]) => kept))];
  const found = await proofs.proven(accountId, asked, now - reuseDays * DAY_MS);
  const methods = covering.map(
    ([name, kept]) => [name, kept.flatMap((one) => found.get(one) ?? []).filter(mayServe)] as const,
  );
  return new Map(methods.flatMap(([name, by]) => (by.length > 0 ? [[name, by]] : [])));
}
