// Several prepared statements as one query of the pg driver, in the extended protocol: all of them, then one Sync, so that
// PostgreSQL runs them in one transaction and answers at its end. The rows' columns are asked for once per connection.
import type pg from 'pg';
import type { Rows } from './engine.ts';

interface Statement {
  /** Stands for the text on every connection. */
  readonly name: string;
  readonly text: string;
  readonly parameters: readonly unknown[];
}

interface Column {
  readonly name: string;
  parse(text: string): unknown;
}

interface Field {
  readonly name: string;
  readonly dataTypeID: number;
}

/** By name, the columns of what a connection has prepared. */
const preparedOn = new WeakMap<pg.Connection, Map<string, readonly Column[]>>();

/** PostgreSQL text cannot hold NUL. Only lookups may carry one, and they then match nothing. */
export function replaceNul(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(replaceNul);
  return typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value;
}

/** An element of a list, in PostgreSQL's text form. */
function element(parameter: unknown): string {
  const value = replaceNul(parameter) ?? null;
  return typeof value === 'string' ? `"${value.replace(/["\\]/g, '\\$&')}"` : String(value);
}

function wireValue(parameter: unknown): string | Buffer | null {
  if (Array.isArray(parameter)) return `{${parameter.map(element).join(',')}}`;
  const value = replaceNul(parameter) ?? null;
  if (typeof value === 'string' || value === null) return value;
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return String(value);
}

/** pg calls `submit` and the handlers. */
export class PipelinedQuery implements pg.Submittable {
  readonly #statements: readonly Statement[];
  readonly #types: pg.CustomTypesConfig;
  readonly #outcome = Promise.withResolvers<readonly Rows[]>();
  readonly #results: unknown[][];
  #prepared = new Map<string, readonly Column[]>();
  /** Of statements that this query prepares. They count only if all goes well: an error may come before or after them. */
  readonly #described = new Map<string, readonly Column[]>();
  #current = 0;

  constructor(statements: readonly Statement[], types: pg.CustomTypesConfig) {
    this.#statements = statements;
    this.#types = types;
    this.#results = statements.map(() => []);
  }

  get results(): Promise<readonly Rows[]> {
    return this.#outcome.promise;
  }

  submit(connection: pg.Connection): void {
    this.#prepared = preparedOn.get(connection) ?? new Map();
    preparedOn.set(connection, this.#prepared);
    connection.stream.cork();
    try {
      for (const { name, text, parameters } of this.#statements) {
        const isNew = !this.#prepared.has(name) && !this.#described.has(name);
        if (isNew) {
          // A query that failed may have prepared it. To close one that does not exist is no error.
          connection.close({ type: 'S', name }, true);
          connection.parse({ name, text, types: [] }, true);
          this.#described.set(name, []);
        }
        connection.bind({ statement: name, values: parameters.map(wireValue) }, true);
        if (isNew) connection.describe({ type: 'P' }, true);
        connection.execute(null, true);
      }
      connection.sync();
    } finally {
      connection.stream.uncork();
    }
  }

  handleRowDescription({ fields }: { readonly fields: readonly Field[] }): void {
    const columns = fields.map(({ name, dataTypeID }) => ({
      ...{ name, parse: this.#types.getTypeParser(dataTypeID, 'text') },
    }));
    this.#described.set(this.#statements[this.#current]?.name ?? '', columns);
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const name = this.#statements[this.#current]?.name ?? '';
    const row: Record<string, unknown> = {};
    for (const [index, column] of (this.#prepared.get(name) ?? this.#described.get(name) ?? []).entries()) {
      const text = fields[index] ?? null;
      row[column.name] = text === null ? null : column.parse(text);
    }
    this.#results[this.#current]?.push(row);
  }

  handleCommandComplete(): void {
    this.#current += 1;
  }

  /** The answer to Sync: all of it is committed. */
  handleReadyForQuery(): void {
    for (const [name, columns] of this.#described) this.#prepared.set(name, columns);
    this.#outcome.resolve(this.#results);
  }

  handleError(error: unknown): void {
    this.#outcome.reject(error);
  }
}
