// Compares throughput on a noisy machine: short interleaved rounds, each starting with another candidate, and the median
// over a candidate's rounds. A disturbance of a second then affects all candidates alike.

export interface Candidate {
  readonly name: string;
  /** Name of the candidate that is this one's upper bound. */
  readonly boundedBy?: string;
  /** Works until `performance.now()` reaches the deadline; resolves with the number of operations completed. */
  run(deadline: number): Promise<number>;
}

export interface Result {
  readonly candidate: Candidate;
  readonly median: number;
  readonly slowest: number;
  readonly fastest: number;
}

interface Rounds {
  readonly rounds: number;
  readonly roundMs: number;
}

export async function compare(candidates: readonly Candidate[], { rounds, roundMs }: Rounds): Promise<Result[]> {
  const rates = new Map<Candidate, number[]>(candidates.map((candidate) => [candidate, []]));
  // Round 0 is the warm-up and is discarded.
  for (let round = 0; round <= rounds; round += 1) {
    const first = round % candidates.length;
    for (const candidate of [...candidates.slice(first), ...candidates.slice(0, first)]) {
      const rate = await rateOf(candidate, roundMs);
      if (round > 0) rates.get(candidate)?.push(rate);
    }
  }
  return candidates.map((candidate) => resultOf(candidate, rates.get(candidate) ?? []));
}

async function rateOf(candidate: Candidate, roundMs: number): Promise<number> {
  const started = performance.now();
  const completed = await candidate.run(started + roundMs);
  // The last operation may end after the deadline; its time counts, as its work does.
  return completed / ((performance.now() - started) / 1000);
}

function resultOf(candidate: Candidate, rates: readonly number[]): Result {
  const sorted = rates.toSorted((one, other) => one - other);
  return { candidate, median: medianOf(sorted), slowest: sorted.at(0) ?? 0, fastest: sorted.at(-1) ?? 0 };
}

export function medianOf(sorted: readonly number[]): number {
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}

/** Runs `count` concurrent loops until the deadline; resolves with the number of operations completed. */
export async function runConcurrently(count: number, deadline: number, operation: (lane: number) => Promise<void>) {
  let completed = 0;
  const lane = async (_: unknown, index: number) => {
    while (performance.now() < deadline) {
      await operation(index);
      completed += 1;
    }
  };
  await Promise.all(Array.from({ length: count }, lane));
  return completed;
}

export function tableOf(results: readonly Result[]): string[] {
  const rows = results.map(({ candidate, median, slowest, fastest }) => {
    const bound = results.find((other) => other.candidate.name === candidate.boundedBy);
    return [
      candidate.name,
      median.toFixed(0),
      `${slowest.toFixed(0)}–${fastest.toFixed(0)}`,
      bound ? (median / bound.median).toFixed(2) : '',
      candidate.boundedBy ?? '',
    ];
  });
  const header = ['', 'writes/s', 'range', 'ratio', 'to'];
  return aligned([header, ...rows], [1, 2, 3]);
}

/** Pads the cells to columns; the listed columns are aligned to the right. */
function aligned(rows: readonly (readonly string[])[], right: readonly number[]): string[] {
  const width = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  const pad = (cell: string, column: number) =>
    right.includes(column) ? cell.padStart(width(column)) : cell.padEnd(width(column));
  return rows.map((row) => row.map(pad).join('  ').trimEnd());
}
