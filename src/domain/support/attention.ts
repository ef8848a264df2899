// What needs the operator's attention, the worst first. Pure.
import { HOUR_MS } from '../../kernel/durations.ts';
import type { Diagnostic } from '../../kernel/problem.ts';
import type { StoreFacts } from './ports.ts';

export const ATTENTION_KINDS = ['doctor', 'store', 'waiting', 'revocations', 'lanes'] as const;
export type AttentionKind = (typeof ATTENTION_KINDS)[number];

export interface Attention {
  readonly kind: AttentionKind;
  readonly severity: 'problem' | 'warning';
  /** Of the doctor: what was checked, found, and what to do. */
  readonly diagnostic: Diagnostic | null;
  /** How many, and since when the first. */
  readonly count: number | null;
  readonly since: number | null;
}

/** An applicant publishes a record within a day, or needs help. */
const LONG_WAIT_MS = 24 * HOUR_MS;
/** A running service revokes within seconds. */
const OVERDUE_MS = 60_000;

/** Said below from the store itself, which is more recent than a run of the doctor. */
const SAID_HERE: ReadonlySet<string> = new Set(['callbacks', 'revocation']);

/** `facts` are undefined if the store could not be read. */
export function attentionOf(facts: StoreFacts | undefined, findings: readonly Diagnostic[]): Attention[] {
  const items: Attention[] = [];
  for (const diagnostic of findings) {
    const { check, state } = diagnostic;
    // A problem of revocation may be more than what is overdue.
    if (state === 'ok' || (state === 'warning' && SAID_HERE.has(check))) continue;
    items.push({ kind: 'doctor', severity: state, diagnostic, count: null, since: null });
  }
  const add = (kind: AttentionKind, severity: Attention['severity'], count: number | null, since: number | null) =>
    items.push({ kind, severity, diagnostic: null, count, since });
  if (!facts) add('store', 'problem', null, null);
  else {
    const { now, waiting, overdue, queue } = facts;
    if (waiting.oldestAt !== null && waiting.oldestAt < now - LONG_WAIT_MS) {
      add('waiting', 'warning', waiting.count, waiting.oldestAt);
    }
    if (overdue.oldestAt !== null && overdue.oldestAt < now - OVERDUE_MS) {
      add('revocations', 'problem', overdue.count, overdue.oldestAt);
    }
    if (queue.degradedLanes > 0) add('lanes', 'warning', queue.degradedLanes, queue.oldestPendingAt);
  }
  return items.sort((one, other) => Number(other.severity === 'problem') - Number(one.severity === 'problem'));
}
