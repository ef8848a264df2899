// What processes have cost so far, read from /proc: CPU time, bytes and calls of writing. A service is its whole process
// tree, whatever it splits its work into.
import { readdirSync, readFileSync } from 'node:fs';

interface ProcessCost {
  readonly cpuMicros: number;
  /** Passed to write calls: files, answers and log lines; not datagrams. */
  readonly writtenBytes: number;
  readonly writeCalls: number;
}

// USER_HZ, which Linux fixes at 100 for /proc on every architecture that we run on.
const TICK_MICROS = 10_000;

/** Of a process and its descendants; those that have ended count through the parent that waited for them. */
export function costOf(root: number): ProcessCost {
  const stats = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => statOf(Number(name)));
  const tree = new Set([root]);
  for (let size = 0; size < tree.size; ) {
    size = tree.size;
    for (const { pid, parent } of stats) if (tree.has(parent)) tree.add(pid);
  }
  const members = stats.filter(({ pid }) => tree.has(pid));
  if (!members.some(({ pid }) => pid === root)) throw new Error(`process ${root} has ended`);
  const writes = members.map(({ pid }) => writesOf(pid));
  return {
    cpuMicros: sum(members.map(({ ticks }) => ticks)) * TICK_MICROS,
    writtenBytes: sum(writes.map(({ bytes }) => bytes)),
    writeCalls: sum(writes.map(({ calls }) => calls)),
  };
}

/** CPU time of the machine so far, and how much of it was used; in ticks. */
export function machineTicks(): { readonly used: number; readonly all: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  // user nice system idle iowait irq softirq steal; the guest columns are part of the first two.
  const ticks = line.split(/\s+/).slice(1, 9).map(Number);
  const idle = (ticks[3] ?? 0) + (ticks[4] ?? 0);
  return { used: sum(ticks) - idle, all: sum(ticks) };
}

function statOf(pid: number): { pid: number; parent: number; ticks: number }[] {
  const text = readIfThere(`/proc/${pid}/stat`);
  if (text === undefined) return [];
  // The name in parentheses may contain anything; what follows its end is numbers.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  // utime stime cutime cstime
  return [{ pid, parent: Number(fields[1]), ticks: sum(fields.slice(11, 15).map(Number)) }];
}

function writesOf(pid: number): { bytes: number; calls: number } {
  const text = readIfThere(`/proc/${pid}/io`) ?? '';
  const value = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
  return { bytes: value('wchar'), calls: value('syscw') };
}

/** A process may end while the tree is read. */
function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
