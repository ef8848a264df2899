// The import rules of the code as a function of its import graph, so that a test can plant a fault and see it found.
import { dirname, join, normalize } from 'node:path';

/** A file's imports, by path from the project's root. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

const IMPORT = /^(?:import|export)\s[^'";]*?from\s+['"]([^'"]+)['"]|^import\s+['"]([^'"]+)['"]/gm;

export const importsOf = (source: string): string[] =>
  [...source.matchAll(IMPORT)].map(([, from, bare]) => from ?? bare ?? '');

/** Type-only imports count: a reader follows them too. */
export const importGraph = (files: readonly string[], read: (file: string) => string): ImportGraph =>
  new Map(
    files.map((file) => [
      file,
      importsOf(read(file))
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => normalize(join(dirname(file), specifier))),
    ]),
  );

/** Every group of files that import each other, directly or through others (Tarjan's algorithm). */
export function circlesIn(graph: ImportGraph): string[][] {
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

/** The entry of the ranking a file belongs to: the file itself, or the nearest folder that is listed. */
export function unitOf(file: string, ranking: readonly string[]): string | undefined {
  for (let path = file; path !== '.'; path = dirname(path)) if (ranking.includes(path)) return path;
  return undefined;
}

/** Imports from a unit that is not below the importing one in the ranking (lowest first). */
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
