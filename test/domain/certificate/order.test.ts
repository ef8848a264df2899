import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  FIRST_STATUSES,
  ORDER_STATUSES,
  requireTransition,
  TRANSITIONS,
} from '../../../src/domain/certificate/order.ts';
import { Refusal } from '../../../src/domain/errors.ts';

/** The table of the decision record, row by row: from, to. */
function recordedTransitions(): Map<string, string[]> {
  const record = new URL('../../../docs/adr/0007-orders-certificates-and-ids.md', import.meta.url);
  const rows = readFileSync(record, 'utf8')
    .split('\n')
    .filter((line) => /^\| [`(]/.test(line));
  const wordsOf = (cell: string): string[] =>
    [...cell.matchAll(/`([a-z_]+)`|\((placed)\)/g)].map(([, a, b]) => a ?? b ?? '');
  return new Map(
    rows.flatMap((row) => {
      const [, from = '', to = ''] = row.split('|');
      return wordsOf(from).map((word) => [word, wordsOf(to)] as const);
    }),
  );
}

test('the transitions are those of the decision record, checked for every pair', () => {
  const recorded = recordedTransitions();
  assert.deepEqual(recorded.get('placed'), [...FIRST_STATUSES]);
  assert.deepEqual([...recorded.keys()].sort(), ['placed', ...ORDER_STATUSES].sort());
  for (const from of ORDER_STATUSES) {
    assert.deepEqual([...TRANSITIONS[from]].sort(), recorded.get(from)?.sort(), from);
    for (const to of ORDER_STATUSES) {
      if (recorded.get(from)?.includes(to)) {
        assert.doesNotThrow(() => requireTransition(from, to));
        continue;
      }
      assert.throws(
        () => requireTransition(from, to),
        (error) =>
          error instanceof Refusal &&
          error.code === 'order_state_conflict' &&
          error.facts.details?.status === from &&
          !!error.facts.reason?.en.includes(to),
        `${from} → ${to}`,
      );
    }
  }
});

test('every status is reachable, and a final status from each', () => {
  const reach = (start: readonly string[]): Set<string> => {
    const seen = new Set(start);
    for (const status of seen) for (const next of TRANSITIONS[status as keyof typeof TRANSITIONS]) seen.add(next);
    return seen;
  };
  assert.deepEqual([...reach(FIRST_STATUSES)].sort(), [...ORDER_STATUSES].sort());
  const finals = ORDER_STATUSES.filter((status) => TRANSITIONS[status].length === 0);
  for (const status of ORDER_STATUSES)
    assert.ok(
      finals.some((final) => reach([status]).has(final)),
      status,
    );
});
