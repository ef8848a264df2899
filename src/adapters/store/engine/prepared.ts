// Prepared queries for the hot path: built and compiled once, which costs several times what SQLite needs to run one. The
// SQL text is constant, so the database's statement cache hits too.
import type { Compilable, CompiledQuery, Insertable } from 'kysely';
import type { Db, Schema } from './schema.ts';

/** Placeholder for a value; never sent to a database. */
class Slot {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

interface Plan {
  readonly query: CompiledQuery;
  readonly parameters: readonly unknown[];
}

/** Returns a function that runs the query; it must be called with a value for every slot. */
export function prepared<Values extends object, Row>(
  build: (db: Db, slots: Values) => Compilable<Row>,
): (db: Db, values: Values) => Promise<readonly Row[]> {
  // An adapter belongs to one open engine, transactions included, and determines the SQL dialect.
  const plans = new WeakMap<object, Plan>();
  const slots = new Proxy({} as Values, { get: (_, name) => new Slot(String(name)) });
  return async (db, values) => {
    const { adapter } = db.getExecutor();
    let plan = plans.get(adapter);
    if (!plan) {
      const query = build(db, slots).compile();
      plan = { query, parameters: query.parameters };
      plans.set(adapter, plan);
    }
    const parameters = plan.parameters.map((one) => (one instanceof Slot ? values[one.name as keyof Values] : one));
    const { rows } = await db.executeQuery<Row>({ ...plan.query, parameters } as CompiledQuery<Row>);
    return rows;
  };
}

/** Inserts one row. Every row must have every column, because the first row determines the SQL text. */
export function preparedInsert<Table extends keyof Schema>(
  table: Table,
): (db: Db, row: Schema[Table]) => Promise<unknown> {
  let width: number | undefined;
  let insert: ((db: Db, row: Schema[Table]) => Promise<unknown>) | undefined;
  return (db, row) => {
    const columns = Object.keys(row) as (keyof Schema[Table])[];
    width ??= columns.length;
    if (columns.length !== width)
      throw new Error(`a row of ${table} has ${columns.length} columns, the first had ${width}`);
    insert ??= prepared((db, slots: Schema[Table]) => {
      const values = Object.fromEntries(columns.map((column) => [column, slots[column]]));
      return db.insertInto(table).values(values as Insertable<Schema[Table]>);
    });
    return insert(db, row);
  };
}

const LENGTH = 16;
const ITEMS = Array.from({ length: LENGTH }, (_, index) => `item${index}` as const);
type Item = `item${number}`;
export type Padded = { readonly [Name in Item]: string };

/** For `in (…)`: lists of one length, the last padded with its last item, so that one prepared statement serves all. */
export function* padded(items: readonly string[]): Generator<Padded> {
  for (let start = 0; start < items.length; start += LENGTH) {
    const some = items.slice(start, start + LENGTH);
    yield Object.fromEntries(ITEMS.map((name, index) => [name, some[index] ?? some.at(-1)])) as Padded;
  }
}

export const itemsOf = (list: Padded): string[] => ITEMS.map((name) => list[name] as string);
