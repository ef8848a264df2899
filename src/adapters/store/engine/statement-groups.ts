// Groups of statements on PostgreSQL. What is asked for in one turn of the event loop, or while the groups before are under
// way, is sent with one write, runs in one transaction, is committed once and answered with one write: most of what a short
// statement costs, on either side, is its round trip and its commit. If a member fails, all of them are undone and
// repeated, each alone, so that it fails alone.
import type { CompiledQuery } from 'kysely';
import type pg from 'pg';
import type { Rows } from './engine.ts';
import { joinSets } from './member-sets.ts';
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
const LIMIT_WAIT = {
  ...{ name: 'group_limit', text: `select set_config('lock_timeout', '100', true)`, parameters: [] },
} as const;

export interface GroupOptions {
  readonly pool: pg.Pool;
  readonly types: pg.CustomTypesConfig;
  /** Of a prepared statement; empty if it has to stay unnamed. */
  nameOf(text: string): string;
  /** Longest wait for the answer to a group. */
  readonly waitMs: number;
  /** Runs a statement in a transaction of its own. */
  alone(query: CompiledQuery): Promise<Rows>;
  /** Whether the server has undone the transaction, and the connection can be used again. */
  isUndone(error: unknown): boolean;
  /** Whether a statement has to be prepared anew, which `alone` does. */
  isStale(error: unknown): boolean;
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
  #isScheduled = false;

  constructor(options: GroupOptions) {
    this.#options = options;
  }

  run(query: CompiledQuery): Promise<Rows> {
    if (this.#options.nameOf(query.sql) === '') return this.#options.alone(query);
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= MAX_WAITING) throw new Error(`${MAX_WAITING} statements wait for PostgreSQL`);
      this.#waiting.push({ query, resolve, reject });
      this.#schedule();
    });
  }

  /** At the end of this turn. */
  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0 || this.#underWay >= AT_ONCE) return;
    this.#isScheduled = true;
    setImmediate(async () => {
      this.#isScheduled = false;
      this.#underWay += 1;
      const members = this.#waiting.splice(0, MAX_MEMBERS);
      this.#schedule();
      await this.#runTogether(members);
      this.#underWay -= 1;
      this.#schedule();
    });
  }

  /** Never rejects: its members do. */
  async #runTogether(members: readonly Member[]): Promise<void> {
    const { pool, alone, isUndone, isStale } = this.#options;
    let client: pg.PoolClient | undefined;
    try {
      client = await pool.connect();
      const results = await this.#resultsOf(members, client);
      for (const [index, member] of members.entries()) member.resolve(results[index] ?? []);
    } catch (error) {
      const isRepeated = client && isUndone(error) && (members.length > 1 || isStale(error));
      for (const { query, resolve, reject } of members) {
        if (isRepeated) resolve(alone(query));
        else reject(error);
      }
    }
  }

  async #resultsOf(members: readonly Member[], client: pg.PoolClient): Promise<readonly Rows[]> {
    const { types, waitMs, nameOf, isUndone } = this.#options;
    const isShared = members.length > 1;
    const sets = joinSets(members.map((one) => one.query));
    const statements = sets.queries.map(({ sql: text, parameters }) => ({
      ...{ name: `group_${nameOf(text)}`, text, parameters },
    }));
    const query = new PipelinedQuery(isShared ? [LIMIT_WAIT, ...statements] : statements, types);
    const giveUp = () => query.handleError(new Error(`no answer from PostgreSQL within ${waitMs} ms`));
    const timer = setTimeout(giveUp, waitMs);
    try {
      client.query(query);
      const results = await query.results;
      client.release();
      return sets.split(isShared ? results.slice(1) : results);
    } catch (error) {
      // A connection that is lost or silent would make the next caller wait again.
      client.release(!isUndone(error));
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
