// Reuse of stored proofs: which names an account need not validate again for a product.
import type { Product } from '../../domain/catalog/products.ts';
import { reuseDays } from '../../domain/catalog/public-rules.ts';
import type { RegistrableDomain } from '../../domain/certificate/names.ts';
import type { AccountId } from '../../domain/ids.ts';
import { coveringProofs } from '../../domain/validation/challenge.ts';
import type { CheckResult } from '../../domain/validation/check-result.ts';
import { acceptedMethods } from '../../domain/validation/method.ts';
import type { Proof, Proofs } from '../../domain/validation/ports.ts';
import { DAY_MS } from '../../kernel/durations.ts';

/** The recorded method of names that an operator vouched for. */
export const VOUCHED = 'operator';

/**
 * The recorded method of a name that was seen on a network which only the operator's rules open. It serves the product
 * that it was seen for, and never public trust: others may not ask there.
 */
export const seenPrivately = (method: string, { id }: Pick<Product, 'id'>): string => `${method}/${id}`;

/** Under public trust no such network is asked; what counts as private there are the servers of a sandbox. */
export const recordedMethod = (method: string, product: Pick<Product, 'id' | 'trust'>, result?: CheckResult): string =>
  product.trust === 'private' && result?.isOk && result.isPrivate ? seenPrivately(method, product) : method;

interface ProofTools {
  readonly registrableDomain: RegistrableDomain;
}

interface ProofQuery {
  readonly accountId: AccountId;
  readonly names: readonly string[];
  readonly product: Pick<Product, 'id' | 'kind' | 'trust' | 'reuseDays' | 'dcvMethods' | 'dcvScopes'>;
  readonly now: number;
}

interface ReusableProof {
  readonly methods: readonly string[];
  /** The last moment at which one of the proofs may be reused. */
  readonly until: number;
}

/** The keys under which a product looks for proofs of a name. */
const keysOf = (
  { registrableDomain }: ProofTools,
  name: string,
  { dcvScopes }: Pick<Product, 'dcvScopes'>,
): readonly string[] => (dcvScopes.includes('base_domain') ? coveringProofs(name, registrableDomain) : [name]);

/** Those of any product, for a look-up before the product is known. */
export const proofKeys = (tools: ProofTools, names: readonly string[]): string[] => [
  ...new Set(names.flatMap((name) => coveringProofs(name, tools.registrableDomain))),
];

/** Proofs that were read before, of `names` and no others; the rest is read from the store. */
export const readBefore = (
  known: ReadonlyMap<string, readonly Proof[]>,
  names: ReadonlySet<string>,
  store: Pick<Proofs, 'proven'>,
): Pick<Proofs, 'proven'> => ({
  proven(accountId, asked, since) {
    if (!asked.every((name) => names.has(name))) return store.proven(accountId, asked, since);
    const isRecent = ({ validatedAt }: Proof) => validatedAt >= since;
    return Promise.resolve(new Map(asked.map((name) => [name, (known.get(name) ?? []).filter(isRecent)])));
  },
});

/** Returns the names with a proof that the product accepts. Persistent records are not stored but checked each time. */
export async function provenNames(
  tools: ProofTools,
  { proofs }: { readonly proofs: Pick<Proofs, 'proven'> },
  { accountId, names, product, now }: ProofQuery,
): Promise<Map<string, ReusableProof>> {
  const reuseMs = reuseDays(product, now) * DAY_MS;
  const covering = names.map((name) => keysOf(tools, name, product));
  const found = await proofs.proven(accountId, [...new Set(covering.flat())], now - reuseMs);
  const proven = new Map<string, ReusableProof>();
  for (const [index, name] of names.entries()) {
    const methods: string[] = [];
    let until = Number.NEGATIVE_INFINITY;
    for (const { method, validatedAt } of covering[index]?.flatMap((key) => found.get(key) ?? []) ?? []) {
      const accepted = acceptedAs(method, product);
      if (accepted === undefined) continue;
      methods.push(accepted);
      until = Math.max(until, validatedAt + reuseMs);
    }
    if (methods.length > 0) proven.set(name, { methods, until });
  }
  return proven;
}

/** The method that a recorded one counts as. A product with stricter rules does not accept what was validated under weaker ones. */
function acceptedAs(recorded: string, product: ProofQuery['product']): string | undefined {
  if (recorded === VOUCHED) return VOUCHED;
  return acceptedMethods(product.dcvMethods).find(
    (method) => recorded === method || (product.trust === 'private' && recorded === seenPrivately(method, product)),
  );
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
  db: { readonly proofs: Pick<Proofs, 'proven'> },
  query: ProofQuery,
): Promise<Map<string, readonly string[]>> {
  return methodsOf(await provenNames(tools, db, query));
}
