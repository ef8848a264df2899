// Every column that holds sealed values, and the binding of each value: what authenticates its place. A sealed value fits
// only into a column that the schema declares as Sealed, and a Sealed column without a row here does not compile. So
// whatever is sealed is counted, verified and re-sealed by what reads this table.
import { sql } from 'kysely';
import { SealBroken, type Sealed, type Sealer } from '../../seal/seal.ts';
import type { Engine } from './engine.ts';
import type { Db, Schema } from './schema.ts';

type SealedColumn<Row> = { [Column in keyof Row]: Sealed extends Row[Column] ? Column : never }[keyof Row];

/** For each table with sealed columns: its primary key, and the binding of each column's value by that key. */
export type SealedTables<Tables> = {
  readonly [Table in keyof Tables as [SealedColumn<Tables[Table]>] extends [never] ? never : Table]: {
    readonly key: keyof Tables[Table];
    readonly columns: { readonly [Column in SealedColumn<Tables[Table]>]: (key: string) => string };
  };
};

export const SEALED = {
  sealed_secret: { key: 'name', columns: { sealed: (name) => `sealed_secret/${name}` } },
  issuer: {
    key: 'id',
    columns: { sealed_key: (id) => `issuer/${id}`, sealed_key_uri: (id) => `issuer/${id}/sealed_key_uri` },
  },
  pending_issuer: { key: 'id', columns: { sealed_key: (id) => `pending_issuer/${id}` } },
  ocsp_responder: { key: 'serial', columns: { sealed_key: (serial) => `ocsp_responder/${serial}` } },
  escrowed_key: { key: 'id', columns: { sealed_key: (id) => `escrowed_key/${id}` } },
  cloud_key: { key: 'id', columns: { sealed_key: (id) => `cloud_key/${id}` } },
  signing_grant: { key: 'token_hash', columns: { sealed_key: (tokenHash) => `signing_grant/${tokenHash}` } },
  acme_binding: { key: 'id', columns: { sealed_key: (id) => `acme_binding/${id}` } },
  callback_settings: {
    key: 'account_id',
    columns: {
      sealed_access_key: (accountId) => `callback_settings/${accountId}/sealed_access_key`,
      sealed_signing_secret: (accountId) => `callback_settings/${accountId}/sealed_signing_secret`,
      sealed_former_secret: (accountId) => `callback_settings/${accountId}/sealed_former_secret`,
    },
  },
} as const satisfies SealedTables<Schema>;

export interface SealedPlace {
  readonly table: string;
  readonly column: string;
  readonly key: string;
  readonly bindingOf: (key: string) => string;
}

export const SEALED_PLACES: readonly SealedPlace[] = Object.entries(SEALED).flatMap(([table, { key, columns }]) =>
  Object.entries(columns).map(([column, bindingOf]) => ({ table, column, key, bindingOf })),
);

/** Those that a store has: one of an earlier version lacks later tables. */
export async function sealedPlacesIn(db: Db, engine: Pick<Engine, 'columns'>): Promise<SealedPlace[]> {
  const columns = await engine.columns(db);
  return SEALED_PLACES.filter((place) =>
    columns.some(({ table, column }) => table === place.table && column === place.column),
  );
}

export interface SealedCount {
  readonly table: string;
  readonly column: string;
  readonly keyId: string;
  readonly values: number;
}

/** The key id within a sealed value. Indexed in exactly this form (migration 0010). */
const keyIdIn = (column: string) => sql<string>`substr(${sql.ref(column)}, 4, 8)`;
const rowsOf = (db: Db, table: string) => db.selectFrom(sql`${sql.table(table)}`.as(table));

/** How many values each key has sealed, by column. */
export async function countSealed(db: Db): Promise<SealedCount[]> {
  const counts: SealedCount[] = [];
  for (const { table, column } of SEALED_PLACES) {
    const rows = await rowsOf(db, table)
      .select([keyIdIn(column).as('keyId'), sql<number | string>`count(*)`.as('values')])
      .where(sql.ref(column), 'is not', null)
      .groupBy(keyIdIn(column))
      .orderBy('keyId')
      .execute();
    counts.push(...rows.map(({ keyId, values }) => ({ table, column, keyId, values: Number(values) })));
  }
  return counts;
}

/** Ids of the keys that values at a place need. Skips from one id to the next: the number of values does not matter. */
export async function sealKeysAt(db: Db, { table, column }: SealedPlace): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const next = await rowsOf(db, table)
      .select(keyIdIn(column).as('id'))
      .where(keyIdIn(column), '>', ids.at(-1) ?? '')
      .orderBy(keyIdIn(column))
      .limit(1)
      .executeTakeFirst();
    if (!next) return ids;
    ids.push(next.id);
  }
}

/** Ids of the keys that sealed values of the store need. Cheap enough for a readiness probe. */
export async function sealKeysInUse(db: Db, places = SEALED_PLACES): Promise<Set<string>> {
  const ids = new Set<string>();
  for (const place of places) for (const id of await sealKeysAt(db, place)) ids.add(id);
  return ids;
}

/** Batches of the values at a place that one key has sealed, as row key and value. */
export async function* valuesSealedBy(
  db: Db,
  { table, column, key }: SealedPlace,
  keyId: string,
  batchSize: number,
): AsyncGenerator<{ readonly key: string; readonly sealed: Sealed }[]> {
  for (let after = ''; ; ) {
    const values = await rowsOf(db, table)
      .select([sql.ref<string>(key).as('key'), sql.ref<Sealed>(column).as('sealed')])
      .where(keyIdIn(column), '=', keyId)
      .where(sql.ref(key), '>', after)
      .orderBy(sql.ref(key))
      .limit(batchSize)
      .execute();
    const last = values.at(-1);
    if (!last) return;
    yield values;
    after = last.key;
  }
}

const VERIFIED_AT_ONCE = 500;

/** Opens every sealed value. Returns those that do not open, as `table.column of row: reason`; at most `limit`. */
export async function findUnopenable(
  db: Db,
  sealer: Sealer,
  { limit = 100, places = SEALED_PLACES }: { readonly limit?: number; readonly places?: readonly SealedPlace[] } = {},
): Promise<string[]> {
  const found: string[] = [];
  for (const place of places) {
    for (const keyId of await sealKeysAt(db, place)) {
      for await (const values of valuesSealedBy(db, place, keyId, VERIFIED_AT_ONCE)) {
        for (const { key, sealed } of values) {
          try {
            sealer.open(sealed, place.bindingOf(key));
          } catch (error) {
            if (!(error instanceof SealBroken)) throw error;
            found.push(`${place.table}.${place.column} of ${key}: ${error.message}`);
            if (found.length >= limit) return found;
          }
        }
      }
    }
  }
  return found;
}
