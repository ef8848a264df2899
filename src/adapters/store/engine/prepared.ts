// Queries on the hot path, worked out once instead of at every call: building and compiling one costs several times
// what SQLite then needs to run it. The text is the same each time, so the database too recognises it at a glance.
import type { Compilable, CompiledQuery, Insertable } from 'kysely';
import type { Db, Schema } from './schema.ts';

/** Where a value will stand. Never seen by a database. */
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

/** Given slots for values, the query; the result runs it with values, and must be called with all of them. */
export function prepared<Values extends object, Row>(
  build: (db: Db, slots: Values) => Compilable<Row>,
): (db: Db, values: Values) => Promise<readonly Row[]> {
  // One adapter belongs to one open engine, transactions included, and says which dialect the text is in.
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

/** One row into a table. Every row has every column, so that the first one tells the text for all. */
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
