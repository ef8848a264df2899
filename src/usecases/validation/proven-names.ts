// Reuse of stored proofs: which names an account need not validate again for a product.
import type { Product } from '../../domain/catalog/products.ts';
import type { RegistrableDomain } from '../../domain/certificate/names.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';
import { coveringProofs } from '../../domain/validation/challenge.ts';
import { DAY_MS } from '../../kernel/durations.ts';

/** The recorded method of names that an operator vouched for. */
export const VOUCHED = 'operator';

interface ProofTools {
  readonly registrableDomain: RegistrableDomain;
}

interface ProofQuery {
  readonly accountId: AccountId;
  readonly names: readonly string[];
  readonly product: Pick<Product, 'reuseDays' | 'dcvMethods' | 'dcvScopes'>;
  readonly now: number;
}

interface ReusableProof {
  readonly methods: readonly string[];
  /** The last moment at which one of the proofs may be reused. */
  readonly until: number;
}

/** Returns the names with a proof that the product accepts. Persistent records are not stored but checked each time. */
export async function provenNames(
  { registrableDomain }: ProofTools,
  { proofs }: Pick<Repositories, 'proofs'>,
  { accountId, names, product, now }: ProofQuery,
): Promise<Map<string, ReusableProof>> {
  const { reuseDays, dcvMethods, dcvScopes } = product;
  // A product with stricter rules does not accept what was validated under weaker ones.
  const isAccepted = (method: string) => method === VOUCHED || dcvMethods.some((one) => one === method);
  const reuseMs = reuseDays * DAY_MS;
  const covering = names.map((name) => {
    const keys = dcvScopes.includes('base_domain') ? coveringProofs(name, registrableDomain) : [name];
    return [name, keys] as const;
  });
  const allKeys = [...new Set(covering.flatMap(([, keys]) => keys))];
  const found = await proofs.proven(accountId, allKeys, now - reuseMs);
  const proven = covering.map(([name, keys]) => {
    const usable = keys.flatMap((key) => found.get(key) ?? []).filter(({ method }) => isAccepted(method));
    const until = Math.max(...usable.map(({ validatedAt }) => validatedAt + reuseMs));
    return [name, { methods: usable.map(({ method }) => method), until }] as const;
  });
  return new Map(proven.filter(([, { methods }]) => methods.length > 0));
}

/** Returns the last moment at which the proofs of all proven names may be reused. */
export const provenUntil = (proofs: ReadonlyMap<string, ReusableProof>, names: readonly string[]): number =>
  Math.min(...names.map((name) => proofs.get(name)?.until ?? Infinity));

/** The methods of the reusable proofs by name, as `NamesToCheck.provenBy`. */
export const methodsOf = (proofs: ReadonlyMap<string, ReusableProof>): Map<string, readonly string[]> =>
  new Map(Array.from(proofs, ([name, { methods }]) => [name, methods]));

/** Reads them: `methodsOf` the proven names. */
export async function provenMethods(
  tools: ProofTools,
  db: Pick<Repositories, 'proofs'>,
  query: ProofQuery,
): Promise<Map<string, readonly string[]>> {
  return methodsOf(await provenNames(tools, db, query));
}
