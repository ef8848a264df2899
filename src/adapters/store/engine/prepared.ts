// Prepared queries for the hot path: built and compiled once, which costs several times what SQLite needs to run one. The
// SQL text is constant, so the database's statement cache hits too.
import { type Compilable, type RawBuilder, SelectQueryNode, sql } from 'kysely';
import { columnsOf } from './columns.ts';
import { connectionOf, directOf, type Engine, type PreparedQuery } from './engine.ts';
import type { Db, Schema } from './schema.ts';

/** Placeholder for a value; never sent to a database. */
class Slot {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** A query with slots. Its rows have the type `Row`. */
export interface Prepared<Values, Row> {
  (db: Db, values: Values): Promise<readonly Row[]>;
  /** To be run by other means, such as a batch. */
  compiled(db: Db, values: Values): PreparedQuery<Row>;
}

type Build<Values, Row> = (db: Db, slots: Values) => Compilable<Row>;

/** Returns a function that runs the query; it must be called with a value for every slot. */
export function prepared<Values extends object, Row>(build: Build<Values, Row>): Prepared<Values, Row> {
  // An adapter belongs to one open engine, transactions included, and determines the SQL dialect.
  const plans = new WeakMap<object, PreparedQuery>();
  const slots = new Proxy({} as Values, { get: (_, name) => new Slot(String(name)) });

  function planFor(db: Db): PreparedQuery {
    const { adapter } = db.getExecutor();
    let plan = plans.get(adapter);
    if (!plan) {
      const query = build(db, slots).compile();
      plan = { ...query, slots: query.parameters.map((one) => (one instanceof Slot ? one.name : null)) };
      plans.set(adapter, plan);
    }
    return plan;
  }

  function compiled(db: Db, values: Values): PreparedQuery<Row> {
    const { query, queryId, sql, parameters, slots } = planFor(db);
    const given = parameters.map((one) => (one instanceof Slot ? values[one.name as keyof Values] : one));
    return { query, queryId, sql, parameters: given, slots };
  }

  async function run(db: Db, values: Values): Promise<readonly Row[]> {
    const query = compiled(db, values);
    const direct = directOf(db);
    if (direct) {
      const rows = SelectQueryNode.is(query.query) ? direct.select(query) : direct.runBatch([query]);
      return (rows instanceof Promise ? await rows : rows) as readonly Row[];
    }
    const connection = connectionOf(db);
    return (connection ? await connection.executeQuery<Row>(query) : await db.executeQuery<Row>(query)).rows;
  }

  return Object.assign(run, { compiled });
}

/** SQL written out, as a query to prepare. */
export const statement = <Row>(db: Db, text: RawBuilder<Row>): Compilable<Row> => ({ compile: () => text.compile(db) });

/** Inserts one row. Every row must have every column: the first row determines the SQL text. */
export function preparedInsert<Table extends keyof Schema>(
  table: Table,
  inserted: Engine['batches']['row'] = (values) => sql`values (${values})`,
): Prepared<Schema[Table], unknown> {
  type Column = keyof Schema[Table] & string;
  let columns: Column[] | undefined;
  const insert = prepared((db, slots: Schema[Table]) => {
    const names = columns ?? [];
    const values = sql.join(names.map((name) => slots[name]));
    return statement(db, sql`insert into ${sql.table(table)} (${columnsOf(names)}) ${inserted(values)}`);
  });
  function requireWidth(row: Schema[Table]): void {
    const names = Object.keys(row);
    columns ??= names as Column[];
    if (names.length !== columns.length)
      throw new Error(`a row of ${table} has ${names.length} columns, the first had ${columns.length}`);
  }
  const run = (db: Db, row: Schema[Table]) => {
    requireWidth(row);
    return insert(db, row);
  };
  return Object.assign(run, {
    compiled(db: Db, row: Schema[Table]) {
      requireWidth(row);
      return insert.compiled(db, row);
    },
  });
}
