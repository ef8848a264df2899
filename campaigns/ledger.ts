// Records the outcome of every write and compares it with the store. A write is in doubt from sending until its answer; if
// none arrives, both its presence and its absence are correct. Every other outcome is a guarantee.
import type { AuditEntry } from '../src/domain/access/ports.ts';
import { FIRST_NAME } from './service.ts';

export interface Answer {
  readonly status: number;
  readonly requestId: string;
}

interface Write {
  /** Unique, so that a row of the audit log belongs to exactly one attempt. */
  readonly name: string;
  readonly outcome: 'in doubt' | 'acknowledged' | 'refused' | 'lost' | 'dropped';
  readonly requestId: string | null;
}
type OpenWrite = { -readonly [Field in keyof Write]: Write[Field] };

/** New results of a comparison: only `torn` is counted repeatedly. */
export interface Verdict {
  /** Acknowledged, but missing. */
  lost: number;
  /** Present, although refused, never attempted, or present already. */
  phantom: number;
  /** The account and its audit log disagree: half of a transaction is missing. */
  torn: number;
  inDoubt: number;
  /** Of those in doubt, the ones present in the store. */
  kept: number;
}

const BUSY = 503;
const NOTHING: Verdict = { lost: 0, phantom: 0, torn: 0, inDoubt: 0, kept: 0 };

export class Ledger {
  readonly #writes = new Map<string, OpenWrite[]>();
  readonly #phantoms = new Set<string>();

  /** Call before sending the write. */
  begin(accountId: string): Write {
    const writes = this.#writes.get(accountId) ?? [];
    this.#writes.set(accountId, writes);
    const name = `write ${writes.length + 1} of ${accountId}`;
    const write: OpenWrite = { name, outcome: 'in doubt', requestId: null };
    writes.push(write);
    return write;
  }

  settle(write: Write, { status, requestId }: Answer): void {
    // The store may have failed after the commit: service_busy leaves the outcome open.
    if (status === BUSY) return;
    Object.assign(write, { outcome: status === 200 ? 'acknowledged' : 'refused', requestId });
  }

  count(outcome: Write['outcome']): number {
    return [...this.#writes.values()].flat().filter((write) => write.outcome === outcome).length;
  }

  /** Attempts per account. */
  attempts(): [accountId: string, attempts: number][] {
    return [...this.#writes].map(([accountId, writes]) => [accountId, writes.length]);
  }

  /**
   * Compares one account with its recorded writes. Resolves doubts: a write found in the store counts as acknowledged from
   * here on.
   */
  compare(accountId: string, accountName: string | undefined, trail: readonly AuditEntry[]): Verdict {
    const verdict = { ...NOTHING };
    const rows = trail.filter(({ action }) => action === 'account:changed');
    const byName = new Map(rows.map((row) => [row.details.name, row]));
    const unexplained = new Set(rows);
    let lastName = FIRST_NAME;
    for (const write of this.#writes.get(accountId) ?? []) {
      const row = byName.get(write.name);
      if (row) lastName = write.name;
      if (row && isExplained(write, row)) unexplained.delete(row);
      if (write.outcome === 'in doubt') {
        verdict.inDoubt += 1;
        verdict.kept += row ? 1 : 0;
        Object.assign(write, row ? { outcome: 'acknowledged', requestId: row.requestId } : { outcome: 'dropped' });
      } else if (write.outcome === 'acknowledged' && row?.requestId !== write.requestId) {
        verdict.lost += 1;
        write.outcome = 'lost';
      }
    }
    for (const { id } of unexplained) {
      if (!this.#phantoms.has(id)) verdict.phantom += 1;
      this.#phantoms.add(id);
    }
    verdict.torn = accountName === lastName ? 0 : 1;
    return verdict;
  }
}

function isExplained({ outcome, requestId }: Write, row: AuditEntry): boolean {
  switch (outcome) {
    case 'in doubt':
    // PostgreSQL may complete a killed service's write even after the comparison; no answer contradicts it.
    case 'dropped':
      return true;
    case 'acknowledged':
      return row.requestId === requestId;
    case 'refused':
    case 'lost':
      return false;
  }
}

export function sum(verdicts: readonly Verdict[]): Verdict {
  const total = { ...NOTHING };
  for (const verdict of verdicts) {
    for (const field of Object.keys(total) as (keyof Verdict)[]) total[field] += verdict[field];
  }
  return total;
}
