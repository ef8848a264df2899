// Runs the named benchmarks, or all that are not optional. Each measures something against its upper bound, on the same machine in the same
// run.
import { acme } from './acme.ts';
import type { Bench } from './bench.ts';
import { callbacks } from './callbacks.ts';
import { durableWrites } from './durable-writes.ts';
import { growth } from './growth.ts';
import { heldKeys } from './held-keys.ts';
import { parts } from './parts.ts';
import { reissues } from './reissues.ts';
import { revocations } from './revocations.ts';

const BENCHES: Readonly<Record<string, Bench>> = {
  'durable-writes': durableWrites,
  reissues,
  'held-keys': heldKeys,
  callbacks,
  revocations,
  acme,
  parts,
  growth,
};

const EXIT = { done: 0, usage: 2 } as const;

process.exitCode = await main(process.argv.slice(2));

async function main(names: readonly string[]): Promise<number> {
  const unknown = names.find((name) => !Object.hasOwn(BENCHES, name));
  if (unknown !== undefined) {
    process.stderr.write(`There is no bench "${unknown}".\n${usage()}\n`);
    return EXIT.usage;
  }
  for (const [name, bench] of Object.entries(BENCHES)) {
    if (names.length > 0 ? !names.includes(name) : bench.isOptional) continue;
    const started = performance.now();
    process.stdout.write(`${name}: ${bench.about}\n\n`);
    await bench.run((line) => process.stdout.write(`${line}\n`));
    process.stdout.write(`\n${name}: ${((performance.now() - started) / 1000).toFixed(1)} s\n`);
  }
  return EXIT.done;
}

function usage(): string {
  const lines = Object.entries(BENCHES).map(
    ([name, { about, isOptional }]) => `  ${name}  ${about}${isOptional ? ' (only if named)' : ''}`,
  );
  return `npm run bench [-- NAME]\n\n${lines.join('\n')}`;
}
