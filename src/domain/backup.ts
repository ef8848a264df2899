// The manifest of a backup: what the store held when the copy was made, to be compared with what the copy holds. Its digest
// detects damage and mix-ups. It is no signature: a forger could compute it too.
import { canonicalJson } from './canonical-json.ts';

export const FORMAT = 'reseal backup 1';

/** As JSON: in the file of an SQLite backup, or beside a dump of PostgreSQL. Holds no secret, and no seal key. */
export interface Manifest {
  readonly format: typeof FORMAT;
  /** RFC 3339. Everything acknowledged before this time is in the backup. */
  readonly taken_at: string;
  /** The number of the last migration. */
  readonly schema: number;
  readonly tables: readonly { readonly table: string; readonly rows: number; readonly digest: string }[];
  /** Ids of the seal keys without which the backup is of no use. */
  readonly seal_key_ids: readonly string[];
  readonly crls: readonly { readonly issuer_id: string; readonly shard: number; readonly number: number }[];
  /** Of all the other members. */
  readonly digest: string;
}

type Sha256 = (text: string) => string;

export const manifestOf = (content: Omit<Manifest, 'format' | 'digest'>, sha256: Sha256): Manifest => {
  const described = { format: FORMAT, ...content } as const;
  return { ...described, digest: sha256(canonicalJson(described)) };
};

/** Undefined if the text is not a manifest, or was altered. */
export function parseManifest(text: string, sha256: Sha256): Manifest | undefined {
  let parsed: Partial<Manifest> | null;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (parsed?.format !== FORMAT) return undefined;
  const { digest, ...content } = parsed;
  // The digest vouches for the shape as well: only `manifestOf` writes it.
  return sha256(canonicalJson(content)) === digest ? (parsed as Manifest) : undefined;
}

/** What differs between the manifest and what was found, in words; empty if nothing does. */
export function differences(manifest: Manifest, found: Pick<Manifest, 'schema' | 'tables'>): string[] {
  const differing = manifest.schema === found.schema ? [] : [`schema ${found.schema} instead of ${manifest.schema}`];
  const present = new Map(found.tables.map((one) => [one.table, one]));
  for (const { table, rows, digest } of manifest.tables) {
    const other = present.get(table);
    present.delete(table);
    if (!other) differing.push(`no table ${table}`);
    else if (other.rows !== rows) differing.push(`${table} has ${other.rows} rows instead of ${rows}`);
    else if (other.digest !== digest) differing.push(`rows of ${table} were altered`);
  }
  return [...differing, ...[...present.keys()].map((table) => `unexpected table ${table}`)];
}
