// Which names an account need not prove again, because a proof of it may still serve.
import { coveringProofs } from '../domain/challenge.ts';
import type { Repositories } from '../domain/ports.ts';
import type { Product } from '../domain/products.ts';

const DAY_MS = 86_400_000;

export interface ProofTools {
  readonly registrableDomain: (name: string) => string | undefined;
}

/** With the methods of the proofs. A persistent record is never kept as one: it is asked each time. */
export async function provenAmong(
  { registrableDomain }: ProofTools,
  { proofs }: Repositories,
  accountId: string,
  names: readonly string[],
  { reuseDays }: Product,
  now: number,
): Promise<Map<string, string[]>> {
  const covering = names.map((name) => [name, coveringProofs(name, registrableDomain)] as const);
  const asked = [...new Set(covering.flatMap(([, kept]) => kept))];
  const found = await proofs.proven(accountId, asked, now - reuseDays * DAY_MS);
  const methods = covering.map(([name, kept]) => [name, kept.flatMap((one) => found.get(one) ?? [])] as const);
  return new Map(methods.flatMap(([name, by]) => (by.length > 0 ? [[name, by]] : [])));
}
