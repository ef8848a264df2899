// Bounds the volume of the log per fault: a fault that repeats is written once, and then counted. When the time is over,
// one line says how often it came up meanwhile.
import type { ErrorLine, Log, LogLine, NoticeLine } from './log.ts';

const WITHIN_MS = 60_000;
/** Distinct faults that are counted at a time; further ones are written as they come. */
const MAX_FAULTS = 200;

type Fault = ErrorLine | (NoticeLine & { readonly event: 'store_unavailable' });

const isFault = (line: LogLine): line is Fault => line.event === 'error' || line.event === 'store_unavailable';

/** What makes two faults the same: their kind and place, not the request that met them. */
const causeOf = (line: Fault): string =>
  line.event === 'error'
    ? [line.chore, line.name, line.code, line.message, line.stack[0]].join('\n')
    : `${line.event}\n${line.text}`;

export function summarized(log: Log, withinMs = WITHIN_MS): Log {
  const repeats = new Map<string, number>();

  function begin(cause: string, line: Fault): void {
    repeats.set(cause, 0);
    const end = () => {
      const times = repeats.get(cause) ?? 0;
      repeats.delete(cause);
      const text = line.event === 'error' ? `${line.name}: ${line.message}` : line.text;
      if (times > 0) log({ event: 'repeated', of: line.event, times, within_ms: withinMs, text });
    };
    setTimeout(end, withinMs).unref();
  }

  return (line) => {
    if (!isFault(line)) return log(line);
    const cause = causeOf(line);
    const known = repeats.get(cause);
    if (known !== undefined) {
      repeats.set(cause, known + 1);
      return;
    }
    log(line);
    if (repeats.size < MAX_FAULTS) begin(cause, line);
  };
}
