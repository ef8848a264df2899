// Which names an account need not validate again, because an earlier proof may be reused.
import type { Product } from '../../domain/catalog/products.ts';
import type { AccountId } from '../../domain/ids.ts';
import type { Repositories } from '../../domain/store.ts';
import { coveringProofs } from '../../domain/validation/challenge.ts';
import { DAY_MS } from '../../kernel/durations.ts';

/** The method under which names an operator vouched for are recorded. */
export const VOUCHED = 'operator';

export interface ProofTools {
  readonly registrableDomain: (name: string) => string | undefined;
}

export interface ReusableProof {
  readonly methods: readonly string[];
  /** The last moment at which one of them may be reused. */
  readonly until: number;
}

/** Of the names given, those with a proof that `product` accepts. A dns-persist record is never one: it is checked each time. */
export async function provenNames(
  { registrableDomain }: ProofTools,
  { proofs }: Pick<Repositories, 'proofs'>,
  {
    accountId,
    names,
    product: { reuseDays, dcvMethods, dcvScopes },
    now,
  }: {
    readonly accountId: AccountId;
    readonly names: readonly string[];
    readonly product: Pick<Product, 'reuseDays' | 'dcvMethods' | 'dcvScopes'>;
    readonly now: number;
  },
): Promise<Map<string, ReusableProof>> {
  // A product with stricter rules does not accept what was validated under weaker ones.
  const isAccepted = (method: string) => method === VOUCHED || dcvMethods.some((one) => one === method);
  const reuseMs = reuseDays * DAY_MS;
  const covering = names.map((name) => {
    const kept = coveringProofs(name, registrableDomain);
    return [name, dcvScopes.includes('base_domain') ? kept : [name]] as const;
  });
  const asked = [...new Set(covering.flatMap(([, kept]) => kept))];
  const found = await proofs.proven(accountId, asked, now - reuseMs);
  const proven = covering.map(([name, kept]) => {
    const usable = kept.flatMap((one) => found.get(one) ?? []).filter(({ method }) => isAccepted(method));
    const until = Math.max(...usable.map(({ validatedAt }) => validatedAt + reuseMs));
    return [name, { methods: usable.map(({ method }) => method), until }] as const;
  });
  return new Map(proven.filter(([, { methods }]) => methods.length > 0));
}

/** The last moment at which all those of the names that are proven still are. */
export const provenUntil = (proofs: ReadonlyMap<string, ReusableProof>, names: readonly string[]): number =>
  Math.min(...names.map((name) => proofs.get(name)?.until ?? Infinity));

/** By name, the methods of its reusable proofs. */
export async function provenAmong(
  tools: ProofTools,
  db: Pick<Repositories, 'proofs'>,
  accountId: AccountId,
  names: readonly string[],
  product: Product,
  now: number,
): Promise<Map<string, readonly string[]>> {
  const proofs = await provenNames(tools, db, { accountId, names, product, now });
  return new Map(Array.from(proofs, ([name, { methods }]) => [name, methods]));
}
