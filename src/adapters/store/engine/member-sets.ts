// Batches on PostgreSQL: the statements of a batch are CTEs of one statement, which runs for any number of members at once.
// Half of what a short statement costs PostgreSQL is the start of its executor, and that is paid once per set.
//
// The parameters are lists with an element per member, and `member` is the table of their elements. So a set is joined by
// joining lists. A member is known by its key, which the first and the last statement return.
import { type CompiledQuery, sql } from 'kysely';
import type { PreparedQuery, Rows } from './engine.ts';
import type { Schema } from './schema.ts';

export const IS_DECIDED = sql<boolean>`member.member_key in (select member_key from decided)`;

type NumbersOf<Row> = { [Name in keyof Row]-?: Exclude<Row[Name], null> extends number ? Name : never }[keyof Row];
type Tables = 'signing' | 'certificate_order' | 'certificate' | 'encryption_certificate' | 'audit' | 'idempotency_key';
type NumberSlot = { [Table in Tables]: NumbersOf<Schema[Table]> }[Tables] | 'next_revision' | 'since';
/** All other slots of batches are texts. PostgreSQL refuses a statement that takes one for the other. */
const NUMBERS: Readonly<Record<NumberSlot, 0>> = {
  ...{ at: 0, created_at: 0, issued_at: 0, pending_since: 0, prepared_at: 0, lease_ends_at: 0, since: 0 },
  ...{ not_before: 0, not_after: 0, term_ends_at: 0, persist_until: 0, validity_days: 0, key_bits: 0, version: 0 },
  ...{ revision: 0, next_revision: 0, key_reported: 0, keeps_encryption_key: 0 },
};

/** Far above the members of a group. With a limit the planner expects one row, and uses indexes whatever the tables' size. */
const MAX_SET = 1_000;
const MAX_TEXTS = 500;

interface Combined {
  readonly text: string;
  /** Where the parameters are: number of the statement, and of the parameter in it. */
  readonly sources: readonly (readonly [number, number])[];
}
const combined = new Map<string, Combined>();

/** A set of one. */
export class MemberQuery implements CompiledQuery {
  readonly query: CompiledQuery['query'];
  readonly queryId: CompiledQuery['queryId'];
  readonly sql: string;
  readonly values: readonly unknown[];
  /** The value of its key, by which its row is known. */
  readonly member: unknown;

  constructor({ query, queryId }: CompiledQuery, text: string, values: readonly unknown[], member: unknown) {
    this.query = query;
    this.queryId = queryId;
    this.sql = text;
    this.values = values;
    this.member = member;
  }

  get parameters(): readonly unknown[] {
    return this.values.map((value) => [value]);
  }
}

/** Turns a batch into one statement. */
export function combine(statements: readonly PreparedQuery[], key: string): readonly MemberQuery[] {
  const [first] = statements;
  if (!first) return [];
  const texts = statements.map(({ sql: text }) => text).join(';');
  const known = combined.get(texts) ?? combinedOf(statements, key);
  if (combined.size < MAX_TEXTS) combined.set(texts, known);
  const values = known.sources.map(([step, index]) => statements[step]?.parameters[index]);
  return [new MemberQuery(first, known.text, values, first.parameters[first.slots.indexOf(key)])];
}

interface Sets {
  readonly queries: readonly CompiledQuery[];
  /** From the rows of each set, those of each member. */
  split(results: readonly Rows[]): Rows[];
}

/** Joins members of the same statement. Two with the same key are not in one set: it would return one row for both. */
export function joinSets(members: readonly CompiledQuery[]): Sets {
  const sets: Map<unknown, number>[] = [];
  const open = new Map<string, Map<unknown, number>>();
  for (const [index, query] of members.entries()) {
    const key = query instanceof MemberQuery ? query.member : index;
    const set = query instanceof MemberQuery ? open.get(query.sql) : undefined;
    if (set && !set.has(key)) set.set(key, index);
    else {
      const added = new Map([[key, index]]);
      sets.push(added);
      open.set(query.sql, added);
    }
  }
  return {
    queries: sets.map((set) => joined(Array.from(set.values(), (index) => members[index] as CompiledQuery))),
    split(results) {
      const rows: Rows[] = members.map(() => []);
      for (const [number, set] of sets.entries()) {
        const all = results[number] ?? [];
        if (set.size === 1) for (const index of set.values()) rows[index] = all;
        else for (const row of all as readonly { member: unknown }[]) rows[indexIn(set, row.member)] = [row];
      }
      return rows;
    },
  };
}

/** Throws for a row of none: taken for no row, it would tell a member that nothing was written. */
function indexIn(set: ReadonlyMap<unknown, number>, member: unknown): number {
  const index = set.get(member);
  if (index === undefined)
    throw new Error(`PostgreSQL returned a row for ${String(member)}, which is no member of the set`);
  return index;
}

/** Of several, all are members. */
function joined(queries: readonly CompiledQuery[]): CompiledQuery {
  const [first] = queries as readonly [CompiledQuery];
  if (queries.length === 1) return first;
  const { query, queryId, sql: text, values } = first as MemberQuery;
  const lists = values.map((_, index) => (queries as readonly MemberQuery[]).map((one) => one.values[index]));
  return { query, queryId, sql: text, parameters: lists };
}

/** A CTE that writes runs exactly once, whether it is read or not. */
function combinedOf(statements: readonly PreparedQuery[], key: string): Combined {
  const columns: { name: string; type: string; source: [number, number] }[] = [];
  const ctes = statements.map(({ sql: text, slots, parameters }, step) => {
    const names = slots.map((slot, index) => {
      if (slot !== null && slots.indexOf(slot) < index) return '';
      const isNumber = slot === null ? typeof parameters[index] === 'number' : slot in NUMBERS;
      const name = step === 0 && slot === key ? 'member_key' : `value_${columns.length}`;
      columns.push({ name, type: isNumber ? 'bigint' : 'text', source: [step, index] });
      return name;
    });
    const nameOf = (index: number) => names[index] || names[slots.indexOf(slots[index] ?? null)];
    const over = text.replace(/\$(\d+)/g, (_, number) => `member.${nameOf(Number(number) - 1)}`);
    return `${step === 0 ? 'decided' : `step_${step}`} as (${over})`;
  });
  // Through text: PostgreSQL would look at the length of a list, and plan anew for each.
  const lists = columns.map(({ type }, index) => `$${index + 1}::text::${type}[]`);
  const member = `select * from unnest(${lists.join(', ')}) with ordinality
    as lists (${columns.map(({ name }) => name).join(', ')}, number) where number between 1 and ${MAX_SET}`;
  const last = `step_${statements.length - 1}`;
  const result =
    statements.length === 1
      ? 'select member_key as member from decided'
      : `select ${last}.*, decided.member_key as member from decided left join ${last} on ${last}.member_key = decided.member_key`;
  const text = `with member as materialized (${member}), ${ctes.join(', ')} ${result}`;
  return { text, sources: columns.map(({ source }) => source) };
}
