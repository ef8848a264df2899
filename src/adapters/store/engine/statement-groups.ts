// Groups of statements on PostgreSQL. What is asked for in one turn of the event loop, or while the groups before are under
// way, is sent with one write, runs in one transaction, is committed once and answered with one write: most of what a short
// statement costs, on either side, is its round trip and its commit. If a member fails, all of them are undone and
// repeated, each alone, so that it fails alone.
import type { CompiledQuery } from 'kysely';
import pg from 'pg';
import type { Rows } from './engine.ts';
import { PipelinedQuery } from './pipelined-query.ts';

/** Groups under way. While they are, the next one grows. */
const AT_ONCE = 4;
/** More would hold locks, and the answers of all, longer than they save. */
const MAX_MEMBERS = 64;
const MAX_WAITING = 4_096;
/**
 * A group holds the locks of the members that have run. It waits for others only so long: then it is undone, and a member
 * whose row is locked delays no other, nor do two groups wait for each other until PostgreSQL finds out.
 */
const LIMIT_WAIT = `select set_config('lock_timeout', '100', true)`;

export interface GroupOptions {
  readonly pool: pg.Pool;
  readonly types: pg.CustomTypesConfig;
  /** Of a prepared statement; empty if it has to stay unnamed. */
  nameOf(text: string): string;
  /** Longest wait for the answer to a group. */
  readonly waitMs: number;
  /** Runs a statement in a transaction of its own. */
  alone(query: CompiledQuery): Promise<Rows>;
  /** Whether an error is about prepared statements rather than their values; `alone` prepares them anew. */
  isStale(error: pg.DatabaseError): boolean;
}

interface Member {
  readonly query: CompiledQuery;
  resolve(rows: Rows | Promise<Rows>): void;
  reject(error: unknown): void;
}

export class StatementGroups {
  readonly #options: GroupOptions;
  readonly #waiting: Member[] = [];
  #underWay = 0;

  constructor(options: GroupOptions) {
    this.#options = options;
  }

  run(query: CompiledQuery): Promise<Rows> {
    if (this.#options.nameOf(query.sql) === '') return this.#options.alone(query);
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= MAX_WAITING) throw new Error(`${MAX_WAITING} statements wait for PostgreSQL`);
      this.#waiting.push({ query, resolve, reject });
      if (this.#underWay >= AT_ONCE || (this.#underWay > 0 && this.#waiting.length > 1)) return;
      this.#underWay += 1;
      setImmediate(() => this.#runWaiting());
    });
  }

  async #runWaiting(): Promise<void> {
    while (this.#waiting.length > 0) await this.#runGroup();
    this.#underWay -= 1;
  }

  /** Never rejects: its members do. */
  async #runGroup(): Promise<void> {
    const { pool, alone, isStale } = this.#options;
    let members: readonly Member[] = [];
    try {
      const client = await pool.connect();
      members = this.#waiting.splice(0, MAX_MEMBERS);
      const results = await this.#resultsOf(members, client);
      for (const [index, member] of members.entries()) member.resolve(results[index] ?? []);
    } catch (error) {
      if (members.length === 0) members = this.#waiting.splice(0);
      const isUndone = error instanceof pg.DatabaseError && error.severity === 'ERROR';
      const isRepeated = isUndone && (members.length > 1 || isStale(error));
      for (const { query, resolve, reject } of members) {
        if (isRepeated) resolve(alone(query));
        else reject(error);
      }
    }
  }

  async #resultsOf(members: readonly Member[], client: pg.PoolClient): Promise<readonly Rows[]> {
    const { types, waitMs, nameOf } = this.#options;
    const statements = members.map(({ query: { sql: text, parameters } }) => ({
      ...{ name: `group_${nameOf(text)}`, text, parameters },
    }));
    const isShared = members.length > 1;
    if (isShared) statements.unshift({ name: 'group_limit', text: LIMIT_WAIT, parameters: [] });
    const query = new PipelinedQuery(statements, types);
    const timer = setTimeout(() => query.giveUp(new Error(`no answer from PostgreSQL within ${waitMs} ms`)), waitMs);
    try {
      client.query(query);
      const results = await query.results;
      return isShared ? results.slice(1) : results;
    } finally {
      clearTimeout(timer);
      // One that has not answered would make the next caller wait again.
      client.release(!query.isAnswered);
    }
  }
}
