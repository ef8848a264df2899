// The import rules as functions of the import graph, so that a test can plant a violation and see it found.
import { dirname, join, normalize } from 'node:path';

/** A file's imports, by path from the project's root. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

const IMPORT = /^(?:import|export)\s[^'";]*?from\s+['"]([^'"]+)['"]|^import\s+['"]([^'"]+)['"]/gm;

export const importsOf = (source: string): string[] =>
  [...source.matchAll(IMPORT)].map(([, from, bare]) => from ?? bare ?? '');

/** Type-only imports count: readers follow them too. */
export const importGraph = (files: readonly string[], read: (file: string) => string): ImportGraph =>
  new Map(
    files.map((file) => [
      file,
      importsOf(read(file))
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => normalize(join(dirname(file), specifier))),
    ]),
  );

/** Import cycles: the strongly connected components of the graph (Tarjan's algorithm). */
export function importCycles(graph: ImportGraph): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const circles: string[][] = [];
  const visit = (file: string): number => {
    const mine = order.size;
    order.set(file, mine);
    stack.push(file);
    let low = mine;
    for (const target of graph.get(file) ?? []) {
      if (!order.has(target)) low = Math.min(low, visit(target));
      else if (stack.includes(target)) low = Math.min(low, order.get(target) ?? mine);
    }
    lowest.set(file, low);
    if (low === mine) {
      const group = stack.splice(stack.indexOf(file));
      if (group.length > 1 || (graph.get(file) ?? []).includes(file)) circles.push(group);
    }
    return low;
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return circles;
}

/** The ranking entry of a file: the file itself, or its nearest listed folder. */
export function unitOf(file: string, ranking: readonly string[]): string | undefined {
  for (let path = file; path !== '.'; path = dirname(path)) if (ranking.includes(path)) return path;
  return undefined;
}

/** Imports of a unit that ranks higher than the importing one (lowest first). */
export function upwardImports(graph: ImportGraph, ranking: readonly string[]): string[] {
  return [...graph].flatMap(([file, targets]) =>
    targets.flatMap((target) => {
      const [from, to] = [unitOf(file, ranking), unitOf(target, ranking)];
      if (from === undefined) return [`${file} is in no folder of the table`];
      if (to === undefined) return [`${target} is in no folder of the table`];
      return from === to || ranking.indexOf(to) < ranking.indexOf(from) ? [] : [`${file} imports ${target}`];
    }),
  );
}
