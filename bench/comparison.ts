// A fair race on a noisy machine: short rounds, contenders in turn, each round beginning with another one, and the
// median of a contender's rounds. Whatever disturbs the machine for a second then disturbs everybody. What a
// contender does, and with whom it is compared, it says itself.

export interface Contender {
  readonly name: string;
  /** The name of the contender that bounds this one. */
  readonly boundedBy?: string;
  /** Works until `performance.now()` reaches the deadline; resolves with the number of durable writes it made. */
  run(deadline: number): Promise<number>;
}

export interface Standing {
  readonly contender: Contender;
  readonly median: number;
  readonly slowest: number;
  readonly fastest: number;
}

export interface Race {
  readonly rounds: number;
  readonly roundMs: number;
}

export async function race(contenders: readonly Contender[], { rounds, roundMs }: Race): Promise<Standing[]> {
  const rates = new Map<Contender, number[]>(contenders.map((contender) => [contender, []]));
  // Round 0 warms caches and compilers up, and is forgotten.
  for (let round = 0; round <= rounds; round += 1) {
    const first = round % contenders.length;
    for (const contender of [...contenders.slice(first), ...contenders.slice(0, first)]) {
      const rate = await rateOf(contender, roundMs);
      if (round > 0) rates.get(contender)?.push(rate);
    }
  }
  return contenders.map((contender) => standingOf(contender, rates.get(contender) ?? []));
}

async function rateOf(contender: Contender, roundMs: number): Promise<number> {
  const started = performance.now();
  const writes = await contender.run(started + roundMs);
  // The last write may end after the deadline: its time counts, as its work does.
  return writes / ((performance.now() - started) / 1000);
}

function standingOf(contender: Contender, rates: readonly number[]): Standing {
  const sorted = rates.toSorted((one, other) => one - other);
  return { contender, median: medianOf(sorted), slowest: sorted.at(0) ?? 0, fastest: sorted.at(-1) ?? 0 };
}

export function medianOf(sorted: readonly number[]): number {
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}

/** Loops as many as wished, side by side, until the deadline. */
export async function sideBySide(count: number, deadline: number, write: (lane: number) => Promise<void>) {
  let writes = 0;
  const lane = async (_: unknown, index: number) => {
    while (performance.now() < deadline) {
      await write(index);
      writes += 1;
    }
  };
  await Promise.all(Array.from({ length: count }, lane));
  return writes;
}

export function tableOf(standings: readonly Standing[]): string[] {
  const rows = standings.map(({ contender, median, slowest, fastest }) => {
    const bound = standings.find((other) => other.contender.name === contender.boundedBy);
    return [
      contender.name,
      median.toFixed(0),
      `${slowest.toFixed(0)}–${fastest.toFixed(0)}`,
      bound ? (median / bound.median).toFixed(2) : '',
      contender.boundedBy ?? '',
    ];
  });
  const header = ['', 'writes/s', 'range', 'ratio', 'to'];
  const widths = header.map((_, column) => Math.max(...[header, ...rows].map((row) => row[column]!.length)));
  return [header, ...rows].map((row) =>
    row
      .map((cell, column) =>
        column >= 1 && column <= 3 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join('  ')
      .trimEnd(),
  );
}
